//! Where one message ends and the next begins (RFC 4511 section 5.1).
//!
//! A message is one element, so its first octets say how long it is. What can't be a message, or is larger than the peer
//! may send, is refused from those octets alone: nobody waits for, or makes room for, content that was only announced.

use crate::ber::{self, BerError};

/// Most octets of a message, header included, before the peer has authenticated.
pub const MESSAGE_BYTES_ANONYMOUS_MAX: usize = 256 << 10;

/// Most octets of a message, header included, from a peer that has authenticated.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// What the octets received so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The first so many octets are one message.
    Complete {
        /// How many octets it has, header included.
        bytes: usize,
    },
    /// At least so many octets are missing.
    Incomplete {
        /// How many; exact once the header is there.
        missing_bytes_min: usize,
    },
}

/// Why octets can't be the start of a message. The connection can't go on: where the next message starts is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The first octet is not the tag of a message.
    #[error("tag {found:#04x} where a message begins")]
    Tag {
        /// The octet.
        found: u8,
    },
    /// The length is of a form that LDAP forbids.
    #[error(transparent)]
    Length(BerError),
    /// The message is too large.
    #[error("a message of {bytes} bytes, more than {bytes_max}")]
    TooLarge {
        /// How many octets it has, header included.
        bytes: usize,
        /// How many are allowed.
        bytes_max: usize,
    },
}

/// Looks at the octets received so far.
///
/// ```
/// use cowslip_ldap::framing::{Framing, frame};
/// // An unbind, and the first octet of what follows.
/// let input = [0x30, 0x05, 0x02, 0x01, 0x01, 0x42, 0x00, 0x30];
/// assert_eq!(frame(&input, 1_000), Ok(Framing::Complete { bytes: 7 }));
/// assert_eq!(frame(&input[7..], 1_000), Ok(Framing::Incomplete { missing_bytes_min: 1 }));
/// // A message of 2 GiB is refused before any of it has come.
/// assert!(frame(&[0x30, 0x84, 0x7f, 0xff, 0xff, 0xff], 1_000).is_err());
/// ```
///
/// # Errors
/// These octets can't be the start of a message, or of none that is allowed.
pub fn frame(input: &[u8], bytes_max: usize) -> Result<Framing, FrameError> {
    match input.first() {
        None => return Ok(Framing::Incomplete { missing_bytes_min: 2 }),
        Some(&ber::SEQUENCE) => {}
        Some(&found) => return Err(FrameError::Tag { found }),
    }
    let Some(header) = ber::header(input).map_err(FrameError::Length)? else {
        return Ok(Framing::Incomplete { missing_bytes_min: 1 });
    };
    let bytes = header.content_bytes.saturating_add(header.header_bytes);
    if bytes > bytes_max {
        return Err(FrameError::TooLarge { bytes, bytes_max });
    }
    if bytes > input.len() {
        return Ok(Framing::Incomplete { missing_bytes_min: bytes - input.len() });
    }
    Ok(Framing::Complete { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_judged_by_their_header() {
        let incomplete = |missing_bytes_min| Ok(Framing::Incomplete { missing_bytes_min });
        let cases: &[(&[u8], Result<Framing, FrameError>)] = &[
            (&[], incomplete(2)),
            (&[0x30], incomplete(1)),
            (&[0x30, 0x82, 0x01], incomplete(1)),
            (&[0x30, 0x05, 0x02], incomplete(4)),
            (&[0x30, 0x81, 0x02, 0x02], incomplete(1)),
            (&[0x30, 0x00], Ok(Framing::Complete { bytes: 2 })),
            (&[0x30, 0x82, 0x00, 0x01, 0xff, 0xff], Ok(Framing::Complete { bytes: 5 })),
            (&[0x30, 0x63], incomplete(99)),
            (&[0x30, 0x64], Err(FrameError::TooLarge { bytes: 102, bytes_max: 101 })),
            (
                &[0x30, 0x84, 0x7f, 0xff, 0xff, 0xff],
                Err(FrameError::TooLarge { bytes: 0x7fff_ffff + 6, bytes_max: 101 }),
            ),
            (&[0x30, 0x80], Err(FrameError::Length(BerError::IndefiniteLength))),
            (&[0x30, 0x85], Err(FrameError::Length(BerError::LengthTooLong))),
            (b"GET / HTTP/1.1", Err(FrameError::Tag { found: b'G' })),
            (&[0x16, 0x03, 0x01], Err(FrameError::Tag { found: 0x16 })),
        ];
        for (input, expected) in cases {
            assert_eq!(&frame(input, 101), expected, "{input:02x?}");
        }
    }
}
