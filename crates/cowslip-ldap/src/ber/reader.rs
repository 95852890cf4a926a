//! Reading elements one after another.

use super::{BOOLEAN, ENUMERATED, INTEGER, OCTET_STRING, header};

/// Most octets of an integer. All that LDAP sends fit four; more are taken because some peers pad.
const INTEGER_OCTETS_MAX: usize = 8;

/// Why octets are not the element that belongs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BerError {
    /// The element, or what it says its length is, ends past its parent.
    #[error("an element goes past the end of what holds it")]
    Truncated,
    /// The length is of the indefinite form, which LDAP forbids.
    #[error("a length of the indefinite form")]
    IndefiniteLength,
    /// The length has more than four octets.
    #[error("a length of more than four octets")]
    LengthTooLong,
    /// The tag has more than one octet; no element of LDAP has.
    #[error("a tag of more than one octet")]
    TagTooLong,
    /// Another element stands there; strings in pieces count as such.
    #[error("tag {found:#04x} where {expected:#04x} belongs")]
    UnexpectedTag {
        /// The tag that belongs there.
        expected: u8,
        /// The tag that is there.
        found: u8,
    },
    /// Nothing stands there.
    #[error("the element of tag {expected:#04x} is missing")]
    Missing {
        /// The tag that belongs there.
        expected: u8,
    },
    /// An integer without octets or with more than eight, a Boolean with other than one, a null with any.
    #[error("{octets} octets of content in the element of tag {tag:#04x}")]
    ContentSize {
        /// The element's tag.
        tag: u8,
        /// How many octets it has.
        octets: usize,
    },
    /// Something follows the last element.
    #[error("octets follow the last element")]
    Trailing,
}

/// Elements read in order from the content of one constructed element.
///
/// ```
/// use cowslip_ldap::ber::Reader;
/// let mut reader = Reader::new(&[0x02, 0x01, 0x05, 0x04, 0x02, b'h', b'i']);
/// assert_eq!(reader.integer()?, 5);
/// assert_eq!(reader.octets()?, b"hi");
/// assert!(reader.is_empty());
/// # Ok::<(), cowslip_ldap::ber::BerError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of these octets.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all elements have been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The octets not read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next element's tag.
    #[must_use]
    pub fn tag(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element, whatever it is: its tag and content.
    ///
    /// # Errors
    /// There is none, or its header is none of LDAP's.
    #[inline]
    pub fn element(&mut self) -> Result<(u8, &'a [u8]), BerError> {
        // Nearly all elements are shorter than 128 octets.
        if let [tag, length @ 0..=0x7f, after @ ..] = self.rest
            && tag & 0x1f != 0x1f
            && let Some((content, rest)) = after.split_at_checked(usize::from(*length))
        {
            self.rest = rest;
            return Ok((*tag, content));
        }
        self.long_element()
    }

    // Out of line, so that the common case is small enough to be inlined where it is used.
    #[cold]
    #[inline(never)]
    fn long_element(&mut self) -> Result<(u8, &'a [u8]), BerError> {
        let tag = self.tag().ok_or(BerError::Truncated)?;
        let header = header(self.rest)?.ok_or(BerError::Truncated)?;
        let after = &self.rest[header.header_bytes..];
        let (content, rest) = after.split_at_checked(header.content_bytes).ok_or(BerError::Truncated)?;
        self.rest = rest;
        Ok((tag, content))
    }

    /// The content of the next element, which must have this tag.
    ///
    /// # Errors
    /// Another element or none is there, or it is damaged.
    #[inline]
    pub fn expect(&mut self, expected: u8) -> Result<&'a [u8], BerError> {
        match self.tag() {
            Some(tag) if tag == expected => Ok(self.element()?.1),
            Some(found) => Err(BerError::UnexpectedTag { expected, found }),
            None => Err(BerError::Missing { expected }),
        }
    }

    /// The content of the next element if it has this tag.
    ///
    /// # Errors
    /// It has this tag and is damaged.
    #[inline]
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, BerError> {
        if self.tag() == Some(tag) { Ok(Some(self.element()?.1)) } else { Ok(None) }
    }

    /// The elements within the next one, which must have this tag.
    ///
    /// # Errors
    /// Another element or none is there, or it is damaged.
    #[inline]
    pub fn within(&mut self, tag: u8) -> Result<Reader<'a>, BerError> {
        self.expect(tag).map(Reader::new)
    }

    /// An octet string.
    ///
    /// # Errors
    /// Another element or none is there, or it is damaged.
    #[inline]
    pub fn octets(&mut self) -> Result<&'a [u8], BerError> {
        self.expect(OCTET_STRING)
    }

    /// An integer.
    ///
    /// # Errors
    /// Another element or none is there, or it has more than eight octets.
    pub fn integer(&mut self) -> Result<i64, BerError> {
        let content = self.expect(INTEGER)?;
        integer_of(INTEGER, content)
    }

    /// An enumerated.
    ///
    /// # Errors
    /// Another element or none is there, or it has more than eight octets.
    pub fn enumerated(&mut self) -> Result<i64, BerError> {
        let content = self.expect(ENUMERATED)?;
        integer_of(ENUMERATED, content)
    }

    /// A Boolean; anything but 0 is true.
    ///
    /// # Errors
    /// Another element or none is there, or it has not one octet.
    pub fn boolean(&mut self) -> Result<bool, BerError> {
        let content = self.expect(BOOLEAN)?;
        boolean_of(BOOLEAN, content)
    }

    /// Passes over elements that a later version of the protocol may have put at the end of a sequence (RFC 4511
    /// section 4: unknown trailing components are ignored).
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn skip_extensions(&mut self) -> Result<(), BerError> {
        while !self.is_empty() {
            self.element()?;
        }
        Ok(())
    }

    /// Checks that all has been read.
    ///
    /// # Errors
    /// Something follows.
    pub const fn finish(self) -> Result<(), BerError> {
        if self.rest.is_empty() { Ok(()) } else { Err(BerError::Trailing) }
    }
}

