//! Matching rules (RFC 4517 section 4, RFC 4523, RFC 4530, RFC 2307, RFC 3112, and the bit and chain rules that clients of Active
//! Directory use) as small `Copy` values.
//!
//! A rule is used through *normalised forms*: bytes made once per value, which can be index keys.
//! Invariants: two values match under an equality rule exactly if their normalised bytes are equal; under an ordering
//! rule the byte order of the normalised forms is the rule's order; a normalised form is a function of the value, the
//! rule and, for rules about names, the schema alone. Nothing is allocated for ASCII values.

mod bytes;
mod normal;
mod phonetic;

pub use phonetic::{PHONETIC_KEY_BYTES_MAX, phonetic_key, phonetic_words};

pub(crate) use normal::NESTING_MAX;

use crate::prep::PieceKind;
use crate::schema::Schema;
use crate::syntax::{Syntax, SyntaxError};

/// What a matching rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleKind {
    /// Two normalised values are equal or not.
    Equality,
    /// Normalised values have an order.
    Ordering,
    /// Pieces of a value.
    Substring,
    /// Some word of the value equals the assertion.
    Word,
    /// All bits of the assertion are set in the value.
    BitAnd,
    /// Some bit of the assertion is set in the value.
    BitOr,
    /// The value, a name, leads to the assertion over any number of entries. The server evaluates it.
    InChain,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident $oid:literal $name:literal $kind:ident $syntax:ident [$($on:ident)*];)*) => {
        /// A matching rule that the server knows.
        ///
        /// ```
        /// use cowslip_ldap::{matching::MatchingRule, schema::Schema};
        /// let schema = Schema::standard();
        /// let rule = MatchingRule::by_name_or_oid("caseignorematch").expect("a rule of RFC 4517");
        /// let (mut one, mut other) = (Vec::new(), Vec::new());
        /// rule.normalize("  Straße 7".as_bytes(), &schema, &mut one)?;
        /// rule.normalize(b"STRASSE  7", &schema, &mut other)?;
        /// assert_eq!(one, other);
        /// # Ok::<(), cowslip_ldap::syntax::SyntaxError>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum MatchingRule {
            $($(#[$doc])* $variant,)*
        }

        impl MatchingRule {
            /// All rules, in the order in which they are published.
            pub const ALL: &[MatchingRule] = &[$(MatchingRule::$variant,)*];

            /// The rule's object identifier in dotted form.
            #[must_use]
            pub const fn oid(self) -> &'static str {
                match self { $(MatchingRule::$variant => $oid,)* }
            }

            /// The rule's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(MatchingRule::$variant => $name,)* }
            }

            /// What the rule is for.
            #[must_use]
            pub const fn kind(self) -> RuleKind {
                match self { $(MatchingRule::$variant => RuleKind::$kind,)* }
            }

            /// The syntax of assertions, as in the rule's definition.
            #[must_use]
            pub const fn assertion_syntax(self) -> Syntax {
                match self { $(MatchingRule::$variant => Syntax::$syntax,)* }
            }

            /// The attribute syntaxes that the rule can be applied to.
            #[must_use]
            pub const fn attribute_syntaxes(self) -> &'static [Syntax] {
                match self { $(MatchingRule::$variant => &[$(Syntax::$on,)*],)* }
            }
        }
    };
}

