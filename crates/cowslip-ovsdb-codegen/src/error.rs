//! What can stop a generation.

use std::io;
use std::path::PathBuf;

/// Why there are no models, or not where they should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodegenError {
    /// The file of the schema cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of the schema is larger than [`SCHEMA_BYTES_MAX`](crate::SCHEMA_BYTES_MAX).
    #[error("{path} has {size} bytes, more than any schema", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// The schema breaks a rule.
    #[error("not a usable schema: {source}")]
    Schema {
        /// Which one, and where.
        source: cowslip_ovsdb::error::Error,
    },
    /// A table was selected that the schema has not.
    #[error("the schema of {database} has no table {table}; it has: {}", known.join(", "))]
    UnknownTable {
        /// The database.
        database: String,
        /// What was asked for.
        table: String,
        /// The tables that there are.
        known: Vec<String>,
    },
    /// A column was selected that the table has not.
    #[error("table {table} has no column {column}; it has: {}", known.join(", "))]
    UnknownColumn {
        /// The table.
        table: String,
        /// What was asked for.
        column: String,
        /// The columns that there are.
        known: Vec<String>,
    },
    /// A folder or file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
