//! Database files in the reference server's standalone format, both ways.
//!
//! [`create`] makes one, [`open`] reads one and gives the root together with the [`FileJournal`] that goes on writing it,
//! [`load`] only reads. The parts: [`log`] frames records, [`record`] is their content, `replay` reads a file, `journal`
//! writes one, [`compaction`] makes a new one of a snapshot.
//!
//! Invariants: whoever writes a file holds the lock file beside it, under the name and with the kind of lock that the
//! reference programs use; opening writes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cowslip_engine::storage::{OpenMode, Storage, StorageLock};
use cowslip_engine::{HISTORY_BYTES_MAX_DEFAULT, Root, Uuid};
use cowslip_ovsdb::row::{Note, Ovsdb};
use cowslip_ovsdb::schema::Schema;

pub use convert::{ConversionError, convert};
pub use error::OpenError;
pub use journal::FileJournal;
pub use replay::{Damage, History, RecordFault};

pub mod compaction;
mod convert;
pub mod date;
mod error;
mod journal;
pub mod log;
pub mod record;
mod replay;

/// With this set to 1 in the environment nothing is ever synced. It is there so that a test of durability can be shown
/// to fail.
pub const NO_SYNC_VARIABLE: &str = "COWSLIP_UNSAFE_NO_SYNC";

/// How a file is opened for writing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// How much of the newest changes is kept, so that clients of a restarted server get differences.
    pub history_bytes_max: usize,
    /// Whether changes of columns with many members are written as differences; a file that servers before 2.15 are to
    /// read must hold whole values.
    pub column_differences: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { history_bytes_max: HISTORY_BYTES_MAX_DEFAULT, column_differences: true }
    }
}

/// A file opened for writing.
#[derive(Debug)]
pub struct Opened {
    /// What writes it from here on. It holds the lock.
    pub journal: FileJournal,
    /// The state that the file holds. Its generation is that of the last entry of the history.
    pub root: Root<Ovsdb>,
    /// The newest changes.
    pub history: History,
    /// What was found.
    pub report: Report,
}

/// A file that was only read.
#[derive(Debug)]
pub struct Loaded {
    /// The state that the file holds.
    pub root: Root<Ovsdb>,
    /// What was found.
    pub report: Report,
}

/// What was found in a file.
#[derive(Debug)]
pub struct Report {
    /// The number of transactions.
    pub transactions: u64,
    /// The bytes of all good records.
    pub bytes: u64,
    /// The end of the file that could not be read. It is put aside before the first write.
    pub damage: Option<Damage>,
    /// How many weak references to missing rows were taken out. The first write records that.
    pub pruned_references: usize,
}

/// The name of the lock file beside a database file.
pub fn lock_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".~lock~");
    path.with_file_name(name)
}

/// Takes the lock that whoever writes a database file must hold.
///
/// # Errors
/// [`OpenError::Lock`].
pub fn lock(storage: &dyn Storage, path: &Path) -> Result<Box<dyn StorageLock>, OpenError> {
    storage.lock(&lock_path(path)).map_err(|source| OpenError::Lock { path: path.to_owned(), source })
}

/// Makes a new, empty database file.
///
/// # Errors
/// The file exists, is locked, or cannot be written; then nothing is left behind, as far as the disk allows.
pub fn create(storage: &dyn Storage, path: &Path, schema: &Schema) -> Result<(), OpenError> {
    let root = Root::new(Arc::new(schema.clone()));
    write_new(storage, path, &root, None)
}

/// Makes a new database file with a root's content, in one transaction with this comment.
///
/// # Errors
/// As [`create`].
pub fn save(storage: &dyn Storage, path: &Path, root: &Root<Ovsdb>, comment: &str) -> Result<(), OpenError> {
    write_new(storage, path, root, Some(comment))
}

/// Written under another name first, so that no crash leaves half a file.
fn write_new(
    storage: &dyn Storage,
    path: &Path,
    root: &Root<Ovsdb>,
    comment: Option<&str>,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::io(path, "create the database", source);
    let _lock = lock(storage, path)?;
    if storage.exists(path).map_err(failed)? {
        return Err(OpenError::Exists { path: path.to_owned() });
    }
    let sync = is_syncing();
    let temporary = compaction::beside(path, ".tmp");
    compaction::write_file(storage, &temporary, root, comment, sync).map_err(failed)?;
    let named = storage
        .rename(&temporary, path)
        .and_then(|()| if sync { storage.sync_dir(path.parent().unwrap_or(Path::new(""))) } else { Ok(()) });
    named.map_err(|source| {
        // The first error is the one to tell.
        let _ = storage.remove(&temporary);
        failed(source)
    })
}

