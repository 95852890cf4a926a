//! The journal of a database that lives in a file.
//!
//! Invariants: `end` is where the last complete record ends, and whatever lies behind it is cut off, and the cut synced,
//! before anything is written there (else a new record could end where an old one begins, and bring it back to life);
//! after a failed sync, or a failed cut, nothing more is written; a new file replaces the old one only when it is
//! complete and synced, and nothing is written to it before its name is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cowslip_engine::storage::{OpenMode, Storage, StorageFile, StorageLock};
use cowslip_engine::{AppendError, ChangeSet, Commit, Journal, Root, Uuid};
use cowslip_ovsdb::row::{Note, Ovsdb};
use cowslip_ovsdb::schema::Schema;

use super::compaction::{Compacted, Compaction, NewFile, Schedule, beside, write_file};
use super::date::{Date, now_ms};
use super::log::write_record;
use super::record::{COMPACTION_COMMENT, encode};
use super::replay::{first_position, next_position, read_range};

/// The comment of the record that removes weak references to nothing.
const REPAIR_COMMENT: &str = "removing weak references to rows that do not exist";

/// How many names are tried for the file that keeps damaged records.
const DAMAGED_NAMES_MAX: u32 = 1_000;

/// The capacity that is kept from one batch to the next.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// The journal of a database that lives in a file.
pub struct FileJournal {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn StorageFile>,
    /// Held for as long as the journal lives.
    pub(super) _lock: Box<dyn StorageLock>,
    pub(super) schema: Arc<Schema>,
    pub(super) end: u64,
    /// Where damage ends that begins at `end` and was not put aside yet.
    pub(super) damage_end: Option<u64>,
    /// What was corrected in memory on opening, to be written before anything else.
    pub(super) repair: Option<Arc<ChangeSet<Ovsdb>>>,
    /// The name of the state after the last record.
    pub(super) chain: Uuid,
    /// The name of the state after the last commit; another one if that commit wrote no record.
    pub(super) position: Uuid,
    pub(super) schedule: Schedule,
    pub(super) is_dirty: bool,
    pub(super) has_failed: bool,
    pub(super) sync: bool,
    /// Whether records hold differences of large columns.
    pub(super) differences: bool,
    pub(super) epoch: u64,
    /// Where the running compaction's snapshot ends.
    pub(super) compacting_from: Option<u64>,
    pub(super) text: String,
    pub(super) buffer: Vec<u8>,
}

impl fmt::Debug for FileJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileJournal")
            .field("path", &self.path)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// A batch's commits as they are to be written.
struct Encoded {
    positions: Vec<Uuid>,
    chain: Uuid,
    records: u64,
}

impl FileJournal {
    /// The file, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's size without damage at its end.
    pub fn file_bytes(&self) -> u64 {
        self.end
    }

    /// As [`Journal::begin_compaction`], with another comment for the record that is written.
    ///
    /// # Errors
    /// The compaction could not be begun; the journal goes on as it is.
    pub fn begin_commented_compaction(
        &mut self,
        snapshot: Arc<Root<Ovsdb>>,
        comment: &str,
    ) -> io::Result<Compaction> {
        if self.compacting_from.is_some() {
            return Err(io::Error::other("a compaction is running already"));
        }
        self.usable().and_then(|()| self.settle()).map_err(into_io)?;
        self.compacting_from = Some(self.end);
        Ok(Compaction {
            storage: Arc::clone(&self.storage),
            path: beside(&self.path, ".tmp"),
            snapshot,
            comment: comment.to_owned(),
            epoch: self.epoch,
            sync: self.sync,
        })
    }

    fn usable(&self) -> Result<(), AppendError> {
        if self.has_failed {
            let source = io::Error::other("the database file failed before; reopen it to write again");
            return Err(AppendError::Unknown { source });
        }
        Ok(())
    }

    /// What has to happen before the first write.
    fn settle(&mut self) -> Result<(), AppendError> {
        if let Some(damage_end) = self.damage_end {
            self.put_damage_aside(damage_end).map_err(|source| AppendError::NotWritten { source })?;
            self.cut()?;
            self.damage_end = None;
        }
        if let Some(repair) = self.repair.take() {
            let note = Note { comment: Some(REPAIR_COMMENT.to_owned()) };
            let commit = Commit { changes: Arc::clone(&repair), note: Arc::new(note), root: None };
            let encoded = self.encode(&[commit], self.chain);
            if let Err(error) = self.write() {
                self.repair = Some(repair);
                return Err(error);
            }
            // The name that the corrected state has is already known to clients and stays.
            self.chain = encoded.chain;
            self.schedule.commits += encoded.records;
        }
        Ok(())
    }

