//! Why a database file could not be opened, made or compacted. The variants say whose fault it is, the texts what to do.

use std::io;
use std::path::{Path, PathBuf};

use cowslip_engine::storage::LockError;
use cowslip_ovsdb::error::Error;

use super::log::FrameFault;

/// Why a database file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened, read or written. The environment's fault.
    #[error("{}: cannot {action}: {source}{}", path.display(), advice_on_io(path, action, source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done, as a verb with its object.
        action: &'static str,
        /// What went wrong.
        source: io::Error,
    },
    /// Somebody else has the database open, or its lock file cannot be used.
    #[error("{}: failed to lock lockfile: {source}{}", path.display(), advice_on_lock(source))]
    Lock {
        /// The database file.
        path: PathBuf,
        /// Why the lock was not taken.
        source: LockError,
    },
    /// The file to be made exists.
    #[error("{}: the file exists already; remove it first or choose another name", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to a clustered database, which is not served here.
    #[error(
        "{0}: this is the file of a clustered database, which is not supported; make a standalone one of it with \
         `ovsdb-tool cluster-to-standalone NEW-FILE {0}`",
        path.display()
    )]
    Clustered {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a database, or its first record is damaged.
    #[error(
        "{}: not an OVSDB database file, or its first record is damaged: {}; restore it from a backup, or remove it \
         and make a new one",
        path.display(), first_fault(source.as_ref())
    )]
    NoSchema {
        /// The file.
        path: PathBuf,
        /// What is wrong with the first record; none if the file is empty.
        source: Option<FrameFault>,
    },
    /// The first record is intact and not a schema.
    #[error("{}: the file's schema is bad: {source}; restore it from a backup", path.display())]
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

/// The action of [`OpenError::Io`] that a missing file fails at.
pub(super) const OPEN: &str = "open the database";

fn advice_on_io(path: &Path, action: &str, source: &io::Error) -> String {
    if source.kind() == io::ErrorKind::NotFound && action == OPEN {
        format!("; make one with `ovsdb-tool create {} SCHEMA`", path.display())
    } else {
        String::new()
    }
}

fn advice_on_lock(source: &LockError) -> &'static str {
    match source {
        LockError::Held => "; is a server running on it? Talk to the server instead, or stop it first",
        _ => "",
    }
}

fn first_fault(source: Option<&FrameFault>) -> String {
    source.map_or_else(|| "the file is empty".to_owned(), FrameFault::to_string)
}
