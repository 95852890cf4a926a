//! Results: the codes of RFC 4511 section 4.1.9 and appendix A, and of its extensions, and the result that ends each operation.

use std::borrow::Cow;
use std::fmt;

/// Why an operation ended as it did (RFC 4511 appendix A).
///
/// ```
/// use cowslip_ldap::result::ResultCode;
/// assert_eq!(ResultCode::from_number(32), ResultCode::NoSuchObject);
/// assert_eq!(ResultCode::NoSuchObject.number(), 32);
/// assert_eq!(ResultCode::NoSuchObject.to_string(), "noSuchObject (32)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResultCode {
    /// The operation was done.
    Success,
    /// The operation does not fit the state of the connection.
    OperationsError,
    /// The request can't be decoded or breaks a rule of the protocol.
    ProtocolError,
    /// The time limit ran out; entries sent so far are valid.
    TimeLimitExceeded,
    /// More entries match than the size limit lets through.
    SizeLimitExceeded,
    /// The compare's assertion is false.
    CompareFalse,
    /// The compare's assertion is true.
    CompareTrue,
    /// The server does not offer this way to authenticate.
    AuthMethodNotSupported,
    /// The server wants a stronger authentication.
    StrongerAuthRequired,
    /// Another server has it; the result carries its URLs.
    Referral,
    /// A limit set by the administrator was reached.
    AdminLimitExceeded,
    /// A critical control is not known or does not fit the operation.
    UnavailableCriticalExtension,
    /// Encryption is asked for first.
    ConfidentialityRequired,
    /// The server waits for the client's next step.
    SaslBindInProgress,
    /// The entry has no such attribute or value.
    NoSuchAttribute,
    /// The schema has no such attribute type.
    UndefinedAttributeType,
    /// The attribute has no matching rule for this.
    InappropriateMatching,
    /// A value or change breaks a constraint of the data.
    ConstraintViolation,
    /// The attribute or value is there already, or twice in the request.
    AttributeOrValueExists,
    /// A value is not of the attribute's syntax.
    InvalidAttributeSyntax,
    /// There is no entry of this name.
    NoSuchObject,
    /// An alias points to nothing.
    AliasProblem,
    /// A name is not a distinguished name.
    InvalidDnSyntax,
    /// An alias may not be followed.
    AliasDereferencingProblem,
    /// The entry can't authenticate like this.
    InappropriateAuthentication,
    /// Name or password is wrong; never says which.
    InvalidCredentials,
    /// The client may not do this.
    InsufficientAccessRights,
    /// Too much to do; trying again later helps.
    Busy,
    /// The server is shutting down or can't work.
    Unavailable,
    /// The server does not do this.
    UnwillingToPerform,
    /// Names or groups lead back to themselves.
    LoopDetect,
    /// A virtual list view needs a sort control (draft-ietf-ldapext-ldapv3-vlv).
    SortControlMissing,
    /// The virtual list view's offset is out of range (draft-ietf-ldapext-ldapv3-vlv).
    OffsetRangeError,
    /// The name does not fit the entry or the structure.
    NamingViolation,
    /// The entry would break the rules of its object classes.
    ObjectClassViolation,
    /// The entry has entries below it.
    NotAllowedOnNonLeaf,
    /// A value of the entry's RDN can't be taken away.
    NotAllowedOnRdn,
    /// There is an entry of this name.
    EntryAlreadyExists,
    /// The structural object class can't be changed.
    ObjectClassModsProhibited,
    /// The operation would touch another server's data.
    AffectsMultipleDsas,
    /// None of the other codes fits.
    Other,
    /// The operation ended because of a cancel (RFC 3909).
    Canceled,
    /// There is no such operation to cancel (RFC 3909).
    NoSuchOperation,
    /// The operation can't be canceled any more (RFC 3909).
    TooLate,
    /// This kind of operation can't be canceled (RFC 3909).
    CannotCancel,
    /// The assertion control's filter is not true of the entry (RFC 4528).
    AssertionFailed,
    /// The client may not act as the identity it names (RFC 4370).
    AuthorizationDenied,
    /// The content has to be read again from the start (RFC 4533).
    SyncRefreshRequired,
    /// A number that none of the above stands for.
    Unknown(
        /// As it was received.
        u32,
    ),
}

