//! Entries as a search answers them, written piece by piece: the hot path of a directory.

use super::control::write_controls;
use super::{Control, MessageId, tags};
use crate::ber::{self, Mark};

/// Appends one entry (RFC 4511 section 4.5.2) to a buffer: first the name, then attributes, each with its values.
///
/// A writer that is dropped before [`EntryWriter::finish`] takes back what it wrote, so that a buffer holds whole
/// messages only.
///
/// ```
/// use cowslip_ldap::message::{EntryWriter, MessageId, ResponseOperation, decode_response};
/// let mut out = Vec::new();
/// let id = MessageId::new(5).expect("in range");
/// let mut entry = EntryWriter::new(&mut out, id, b"uid=amy,dc=example");
/// entry.attribute("objectClass", ["account", "top"]);
/// entry.begin_attribute("uid");
/// entry.value(b"amy");
/// entry.end_attribute();
/// entry.finish(&[]);
/// let response = decode_response(&out)?;
/// let ResponseOperation::SearchEntry { name, attributes } = response.operation else { unreachable!() };
/// assert_eq!((name, attributes.len()), ("uid=amy,dc=example", 2));
/// # Ok::<(), cowslip_ldap::message::ResponseError>(())
/// ```
#[derive(Debug)]
#[must_use = "an entry that isn't finished is taken back"]
pub struct EntryWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    /// Message, operation and list of attributes, until they are closed.
    marks: Option<[Mark; 3]>,
    /// Attribute and its set of values, while one is open.
    attribute: Option<[Mark; 2]>,
}

impl<'o> EntryWriter<'o> {
    /// Begins an entry of this name.
    pub fn new(out: &'o mut Vec<u8>, id: MessageId, name: &[u8]) -> Self {
        Self::begin(out, id, |out| ber::octets(out, ber::OCTET_STRING, name))
    }

    /// Begins an entry whose name `write` appends, which saves putting it together elsewhere.
    pub fn with_name(out: &'o mut Vec<u8>, id: MessageId, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::begin(out, id, |out| write_string(out, write))
    }

    fn begin(out: &'o mut Vec<u8>, id: MessageId, name: impl FnOnce(&mut Vec<u8>)) -> Self {
        let start = out.len();
        let message = ber::begin_large(out, ber::SEQUENCE);
        ber::integer(out, ber::INTEGER, id.number().into());
        let operation = ber::begin_large(out, tags::SEARCH_ENTRY);
        name(out);
        let list = ber::begin_large(out, ber::SEQUENCE);
        Self { out, start, marks: Some([message, operation, list]), attribute: None }
    }

    /// Octets written so far.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.out.len() - self.start
    }

    /// Writes an attribute with all its values.
    pub fn attribute(&mut self, description: &str, values: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        self.begin_attribute(description);
        for value in values {
            self.value(value.as_ref());
        }
        self.end_attribute();
    }

    /// Begins an attribute; one that is open is ended.
    pub fn begin_attribute(&mut self, description: &str) {
        self.open_attribute(|out| ber::octets(out, ber::OCTET_STRING, description.as_bytes()));
    }

    /// Begins an attribute whose description `write` appends: a name and options, say.
    pub fn begin_attribute_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.open_attribute(|out| write_string(out, write));
    }

    fn open_attribute(&mut self, description: impl FnOnce(&mut Vec<u8>)) {
        self.end_attribute();
        let sequence = ber::begin(self.out, ber::SEQUENCE);
        description(self.out);
        let set = ber::begin(self.out, ber::SET);
        self.attribute = Some([sequence, set]);
    }

    /// Writes a value of the attribute that is open.
    #[inline]
    pub fn value(&mut self, value: &[u8]) {
        debug_assert!(self.attribute.is_some(), "values belong to an attribute");
        ber::octets(self.out, ber::OCTET_STRING, value);
    }

    /// Writes a value that `write` appends, which saves putting it together elsewhere.
    pub fn value_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.attribute.is_some(), "values belong to an attribute");
        write_string(self.out, write);
    }

    /// Ends the attribute that is open, if one is.
    pub fn end_attribute(&mut self) {
        if let Some([sequence, set]) = self.attribute.take() {
            ber::end(self.out, set);
            ber::end(self.out, sequence);
        }
    }

    /// Ends the entry, with its controls.
    pub fn finish(mut self, controls: &[Control<'_>]) {
        self.end_attribute();
        if let Some([message, operation, list]) = self.marks.take() {
            ber::end(self.out, list);
            ber::end(self.out, operation);
            write_controls(self.out, controls);
            ber::end(self.out, message);
        }
    }
}

impl Drop for EntryWriter<'_> {
    fn drop(&mut self) {
        if self.marks.is_some() {
            self.out.truncate(self.start);
        }
    }
}

fn write_string(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let string = ber::begin(out, ber::OCTET_STRING);
    write(out);
    ber::end(out, string);
}
