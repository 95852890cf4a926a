//! Distinguished names (RFC 4514) as parsed values.
//!
//! A [`Dn`] keeps each attribute type as its writer spelt it and each value's octets, so what a client once gave is what
//! it gets back. Comparing is another matter: two names are the same if their *normalised* forms are, which the schema
//! makes from its matching rules ([`Dn::normalize`]). `==` on these types compares the spelling.
//!
//! Invariants: a name has at most [`DN_RDNS_MAX`] RDNs and each of them at least one and at most [`RDN_AVAS_MAX`]
//! assertions; what `Display` writes parses to an equal value; all work is linear in the length of the text.

mod ber;
mod normal;
mod parse;
mod write;

pub use normal::NormalDn;
pub(crate) use normal::normalize_text;

use crate::syntax::SyntaxError;
use parse::{AvaReader, Unescaped};

/// Most octets of a name's text.
pub const DN_BYTES_MAX: usize = 65_536;

/// Most RDNs of a name.
pub const DN_RDNS_MAX: usize = 256;

/// Most attribute value assertions of an RDN.
pub const RDN_AVAS_MAX: usize = 64;

/// Why octets are not a name, or a name can't be compared. Offsets count octets of the text, from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DnError {
    /// More octets than [`DN_BYTES_MAX`].
    #[error("a name of {bytes} bytes, more than {DN_BYTES_MAX}")]
    TooLong {
        /// How many there are.
        bytes: usize,
    },
    /// More RDNs than [`DN_RDNS_MAX`].
    #[error("a name of more than {DN_RDNS_MAX} RDNs")]
    TooManyRdns,
    /// An RDN with more assertions than [`RDN_AVAS_MAX`].
    #[error("an RDN of more than {RDN_AVAS_MAX} attribute values")]
    TooManyAvas,
    /// The text is not UTF-8; other octets are written as escapes.
    #[error("byte {offset}: a name is written in UTF-8")]
    NotUtf8 {
        /// Where.
        offset: usize,
    },
    /// No attribute type with an equals sign where one should begin: an edge or double separator, or a value's comma
    /// that isn't escaped.
    #[error("byte {offset}: an attribute type and \"=\" should follow")]
    NoEqualsSign {
        /// Where.
        offset: usize,
    },
    /// What stands before the equals sign is no attribute type.
    #[error("byte {offset}: neither a name nor an object identifier of an attribute type")]
    Attribute {
        /// Where it begins.
        offset: usize,
    },
    /// A character that a value has only as an escape.
    #[error("byte {offset}: \"{}\" must be escaped in a value", .byte.escape_ascii())]
    Character {
        /// Where.
        offset: usize,
        /// The character.
        byte: u8,
    },
    /// A backslash is followed by neither a special character nor two hexadecimal digits.
    #[error("byte {offset}: a special character or two hexadecimal digits should follow the backslash")]
    Escape {
        /// Where the backslash stands.
        offset: usize,
    },
    /// `#` at the beginning of a value is not followed by pairs of hexadecimal digits.
    #[error("byte {offset}: pairs of hexadecimal digits should follow \"#\"")]
    Hexadecimal {
        /// Where `#` stands.
        offset: usize,
    },
    /// The hexadecimal digits are not exactly one BER-encoded value.
    #[error("byte {offset}: {rule}")]
    Ber {
        /// Where `#` stands.
        offset: usize,
        /// The rule that is broken.
        rule: &'static str,
    },
    /// A name of several RDNs, or of none, where one RDN should be.
    #[error("one RDN was expected, not {count}")]
    NotOneRdn {
        /// How many there are.
        count: usize,
    },
    /// The schema has no such attribute type, so the name can't be compared.
    #[error("unknown attribute type {attribute:?}")]
    UnknownAttribute {
        /// The type as it was written.
        attribute: String,
    },
    /// Values of the attribute type can't be compared, so names can't have it.
    #[error("attribute type {attribute:?} has no equality rule, so it can't stand in a name")]
    NoEqualityRule {
        /// The type as it was written.
        attribute: String,
    },
    /// An RDN has two values of one attribute type (RFC 4512 section 2.3.1).
    #[error("an RDN with two values of attribute type {attribute:?}")]
    RepeatedAttribute {
        /// The type's name.
        attribute: String,
    },
    /// A value is not one of its attribute type.
    #[error("attribute type {attribute:?}: {reason}")]
    Value {
        /// The type as it was written.
        attribute: String,
        /// What is wrong with the value.
        #[source]
        reason: SyntaxError,
    },
    /// Names stand in values of names on more levels than are followed.
    #[error("more than {} names inside one another", crate::matching::NESTING_MAX)]
    TooDeep,
}

