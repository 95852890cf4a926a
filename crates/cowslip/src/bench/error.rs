//! What can stop a measurement.

use crate::ovsdb_client::error::{ClientError, reason};
use cowslip_ovsdb::framing::FramingError;
use std::fmt;
use std::io;

/// Why there is no result.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum BenchError {
    /// A program cannot be started.
    Program { name: String, source: io::Error },
    /// A program that prepares something failed; what it said.
    Failed { name: String, output: String },
    /// A server did not listen in time; the end of its log.
    NotListening { name: String, log: String },
    /// Connecting failed.
    Connect(ClientError),
    /// The connection broke.
    Io(io::Error),
    /// The server closed a connection.
    Closed,
    /// The server sent no JSON messages.
    Framing(FramingError),
    /// The server does not speak the protocol; what is wrong.
    Protocol(String),
    /// The server refused a request; its reply.
    Refused(String),
    /// No reply came for a long time.
    Silent { seconds: u64 },
    /// The command line asks for something impossible.
    Usage(String),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::Program { name, source } => {
                write!(f, "cannot run {name}: {}; is it installed (`cargo xtask peers`)?", reason(source))
            }
            BenchError::Failed { name, output } => write!(f, "{name} failed: {}", output.trim()),
            BenchError::NotListening { name, log } => {
                write!(f, "{name} did not listen in time: {}", log.trim())
            }
            BenchError::Connect(error) => error.fmt(f),
            BenchError::Io(source) => write!(f, "the connection broke: {}", reason(source)),
            BenchError::Closed => f.write_str("the server closed a connection"),
            BenchError::Framing(error) => error.fmt(f),
            BenchError::Protocol(fault) => write!(f, "the server's answer: {fault}"),
            BenchError::Refused(reply) => write!(f, "the server refused a request: {reply:.500}"),
            BenchError::Silent { seconds } => write!(f, "the server sent nothing for {seconds} seconds"),
            BenchError::Usage(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<io::Error> for BenchError {
    fn from(error: io::Error) -> Self {
        BenchError::Io(error)
    }
}

impl From<FramingError> for BenchError {
    fn from(error: FramingError) -> Self {
        BenchError::Framing(error)
    }
}

impl From<ClientError> for BenchError {
    fn from(error: ClientError) -> Self {
        BenchError::Connect(error)
    }
}
