//! Errors as they travel in replies (RFC 7047 section 3.1, `<error>`), and what they mean.

use crate::json::{Json, write_str};
use std::fmt;

/// What kind of error a reply carries. The texts are those of the reference server: clients match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A request that does not have the form it must have. The sender's fault.
    Syntax,
    /// A condition, row or mutation names a column that its table lacks. The sender's fault.
    UnknownColumn,
    /// A condition's function does not exist. The sender's fault.
    UnknownFunction,
    /// A mutation's mutator does not exist. The sender's fault.
    UnknownMutator,
    /// A request names a database that is not served here.
    UnknownDatabase,
    /// A value, row count, index or weak reference breaks what the schema demands.
    ConstraintViolation,
    /// A strong reference to a row that does not exist (any more).
    ReferentialIntegrity,
    /// A mutation divides by zero.
    Domain,
    /// A mutation's result does not fit its type.
    Range,
    /// A `wait` whose time has passed.
    TimedOut,
    /// An `abort` operation.
    Aborted,
    /// An `assert` of a lock that the session does not own.
    NotOwner,
    /// The same `uuid-name` twice in one transaction.
    DuplicateUuidName,
    /// The `uuid` of an insert is taken, or was until this transaction deleted it.
    DuplicateUuid,
    /// The server may not write now.
    NotAllowed,
    /// Writing to the disk failed; nothing of the transaction was applied.
    Io,
    /// More than a named limit of this server permits.
    ResourcesExhausted,
    /// Values that are no set or map, such as a member that appears twice.
    Other,
}

impl ErrorKind {
    /// The `error` member's text.
    pub fn tag(self) -> &'static str {
        match self {
            ErrorKind::Syntax => "syntax error",
            ErrorKind::UnknownColumn => "unknown column",
            ErrorKind::UnknownFunction => "unknown function",
            ErrorKind::UnknownMutator => "unknown mutator",
            ErrorKind::UnknownDatabase => "unknown database",
            ErrorKind::ConstraintViolation => "constraint violation",
            ErrorKind::ReferentialIntegrity => "referential integrity violation",
            ErrorKind::Domain => "domain error",
            ErrorKind::Range => "range error",
            ErrorKind::TimedOut => "timed out",
            ErrorKind::Aborted => "aborted",
            ErrorKind::NotOwner => "not owner",
            ErrorKind::DuplicateUuidName => "duplicate uuid-name",
            ErrorKind::DuplicateUuid => "duplicate uuid",
            ErrorKind::NotAllowed => "not allowed",
            ErrorKind::Io => "I/O error",
            ErrorKind::ResourcesExhausted => "resources exhausted",
            ErrorKind::Other => "ovsdb error",
        }
    }
}

/// An error with its explanation and, where a piece of the request is at fault, that piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// For a human.
    pub details: String,
    /// The text of the JSON value that is at fault, keys sorted.
    pub syntax: Option<String>,
}

impl Error {
    /// An error that no single value of the request is to blame for.
    pub fn new(kind: ErrorKind, details: impl Into<String>) -> Self {
        Error { kind, details: details.into(), syntax: None }
    }

    /// An error that shows the value at fault.
    pub fn at(json: &Json<'_>, kind: ErrorKind, details: impl Into<String>) -> Self {
        Error { kind, details: details.into(), syntax: Some(json.to_sorted_string()) }
    }

    /// A `syntax error` that shows the value at fault.
    pub fn syntax(json: &Json<'_>, details: impl Into<String>) -> Self {
        Error::at(json, ErrorKind::Syntax, details)
    }

    /// Appends the error object.
    pub fn write(&self, out: &mut String) {
        out.push_str("{\"error\":");
        write_str(out, self.kind.tag());
        out.push_str(",\"details\":");
        write_str(out, &self.details);
        if let Some(syntax) = &self.syntax {
            out.push_str(",\"syntax\":");
            write_str(out, syntax);
        }
        out.push('}');
    }

    /// The error object's text.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.syntax {
            Some(syntax) => write!(f, "{}: {syntax}: {}", self.kind.tag(), self.details),
            None => write!(f, "{}: {}", self.kind.tag(), self.details),
        }
    }
}

impl std::error::Error for Error {}
