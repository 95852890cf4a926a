//! Attribute syntaxes (RFC 4517 section 3.3, RFC 4523, RFC 4530, RFC 2307, RFC 3112): which octets are a value.
//!
//! A [`Syntax`] is a small `Copy` value, so that an attribute type can carry it and checking needs no look-up.
//! Invariants: `check` never panics, reads each octet a bounded number of times, and its error says which rule was
//! broken and where.

mod definitions;
mod der;
mod guide;
mod text;
mod time;

pub(crate) use time::date_since_1970;
pub use time::{FRACTION_DIGITS_MAX, GeneralizedTime, UtcTime};

pub use der::SERIAL_BYTES_MAX;

pub(crate) use der::{ExactKey, Mark, certificate_key, certificate_list_key, exact_assertion};
pub(crate) use text::{
    BitString, auth_password_parts, boolean, integer_parts, is_descriptor, is_numeric_oid, name_and_uid, uuid,
};

use crate::schema::Schema;

/// Most octets that [`Syntax::check`] accepts for a value that is text with structure (schema definitions, guides).
pub const STRUCTURED_VALUE_BYTES_MAX: usize = 1 << 20;

/// Why octets are not a value of a syntax, or can't be prepared for a matching rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxError {
    /// A value of this syntax has at least one character.
    #[error("empty, but {rule}")]
    Empty {
        /// The rule that asks for more.
        rule: &'static str,
    },
    /// Not UTF-8.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Offset of the first octet that isn't part of a character, from 0.
        offset: usize,
    },
    /// A character that this syntax does not have.
    #[error("byte {offset}: only {allowed} may stand here")]
    Character {
        /// Offset in octets, from 0.
        offset: usize,
        /// What may stand there, in words.
        allowed: &'static str,
    },
    /// A character that RFC 4518 section 2.4 prohibits.
    #[error("the character U+{:04X} is prohibited in compared text (RFC 4518, 2.4)", u32::from(*.character))]
    Prohibited {
        /// The character.
        character: char,
    },
    /// The form is wrong.
    #[error("byte {offset}: {rule}")]
    Form {
        /// Offset in octets, from 0.
        offset: usize,
        /// The rule that is broken.
        rule: &'static str,
    },
    /// A part of the value is outside its range.
    #[error("the {part} is out of range")]
    Range {
        /// Which part: month, day, hour, …
        part: &'static str,
    },
    /// More octets, parts or levels than are read.
    #[error("more than {max} {unit}")]
    TooLarge {
        /// The limit.
        max: usize,
        /// Of what.
        unit: &'static str,
    },
    /// A distinguished name in the value is wrong.
    #[error("{reason}")]
    Name {
        /// What is wrong with it.
        reason: String,
    },
    /// A name that stands for an object identifier is in nobody's definition.
    #[error("{name:?} names no schema element")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// A structure in the value, a schema definition or DER, is wrong.
    #[error("{reason}")]
    Definition {
        /// What is wrong with it.
        reason: String,
    },
}

macro_rules! syntaxes {
    ($($(#[$doc:meta])* $variant:ident $oid:literal $description:literal $form:ident;)*) => {
        /// An attribute or assertion syntax that the server knows.
        ///
        /// ```
        /// use cowslip_ldap::{schema::Schema, syntax::Syntax};
        /// let schema = Schema::standard();
        /// assert_eq!(Syntax::by_oid("1.3.6.1.4.1.1466.115.121.1.27"), Some(Syntax::Integer));
        /// assert!(Syntax::Integer.check(b"-42", &schema).is_ok());
        /// assert!(Syntax::Integer.check(b"042", &schema).is_err());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Syntax {
            $($(#[$doc])* $variant,)*
        }

        impl Syntax {
            /// All syntaxes, in the order in which they are published.
            pub const ALL: &[Syntax] = &[$(Syntax::$variant,)*];

            /// The syntax's object identifier in dotted form.
            #[must_use]
            pub const fn oid(self) -> &'static str {
                match self { $(Syntax::$variant => $oid,)* }
            }

            /// The syntax's name in words, as in the `DESC` of its definition.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Syntax::$variant => $description,)* }
            }

            const fn form(self) -> Form {
                match self { $(Syntax::$variant => Form::$form,)* }
            }

            /// The syntax with this dotted object identifier.
            #[must_use]
            pub fn by_oid(oid: &str) -> Option<Syntax> {
                match oid { $($oid => Some(Syntax::$variant),)* _ => None }
            }
        }
    };
}

/// How values travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Characters.
    Text,
    /// Octets that mean nothing to a reader.
    Octets,
    /// DER that travels under the `;binary` option only (RFC 4522, RFC 4523 section 2).
    Der,
    /// Characters; for assertions, never for attributes.
    Assertion,
}