    fn put_damage_aside(&self, damage_end: u64) -> io::Result<()> {
        let bytes = read_range(&*self.file, self.end, damage_end)?;
        let name = format!(".damaged-{}", Date::from_ms(now_ms()).compact());
        let mut path = beside(&self.path, &name);
        let mut number = 0;
        let file = loop {
            match self.storage.open(&path, OpenMode::CreateNew) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < DAMAGED_NAMES_MAX => {
                    number += 1;
                    path = beside(&self.path, &format!("{name}-{number}"));
                }
                other => break other?,
            }
        };
        file.write_at(0, &bytes)?;
        if self.sync {
            file.sync_data()?;
            self.sync_dir()?;
        }
        tracing::warn!(
            database = %self.path.display(), damaged = %path.display(), offset = self.end, bytes = bytes.len(),
            "moved the unreadable end of the database file to a file of its own"
        );
        Ok(())
    }

    /// Encodes commits into the buffer, the first on the state that `chain` names.
    fn encode(&mut self, batch: &[Commit<Ovsdb>], chain: Uuid) -> Encoded {
        let date_ms = now_ms();
        let mut encoded = Encoded { positions: Vec::with_capacity(batch.len()), chain, records: 0 };
        self.buffer.clear();
        for commit in batch {
            self.text.clear();
            let Commit { changes, note, .. } = commit;
            if encode(&self.schema, changes, note, date_ms, self.differences, &mut self.text) {
                let hash = write_record(&mut self.buffer, &mut self.text);
                encoded.chain = next_position(&encoded.chain, &hash);
                encoded.records += 1;
                encoded.positions.push(encoded.chain);
            } else {
                encoded.positions.push(Uuid::new_v4());
            }
        }
        encoded
    }

    /// Writes the buffer behind the last record, in one piece.
    fn write(&mut self) -> Result<(), AppendError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(source) = self.file.write_at(self.end, &self.buffer) {
            tracing::error!(database = %self.path.display(), %source, "writing to the database file failed");
            self.cut()?;
            return Err(AppendError::NotWritten { source });
        }
        self.end += self.buffer.len() as u64;
        self.is_dirty = true;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        self.text.clear();
        self.text.shrink_to(BUFFER_BYTES_KEPT);
        Ok(())
    }

    /// Takes away everything behind the last record, for good.
    fn cut(&mut self) -> Result<(), AppendError> {
        let cut = self
            .file
            .truncate(self.end)
            .and_then(|()| if self.sync { self.file.sync_data() } else { Ok(()) });
        cut.map_err(|source| self.fail(source))
    }

    fn fail(&mut self, source: io::Error) -> AppendError {
        self.has_failed = true;
        tracing::error!(
            database = %self.path.display(), %source,
            "the database file is in an unknown state; the database is read-only until it is reopened"
        );
        AppendError::Unknown { source }
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.storage.sync_dir(self.path.parent().unwrap_or(Path::new("")))
    }

    /// A commit of the batch changed the schema or replaced everything: a new file takes the place of the old one.
    ///
    /// The reference server cannot read a schema in the middle of a file.
    fn replace(
        &mut self,
        batch: &[Commit<Ovsdb>],
        at: usize,
        root: &Root<Ovsdb>,
    ) -> Result<Vec<Uuid>, AppendError> {
        let not_written = |source| AppendError::NotWritten { source };
        let comment = batch[at].note.comment.as_deref().unwrap_or(COMPACTION_COMMENT);
        let path = beside(&self.path, ".tmp-replace");
        let new = write_file(&*self.storage, &path, root, Some(comment), self.sync).map_err(not_written)?;
        let old_schema = std::mem::replace(&mut self.schema, Arc::clone(root.meta()));
        let start = start_position(&new);
        let encoded = self.encode(&batch[at + 1..], start);
        let tail = std::mem::take(&mut self.buffer);
        if let Err(error) = self.switch(&path, new, &tail) {
            self.schema = old_schema;
            return Err(error);
        }
        self.epoch += 1;
        self.compacting_from = None;
        self.repair = None;
        self.schedule.commits = encoded.records;
        self.chain = encoded.chain;
        let mut positions: Vec<_> = (0..at).map(|_| Uuid::new_v4()).collect();
        positions.push(start);
        positions.extend(encoded.positions);
        Ok(positions)
    }

    /// Completes a new file with the records that came after its snapshot, and gives it the name of the old one.
    fn switch(&mut self, path: &Path, new: NewFile, tail: &[u8]) -> Result<(), AppendError> {
        let NewFile { file, bytes, .. } = new;
        let completed = (|| {
            if !tail.is_empty() {
                file.write_at(bytes, tail)?;
                if self.sync {
                    file.sync_data()?;
                }
            }
            self.storage.rename(path, &self.path)
        })();
        if let Err(source) = completed {
            // The first error is the one to tell; a leftover is removed by the next attempt.
            let _ = self.storage.remove(path);
            return Err(AppendError::NotWritten { source });
        }
        self.file = file;
        self.end = bytes + tail.len() as u64;
        self.is_dirty = false;
        self.damage_end = None;
        self.schedule = Schedule::new(bytes, 0);
        if self.sync
            && let Err(source) = self.sync_dir()
        {
            // After a crash the old file might be back, without what is written from here on.
            return Err(self.fail(source));
        }
        Ok(())
    }
}

