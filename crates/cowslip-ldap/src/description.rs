//! Attribute descriptions as text: an attribute type, by name or object identifier, and options (RFC 4512 section 2.5).
//!
//! Options come in two kinds. `binary` (RFC 4522) says how values travel and never makes another attribute. All others
//! tag: `cn;lang-en` is a subtype of `cn` (RFC 3866 for languages). A *normalised* option list is in lower case, sorted,
//! without repetitions and without `binary`, joined by `;`: two descriptions of one type name the same attribute exactly
//! if these texts are equal. Parsing borrows and allocates nothing.

use std::fmt;

/// Most octets of an attribute description.
pub const DESCRIPTION_BYTES_MAX: usize = 1_024;

/// Most options of an attribute description.
pub const DESCRIPTION_OPTIONS_MAX: usize = 32;

/// The option that asks for, or marks, values in their binary encoding (RFC 4522).
pub const BINARY: &str = "binary";

/// Why a text is not an attribute description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// Nothing stands where the attribute type should.
    #[error("the attribute type is missing")]
    Empty,
    /// The attribute type is neither a name (a letter, then letters, digits, hyphens) nor a dotted object identifier.
    #[error("byte {offset}: neither a name nor an object identifier of an attribute type")]
    Type {
        /// Offset of the octet that can't stand there, from 0.
        offset: usize,
    },
    /// An option is empty or has other characters than letters, digits and hyphens.
    #[error("byte {offset}: an option is one or more letters, digits and hyphens")]
    Option {
        /// Offset of the octet that can't stand there, from 0.
        offset: usize,
    },
    /// More octets than [`DESCRIPTION_BYTES_MAX`].
    #[error("an attribute description of {bytes} bytes, more than {DESCRIPTION_BYTES_MAX}")]
    TooLong {
        /// How many there are.
        bytes: usize,
    },
    /// More options than [`DESCRIPTION_OPTIONS_MAX`].
    #[error("more than {DESCRIPTION_OPTIONS_MAX} options")]
    TooManyOptions,
}

/// An attribute description, taken apart.
///
/// ```
/// use cowslip_ldap::description::AttributeDescription;
/// let description = AttributeDescription::parse("CN;Lang-EN;binary")?;
/// assert_eq!(description.attribute(), "CN");
/// assert!(description.is_binary());
/// assert_eq!(description.normalized_options(), "lang-en");
/// # Ok::<(), cowslip_ldap::description::DescriptionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttributeDescription<'a> {
    text: &'a str,
    attribute_bytes: usize,
}

impl<'a> AttributeDescription<'a> {
    /// Takes a description apart (RFC 4512 section 2.5, `attributedescription`).
    ///
    /// # Errors
    /// The text is no description; says where.
    pub fn parse(text: &'a str) -> Result<Self, DescriptionError> {
        let bytes = text.as_bytes();
        if bytes.len() > DESCRIPTION_BYTES_MAX {
            return Err(DescriptionError::TooLong { bytes: bytes.len() });
        }
        let attribute_bytes = memchr::memchr(b';', bytes).unwrap_or(bytes.len());
        check_type(&bytes[..attribute_bytes])?;
        let mut at = attribute_bytes;
        let mut options = 0;
        while at < bytes.len() {
            let start = at + 1;
            at = memchr::memchr(b';', &bytes[start..]).map_or(bytes.len(), |length| start + length);
            let bad = bytes[start..at].iter().position(|byte| !is_keychar(*byte));
            if let Some(offset) = bad.or((start == at).then_some(0)) {
                return Err(DescriptionError::Option { offset: start + offset });
            }
            options += 1;
            if options > DESCRIPTION_OPTIONS_MAX {
                return Err(DescriptionError::TooManyOptions);
            }
        }
        Ok(Self { text, attribute_bytes })
    }

    /// The description as it was written.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.text
    }

    /// The attribute type's name or dotted object identifier as it was written.
    #[must_use]
    pub fn attribute(self) -> &'a str {
        &self.text[..self.attribute_bytes]
    }

    /// The options as they were written, `binary` included.
    pub fn options(self) -> impl Iterator<Item = &'a str> {
        self.text[self.attribute_bytes..].split(';').skip(1)
    }

    /// Whether there are options, `binary` or others.
    #[must_use]
    pub fn has_options(self) -> bool {
        self.attribute_bytes < self.text.len()
    }

    /// Whether `binary` is one of the options (RFC 4522).
    #[must_use]
    pub fn is_binary(self) -> bool {
        self.options().any(|option| option.eq_ignore_ascii_case(BINARY))
    }

    /// The options that make another attribute: in lower case, sorted, each once, joined by `;`. Allocates nothing if
    /// there are none.
    #[must_use]
    pub fn normalized_options(self) -> String {
        if !self.has_options() {
            return String::new();
        }
        let mut options: Vec<String> =
            self.options().map(str::to_ascii_lowercase).filter(|option| option != BINARY).collect();
        options.sort_unstable();
        options.dedup();
        options.join(";")
    }
}

impl fmt::Display for AttributeDescription<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// Whether an attribute with the options `held` is asked for by a description with the options `wanted`, both normalised:
/// it has each of them, or one from each language range (`lang-en-`, RFC 3866).
///
/// ```
/// use cowslip_ldap::description::has_options;
/// assert!(has_options("lang-en;x-home", "lang-en"));
/// assert!(has_options("lang-en-gb", "lang-en-"));
/// assert!(!has_options("", "lang-en"));
/// ```
#[must_use]
pub fn has_options(held: &str, wanted: &str) -> bool {
    wanted.is_empty()
        || wanted.split(';').all(|wanted| {
            let range = wanted.strip_suffix('-');
            held.split(';').any(|held| {
                held == wanted || range.is_some_and(|range| held == range || held.starts_with(wanted))
            })
        })
}

