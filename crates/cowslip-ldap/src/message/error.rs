//! What is wrong with a request, and what a server does about it.
//!
//! RFC 4511 section 4.1.1 draws the line: if the message, its number, its operation or the lengths of its parts can't be
//! made out, the connection ends with a notice; if they can, the request alone is answered and the connection goes on.

use super::MessageId;
use super::request::OperationKind;
use crate::ber::BerError;
use crate::framing::FrameError;
use crate::result::ResultCode;

/// Why a request can't be done as it stands. The client is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The octets are no message, or too large a one.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Tags or lengths are wrong.
    #[error("the message is damaged: {0}")]
    Damaged(#[from] BerError),
    /// The message's number is not between 1 and 2^31 - 1.
    #[error("message number {number}; requests have 1 to 2147483647")]
    MessageId {
        /// The number.
        number: i64,
    },
    /// The operation is not one of LDAP's requests.
    #[error("tag {tag:#04x} is no request of LDAP")]
    UnknownOperation {
        /// Its tag.
        tag: u8,
    },
    /// The request could be read and says something that it may not.
    #[error("{fault}")]
    Refused {
        /// The request's number.
        id: MessageId,
        /// Its operation.
        operation: OperationKind,
        /// What it says.
        fault: Fault,
    },
}

/// What a server does about a request in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Answers this request, and goes on.
    Answer {
        /// The request's number.
        id: MessageId,
        /// Its operation, which says what the answer is called.
        operation: OperationKind,
        /// The code of the answer.
        code: ResultCode,
    },
    /// Goes on: the operation is one without an answer.
    Ignore,
    /// Sends a notice of disconnection with this code, and closes.
    Disconnect {
        /// The code of the notice.
        code: ResultCode,
    },
}

impl RequestError {
    /// What a server does about it.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Refused { operation: OperationKind::Abandon | OperationKind::Unbind, .. } => Remedy::Ignore,
            Self::Refused { id, operation, fault } => {
                Remedy::Answer { id: *id, operation: *operation, code: fault.code() }
            }
            _ => Remedy::Disconnect { code: ResultCode::ProtocolError },
        }
    }
}

/// What a well-formed request says that it may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A version of the protocol other than 3.
    #[error("version {number} of LDAP; this is version 3")]
    Version {
        /// The version.
        number: i64,
    },
    /// A way to authenticate that is not in RFC 4511.
    #[error("authentication choice {tag:#04x} is not known")]
    Authentication {
        /// Its tag.
        tag: u8,
    },
    /// A number out of its range.
    #[error("{field} is {number}, which is out of range")]
    Number {
        /// Which part of the request.
        field: &'static str,
        /// The number.
        number: i64,
    },
    /// Octets that are not UTF-8 where text belongs.
    #[error("{field} is not UTF-8")]
    Text {
        /// Which part of the request.
        field: &'static str,
    },
    /// An attribute that is to be added has no values.
    #[error("{attribute} has no values")]
    NoValues {
        /// The attribute description.
        attribute: String,
    },
    /// An increment has not exactly one value (RFC 4525 section 3).
    #[error("an increment of {attribute} has {values} values, not 1")]
    IncrementValues {
        /// The attribute description.
        attribute: String,
        /// How many values it has.
        values: usize,
    },
    /// A new entry has no attributes.
    #[error("the entry has no attributes")]
    NoAttributes,
    /// More controls than are allowed.
    #[error("more than {max} controls")]
    TooManyControls {
        /// How many are allowed.
        max: usize,
    },
    /// A search asks for more attributes than are allowed.
    #[error("more than {max} requested attributes")]
    TooManyAttributes {
        /// How many are allowed.
        max: usize,
    },
    /// A kind of filter that is not in RFC 4511.
    #[error("filter choice {tag:#04x} is not known")]
    FilterChoice {
        /// Its tag.
        tag: u8,
    },
    /// A filter with more levels of and, or, not than are allowed.
    #[error("a filter of more than {max} levels")]
    FilterDepth {
        /// How many are allowed.
        max: usize,
    },
    /// A filter of more parts than are allowed.
    #[error("a filter of more than {max} parts")]
    FilterTerms {
        /// How many are allowed.
        max: usize,
    },
    /// The pieces of a substring filter are none, or not in the order initial, any, final.
    #[error("the pieces of the substring filter on {attribute} are none or out of order")]
    Substrings {
        /// The attribute description.
        attribute: String,
    },
    /// An extensible filter names neither an attribute nor a matching rule.
    #[error("an extensible filter names neither attribute nor matching rule")]
    ExtensibleWithoutSubject,
}

impl Fault {
    /// The code that the client gets.
    #[must_use]
    pub const fn code(&self) -> ResultCode {
        match self {
            Self::Authentication { .. } => ResultCode::AuthMethodNotSupported,
            Self::TooManyControls { .. } => ResultCode::UnwillingToPerform,
            _ => ResultCode::ProtocolError,
        }
    }
}

/// Either kind of error while an operation is read.
#[derive(Debug)]
pub(super) enum Problem {
    /// The connection can't go on.
    Damaged(BerError),
    /// The request can't be done.
    Fault(Fault),
}

impl From<BerError> for Problem {
    fn from(error: BerError) -> Self {
        Self::Damaged(error)
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