/// The name of the state that a new file holds.
fn start_position(new: &NewFile) -> Uuid {
    let first = first_position(&new.schema_hash);
    new.snapshot_hash.map_or(first, |hash| next_position(&first, &hash))
}

fn into_io(error: AppendError) -> io::Error {
    match error {
        AppendError::NotWritten { source } | AppendError::Unknown { source } => source,
        other => io::Error::other(other),
    }
}

impl Journal<Ovsdb> for FileJournal {
    type Compaction = Compaction;
    type Compacted = Compacted;

    fn append(&mut self, batch: &[Commit<Ovsdb>]) -> Result<Vec<Uuid>, AppendError> {
        self.usable()?;
        let replacement =
            batch.iter().enumerate().rev().find_map(|(at, commit)| Some((at, commit.root.clone()?)));
        self.settle()?;
        let positions = match replacement {
            Some((at, root)) => self.replace(batch, at, &root)?,
            None => {
                let encoded = self.encode(batch, self.chain);
                self.write()?;
                self.chain = encoded.chain;
                self.schedule.commits += encoded.records;
                encoded.positions
            }
        };
        if let Some(last) = positions.last() {
            self.position = *last;
        }
        Ok(positions)
    }

    fn make_durable(&mut self) -> io::Result<()> {
        self.usable().map_err(into_io)?;
        if !self.is_dirty {
            return Ok(());
        }
        if self.sync
            && let Err(source) = self.file.sync_data()
        {
            return Err(into_io(self.fail(source)));
        }
        self.is_dirty = false;
        Ok(())
    }

    fn position(&self) -> Uuid {
        self.position
    }

    fn wants_compaction(&self) -> bool {
        self.compacting_from.is_none() && !self.has_failed && self.schedule.is_due(self.end)
    }

    fn begin_compaction(&mut self, snapshot: Arc<Root<Ovsdb>>) -> io::Result<Compaction> {
        let begun = self.begin_commented_compaction(snapshot, COMPACTION_COMMENT);
        if begun.is_err() {
            self.schedule.retry_soon();
        }
        begun
    }

    fn run_compaction(compaction: Compaction) -> Compacted {
        compaction.run()
    }

    fn finish_compaction(&mut self, compacted: Compacted) -> Result<(), AppendError> {
        let Compacted { path, epoch, result } = compacted;
        let Some(from) = self.compacting_from.take().filter(|_| epoch == self.epoch) else {
            // A conversion has written a new file since, which is as compact. A leftover does no harm.
            let _ = self.storage.remove(&path);
            return Ok(());
        };
        self.usable()?;
        let before = self.end;
        let finished = result.map_err(|source| AppendError::NotWritten { source }).and_then(|new| {
            let tail = read_range(&*self.file, from, self.end);
            let tail = tail.map_err(|source| AppendError::NotWritten { source })?;
            let commits = self.schedule.commits;
            self.switch(&path, new, &tail)?;
            Ok((tail.len(), commits))
        });
        match finished {
            Ok((tail_bytes, commits)) => {
                tracing::info!(
                    database = %self.path.display(), commits, bytes_before = before, bytes_after = self.end,
                    bytes_meanwhile = tail_bytes, "compacted the database file"
                );
                Ok(())
            }
            Err(error) => {
                self.schedule.retry_soon();
                tracing::warn!(database = %self.path.display(), %error, "compacting the database file failed");
                Err(error)
            }
        }
    }
}