/// Every code with its number and the name that the specifications give it; ascending.
const CODES: &[(ResultCode, u32, &str)] = &[
    (ResultCode::Success, 0, "success"),
    (ResultCode::OperationsError, 1, "operationsError"),
    (ResultCode::ProtocolError, 2, "protocolError"),
    (ResultCode::TimeLimitExceeded, 3, "timeLimitExceeded"),
    (ResultCode::SizeLimitExceeded, 4, "sizeLimitExceeded"),
    (ResultCode::CompareFalse, 5, "compareFalse"),
    (ResultCode::CompareTrue, 6, "compareTrue"),
    (ResultCode::AuthMethodNotSupported, 7, "authMethodNotSupported"),
    (ResultCode::StrongerAuthRequired, 8, "strongerAuthRequired"),
    (ResultCode::Referral, 10, "referral"),
    (ResultCode::AdminLimitExceeded, 11, "adminLimitExceeded"),
    (ResultCode::UnavailableCriticalExtension, 12, "unavailableCriticalExtension"),
    (ResultCode::ConfidentialityRequired, 13, "confidentialityRequired"),
    (ResultCode::SaslBindInProgress, 14, "saslBindInProgress"),
    (ResultCode::NoSuchAttribute, 16, "noSuchAttribute"),
    (ResultCode::UndefinedAttributeType, 17, "undefinedAttributeType"),
    (ResultCode::InappropriateMatching, 18, "inappropriateMatching"),
    (ResultCode::ConstraintViolation, 19, "constraintViolation"),
    (ResultCode::AttributeOrValueExists, 20, "attributeOrValueExists"),
    (ResultCode::InvalidAttributeSyntax, 21, "invalidAttributeSyntax"),
    (ResultCode::NoSuchObject, 32, "noSuchObject"),
    (ResultCode::AliasProblem, 33, "aliasProblem"),
    (ResultCode::InvalidDnSyntax, 34, "invalidDNSyntax"),
    (ResultCode::AliasDereferencingProblem, 36, "aliasDereferencingProblem"),
    (ResultCode::InappropriateAuthentication, 48, "inappropriateAuthentication"),
    (ResultCode::InvalidCredentials, 49, "invalidCredentials"),
    (ResultCode::InsufficientAccessRights, 50, "insufficientAccessRights"),
    (ResultCode::Busy, 51, "busy"),
    (ResultCode::Unavailable, 52, "unavailable"),
    (ResultCode::UnwillingToPerform, 53, "unwillingToPerform"),
    (ResultCode::LoopDetect, 54, "loopDetect"),
    (ResultCode::SortControlMissing, 60, "sortControlMissing"),
    (ResultCode::OffsetRangeError, 61, "offsetRangeError"),
    (ResultCode::NamingViolation, 64, "namingViolation"),
    (ResultCode::ObjectClassViolation, 65, "objectClassViolation"),
    (ResultCode::NotAllowedOnNonLeaf, 66, "notAllowedOnNonLeaf"),
    (ResultCode::NotAllowedOnRdn, 67, "notAllowedOnRDN"),
    (ResultCode::EntryAlreadyExists, 68, "entryAlreadyExists"),
    (ResultCode::ObjectClassModsProhibited, 69, "objectClassModsProhibited"),
    (ResultCode::AffectsMultipleDsas, 71, "affectsMultipleDSAs"),
    (ResultCode::Other, 80, "other"),
    (ResultCode::Canceled, 118, "canceled"),
    (ResultCode::NoSuchOperation, 119, "noSuchOperation"),
    (ResultCode::TooLate, 120, "tooLate"),
    (ResultCode::CannotCancel, 121, "cannotCancel"),
    (ResultCode::AssertionFailed, 122, "assertionFailed"),
    (ResultCode::AuthorizationDenied, 123, "authorizationDenied"),
    (ResultCode::SyncRefreshRequired, 4096, "e-syncRefreshRequired"),
];

