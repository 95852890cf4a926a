//! What can go wrong, by who asked for what: building a transaction, sending it, connecting.

use cowslip_engine::Uuid;
use cowslip_net::tls::TlsError;
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::error::Error as ProtocolError;
use std::sync::Arc;
use std::time::Duration;

/// Why a client could not be made, or could not go on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// An endpoint's text cannot be used. The caller's fault.
    #[error("endpoint {endpoint}: {reason}")]
    Endpoint {
        /// The text.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No endpoint was given.
    #[error("no endpoint was given: name one, such as unix:/run/openvswitch/db.sock")]
    NoEndpoint,
    /// The TLS files or settings are not what they should be.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The connection has as many clients as it may have.
    #[error("a connection takes at most {limit} databases")]
    Databases {
        /// The limit.
        limit: usize,
    },
    /// The schema lacks something that was asked for as required, or has it with another type.
    #[error("the server's schema does not fit: {}", mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Schema {
        /// Everything that does not fit.
        mismatches: Vec<Mismatch>,
    },
    /// There was no synchronised cache within the time given.
    #[error("not synchronised after {waited:?}; last reason: {reason}")]
    TimedOut {
        /// How long it was waited.
        waited: Duration,
        /// Why the last attempt failed, if one did.
        reason: String,
    },
    /// The client was closed.
    #[error("the client was closed")]
    Closed,
    /// There is no such table, column or index. The caller's fault.
    #[error("{0}")]
    Unknown(#[from] BuildError),
    /// The operating system refused a thread.
    #[error("starting a thread: {reason}")]
    Thread {
        /// The system's reason.
        reason: String,
    },
}

/// One thing that was asked for and that the server's schema does not have, or has otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// A table is missing.
    #[error("no table {table}")]
    Table {
        /// The table.
        table: String,
    },
    /// A column is missing.
    #[error("no column {table}.{column}")]
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column has another type.
    #[error("{table}.{column} holds {found}, not {expected}")]
    Type {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What the model wants.
        expected: String,
        /// What the schema says.
        found: String,
    },
}

/// Why an operation, a condition or a look-up cannot be made. Always the caller's fault.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No such table.
    #[error("no table {table} in the server's schema")]
    Table {
        /// The table.
        table: String,
    },
    /// No such column.
    #[error("no column {column} in table {table} of the server's schema")]
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// No such index.
    #[error("no index {index} on table {table}")]
    Index {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// A value that the column cannot hold.
    #[error("{table}.{column}: {reason}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Why not.
        reason: String,
    },
    /// A filter with an "or" in it, for an operation: all conditions of a `where` must hold (RFC 7047 section 5.2).
    #[error(
        "{table}: an operation's conditions are joined by \"and\"; make one operation for each of Filter::alternatives"
    )]
    Disjunction {
        /// The table.
        table: String,
    },
    /// A filter that has a row meet two requirements at once, for a monitor: one of its clauses is enough.
    #[error(
        "{table}: a monitor's conditions are joined by \"or\"; it cannot ask for two requirements at once"
    )]
    Conjunction {
        /// The table.
        table: String,
    },
    /// The column may not be changed.
    #[error("{table}.{column} may not be changed after the row's insertion")]
    Immutable {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A row that the cache does not have, where its present values are needed.
    #[error("{table}: no row {uuid} in the cache")]
    Row {
        /// The table.
        table: String,
        /// The row.
        uuid: Uuid,
    },
    /// An operation of a text that is none.
    #[error("operation {operation}: {error}")]
    Operation {
        /// Which one, from 0.
        operation: usize,
        /// What is wrong with it.
        error: ProtocolError,
    },
}

/// Why a transaction has no results.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactError {
    /// An operation could not be made. Nothing was sent.
    #[error("{0}")]
    Build(#[from] BuildError),
    /// Validation refused it. Nothing was sent.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// Validation was asked for, and there is no cache yet to validate on. Nothing was sent.
    #[error("the cache is not synchronised yet")]
    NotSynchronised,
    /// There is no connection. Nothing was sent.
    #[error("not connected")]
    Disconnected,
    /// The connection broke after the transaction was sent, or while it was: whether the server applied it is not
    /// known.
    #[error("the connection broke before the reply: the transaction may or may not have been applied")]
    OutcomeUnknown,
    /// There was no reply within [`request_timeout`](crate::Options::request_timeout). If it was sent, the server may yet
    /// apply it.
    #[error("no reply within {waited:?}; {}", if *is_sent { "the transaction may or may not be applied" } else { "nothing was sent" })]
    TimedOut {
        /// How long it was waited.
        waited: Duration,
        /// Whether bytes of it may have left.
        is_sent: bool,
    },
    /// The server has another schema now than when the transaction was begun. Nothing was sent.
    #[error("the server's schema has changed; begin the transaction anew")]
    SchemaChanged,
    /// The server refused it; nothing of it was applied.
    #[error("{0}")]
    Failed(Box<Failure>),
    /// A guard found that the server has a row with a key that this transaction takes, though the cache had none.
    #[error("{0}")]
    Duplicate(Box<Duplicate>),
    /// The server's reply is not what the protocol says.
    #[error("malformed reply: {reason}")]
    Reply {
        /// What is wrong with it.
        reason: String,
    },
    /// The client was closed.
    #[error("the client was closed")]
    Closed,
}

/// A key that more than one row would hold.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("table {table}: index {index} has key {} twice", words(key))]
pub struct Duplicate {
    /// The table.
    pub table: String,
    /// The client index's name, or the schema index's columns.
    pub index: String,
    /// The key, part by part.
    pub key: Arc<[Datum]>,
    /// The rows that would share it; those that are not in the cache are not among them.
    pub rows: Vec<Uuid>,
}

/// Why validation refused a transaction. The cache may lag behind the server, so the server might have accepted it:
/// the caller can wait for a later generation and try again.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("refused on the cache of generation {generation}: {error}")]
pub struct Refusal {
    /// The generation of the cache that was looked at.
    pub generation: u64,
    /// The operation at fault, from 0; none if the fault shows only at the end of the transaction.
    pub operation: Option<usize>,
    /// The table of that operation, or of the duplicate key.
    pub table: Option<String>,
    /// The rows that share a key, if that is the reason.
    pub duplicate: Option<Duplicate>,
    /// The reason as the server would have put it.
    pub error: ProtocolError,
}

/// An error of the server's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {details}")]
pub struct Failure {
    /// The `error` member, such as `constraint violation`.
    pub kind: String,
    /// The `details` member.
    pub details: String,
    /// The operation at fault, from 0; none if the fault shows only at the end of the transaction.
    pub operation: Option<usize>,
    /// The table of that operation, or the one that the details name.
    pub table: Option<String>,
    /// The column that the details name.
    pub column: Option<String>,
    /// The rows that the details name.
    pub rows: Vec<Uuid>,
}

fn words(key: &[Datum]) -> String {
    let part = |value: &Datum| match value.as_one() {
        Some(atom) => atom.to_string(),
        None if value.is_empty() => "(no value)".to_string(),
        None => format!("({} members)", value.len()),
    };
    key.iter().map(part).collect::<Vec<_>>().join(", ")
}