/// Opens a file for writing and reads it.
///
/// Damage at the end is reported, logged and otherwise left alone until something is written.
///
/// # Errors
/// See [`OpenError`]. Only a first record that is no good stops it, and whatever keeps the file from being read at all.
pub fn open(storage: Arc<dyn Storage>, path: &Path, options: &OpenOptions) -> Result<Opened, OpenError> {
    let failed = |source| OpenError::io(path, error::OPEN, source);
    let path = &storage.canonical(path).map_err(failed)?;
    let lock = lock(&*storage, path)?;
    let file = storage.open(path, OpenMode::Write).map_err(failed)?;
    let mut replayed = replay::replay(path, &*file, options.history_bytes_max)?;
    let (repairs, pruned_references) = replay::prune(&replayed.root);
    let mut position = replayed.chain;
    let mut repair = None;
    if pruned_references > 0 {
        let repairs = Arc::new(repairs);
        replayed.root.apply(&repairs);
        // The corrected state is in no record yet, so it gets a name that no restart will know.
        position = Uuid::new_v4();
        replayed.history.push(Arc::clone(&repairs), Note::default(), position);
        replayed.root.set_generation(replayed.history.newest());
        repair = Some(repairs);
    }
    let replay::Replayed { root, end, base_bytes, transactions, chain, history, damage } = replayed;
    let report = Report { transactions, bytes: end, damage, pruned_references };
    report.log(path);
    let journal = FileJournal {
        path: path.clone(),
        file,
        _lock: lock,
        schema: Arc::clone(root.meta()),
        end,
        damage_end: report.damage.as_ref().map(|damage| damage.offset + damage.bytes),
        repair,
        chain,
        position,
        schedule: compaction::Schedule::new(base_bytes, transactions),
        // Whoever wrote the file last may have left it unsynced.
        is_dirty: true,
        has_failed: false,
        sync: is_syncing(),
        differences: options.column_differences,
        epoch: 0,
        compacting_from: None,
        text: String::new(),
        buffer: Vec::new(),
        storage,
    };
    Ok(Opened { journal, root, history, report })
}

/// Reads a file without locking it, as it is at this moment.
///
/// # Errors
/// See [`OpenError`].
pub fn load(storage: &dyn Storage, path: &Path) -> Result<Loaded, OpenError> {
    let file = storage.open(path, OpenMode::Read);
    let file = file.map_err(|source| OpenError::io(path, error::OPEN, source))?;
    let replay::Replayed { mut root, end, transactions, damage, .. } = replay::replay(path, &*file, 0)?;
    let (repairs, pruned_references) = replay::prune(&root);
    root.apply(&repairs);
    let report = Report { transactions, bytes: end, damage, pruned_references };
    report.log(path);
    Ok(Loaded { root, report })
}

/// Reads only the schema that a file begins with.
///
/// # Errors
/// See [`OpenError`].
pub fn schema(storage: &dyn Storage, path: &Path) -> Result<Schema, OpenError> {
    let failed = |source| OpenError::io(path, error::OPEN, source);
    let file = storage.open(path, OpenMode::Read).map_err(failed)?;
    let mut reader = log::LogReader::new(&*file, 0).map_err(failed)?;
    Ok(replay::read_schema(path, &mut reader)?.0)
}

impl Report {
    fn log(&self, path: &Path) {
        if let Some(damage) = &self.damage {
            tracing::error!(
                database = %path.display(), offset = damage.offset, bytes = damage.bytes,
                intact_records = damage.intact_records, fault = %damage.fault,
                "the end of the database file is damaged and not used"
            );
        }
        if self.pruned_references > 0 {
            tracing::warn!(
                database = %path.display(), references = self.pruned_references,
                "the database file held weak references to rows that do not exist; they were taken out"
            );
        }
    }
}

fn is_syncing() -> bool {
    let is_off = std::env::var_os(NO_SYNC_VARIABLE).is_some_and(|value| value == "1");
    if is_off {
        tracing::warn!(
            "{NO_SYNC_VARIABLE} is set: nothing is synced, and a power failure loses acknowledged commits"
        );
    }
    !is_off
}
