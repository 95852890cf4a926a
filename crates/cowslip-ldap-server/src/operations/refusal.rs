//! Why an operation was not done.

use std::fmt;

use cowslip_ldap::result::ResultCode;

/// An operation that was refused: what the client is told (RFC 4511, section 4.1.9). Nothing of it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: ResultCode,
    /// The name of the last entry found on the way to the one named, where the code wants it.
    pub matched: String,
    /// For people: which attribute, which value, which rule.
    pub message: String,
}

impl Refusal {
    /// A refusal with a message.
    pub fn new(code: ResultCode, message: impl Into<String>) -> Self {
        Self { code, matched: String::new(), message: message.into() }
    }

    /// The same with the name of the last entry found.
    #[must_use]
    pub fn with_matched(self, matched: String) -> Self {
        Self { matched, ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}
