//! What can go wrong between the command line and the reply.

use cowslip_ovsdb::framing::FramingError;
use cowslip_ovsdb::json::JsonError;
use std::fmt;
use std::io;

/// Why a command failed. Every one of them ends the program with exit code 1.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum ClientError {
    /// The command line does not make sense; the text says what is wrong.
    Usage(String),
    /// Nobody answers at the address.
    Connect { server: String, source: io::Error },
    /// Listening for the server to connect failed.
    Listen { server: String, source: io::Error },
    /// The address has a form that this program does not know.
    Address { server: String },
    /// TLS was asked for.
    TlsAddress { server: String },
    /// None of several servers could be used.
    NoServer { servers: String },
    /// The connection broke.
    Io { server: String, source: io::Error },
    /// The server closed the connection.
    Closed { server: String },
    /// The server sent what is no sequence of JSON messages.
    Framing { server: String, source: FramingError },
    /// The server sent a message that is no JSON.
    BadJson { server: String, source: JsonError },
    /// The server answered a request with an error; its text.
    Refused { method: String, error: String },
    /// An operation of a transaction failed; the text of its result.
    Operation(String),
    /// A reply that does not have the form it must have.
    Reply(String),
    /// A file could not be read.
    File { path: String, reason: String },
    /// A text of the command line is no JSON.
    Argument { text: String, source: JsonError },
    /// A value or schema that breaks OVSDB's rules.
    Data(cowslip_ovsdb::error::Error),
    /// Standard output is gone.
    Output(io::Error),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Usage(text) | ClientError::Reply(text) => f.write_str(text),
            ClientError::Connect { server, source } => {
                write!(f, "cannot connect to {server}: {}; is the server running?", reason(source))
            }
            ClientError::Listen { server, source } => {
                write!(f, "cannot listen on {server}: {}", reason(source))
            }
            ClientError::Address { server } => {
                write!(
                    f,
                    "{server} is no address: say unix:PATH, tcp:HOST:PORT, punix:PATH or ptcp:PORT[:HOST]"
                )
            }
            ClientError::TlsAddress { server } => {
                write!(f, "{server}: this program has no TLS yet; use a unix: or tcp: address")
            }
            ClientError::NoServer { servers } => write!(f, "none of {servers} can be used"),
            ClientError::Io { server, source } => write!(f, "{server}: {}", reason(source)),
            ClientError::Closed { server } => write!(f, "{server}: the server closed the connection"),
            ClientError::Framing { server, source } => write!(f, "{server}: {source}"),
            ClientError::BadJson { server, source } => write!(f, "{server}: bad message: {source}"),
            ClientError::Refused { method, error } => write!(f, "the server refused {method}: {error}"),
            ClientError::Operation(result) => write!(f, "an operation failed: {result}"),
            ClientError::File { path, reason } => write!(f, "{path}: {reason}"),
            ClientError::Argument { text, source } => write!(f, "{text:?} is no JSON: {source}"),
            ClientError::Data(error) => error.fmt(f),
            ClientError::Output(source) => write!(f, "cannot write the output: {}", reason(source)),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<cowslip_ovsdb::error::Error> for ClientError {
    fn from(error: cowslip_ovsdb::error::Error) -> Self {
        ClientError::Data(error)
    }
}

/// The system's message without the number that the standard library appends.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}
