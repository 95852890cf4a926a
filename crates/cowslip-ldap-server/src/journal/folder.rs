//! The files of a directory's folder, by name.
//!
//! `lock` is the token of whoever has it open; `journal-NNNNNNNN` and `snapshot-NNNNNNNN` are numbered; a name that ends
//! in `.tmp` was never finished; `aside-…` is what was damaged. A name says nothing until the header agrees.

use std::path::{Path, PathBuf};

use cowslip_engine::storage::{Storage, StorageLock};

use super::error::OpenError;

/// The file that is locked.
const LOCK: &str = "lock";
const JOURNAL: &str = "journal-";
const SNAPSHOT: &str = "snapshot-";
const UNFINISHED: &str = ".tmp";
/// What damaged files are renamed or copied to begins with this.
const ASIDE: &str = "aside-";
/// How many names are tried for a file that is put aside.
const ASIDE_NAMES_MAX: u32 = 1_000;

/// The numbered files of a folder, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) journals: Vec<u64>,
    pub(super) snapshots: Vec<u64>,
    pub(super) unfinished: Vec<PathBuf>,
}

impl Names {
    pub(super) fn read(storage: &dyn Storage, folder: &Path) -> Result<Self, OpenError> {
        let mut names = Self::default();
        for path in storage.list(folder).map_err(OpenError::io(folder, "list the folder"))? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if name.ends_with(UNFINISHED) {
                names.unfinished.push(path);
            } else if let Some(number) = number(name, JOURNAL) {
                names.journals.push(number);
            } else if let Some(number) = number(name, SNAPSHOT) {
                names.snapshots.push(number);
            }
        }
        names.journals.sort_unstable();
        names.snapshots.sort_unstable();
        Ok(names)
    }

    /// The largest number in use.
    pub(super) fn newest(&self) -> u64 {
        self.journals.last().max(self.snapshots.last()).copied().unwrap_or(0)
    }
}

/// The number in a name that is spelled as we spell it.
fn number(name: &str, prefix: &str) -> Option<u64> {
    let number = name.strip_prefix(prefix)?.parse().ok()?;
    (numbered(prefix, number) == name).then_some(number)
}

fn numbered(prefix: &str, number: u64) -> String {
    format!("{prefix}{number:08}")
}

pub(super) fn journal_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(numbered(JOURNAL, number))
}

pub(super) fn snapshot_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(numbered(SNAPSHOT, number))
}

/// The name of a file until it is finished.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    name.into()
}

/// A free name for what is to be kept of a damaged file.
pub(super) fn aside_path(storage: &dyn Storage, path: &Path) -> std::io::Result<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    for number in 0..ASIDE_NAMES_MAX {
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        let aside = path.with_file_name(format!("{ASIDE}{name}{suffix}"));
        if !storage.exists(&aside)? {
            return Ok(aside);
        }
    }
    Err(std::io::Error::other("there are too many files that were put aside; remove the old ones"))
}

/// The file whose lock whoever has the directory open holds.
pub(crate) fn lock_path(folder: &Path) -> PathBuf {
    folder.join(LOCK)
}

pub(super) fn lock(storage: &dyn Storage, folder: &Path) -> Result<Box<dyn StorageLock>, OpenError> {
    let path = lock_path(folder);
    storage.lock(&path).map_err(|source| OpenError::Lock { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_spelling_is_a_number() {
        for (name, expected) in [
            ("journal-00000001", Some(1)),
            ("journal-123456789", Some(123_456_789)),
            ("journal-1", None),
            ("journal-000000001", None),
            ("journal-+0000001", None),
            ("journal-", None),
            ("journal-0000000x", None),
            ("snapshot-00000001", None),
        ] {
            assert_eq!(number(name, JOURNAL), expected, "{name}");
        }
    }
}