rules! {
    /// RFC 4517 section 4.2.26.
    ObjectIdentifierMatch "2.5.13.0" "objectIdentifierMatch" Equality Oid [Oid];
    /// RFC 4517 section 4.2.15.
    DistinguishedNameMatch "2.5.13.1" "distinguishedNameMatch" Equality Dn [Dn];
    /// RFC 4517 section 4.2.11.
    CaseIgnoreMatch "2.5.13.2" "caseIgnoreMatch" Equality DirectoryString
        [DirectoryString PrintableString CountryString TelephoneNumber Ia5String OtherMailbox DeliveryMethod];
    /// RFC 4517 section 4.2.12.
    CaseIgnoreOrderingMatch "2.5.13.3" "caseIgnoreOrderingMatch" Ordering DirectoryString
        [DirectoryString PrintableString CountryString TelephoneNumber Ia5String];
    /// RFC 4517 section 4.2.13.
    CaseIgnoreSubstringsMatch "2.5.13.4" "caseIgnoreSubstringsMatch" Substring SubstringAssertion
        [DirectoryString PrintableString CountryString TelephoneNumber Ia5String];
    /// RFC 4517 section 4.2.4.
    CaseExactMatch "2.5.13.5" "caseExactMatch" Equality DirectoryString
        [DirectoryString PrintableString CountryString TelephoneNumber Ia5String];
    /// RFC 4517 section 4.2.5.
    CaseExactOrderingMatch "2.5.13.6" "caseExactOrderingMatch" Ordering DirectoryString
        [DirectoryString PrintableString CountryString TelephoneNumber Ia5String];
    /// RFC 4517 section 4.2.6.
    CaseExactSubstringsMatch "2.5.13.7" "caseExactSubstringsMatch" Substring SubstringAssertion
        [DirectoryString PrintableString CountryString TelephoneNumber Ia5String];
    /// RFC 4517 section 4.2.22.
    NumericStringMatch "2.5.13.8" "numericStringMatch" Equality NumericString [NumericString];
    /// RFC 4517 section 4.2.23.
    NumericStringOrderingMatch "2.5.13.9" "numericStringOrderingMatch" Ordering NumericString [NumericString];
    /// RFC 4517 section 4.2.24.
    NumericStringSubstringsMatch "2.5.13.10" "numericStringSubstringsMatch" Substring SubstringAssertion
        [NumericString];
    /// RFC 4517 section 4.2.9.
    CaseIgnoreListMatch "2.5.13.11" "caseIgnoreListMatch" Equality PostalAddress [PostalAddress];
    /// RFC 4517 section 4.2.10.
    CaseIgnoreListSubstringsMatch "2.5.13.12" "caseIgnoreListSubstringsMatch" Substring SubstringAssertion
        [PostalAddress];
    /// RFC 4517 section 4.2.2.
    BooleanMatch "2.5.13.13" "booleanMatch" Equality Boolean [Boolean];
    /// RFC 4517 section 4.2.19.
    IntegerMatch "2.5.13.14" "integerMatch" Equality Integer [Integer];
    /// RFC 4517 section 4.2.20.
    IntegerOrderingMatch "2.5.13.15" "integerOrderingMatch" Ordering Integer [Integer];
    /// RFC 4517 section 4.2.1.
    BitStringMatch "2.5.13.16" "bitStringMatch" Equality BitString [BitString];
    /// RFC 4517 section 4.2.27. Any syntax: the octets are compared as they are.
    OctetStringMatch "2.5.13.17" "octetStringMatch" Equality OctetString
        [OctetString Binary Audio Fax Jpeg AciItem TeletexTerminalIdentifier];
    /// RFC 4517 section 4.2.28.
    OctetStringOrderingMatch "2.5.13.18" "octetStringOrderingMatch" Ordering OctetString
        [OctetString Binary Audio Fax Jpeg AciItem TeletexTerminalIdentifier];
    /// RFC 4517 section 4.2.29.
    TelephoneNumberMatch "2.5.13.20" "telephoneNumberMatch" Equality TelephoneNumber [TelephoneNumber];
    /// RFC 4517 section 4.2.30.
    TelephoneNumberSubstringsMatch "2.5.13.21" "telephoneNumberSubstringsMatch" Substring SubstringAssertion
        [TelephoneNumber];
    /// X.520, for the syntax that RFC 2252 keeps: compared as text.
    PresentationAddressMatch "2.5.13.22" "presentationAddressMatch" Equality PresentationAddress
        [PresentationAddress];
    /// RFC 4517 section 4.2.31.
    UniqueMemberMatch "2.5.13.23" "uniqueMemberMatch" Equality NameAndOptionalUid [NameAndOptionalUid];
    /// X.520, for the syntax that RFC 2252 keeps: compared as text.
    ProtocolInformationMatch "2.5.13.24" "protocolInformationMatch" Equality ProtocolInformation
        [ProtocolInformation];
    /// RFC 2252, for the UTC Time syntax that RFC 4517 keeps.
    UtcTimeMatch "2.5.13.25" "uTCTimeMatch" Equality UtcTime [UtcTime];
    /// RFC 4517 section 4.2.16.
    GeneralizedTimeMatch "2.5.13.27" "generalizedTimeMatch" Equality GeneralizedTime [GeneralizedTime];
    /// RFC 4517 section 4.2.17.
    GeneralizedTimeOrderingMatch "2.5.13.28" "generalizedTimeOrderingMatch" Ordering GeneralizedTime
        [GeneralizedTime];
    /// RFC 4517 section 4.2.18: the value is a definition, the assertion the number that it begins with.
    IntegerFirstComponentMatch "2.5.13.29" "integerFirstComponentMatch" Equality Integer
        [StructureRuleDescription];
    /// RFC 4517 section 4.2.25: the value is a definition, the assertion the identifier that it begins with.
    ObjectIdentifierFirstComponentMatch "2.5.13.30" "objectIdentifierFirstComponentMatch" Equality Oid
        [AttributeTypeDescription ObjectClassDescription SyntaxDescription MatchingRuleDescription
         MatchingRuleUseDescription ContentRuleDescription NameFormDescription];
    /// RFC 4517 section 4.2.14.
    DirectoryStringFirstComponentMatch "2.5.13.31" "directoryStringFirstComponentMatch" Equality DirectoryString
        [AttributeTypeDescription ObjectClassDescription SyntaxDescription MatchingRuleDescription
         MatchingRuleUseDescription ContentRuleDescription NameFormDescription];
    /// RFC 4517 section 4.2.32: some word of the value equals the assertion.
    WordMatch "2.5.13.32" "wordMatch" Word DirectoryString [DirectoryString];
    /// RFC 4517 section 4.2.21: what a key word is, is the server's choice; here, a word.
    KeywordMatch "2.5.13.33" "keywordMatch" Word DirectoryString [DirectoryString];
    /// RFC 4523 section 3.1: issuer and serial number.
    CertificateExactMatch "2.5.13.34" "certificateExactMatch" Equality CertificateExactAssertion [Certificate];
    /// RFC 4523 section 3.3: the octets of the whole value.
    CertificatePairExactMatch "2.5.13.36" "certificatePairExactMatch" Equality CertificatePairExactAssertion
        [CertificatePair];
    /// RFC 4523 section 3.5: issuer and time of this update.
    CertificateListExactMatch "2.5.13.38" "certificateListExactMatch" Equality CertificateListExactAssertion
        [CertificateList];
    /// RFC 4523 section 3.7: the octets of the whole value.
    AlgorithmIdentifierMatch "2.5.13.40" "algorithmIdentifierMatch" Equality AlgorithmIdentifier
        [SupportedAlgorithm];
    /// RFC 4517 section 4.2.3.
    CaseExactIa5Match "1.3.6.1.4.1.1466.109.114.1" "caseExactIA5Match" Equality Ia5String
        [Ia5String NetgroupTriple BootParameter];
    /// RFC 4517 section 4.2.7.
    CaseIgnoreIa5Match "1.3.6.1.4.1.1466.109.114.2" "caseIgnoreIA5Match" Equality Ia5String
        [Ia5String NetgroupTriple BootParameter];
    /// RFC 4517 section 4.2.8.
    CaseIgnoreIa5SubstringsMatch "1.3.6.1.4.1.1466.109.114.3" "caseIgnoreIA5SubstringsMatch" Substring
        SubstringAssertion [Ia5String NetgroupTriple BootParameter];
    /// From OpenLDAP's and RFC 2307bis' schemas.
    CaseExactIa5SubstringsMatch "1.3.6.1.4.1.4203.1.2.1" "caseExactIA5SubstringsMatch" Substring
        SubstringAssertion [Ia5String NetgroupTriple BootParameter];
    /// RFC 4530 section 2.2.
    UuidMatch "1.3.6.1.1.16.2" "uuidMatch" Equality Uuid [Uuid];
    /// RFC 4530 section 2.3.
    UuidOrderingMatch "1.3.6.1.1.16.3" "uuidOrderingMatch" Ordering Uuid [Uuid];
    /// RFC 3112 section 3.
    AuthPasswordExactMatch "1.3.6.1.4.1.4203.1.2.2" "authPasswordExactMatch" Equality AuthPassword [AuthPassword];
    /// OpenLDAP's rule for change sequence numbers.
    CsnMatch "1.3.6.1.4.1.4203.666.11.2.2" "CSNMatch" Equality Csn [Csn];
    /// OpenLDAP's rule for change sequence numbers.
    CsnOrderingMatch "1.3.6.1.4.1.4203.666.11.2.3" "CSNOrderingMatch" Ordering Csn [Csn];
    /// Active Directory's `LDAP_MATCHING_RULE_BIT_AND`.
    IntegerBitAndMatch "1.2.840.113556.1.4.803" "integerBitAndMatch" BitAnd Integer [Integer];
    /// Active Directory's `LDAP_MATCHING_RULE_BIT_OR`.
    IntegerBitOrMatch "1.2.840.113556.1.4.804" "integerBitOrMatch" BitOr Integer [Integer];
    /// Active Directory's `LDAP_MATCHING_RULE_IN_CHAIN`.
    InChainMatch "1.2.840.113556.1.4.1941" "distinguishedNameInChainMatch" InChain Dn [Dn];
}

