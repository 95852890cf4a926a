//! Why a database file could not be opened, made or compacted. The variants say whose fault it is, the texts what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cowslip_engine::storage::LockError;
use cowslip_ovsdb::error::Error;

use super::log::FrameFault;

/// Why a database file could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened, read or written. The environment's fault.
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done, as a verb with its object.
        action: &'static str,
        /// What went wrong.
        source: io::Error,
    },
    /// Somebody else has the database open, or its lock file cannot be used.
    Lock {
        /// The database file.
        path: PathBuf,
        /// Why the lock was not taken.
        source: LockError,
    },
    /// The file to be made exists.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to a clustered database, which is not served here.
    Clustered {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a database, or its first record is damaged.
    NoSchema {
        /// The file.
        path: PathBuf,
        /// What is wrong with the first record; none if the file is empty.
        source: Option<FrameFault>,
    },
    /// The first record is intact and not a schema.
    BadSchema {
        /// The file.
        path: PathBuf,
        /// Which rule it breaks.
        source: Error,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, action, source } => {
                write!(f, "{}: cannot {action}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::NotFound if *action == OPEN => {
                        write!(f, "; make one with `ovsdb-tool create {} SCHEMA`", path.display())
                    }
                    _ => Ok(()),
                }
            }
            Self::Lock { path, source } => {
                write!(f, "{}: failed to lock lockfile: {source}", path.display())?;
                match source {
                    LockError::Held => f.write_str(
                        "; is a server running on it? Talk to the server instead, or stop it first",
                    ),
                    _ => Ok(()),
                }
            }
            Self::Exists { path } => {
                write!(
                    f,
                    "{}: the file exists already; remove it first or choose another name",
                    path.display()
                )
            }
            Self::Clustered { path } => {
                let path = path.display();
                write!(
                    f,
                    "{path}: this is the file of a clustered database, which is not supported; make a standalone \
                     one of it with `ovsdb-tool cluster-to-standalone NEW-FILE {path}`"
                )
            }
            Self::NoSchema { path, source } => {
                write!(
                    f,
                    "{}: not an OVSDB database file, or its first record is damaged: ",
                    path.display()
                )?;
                match source {
                    Some(fault) => write!(f, "{fault}"),
                    None => f.write_str("the file is empty"),
                }?;
                f.write_str("; restore it from a backup, or remove it and make a new one")
            }
            Self::BadSchema { path, source } => {
                write!(f, "{}: the file's schema is bad: {source}; restore it from a backup", path.display())
            }
        }
    }
}

/// The action of [`OpenError::Io`] that a missing file fails at.
pub(super) const OPEN: &str = "open the database";

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Lock { source, .. } => Some(source),
            Self::NoSchema { source: Some(source), .. } => Some(source),
            Self::BadSchema { source, .. } => Some(source),
            Self::Exists { .. } | Self::Clustered { .. } | Self::NoSchema { source: None, .. } => None,
        }
    }
}