/// Whether octets are a short name: a letter, then letters, digits and hyphens (RFC 4512 section 1.4, `descr`). The
/// underscore is let through because names of deployed schemas have it.
#[must_use]
pub(crate) fn is_name(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(|byte| is_keychar(*byte) || *byte == b'_')
}

/// Checks a name or dotted object identifier, its length included.
pub(crate) fn check_type(bytes: &[u8]) -> Result<(), DescriptionError> {
    match bytes.first() {
        None => Err(DescriptionError::Empty),
        Some(_) if bytes.len() > DESCRIPTION_BYTES_MAX => {
            Err(DescriptionError::TooLong { bytes: bytes.len() })
        }
        Some(first) if first.is_ascii_digit() => check_numeric_oid(bytes),
        Some(_) if is_name(bytes) => Ok(()),
        Some(_) => {
            let offset = bytes.iter().position(|byte| !is_keychar(*byte) && *byte != b'_').unwrap_or(0);
            Err(DescriptionError::Type { offset })
        }
    }
}

/// Numbers without leading zeros, joined by dots; at least two.
fn check_numeric_oid(bytes: &[u8]) -> Result<(), DescriptionError> {
    let mut start = 0;
    let mut arcs = 0;
    for arc in bytes.split(|byte| *byte == b'.') {
        let bad = arc.iter().position(|byte| !byte.is_ascii_digit());
        let is_padded = arc.len() > 1 && arc[0] == b'0';
        if let Some(offset) = bad.or((arc.is_empty() || is_padded).then_some(0)) {
            return Err(DescriptionError::Type { offset: start + offset });
        }
        start += arc.len() + 1;
        arcs += 1;
    }
    if arcs < 2 { Err(DescriptionError::Type { offset: bytes.len() }) } else { Ok(()) }
}

fn is_keychar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attribute type, normalised options, whether `binary` is one of them.
    type Parts = Result<(&'static str, &'static str, bool), DescriptionError>;

    #[test]
    fn descriptions_are_taken_apart() {
        let cases: &[(&str, Parts)] = &[
            ("cn", Ok(("cn", "", false))),
            ("2.5.4.3", Ok(("2.5.4.3", "", false))),
            ("a_b", Ok(("a_b", "", false))),
            ("userCertificate;Binary", Ok(("userCertificate", "", true))),
            ("cn;x-b;lang-EN;X-B", Ok(("cn", "lang-en;x-b", false))),
            ("cn;lang-en-", Ok(("cn", "lang-en-", false))),
            ("", Err(DescriptionError::Empty)),
            (";x", Err(DescriptionError::Empty)),
            ("cn;", Err(DescriptionError::Option { offset: 3 })),
            ("cn;;x", Err(DescriptionError::Option { offset: 3 })),
            ("cn;a b", Err(DescriptionError::Option { offset: 4 })),
            ("-cn", Err(DescriptionError::Type { offset: 0 })),
            ("c n", Err(DescriptionError::Type { offset: 1 })),
            ("2.5.04", Err(DescriptionError::Type { offset: 4 })),
            ("2..5", Err(DescriptionError::Type { offset: 2 })),
            ("2.5.", Err(DescriptionError::Type { offset: 4 })),
            ("2", Err(DescriptionError::Type { offset: 1 })),
            ("2.5a", Err(DescriptionError::Type { offset: 3 })),
        ];
        for (text, expected) in cases {
            let parts = AttributeDescription::parse(text);
            let options = parts.as_ref().map(|it| it.normalized_options()).unwrap_or_default();
            let found = parts.map(|it| (it.attribute(), options.as_str(), it.is_binary()));
            assert_eq!(&found, expected, "{text:?}");
        }
    }

    #[test]
    fn limits_hold() {
        let long = "c".repeat(DESCRIPTION_BYTES_MAX + 1);
        assert!(matches!(AttributeDescription::parse(&long), Err(DescriptionError::TooLong { .. })));
        assert!(AttributeDescription::parse(&long[1..]).is_ok());
        let many = format!("cn{}", ";x".repeat(DESCRIPTION_OPTIONS_MAX));
        assert!(AttributeDescription::parse(&many).is_ok());
        assert_eq!(AttributeDescription::parse(&(many + ";x")), Err(DescriptionError::TooManyOptions));
    }

    #[test]
    fn options_narrow() {
        let cases = [
            ("", "", true),
            ("lang-en", "", true),
            ("", "lang-en", false),
            ("lang-en", "lang-en", true),
            ("lang-en;x-a", "x-a", true),
            ("lang-en;x-a", "lang-en;x-a", true),
            ("lang-en", "lang-en;x-a", false),
            ("lang-en-gb", "lang-en", false),
            ("lang-en-gb", "lang-en-", true),
            ("lang-en", "lang-en-", true),
            ("lang-enx", "lang-en-", false),
            ("lang-fr", "lang-", true),
            ("x-a", "lang-", false),
        ];
        for (held, wanted, expected) in cases {
            assert_eq!(has_options(held, wanted), expected, "{held:?} {wanted:?}");
        }
    }
}