/// A distinguished name, the entry's own RDN first. The name without RDNs is that of the root DSE.
///
/// ```
/// use cowslip_ldap::dn::Dn;
/// let dn = Dn::parse(b"CN=Doe\\, Amy+uid=amy, dc=example,dc=com")?;
/// assert_eq!(dn.rdns().len(), 3);
/// assert_eq!(dn.rdns()[0].avas()[0].value(), b"Doe, Amy");
/// assert_eq!(dn.to_string(), "CN=Doe\\, Amy+uid=amy,dc=example,dc=com");
/// # Ok::<(), cowslip_ldap::dn::DnError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dn {
    rdns: Vec<Rdn>,
}

/// A relative distinguished name: one or more attribute value assertions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rdn(Avas);

/// One assertion is what nearly all RDNs have, and it needs no vector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Avas {
    One(Ava),
    Many(Vec<Ava>),
}

/// An attribute value assertion of an RDN: attribute type and value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ava {
    /// Attribute type and value one after the other.
    bytes: Box<[u8]>,
    attribute_bytes: u16,
    /// The encoded value, if it was written as such.
    ber: Option<Box<[u8]>>,
}

impl Dn {
    /// Reads a name (RFC 4514 section 3). Blanks around separators are skipped.
    ///
    /// # Errors
    /// The octets are no name; says where and why.
    pub fn parse(text: &[u8]) -> Result<Self, DnError> {
        let mut reader = AvaReader::new(text)?;
        let mut unescaped = Unescaped::default();
        let mut rdns = Vec::new();
        let mut avas = Vec::new();
        while let Some(raw) = reader.next(&mut unescaped)? {
            let ava = Ava::assemble(raw.attribute, raw.value, raw.ber);
            match (raw.is_last, avas.is_empty()) {
                (true, true) => rdns.push(Rdn(Avas::One(ava))),
                (true, false) => {
                    avas.push(ava);
                    rdns.push(Rdn(Avas::Many(std::mem::take(&mut avas))));
                }
                (false, _) => avas.push(ava),
            }
            if avas.len() >= RDN_AVAS_MAX {
                return Err(DnError::TooManyAvas);
            }
            if rdns.len() > DN_RDNS_MAX {
                return Err(DnError::TooManyRdns);
            }
        }
        Ok(Self { rdns })
    }

    /// The name of the root DSE, which has no RDN.
    #[must_use]
    pub const fn root() -> Self {
        Self { rdns: Vec::new() }
    }

    /// A name of these RDNs, the entry's own first.
    ///
    /// # Errors
    /// There are more than [`DN_RDNS_MAX`].
    pub fn new(rdns: Vec<Rdn>) -> Result<Self, DnError> {
        if rdns.len() > DN_RDNS_MAX { Err(DnError::TooManyRdns) } else { Ok(Self { rdns }) }
    }

    /// The RDNs, the entry's own first.
    #[must_use]
    pub fn rdns(&self) -> &[Rdn] {
        &self.rdns
    }

    /// The entry's own RDN; none for the root DSE.
    #[must_use]
    pub fn rdn(&self) -> Option<&Rdn> {
        self.rdns.first()
    }

    /// Whether this is the name without RDNs.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.rdns.is_empty()
    }

    /// The name of the entry above; none for the root DSE.
    #[must_use]
    pub fn parent(&self) -> Option<Dn> {
        self.rdns.split_first().map(|(_, above)| Dn { rdns: above.to_vec() })
    }

    /// The name of an entry below this one.
    ///
    /// # Errors
    /// It would have more than [`DN_RDNS_MAX`] RDNs.
    pub fn child(&self, rdn: Rdn) -> Result<Dn, DnError> {
        let mut rdns = Vec::with_capacity(self.rdns.len() + 1);
        rdns.push(rdn);
        rdns.extend_from_slice(&self.rdns);
        Dn::new(rdns)
    }
}

