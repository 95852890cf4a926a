//! The Basic Encoding Rules as far as LDAP uses them (RFC 4511 section 5.1): definite lengths, strings in one piece.
//!
//! [`Reader`] borrows from the octets and never looks past the element it was made for; nothing here recurses or
//! allocates by a length that was only announced. Writing appends to a `Vec<u8>` that the caller keeps and reuses;
//! constructed elements are closed afterwards, and lengths are always written in their shortest form.

mod reader;
mod writer;

pub use reader::{BerError, Reader};
pub(crate) use reader::{boolean_of, integer_of};
pub use writer::{Mark, begin, begin_large, boolean, end, integer, octets};

/// Most octets of a length after the octet that counts them.
const LENGTH_OCTETS_MAX: usize = 4;

/// Universal BOOLEAN.
pub const BOOLEAN: u8 = 0x01;
/// Universal INTEGER.
pub const INTEGER: u8 = 0x02;
/// Universal OCTET STRING, in one piece.
pub const OCTET_STRING: u8 = 0x04;
/// Universal NULL.
pub const NULL: u8 = 0x05;
/// Universal ENUMERATED.
pub const ENUMERATED: u8 = 0x0a;
/// Universal SEQUENCE or SEQUENCE OF.
pub const SEQUENCE: u8 = 0x30;
/// Universal SET OF.
pub const SET: u8 = 0x31;

/// What the first octets of an element say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Octets of tag and length.
    pub(crate) header_bytes: usize,
    /// Octets that follow.
    pub(crate) content_bytes: usize,
}

/// Reads tag and length; `None` if the octets end within them. The tag must be one octet.
pub(crate) fn header(bytes: &[u8]) -> Result<Option<Header>, BerError> {
    let [tag, first, rest @ ..] = bytes else {
        return match bytes.first() {
            Some(tag) if tag & 0x1f == 0x1f => Err(BerError::TagTooLong),
            _ => Ok(None),
        };
    };
    if tag & 0x1f == 0x1f {
        return Err(BerError::TagTooLong);
    }
    if *first < 0x80 {
        return Ok(Some(Header { header_bytes: 2, content_bytes: usize::from(*first) }));
    }
    long_length(*first, rest)
}

/// The long form: the first octet counts those of the length.
fn long_length(first: u8, rest: &[u8]) -> Result<Option<Header>, BerError> {
    let octets = usize::from(first & 0x7f);
    if octets == 0 {
        return Err(BerError::IndefiniteLength);
    }
    if octets > LENGTH_OCTETS_MAX {
        return Err(BerError::LengthTooLong);
    }
    let Some(length) = rest.get(..octets) else { return Ok(None) };
    let content_bytes = length.iter().fold(0_u32, |length, octet| length << 8 | u32::from(*octet));
    let content_bytes = usize::try_from(content_bytes).map_err(|_| BerError::LengthTooLong)?;
    Ok(Some(Header { header_bytes: 2 + octets, content_bytes }))
}