impl ResultCode {
    /// The number that travels.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Success => 0,
            Self::OperationsError => 1,
            Self::ProtocolError => 2,
            Self::TimeLimitExceeded => 3,
            Self::SizeLimitExceeded => 4,
            Self::CompareFalse => 5,
            Self::CompareTrue => 6,
            Self::AuthMethodNotSupported => 7,
            Self::StrongerAuthRequired => 8,
            Self::Referral => 10,
            Self::AdminLimitExceeded => 11,
            Self::UnavailableCriticalExtension => 12,
            Self::ConfidentialityRequired => 13,
            Self::SaslBindInProgress => 14,
            Self::NoSuchAttribute => 16,
            Self::UndefinedAttributeType => 17,
            Self::InappropriateMatching => 18,
            Self::ConstraintViolation => 19,
            Self::AttributeOrValueExists => 20,
            Self::InvalidAttributeSyntax => 21,
            Self::NoSuchObject => 32,
            Self::AliasProblem => 33,
            Self::InvalidDnSyntax => 34,
            Self::AliasDereferencingProblem => 36,
            Self::InappropriateAuthentication => 48,
            Self::InvalidCredentials => 49,
            Self::InsufficientAccessRights => 50,
            Self::Busy => 51,
            Self::Unavailable => 52,
            Self::UnwillingToPerform => 53,
            Self::LoopDetect => 54,
            Self::SortControlMissing => 60,
            Self::OffsetRangeError => 61,
            Self::NamingViolation => 64,
            Self::ObjectClassViolation => 65,
            Self::NotAllowedOnNonLeaf => 66,
            Self::NotAllowedOnRdn => 67,
            Self::EntryAlreadyExists => 68,
            Self::ObjectClassModsProhibited => 69,
            Self::AffectsMultipleDsas => 71,
            Self::Other => 80,
            Self::Canceled => 118,
            Self::NoSuchOperation => 119,
            Self::TooLate => 120,
            Self::CannotCancel => 121,
            Self::AssertionFailed => 122,
            Self::AuthorizationDenied => 123,
            Self::SyncRefreshRequired => 4096,
            Self::Unknown(number) => number,
        }
    }

    /// The code of a number; a number without one becomes [`ResultCode::Unknown`].
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        CODES
            .binary_search_by_key(&number, |(_, code, _)| *code)
            .map_or(Self::Unknown(number), |place| CODES[place].0)
    }

    /// The name in the specification, such as `noSuchObject`.
    #[must_use]
    pub fn name(self) -> &'static str {
        CODES
            .binary_search_by_key(&self.number(), |(_, code, _)| *code)
            .map_or("unknown", |place| CODES[place].2)
    }

    /// Whether the operation did what was asked: success, a compare's answer, or the next step of a SASL bind.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Success | Self::CompareFalse | Self::CompareTrue | Self::SaslBindInProgress)
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

/// The end of an operation (RFC 4511 section 4.1.9). Borrows where it can: a refusal's texts on the way out, the frame on
/// the way in.
///
/// ```
/// use cowslip_ldap::result::{LdapResult, ResultCode};
/// let result = LdapResult::new(ResultCode::NoSuchObject, "no such entry").with_matched("dc=example,dc=com");
/// assert_eq!(result.matched, "dc=example,dc=com");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdapResult<'a> {
    /// The code.
    pub code: ResultCode,
    /// The name of the last entry found on the way to the one asked for; empty unless the code has to do with names.
    pub matched: Cow<'a, str>,
    /// For people; programs ignore it.
    pub message: Cow<'a, str>,
    /// Where else to ask, as URLs. Travels only if there is one.
    pub referrals: Vec<Cow<'a, str>>,
}

impl<'a> LdapResult<'a> {
    /// Success, with nothing to add.
    pub const SUCCESS: LdapResult<'static> = LdapResult {
        code: ResultCode::Success,
        matched: Cow::Borrowed(""),
        message: Cow::Borrowed(""),
        referrals: Vec::new(),
    };

    /// A code and a message.
    pub fn new(code: ResultCode, message: impl Into<Cow<'a, str>>) -> Self {
        Self { code, matched: Cow::Borrowed(""), message: message.into(), referrals: Vec::new() }
    }

    /// The same with the name of the last entry found.
    #[must_use]
    pub fn with_matched(self, matched: impl Into<Cow<'a, str>>) -> Self {
        Self { matched: matched.into(), ..self }
    }

    /// The same, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> LdapResult<'static> {
        let own = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        LdapResult {
            code: self.code,
            matched: own(self.matched),
            message: own(self.message),
            referrals: self.referrals.into_iter().map(own).collect(),
        }
    }
}

impl From<ResultCode> for LdapResult<'_> {
    fn from(code: ResultCode) -> Self {
        Self::new(code, "")
    }
}

impl fmt::Display for LdapResult<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_are_one_to_one() {
        assert!(CODES.is_sorted_by(|a, b| a.1 < b.1), "the table is ascending");
        for number in 0..=5_000 {
            let code = ResultCode::from_number(number);
            assert_eq!(code.number(), number);
            let is_listed = CODES.iter().any(|row| row.1 == number);
            assert_eq!(matches!(code, ResultCode::Unknown(_)), !is_listed, "{number}");
            assert_eq!(code.name() == "unknown", !is_listed, "{number}");
        }
    }
}
