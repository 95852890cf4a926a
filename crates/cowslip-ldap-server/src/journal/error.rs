//! Why a directory's folder could not be opened or made. The texts say what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cowslip_engine::storage::LockError;

use super::format::Fault;

/// Why a directory's folder could not be opened, made, or saved from damage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file cannot be opened, read or written. The environment's fault.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done, as a verb with its object.
        action: &'static str,
        /// What went wrong.
        source: io::Error,
    },
    /// Somebody else has the directory open, or its lock file cannot be used.
    #[error("{}: {source}{}", path.display(), advice_on_lock(source))]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why the lock was not taken.
        source: LockError,
    },
    /// A directory was to be made where one is.
    #[error("{}: there is a directory already; choose another folder or remove it first", folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no directory in the folder.
    #[error("{}: there is no directory here: no snapshot is found", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// Something that was durable is unreadable or gone.
    #[error(
        "{}: damaged at offset {offset}: {fault}{}; `cowslip ldap verify --salvage {}` puts the damaged part aside and \
         keeps what comes before it; or restore a backup",
        path.display(), describe_intact(*intact_commits), folder.display()
    )]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// The damaged file.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong there.
        fault: Fault,
        /// How many commits behind it are intact.
        intact_commits: u64,
    },
    /// A snapshot is damaged, and nothing else holds what it holds.
    #[error("{}: the snapshot is damaged at offset {offset}: {fault}; restore a backup", path.display())]
    Snapshot {
        /// The snapshot's file.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong there.
        fault: Fault,
    },
    /// What is written is intact and means nothing to this version.
    #[error("{}: cannot make sense of the record at offset {offset}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where in it the record, or the batch that holds it, begins, in bytes.
        offset: u64,
        /// What is wrong with it.
        source: CodecError,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, action, source }
    }
}

fn advice_on_lock(source: &LockError) -> &'static str {
    match source {
        LockError::Held => "; is a server running on it? Talk to the server instead, or stop it first",
        _ => "",
    }
}

fn describe_intact(commits: u64) -> String {
    match commits {
        0 => String::new(),
        1 => ", with 1 intact commit behind it".to_owned(),
        _ => format!(", with {commits} intact commits behind it"),
    }
}

/// Why a record cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecError {
    reason: String,
}

impl CodecError {
    /// An error with its reason, as the end of a sentence.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for CodecError {}
