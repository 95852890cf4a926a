//! Lists within a message: checked once as a whole, then walked without allocation.
//!
//! Invariant: the octets of a list have been checked when it is made, so that walking it can't fail; a list of length 0
//! may come from no octets at all.

use super::error::{Fault, Problem};
use super::request::ChangeOperation;
use crate::ber::{self, BerError, Reader};

/// Values of an attribute, or other strings of octets, in the order received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    content: &'a [u8],
}

impl<'a> Values<'a> {
    /// No values.
    pub const EMPTY: Self = Self { content: &[] };

    /// Checks that the content is octet strings one after another.
    pub(super) fn read(content: &'a [u8]) -> Result<Self, BerError> {
        let mut reader = Reader::new(content);
        while !reader.is_empty() {
            reader.octets()?;
        }
        Ok(Self { content })
    }

    /// How many there are. Walks them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// Walks them.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.content);
        std::iter::from_fn(move || reader.octets().ok())
    }
}

/// Texts, in the order received: a search's list of attributes, or URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts<'a> {
    values: Values<'a>,
}

impl<'a> Texts<'a> {
    /// No texts.
    pub const EMPTY: Self = Self { values: Values::EMPTY };

    /// Checks the list, and that it has at most so many members.
    pub(super) fn read(content: &'a [u8], field: &'static str, max: usize) -> Result<Self, Problem> {
        let mut reader = Reader::new(content);
        let mut count = 0;
        let mut fault = None;
        while !reader.is_empty() {
            let octets = reader.octets()?;
            count += 1;
            if fault.is_none() && std::str::from_utf8(octets).is_err() {
                fault = Some(Fault::Text { field });
            }
        }
        if count > max {
            fault = Some(Fault::TooManyAttributes { max });
        }
        match fault {
            Some(fault) => Err(fault.into()),
            None => Ok(Self { values: Values { content } }),
        }
    }

    /// How many there are. Walks them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Walks them.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.values.iter().map_while(|octets| std::str::from_utf8(octets).ok())
    }
}

/// An attribute: its description and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The attribute description as it was sent; any text.
    pub description: &'a str,
    /// The values.
    pub values: Values<'a>,
}

impl<'a> Attribute<'a> {
    /// Reads description and values from what holds just them.
    pub(super) fn read(content: &mut Reader<'a>) -> Result<Self, Problem> {
        let description = content.octets()?;
        let values = Values::read(content.expect(ber::SET)?)?;
        content.skip_extensions()?;
        let description = text(description, "an attribute description")?;
        Ok(Self { description, values })
    }

    /// The same from octets that were checked.
    fn reread(content: &mut Reader<'a>) -> Option<Self> {
        let description = std::str::from_utf8(content.octets().ok()?).ok()?;
        Some(Self { description, values: Values { content: content.expect(ber::SET).ok()? } })
    }
}

/// Attributes of an entry, in the order received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    content: &'a [u8],
    count: usize,
}

impl<'a> Attributes<'a> {
    /// Checks the list, each attribute by `check`.
    pub(super) fn read(
        content: &'a [u8],
        mut check: impl FnMut(&Attribute<'a>) -> Result<(), Fault>,
    ) -> Result<Self, Problem> {
        let count = read_all(content, |reader| {
            let attribute = Attribute::read(reader)?;
            Ok(check(&attribute)?)
        })?;
        Ok(Self { content, count })
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Walks them.
    pub fn iter(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let mut reader = Reader::new(self.content);
        std::iter::from_fn(move || Attribute::reread(&mut reader.within(ber::SEQUENCE).ok()?))
    }
}

/// One change of a modify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// What to do with the values.
    pub operation: ChangeOperation,
    /// The attribute, with the values to add, delete, put in place of all, or increment by.
    pub attribute: Attribute<'a>,
}

impl<'a> Change<'a> {
    fn read(content: &mut Reader<'a>) -> Result<Self, Problem> {
        let number = content.enumerated()?;
        let attribute = Attribute::read(&mut content.within(ber::SEQUENCE)?);
        content.skip_extensions()?;
        let attribute = attribute?;
        let operation = ChangeOperation::from_number(number)
            .ok_or(Fault::Number { field: "the operation of a change", number })?;
        match operation {
            ChangeOperation::Add if attribute.values.is_empty() => {
                Err(Fault::NoValues { attribute: attribute.description.to_owned() }.into())
            }
            ChangeOperation::Increment if attribute.values.len() != 1 => {
                let values = attribute.values.len();
                Err(Fault::IncrementValues { attribute: attribute.description.to_owned(), values }.into())
            }
            _ => Ok(Self { operation, attribute }),
        }
    }

    fn reread(content: &mut Reader<'a>) -> Option<Self> {
        let operation = ChangeOperation::from_number(content.enumerated().ok()?)?;
        let attribute = Attribute::reread(&mut content.within(ber::SEQUENCE).ok()?)?;
        Some(Self { operation, attribute })
    }
}

/// The changes of a modify, in the order received, which is the order in which they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes<'a> {
    content: &'a [u8],
    count: usize,
}

impl<'a> Changes<'a> {
    pub(super) fn read(content: &'a [u8]) -> Result<Self, Problem> {
        let count = read_all(content, |reader| Change::read(reader).map(drop))?;
        Ok(Self { content, count })
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Walks them.
    pub fn iter(&self) -> impl Iterator<Item = Change<'a>> + use<'a> {
        let mut reader = Reader::new(self.content);
        std::iter::from_fn(move || Change::reread(&mut reader.within(ber::SEQUENCE).ok()?))
    }
}

/// Reads all sequences of a list and counts them. A fault in one does not hide damage in a later one, because damage
/// ends the connection.
fn read_all<'a>(
    content: &'a [u8],
    mut read: impl FnMut(&mut Reader<'a>) -> Result<(), Problem>,
) -> Result<usize, Problem> {
    let mut reader = Reader::new(content);
    let mut count = 0;
    let mut fault = None;
    while !reader.is_empty() {
        match read(&mut reader.within(ber::SEQUENCE)?) {
            Err(Problem::Fault(found)) => fault = fault.or(Some(found)),
            other => other?,
        }
        count += 1;
    }
    fault.map_or(Ok(count), |fault| Err(fault.into()))
}

/// Octets as text.
pub(super) fn text<'a>(octets: &'a [u8], field: &'static str) -> Result<&'a str, Fault> {
    std::str::from_utf8(octets).map_err(|_| Fault::Text { field })
}