impl MatchingRule {
    /// The rule with this name (ASCII case ignored) or dotted object identifier.
    #[must_use]
    pub fn by_name_or_oid(text: &str) -> Option<MatchingRule> {
        let is_named = |rule: &&MatchingRule| rule.name().eq_ignore_ascii_case(text) || rule.oid() == text;
        Self::ALL.iter().find(is_named).copied()
    }

    /// Whether the rule can be applied to attributes of this syntax; what `(:rule:=value)` goes through.
    #[must_use]
    pub fn applies_to(self, syntax: Syntax) -> bool {
        self.attribute_syntaxes().contains(&syntax)
    }

    /// Appends the normalised form of a value. Two values match exactly if these bytes are equal; for an ordering
    /// rule, their byte order is the rule's order.
    ///
    /// # Errors
    /// The value is not one of the rule's syntax. `out` is then as before.
    pub fn normalize(self, value: &[u8], schema: &Schema, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        self.normalize_nested(value, schema, 0, out)
    }

    /// As [`normalize`](Self::normalize), for a value so many names deep inside names.
    pub(crate) fn normalize_nested(
        self,
        value: &[u8],
        schema: &Schema,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxError> {
        let start = out.len();
        let result = normal::value(self, value, schema, depth, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Appends the normalised form of an assertion. It differs from a value's for rules whose assertions have another
    /// form (first components, certificates), and in being stricter: what RFC 4518 prohibits and names that the
    /// schema does not know are errors, by which a filter item becomes Undefined.
    ///
    /// # Errors
    /// The assertion is not one of the rule. `out` is then as before.
    pub fn normalize_assertion(
        self,
        assertion: &[u8],
        schema: &Schema,
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxError> {
        let start = out.len();
        let result = normal::assertion(self, assertion, schema, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Appends the form of one piece of a substrings assertion; RFC 4518 section 2.6.1 treats blanks by where the
    /// piece stands. The piece is then looked for in what [`normalize_for_substrings`](Self::normalize_for_substrings)
    /// gives: the initial piece at its beginning, the final one at its end, the others between, in order and without
    /// overlap.
    ///
    /// # Errors
    /// The rule is not one of substrings, or the piece not one of its texts. `out` is then as before.
    pub fn normalize_piece(
        self,
        piece: &[u8],
        at: PieceKind,
        schema: &Schema,
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxError> {
        let _ = schema;
        normal::piece(self, piece, at, out)
    }

    /// Appends the form of a value in which pieces are looked for.
    ///
    /// # Errors
    /// The rule is not one of substrings, or the value not one of its texts. `out` is then as before.
    pub fn normalize_for_substrings(
        self,
        value: &[u8],
        schema: &Schema,
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxError> {
        let _ = schema;
        normal::for_substrings(self, value, out)
    }

    /// Whether a value matches an assertion, both normalised. For ordering rules: whether the value is less
    /// (RFC 4517 section 4.2); for substring and chain rules always `false`, since they need more than two values.
    ///
    /// ```
    /// use cowslip_ldap::{matching::MatchingRule, schema::Schema};
    /// let schema = Schema::standard();
    /// let (mut value, mut mask) = (Vec::new(), Vec::new());
    /// MatchingRule::IntegerBitAndMatch.normalize(b"514", &schema, &mut value)?;
    /// MatchingRule::IntegerBitAndMatch.normalize_assertion(b"2", &schema, &mut mask)?;
    /// assert!(MatchingRule::IntegerBitAndMatch.accepts(&value, &mask));
    /// # Ok::<(), cowslip_ldap::syntax::SyntaxError>(())
    /// ```
    #[must_use]
    pub fn accepts(self, value: &[u8], assertion: &[u8]) -> bool {
        let bits = || Some((bytes::small_integer(value)?, bytes::small_integer(assertion)?));
        match self.kind() {
            RuleKind::Equality => value == assertion,
            RuleKind::Ordering => value < assertion,
            RuleKind::Word => normal::has_word(value, assertion),
            RuleKind::BitAnd => bits().is_some_and(|(value, mask)| value & mask == mask),
            RuleKind::BitOr => bits().is_some_and(|(value, mask)| value & mask != 0),
            RuleKind::Substring | RuleKind::InChain => false,
        }
    }
}
