//! Controls (RFC 4511 section 4.1.11).

use super::error::{Fault, Problem};
use super::tags;
use super::values::text;
use crate::ber::{self, Reader};

/// A control of a request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control<'a> {
    /// Its object identifier in dotted form.
    pub oid: &'a str,
    /// Whether the request must be refused by who doesn't know the control.
    pub is_critical: bool,
    /// What the control says, encoded as its specification has it.
    pub value: Option<&'a [u8]>,
}

impl<'a> Control<'a> {
    fn read(content: &mut Reader<'a>) -> Result<Self, Problem> {
        let oid = content.octets()?;
        let is_critical = match content.optional(ber::BOOLEAN)? {
            Some(octets) => ber::boolean_of(ber::BOOLEAN, octets)?,
            None => false,
        };
        let value = content.optional(ber::OCTET_STRING)?;
        content.skip_extensions()?;
        Ok(Self { oid: text(oid, "the type of a control")?, is_critical, value })
    }
}

/// Reads what is left of a message after its operation: controls, if there are some.
pub(super) fn read_controls<'a>(message: &mut Reader<'a>, max: usize) -> Result<Vec<Control<'a>>, Problem> {
    let Some(content) = message.optional(tags::CONTROLS)? else {
        message.skip_extensions()?;
        return Ok(Vec::new());
    };
    message.skip_extensions()?;
    let mut list = Reader::new(content);
    let mut controls = Vec::new();
    while !list.is_empty() {
        if controls.len() == max {
            return Err(Fault::TooManyControls { max }.into());
        }
        controls.push(Control::read(&mut list.within(ber::SEQUENCE)?)?);
    }
    Ok(controls)
}

/// Appends a message's controls; nothing if there are none.
pub(super) fn write_controls(out: &mut Vec<u8>, controls: &[Control<'_>]) {
    if controls.is_empty() {
        return;
    }
    let list = ber::begin(out, tags::CONTROLS);
    for control in controls {
        let sequence = ber::begin(out, ber::SEQUENCE);
        ber::octets(out, ber::OCTET_STRING, control.oid.as_bytes());
        if control.is_critical {
            ber::boolean(out, true);
        }
        if let Some(value) = control.value {
            ber::octets(out, ber::OCTET_STRING, value);
        }
        ber::end(out, sequence);
    }
    ber::end(out, list);
}