/// The number that an element's content is.
pub(crate) fn integer_of(tag: u8, content: &[u8]) -> Result<i64, BerError> {
    match content {
        [octet] => Ok(i64::from(octet.cast_signed())),
        [first, rest @ ..] if content.len() <= INTEGER_OCTETS_MAX => {
            let first = i64::from(first.cast_signed());
            Ok(rest.iter().fold(first, |number, octet| number << 8 | i64::from(*octet)))
        }
        _ => Err(BerError::ContentSize { tag, octets: content.len() }),
    }
}

/// The Boolean that an element's content is.
pub(crate) fn boolean_of(tag: u8, content: &[u8]) -> Result<bool, BerError> {
    match content {
        [octet] => Ok(*octet != 0),
        _ => Err(BerError::ContentSize { tag, octets: content.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Element<'a> = Result<(u8, &'a [u8]), BerError>;

    #[test]
    fn headers_are_bounded_by_what_holds_them() {
        let cases: &[(&[u8], Element<'_>)] = &[
            (&[0x04, 0x00], Ok((4, b""))),
            (&[0x04, 0x01, 0x41], Ok((4, b"A"))),
            (&[0x04, 0x81, 0x01, 0x41], Ok((4, b"A"))),
            (&[0x04, 0x84, 0x00, 0x00, 0x00, 0x01, 0x41], Ok((4, b"A"))),
            (&[], Err(BerError::Truncated)),
            (&[0x04], Err(BerError::Truncated)),
            (&[0x04, 0x01], Err(BerError::Truncated)),
            (&[0x04, 0x82, 0x01], Err(BerError::Truncated)),
            (&[0x60, 0x84, 0x7f, 0xff, 0xff, 0xff, 0x02, 0x01, 0x03], Err(BerError::Truncated)),
            (&[0x60, 0x84, 0xff, 0xff, 0xff, 0xff, 0x02], Err(BerError::Truncated)),
            (&[0x04, 0x85, 0x00, 0x00, 0x00, 0x00, 0x01, 0x41], Err(BerError::LengthTooLong)),
            (&[0x04, 0xff], Err(BerError::LengthTooLong)),
            (&[0x30, 0x80, 0x00, 0x00], Err(BerError::IndefiniteLength)),
            (&[0x1f, 0x81, 0x01, 0x00], Err(BerError::TagTooLong)),
            (&[0xbf], Err(BerError::TagTooLong)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(&Reader::new(bytes).element(), expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn integers_keep_their_sign_and_may_be_padded() {
        let cases: &[(&[u8], Result<i64, BerError>)] = &[
            (&[0x02, 0x01, 0x00], Ok(0)),
            (&[0x02, 0x01, 0xff], Ok(-1)),
            (&[0x02, 0x01, 0x80], Ok(-128)),
            (&[0x02, 0x02, 0x00, 0x80], Ok(128)),
            (&[0x02, 0x05, 0x00, 0x80, 0x00, 0x00, 0x00], Ok(1 << 31)),
            (&[0x02, 0x04, 0x00, 0x00, 0x00, 0x05], Ok(5)),
            (&[0x02, 0x08, 0x80, 0, 0, 0, 0, 0, 0, 0], Ok(i64::MIN)),
            (&[0x02, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 1], Err(BerError::ContentSize { tag: 2, octets: 9 })),
            (&[0x02, 0x00], Err(BerError::ContentSize { tag: 2, octets: 0 })),
            (&[0x0a, 0x01, 0x00], Err(BerError::UnexpectedTag { expected: 2, found: 0x0a })),
            (&[], Err(BerError::Missing { expected: 2 })),
        ];
        for (bytes, expected) in cases {
            assert_eq!(&Reader::new(bytes).integer(), expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn strings_in_pieces_are_refused() {
        let pieces = [0x24, 0x04, 0x04, 0x02, b'h', b'i'];
        assert_eq!(Reader::new(&pieces).octets(), Err(BerError::UnexpectedTag { expected: 4, found: 0x24 }));
    }
}