impl std::str::FromStr for Dn {
    type Err = DnError;

    fn from_str(text: &str) -> Result<Self, DnError> {
        Dn::parse(text.as_bytes())
    }
}

impl Rdn {
    /// Reads one RDN, as a modifyDN request has it (RFC 4514 section 3, `relativeDistinguishedName`).
    ///
    /// ```
    /// use cowslip_ldap::dn::Rdn;
    /// assert_eq!(Rdn::parse(b"uid=amy")?.avas()[0].attribute(), "uid");
    /// assert!(Rdn::parse(b"uid=amy,dc=example").is_err());
    /// # Ok::<(), cowslip_ldap::dn::DnError>(())
    /// ```
    ///
    /// # Errors
    /// The octets are not exactly one RDN.
    pub fn parse(text: &[u8]) -> Result<Self, DnError> {
        let mut rdns = Dn::parse(text)?.rdns;
        match (rdns.len(), rdns.pop()) {
            (1, Some(rdn)) => Ok(rdn),
            (count, _) => Err(DnError::NotOneRdn { count }),
        }
    }

    /// An RDN of these assertions.
    ///
    /// # Errors
    /// There are more than [`RDN_AVAS_MAX`], or there is none.
    pub fn new(mut avas: Vec<Ava>) -> Result<Self, DnError> {
        match (avas.len(), avas.pop()) {
            (1, Some(one)) => Ok(Self(Avas::One(one))),
            (_, None) => Err(DnError::NotOneRdn { count: 0 }),
            (count, Some(_)) if count > RDN_AVAS_MAX => Err(DnError::TooManyAvas),
            (_, Some(last)) => {
                avas.push(last);
                Ok(Self(Avas::Many(avas)))
            }
        }
    }

    /// The assertions, in the order in which they were written.
    #[must_use]
    pub fn avas(&self) -> &[Ava] {
        match &self.0 {
            Avas::One(ava) => std::slice::from_ref(ava),
            Avas::Many(avas) => avas,
        }
    }
}

impl Ava {
    /// An assertion that an attribute has a value.
    ///
    /// ```
    /// use cowslip_ldap::dn::Ava;
    /// assert_eq!(Ava::new("cn", b" Doe, Amy")?.to_string(), "cn=\\ Doe\\, Amy");
    /// # Ok::<(), cowslip_ldap::dn::DnError>(())
    /// ```
    ///
    /// # Errors
    /// `attribute` is neither a name nor an object identifier, or both together are longer than [`DN_BYTES_MAX`].
    pub fn new(attribute: &str, value: &[u8]) -> Result<Self, DnError> {
        let bytes = attribute.len() + value.len();
        if bytes > DN_BYTES_MAX {
            return Err(DnError::TooLong { bytes });
        }
        crate::description::check_type(attribute.as_bytes()).map_err(|_| DnError::Attribute { offset: 0 })?;
        Ok(Self::assemble(attribute, value, None))
    }

    fn assemble(attribute: &str, value: &[u8], ber: Option<&[u8]>) -> Self {
        let mut bytes = Vec::with_capacity(attribute.len() + value.len());
        bytes.extend_from_slice(attribute.as_bytes());
        bytes.extend_from_slice(value);
        // `check_type` has let through at most `DESCRIPTION_BYTES_MAX`.
        let attribute_bytes = attribute.len() as u16;
        Self { bytes: bytes.into_boxed_slice(), attribute_bytes, ber: ber.map(Box::from) }
    }

    /// The attribute type's name or dotted object identifier as it was written.
    #[must_use]
    pub fn attribute(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.attribute_bytes)]).unwrap_or_default()
    }

    /// The value as LDAP transfers it: without escapes; of a value that was written as `#` and a BER string, the
    /// characters.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.bytes[usize::from(self.attribute_bytes)..]
    }
}
