//! The attributes of an entry in one allocation.
//!
//! An entry of a directory of people has some twenty attributes of a few bytes; a vector of vectors would double its
//! size and scatter it over memory. So they are written one after the other, in the order of type number and options:
//! the length of the whole record, the type, the options, the number of values, and each value with its length, all
//! numbers as LEB128. Invariants: no two records have the same type and options; a record has at least one value;
//! records are in ascending order. Only this module writes the bytes, so reading them cannot fail.

use cowslip_ldap::schema::AttributeTypeId;

/// The attributes of an entry, apart from those that have a form of their own (references, very many values).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Box<[u8]>);

/// One attribute of an entry: a type with options, and its values as the client sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeRef<'a> {
    /// The type.
    pub kind: AttributeTypeId,
    /// Its options in lower case, sorted, joined by `;`; mostly none.
    pub options: &'a str,
    count: usize,
    values: &'a [u8],
    record: &'a [u8],
}

impl Attributes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that they take.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The attributes as bytes, for [`from_bytes`](Self::from_bytes).
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Attributes that were written by [`as_bytes`](Self::as_bytes); none if the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let attributes = Self(bytes.into());
        let is_whole = is_well_formed(bytes, |record| {
            let mut rest = record;
            take_number(&mut rest);
            let options = take_bytes(&mut rest);
            let count = take_number(&mut rest);
            let mut values = 0;
            std::str::from_utf8(options).is_ok()
                && is_well_formed(rest, |_| {
                    values += 1;
                    true
                })
                && values == count
                && count > 0
        });
        let is_sorted = || attributes.iter().map(|a| (a.kind, a.options)).is_sorted_by(|a, b| a < b);
        (is_whole && is_sorted()).then_some(attributes)
    }

    /// All attributes in the order of type and options.
    pub fn iter(&self) -> impl Iterator<Item = AttributeRef<'_>> + Clone {
        Records(&self.0)
    }

    /// The attribute of exactly this type with exactly these options.
    pub fn attribute(&self, kind: AttributeTypeId, options: &str) -> Option<AttributeRef<'_>> {
        self.of_type(kind).find(|attribute| attribute.options == options)
    }

    /// The attributes of this type, with whatever options.
    pub fn of_type(&self, kind: AttributeTypeId) -> impl Iterator<Item = AttributeRef<'_>> + Clone {
        Records(skipped(&self.0, kind)).take_while(move |attribute| attribute.kind == kind)
    }
}

impl<'a> AttributeRef<'a> {
    /// The number of values; never 0.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no values: never.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values in the order of their coming.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        Values { left: self.count, bytes: self.values }
    }

    /// The first value.
    pub fn first(&self) -> &'a [u8] {
        self.values().next().unwrap_or_default()
    }
}

/// Writes the attributes of an entry, which must be given in ascending order.
#[derive(Debug, Default)]
pub struct AttributesWriter {
    out: Vec<u8>,
    scratch: Vec<u8>,
}

impl AttributesWriter {
    /// A writer that expects about so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), scratch: Vec::new() }
    }

    /// Copies an attribute as it is.
    pub fn copy(&mut self, attribute: AttributeRef<'_>) {
        write_number(&mut self.out, attribute.record.len());
        self.out.extend_from_slice(attribute.record);
    }

    /// Writes an attribute; one without values is left out.
    pub fn write<'v>(
        &mut self,
        kind: AttributeTypeId,
        options: &str,
        values: impl ExactSizeIterator<Item = &'v [u8]>,
    ) {
        if values.len() == 0 {
            return;
        }
        self.scratch.clear();
        write_number(&mut self.scratch, kind.0 as usize);
        write_bytes(&mut self.scratch, options.as_bytes());
        write_number(&mut self.scratch, values.len());
        for value in values {
            write_bytes(&mut self.scratch, value);
        }
        write_bytes(&mut self.out, &self.scratch);
    }

    /// The attributes written.
    pub fn finish(self) -> Attributes {
        let attributes = Attributes(self.out.into_boxed_slice());
        debug_assert!(
            attributes.iter().map(|a| (a.kind, a.options)).is_sorted_by(|a, b| a < b),
            "attributes are written in order, each once"
        );
        attributes
    }
}

/// What follows the records of types before this one, which are passed over without looking into them.
fn skipped(mut bytes: &[u8], kind: AttributeTypeId) -> &[u8] {
    while !bytes.is_empty() {
        let mut rest = bytes;
        let mut record = take_bytes(&mut rest);
        if take_number(&mut record) >= kind.0 as usize {
            break;
        }
        bytes = rest;
    }
    bytes
}

#[derive(Clone)]
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = AttributeRef<'a>;

    fn next(&mut self) -> Option<AttributeRef<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let record = take_bytes(&mut self.0);
        let mut rest = record;
        let kind = AttributeTypeId(u32::try_from(take_number(&mut rest)).unwrap_or(u32::MAX));
        let options = std::str::from_utf8(take_bytes(&mut rest)).unwrap_or_default();
        let count = take_number(&mut rest);
        Some(AttributeRef { kind, options, count, values: rest, record })
    }
}

#[derive(Clone)]
struct Values<'a> {
    left: usize,
    bytes: &'a [u8],
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        Some(take_bytes(&mut self.bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Values<'_> {}

/// Appends a number in LEB128.
pub(crate) fn write_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes behind their length.
pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Whether bytes are pieces behind their lengths, each of which passes.
fn is_well_formed(mut bytes: &[u8], mut passes: impl FnMut(&[u8]) -> bool) -> bool {
    while !bytes.is_empty() {
        let length = take_number(&mut bytes);
        let Some((piece, rest)) = bytes.split_at_checked(length) else { return false };
        if !passes(piece) {
            return false;
        }
        bytes = rest;
    }
    true
}

fn take_number(bytes: &mut &[u8]) -> usize {
    // Most numbers are small.
    if let [first @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return usize::from(*first);
    }
    let mut number = 0;
    let mut shift = 0;
    while let Some((first, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= usize::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 || shift >= usize::BITS {
            break;
        }
    }
    number
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = take_number(bytes).min(bytes.len());
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const CN: AttributeTypeId = AttributeTypeId(3);
    const SN: AttributeTypeId = AttributeTypeId(400);

    fn sample() -> Attributes {
        let mut writer = AttributesWriter::default();
        writer.write(CN, "", [b"Amy Doe".as_slice(), b""].into_iter());
        writer.write(CN, "lang-de", [b"x".as_slice()].into_iter());
        writer.write(SN, "", [vec![7; 300].as_slice()].into_iter());
        writer.write(AttributeTypeId(401), "", [].into_iter());
        writer.finish()
    }

    #[test]
    fn what_was_written_is_read() {
        let attributes = sample();
        let read: Vec<_> =
            attributes.iter().map(|a| (a.kind, a.options, a.values().map(<[u8]>::len).collect())).collect();
        let lengths: [(_, _, Vec<usize>); 3] =
            [(CN, "", vec![7, 0]), (CN, "lang-de", vec![1]), (SN, "", vec![300])];
        assert_eq!(read, lengths);
        assert_eq!(attributes.of_type(CN).count(), 2);
        assert_eq!(attributes.attribute(CN, "lang-de").map(|a| a.first()), Some(b"x".as_slice()));
        assert_eq!(attributes.attribute(SN, "x"), None);
    }

    #[test]
    fn copying_gives_the_same() {
        let attributes = sample();
        let mut writer = AttributesWriter::with_capacity(attributes.bytes());
        attributes.iter().for_each(|attribute| writer.copy(attribute));
        assert_eq!(writer.finish(), attributes);
    }
}