syntaxes! {
    /// RFC 4517 section 3.3.1.
    AttributeTypeDescription "1.3.6.1.4.1.1466.115.121.1.3" "Attribute Type Description" Text;
    /// RFC 2252: kept for old schemas; any octets.
    Audio "1.3.6.1.4.1.1466.115.121.1.4" "Audio" Octets;
    /// RFC 2252: kept for old schemas; any octets.
    Binary "1.3.6.1.4.1.1466.115.121.1.5" "Binary" Octets;
    /// RFC 4517 section 3.3.2.
    BitString "1.3.6.1.4.1.1466.115.121.1.6" "Bit String" Text;
    /// RFC 4517 section 3.3.3.
    Boolean "1.3.6.1.4.1.1466.115.121.1.7" "Boolean" Text;
    /// RFC 4523 section 2.1.
    Certificate "1.3.6.1.4.1.1466.115.121.1.8" "X.509 Certificate" Der;
    /// RFC 4523 section 2.2.
    CertificateList "1.3.6.1.4.1.1466.115.121.1.9" "X.509 Certificate List" Der;
    /// RFC 4523 section 2.3.
    CertificatePair "1.3.6.1.4.1.1466.115.121.1.10" "X.509 Certificate Pair" Der;
    /// RFC 4517 section 3.3.4.
    CountryString "1.3.6.1.4.1.1466.115.121.1.11" "Country String" Text;
    /// RFC 4517 section 3.3.9.
    Dn "1.3.6.1.4.1.1466.115.121.1.12" "DN" Text;
    /// RFC 4517 section 3.3.5.
    DeliveryMethod "1.3.6.1.4.1.1466.115.121.1.14" "Delivery Method" Text;
    /// RFC 4517 section 3.3.6.
    DirectoryString "1.3.6.1.4.1.1466.115.121.1.15" "Directory String" Text;
    /// RFC 4517 section 3.3.7.
    ContentRuleDescription "1.3.6.1.4.1.1466.115.121.1.16" "DIT Content Rule Description" Text;
    /// RFC 4517 section 3.3.8.
    StructureRuleDescription "1.3.6.1.4.1.1466.115.121.1.17" "DIT Structure Rule Description" Text;
    /// RFC 4517 section 3.3.10.
    EnhancedGuide "1.3.6.1.4.1.1466.115.121.1.21" "Enhanced Guide" Text;
    /// RFC 4517 section 3.3.11.
    FacsimileTelephoneNumber "1.3.6.1.4.1.1466.115.121.1.22" "Facsimile Telephone Number" Text;
    /// RFC 4517 section 3.3.12.
    Fax "1.3.6.1.4.1.1466.115.121.1.23" "Fax" Octets;
    /// RFC 4517 section 3.3.13.
    GeneralizedTime "1.3.6.1.4.1.1466.115.121.1.24" "Generalized Time" Text;
    /// RFC 4517 section 3.3.14.
    Guide "1.3.6.1.4.1.1466.115.121.1.25" "Guide" Text;
    /// RFC 4517 section 3.3.15.
    Ia5String "1.3.6.1.4.1.1466.115.121.1.26" "IA5 String" Text;
    /// RFC 4517 section 3.3.16.
    Integer "1.3.6.1.4.1.1466.115.121.1.27" "INTEGER" Text;
    /// RFC 4517 section 3.3.17.
    Jpeg "1.3.6.1.4.1.1466.115.121.1.28" "JPEG" Octets;
    /// RFC 4517 section 3.3.19.
    MatchingRuleDescription "1.3.6.1.4.1.1466.115.121.1.30" "Matching Rule Description" Text;
    /// RFC 4517 section 3.3.20.
    MatchingRuleUseDescription "1.3.6.1.4.1.1466.115.121.1.31" "Matching Rule Use Description" Text;
    /// RFC 4517 section 3.3.21.
    NameAndOptionalUid "1.3.6.1.4.1.1466.115.121.1.34" "Name And Optional UID" Text;
    /// RFC 4517 section 3.3.22.
    NameFormDescription "1.3.6.1.4.1.1466.115.121.1.35" "Name Form Description" Text;
    /// RFC 4517 section 3.3.23.
    NumericString "1.3.6.1.4.1.1466.115.121.1.36" "Numeric String" Text;
    /// RFC 4517 section 3.3.24.
    ObjectClassDescription "1.3.6.1.4.1.1466.115.121.1.37" "Object Class Description" Text;
    /// RFC 4517 section 3.3.26.
    Oid "1.3.6.1.4.1.1466.115.121.1.38" "OID" Text;
    /// RFC 4517 section 3.3.27.
    OtherMailbox "1.3.6.1.4.1.1466.115.121.1.39" "Other Mailbox" Text;
    /// RFC 4517 section 3.3.25.
    OctetString "1.3.6.1.4.1.1466.115.121.1.40" "Octet String" Octets;
    /// RFC 4517 section 3.3.28.
    PostalAddress "1.3.6.1.4.1.1466.115.121.1.41" "Postal Address" Text;
    /// RFC 2252: kept for old schemas; any text.
    DataQuality "1.3.6.1.4.1.1466.115.121.1.13" "Data Quality" Text;
    /// RFC 2252: kept for old schemas; any text.
    DsaQuality "1.3.6.1.4.1.1466.115.121.1.19" "DSA Quality" Text;
    /// RFC 2252: kept for old schemas; any text.
    MailPreference "1.3.6.1.4.1.1466.115.121.1.32" "Mail Preference" Text;
    /// RFC 2252: kept for old schemas; any text.
    MhsOrAddress "1.3.6.1.4.1.1466.115.121.1.33" "MHS OR Address" Text;
    /// RFC 2252: kept for old schemas; any text.
    ProtocolInformation "1.3.6.1.4.1.1466.115.121.1.42" "Protocol Information" Text;
    /// RFC 2252: kept for old schemas; any text.
    PresentationAddress "1.3.6.1.4.1.1466.115.121.1.43" "Presentation Address" Text;
    /// RFC 4517 section 3.3.29.
    PrintableString "1.3.6.1.4.1.1466.115.121.1.44" "Printable String" Text;
    /// RFC 3672 section 2.1: checked for balanced braces and quotes only.
    SubtreeSpecification "1.3.6.1.4.1.1466.115.121.1.45" "SubtreeSpecification" Text;
    /// RFC 4523 section 2.4.
    SupportedAlgorithm "1.3.6.1.4.1.1466.115.121.1.49" "X.509 Supported Algorithm" Der;
    /// RFC 4517 section 3.3.31.
    TelephoneNumber "1.3.6.1.4.1.1466.115.121.1.50" "Telephone Number" Text;
    /// RFC 4517 section 3.3.32.
    TeletexTerminalIdentifier "1.3.6.1.4.1.1466.115.121.1.51" "Teletex Terminal Identifier" Octets;
    /// RFC 4517 section 3.3.33.
    TelexNumber "1.3.6.1.4.1.1466.115.121.1.52" "Telex Number" Text;
    /// RFC 4517 section 3.3.34.
    UtcTime "1.3.6.1.4.1.1466.115.121.1.53" "UTC Time" Text;
    /// RFC 4517 section 3.3.18.
    SyntaxDescription "1.3.6.1.4.1.1466.115.121.1.54" "LDAP Syntax Description" Text;
    /// RFC 4517 section 3.3.30: what a substrings assertion looks like as text.
    SubstringAssertion "1.3.6.1.4.1.1466.115.121.1.58" "Substring Assertion" Assertion;
    /// RFC 2307 section 2.4: `(host,user,domain)`.
    NetgroupTriple "1.3.6.1.1.1.0.0" "RFC2307 NIS Netgroup Triple" Text;
    /// RFC 2307 section 2.4: `key=server:path`.
    BootParameter "1.3.6.1.1.1.0.1" "RFC2307 Boot Parameter" Text;
    /// RFC 4523 section 2.5.
    CertificateExactAssertion "1.3.6.1.1.15.1" "X.509 Certificate Exact Assertion" Assertion;
    /// RFC 4523 section 2.7: compared as octets with the whole value.
    CertificatePairExactAssertion "1.3.6.1.1.15.3" "X.509 Certificate Pair Exact Assertion" Assertion;
    /// RFC 4523 section 2.9.
    CertificateListExactAssertion "1.3.6.1.1.15.5" "X.509 Certificate List Exact Assertion" Assertion;
    /// RFC 4523 section 2.11: compared as octets with the whole value.
    AlgorithmIdentifier "1.3.6.1.1.15.7" "X.509 Algorithm Identifier" Assertion;
    /// RFC 4530 section 2.1.
    Uuid "1.3.6.1.1.16.1" "UUID" Text;
    /// RFC 3112 section 2: `scheme$info$value`.
    AuthPassword "1.3.6.1.4.1.4203.1.1.2" "authentication password syntax" Text;
    /// Change sequence numbers as OpenLDAP writes them: `20260102030405.000006Z#000000#001#000000`.
    Csn "1.3.6.1.4.1.4203.666.11.2.1" "CSN" Text;
    /// RFC 2252: kept for old schemas; any octets.
    AciItem "1.3.6.1.4.1.1466.115.121.1.1" "ACI Item" Octets;
}

