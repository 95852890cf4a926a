//! Reads the text of a name, one attribute value assertion after the other (RFC 4514 section 3).
//!
//! Besides the RFC's grammar, blanks around the separators and the equals sign are skipped, as in RFC 2253, since people
//! and tools write them. Nothing else of RFC 2253 or 1779 is accepted: no quotation marks, no `;` as separator. Values
//! without escapes are borrowed. Each octet is read a bounded number of times.

use super::ber;
use super::{DN_BYTES_MAX, DnError};
use crate::description::check_type;

/// What an octet is inside a value that is no hexadecimal string.
const PLAIN: u8 = 0;
const SEPARATOR: u8 = 1;
const ESCAPE: u8 = 2;
const REFUSED: u8 = 3;

static CLASSES: [u8; 256] = {
    let mut classes = [PLAIN; 256];
    classes[b',' as usize] = SEPARATOR;
    classes[b'+' as usize] = SEPARATOR;
    classes[b'\\' as usize] = ESCAPE;
    classes[b'"' as usize] = REFUSED;
    classes[b';' as usize] = REFUSED;
    classes[b'<' as usize] = REFUSED;
    classes[b'>' as usize] = REFUSED;
    classes[0] = REFUSED;
    classes
};

/// An attribute value assertion as it was read.
pub(super) struct RawAva<'a, 'b> {
    pub(super) attribute: &'a str,
    /// The value as LDAP transfers it.
    pub(super) value: &'b [u8],
    /// The octets of a value that was written as `#` and hexadecimal digits.
    pub(super) ber: Option<&'b [u8]>,
    /// Whether it is the last of its RDN.
    pub(super) is_last: bool,
}

/// Reads assertions from left to right.
pub(super) struct AvaReader<'a> {
    text: &'a str,
    at: usize,
    is_more: bool,
}

/// Room for values that are written with escapes.
#[derive(Default)]
pub(super) struct Unescaped {
    value: Vec<u8>,
    ber: Vec<u8>,
}

impl<'a> AvaReader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Result<Self, DnError> {
        if text.len() > DN_BYTES_MAX {
            return Err(DnError::TooLong { bytes: text.len() });
        }
        let text = std::str::from_utf8(text).map_err(|e| DnError::NotUtf8 { offset: e.valid_up_to() })?;
        let is_blank = text.bytes().all(|byte| byte == b' ');
        Ok(Self { text, at: 0, is_more: !is_blank })
    }

    /// The next assertion; none at the end.
    pub(super) fn next<'b>(&mut self, unescaped: &'b mut Unescaped) -> Result<Option<RawAva<'a, 'b>>, DnError>
    where
        'a: 'b,
    {
        if !self.is_more {
            return Ok(None);
        }
        let attribute = self.attribute()?;
        self.skip_blanks();
        let (value, ber) = match self.bytes().get(self.at) {
            Some(b'#') => self.hexadecimal(unescaped)?,
            _ => (self.string(&mut unescaped.value)?, None),
        };
        let separator = self.bytes().get(self.at).copied();
        self.at += 1;
        self.is_more = separator.is_some();
        Ok(Some(RawAva { attribute, value, ber, is_last: separator != Some(b'+') }))
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn skip_blanks(&mut self) {
        self.at +=
            self.bytes()[self.at.min(self.text.len())..].iter().take_while(|byte| **byte == b' ').count();
    }

    /// Reads up to and with the equals sign.
    fn attribute(&mut self) -> Result<&'a str, DnError> {
        self.skip_blanks();
        let start = self.at;
        let length = self.bytes()[start..].iter().position(|byte| matches!(byte, b'=' | b',' | b'+'));
        match length.map(|length| (length, self.bytes()[start + length])) {
            Some((length, b'=')) => {
                let attribute = self.text[start..start + length].trim_end_matches(' ');
                check_type(attribute.as_bytes()).map_err(|_| DnError::Attribute { offset: start })?;
                self.at = start + length + 1;
                Ok(attribute)
            }
            _ => Err(DnError::NoEqualsSign { offset: start }),
        }
    }

    fn string<'b>(&mut self, unescaped: &'b mut Vec<u8>) -> Result<&'b [u8], DnError>
    where
        'a: 'b,
    {
        let bytes = self.bytes();
        let start = self.at;
        let mut run = start;
        unescaped.clear();
        // Up to here blanks belong to the value even if nothing follows.
        let mut kept = 0;
        loop {
            let end = bytes[self.at..].iter().position(|byte| CLASSES[usize::from(*byte)] != PLAIN);
            self.at = end.map_or(bytes.len(), |length| self.at + length);
            match bytes.get(self.at).map(|byte| CLASSES[usize::from(*byte)]) {
                Some(ESCAPE) => {
                    unescaped.extend_from_slice(&bytes[run..self.at]);
                    unescaped.push(self.escape()?);
                    kept = unescaped.len();
                    run = self.at;
                }
                Some(REFUSED) => return Err(DnError::Character { offset: self.at, byte: bytes[self.at] }),
                _ if kept == 0 => return Ok(bytes[start..self.at].trim_suffix_blanks()),
                _ => {
                    unescaped.extend_from_slice(&bytes[run..self.at]);
                    let tail = unescaped[kept..].trim_suffix_blanks().len();
                    unescaped.truncate(kept + tail);
                    return Ok(unescaped);
                }
            }
        }
    }

    /// Reads a backslash and what follows: one of the special characters, or two hexadecimal digits.
    fn escape(&mut self) -> Result<u8, DnError> {
        let offset = self.at;
        let rest = &self.bytes()[offset + 1..];
        let (byte, length) = match rest {
            [special @ (b' ' | b'"' | b'#' | b'+' | b',' | b';' | b'<' | b'=' | b'>' | b'\\'), ..] => {
                (*special, 2)
            }
            [high, low, ..] => (hex_pair(*high, *low).ok_or(DnError::Escape { offset })?, 3),
            _ => return Err(DnError::Escape { offset }),
        };
        self.at += length;
        Ok(byte)
    }

    /// Reads `#` and the hexadecimal digits of exactly one BER-encoded value.
    fn hexadecimal<'b>(
        &mut self,
        unescaped: &'b mut Unescaped,
    ) -> Result<(&'b [u8], Option<&'b [u8]>), DnError> {
        let offset = self.at;
        let rest = &self.bytes()[offset + 1..];
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'+')).unwrap_or(rest.len());
        let digits = rest[..length].trim_suffix_blanks();
        let (pairs, odd) = digits.as_chunks::<2>();
        unescaped.ber.clear();
        for [high, low] in pairs {
            unescaped.ber.push(hex_pair(*high, *low).ok_or(DnError::Hexadecimal { offset })?);
        }
        if !odd.is_empty() || pairs.is_empty() {
            return Err(DnError::Hexadecimal { offset });
        }
        self.at += 1 + length;
        unescaped.value.clear();
        ber::to_ldap(&unescaped.ber, &mut unescaped.value).map_err(|rule| DnError::Ber { offset, rule })?;
        Ok((&unescaped.value, Some(&unescaped.ber)))
    }
}

/// Slices without the blanks at their end.
trait TrimBlanks {
    fn trim_suffix_blanks(&self) -> &Self;
}

impl TrimBlanks for [u8] {
    fn trim_suffix_blanks(&self) -> &Self {
        let end = self.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1);
        &self[..end]
    }
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}