impl Syntax {
    /// Whether values are characters that a person can read. LDIF and tools show the others as base64.
    #[must_use]
    pub const fn is_human_readable(self) -> bool {
        matches!(self.form(), Form::Text | Form::Assertion)
    }

    /// Whether values travel under the `;binary` option only (RFC 4522; certificates and their lists, RFC 4523).
    #[must_use]
    pub const fn requires_binary(self) -> bool {
        matches!(self.form(), Form::Der)
    }

    /// Whether this is a syntax of assertions, which no attribute type may have.
    #[must_use]
    pub const fn is_assertion_only(self) -> bool {
        matches!(self.form(), Form::Assertion)
    }

    /// Checks that `value` is a value of this syntax. `schema` resolves attribute names inside names.
    ///
    /// # Errors
    /// The rule that is broken, and where.
    pub fn check(self, value: &[u8], schema: &Schema) -> Result<(), SyntaxError> {
        match self {
            Syntax::Audio
            | Syntax::Binary
            | Syntax::Fax
            | Syntax::OctetString
            | Syntax::AciItem
            | Syntax::TeletexTerminalIdentifier => Ok(()),
            Syntax::Jpeg => text::jpeg(value),
            Syntax::Certificate
            | Syntax::CertificateList
            | Syntax::CertificatePair
            | Syntax::SupportedAlgorithm => der::check(self, value),
            Syntax::AttributeTypeDescription
            | Syntax::ContentRuleDescription
            | Syntax::StructureRuleDescription
            | Syntax::MatchingRuleDescription
            | Syntax::MatchingRuleUseDescription
            | Syntax::NameFormDescription
            | Syntax::ObjectClassDescription
            | Syntax::SyntaxDescription => definitions::check(self, value),
            Syntax::GeneralizedTime => GeneralizedTime::parse(value).map(drop),
            Syntax::UtcTime => UtcTime::parse(value).map(drop),
            Syntax::Csn => time::csn(value),
            Syntax::Guide | Syntax::EnhancedGuide => guide::check(self, value),
            Syntax::CertificatePairExactAssertion | Syntax::AlgorithmIdentifier => Ok(()),
            Syntax::CertificateExactAssertion | Syntax::CertificateListExactAssertion => {
                der::check_assertion(self, value)
            }
            _ => text::check(self, value, schema),
        }
    }
}

impl std::fmt::Display for Syntax {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.description())
    }
}
