//! The directory's journal while it is written.
//!
//! A batch goes behind the last one, in one write; if the file has no room for it, the rest goes to the next file, which
//! was made before. Invariants: the files that a batch needs are in hand before anything of it is written; what of a
//! batch was written is overwritten with zeros, and that synced, before the batch counts as not written; after a failed
//! sync, or a failed overwriting, nothing more is written; files are used again only after the name of the snapshot that
//! took over their batches was synced.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cowslip_engine::storage::{Storage, StorageLock};
use cowslip_engine::{AppendError, Commit, Journal, Model, Root, Uuid};

use super::codec::Codec;
use super::compaction::{Compacted, Compaction, Schedule};
use super::encoder::Encoder;
use super::files::{JournalFile, Supply};
use super::folder::{Names, journal_path, snapshot_path, unfinished};
use super::format::{FrameHeader, bytes, position};
use super::open::name_snapshot;
use super::snapshot::SnapshotHeader;
use super::sync::Syncing;

/// A binary log with snapshots: the directory's journal.
pub struct BinaryLog<M: Model, C: Codec<M>> {
    parts: Parts<C>,
    encoder: Encoder,
    /// The snapshot that is being made, and how long the log was when it was begun.
    compacting: Option<(u64, u64)>,
    _model: std::marker::PhantomData<fn() -> M>,
}

/// What opening has found and made.
pub(super) struct Parts<C> {
    // The threads end before the lock is given back: fields are dropped in this order.
    pub(super) supply: Supply,
    pub(super) syncing: Syncing,
    pub(super) active: Option<JournalFile>,
    pub(super) lock: Arc<dyn StorageLock>,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) folder: PathBuf,
    pub(super) codec: Arc<C>,
    pub(super) database: Uuid,
    /// The numbers of files that are full or were left.
    pub(super) closed: Vec<u64>,
    /// No file with a larger number was ever written to.
    pub(super) newest_number: u64,
    /// The number of the next batch.
    pub(super) sequence: u64,
    /// The number of the last commit.
    pub(super) commits: u64,
    pub(super) payload_bytes_max: usize,
    pub(super) schedule: Schedule,
}

/// What goes to one file.
struct Piece {
    /// The frames, by their place in the batch.
    frames: std::ops::Range<usize>,
    /// The same as bytes of the buffer.
    range: std::ops::Range<usize>,
}

impl<M: Model, C: Codec<M>> fmt::Debug for BinaryLog<M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BinaryLog")
            .field("folder", &self.parts.folder)
            .field("commits", &self.parts.commits)
            .field("active", &self.parts.active)
            .finish_non_exhaustive()
    }
}

impl<M: Model, C: Codec<M>> BinaryLog<M, C> {
    pub(super) fn new(parts: Parts<C>) -> Self {
        Self { parts, encoder: Encoder::default(), compacting: None, _model: std::marker::PhantomData }
    }

    /// The folder in which everything is.
    pub fn folder(&self) -> &Path {
        &self.parts.folder
    }

    /// What names the database in the positions of its states.
    pub fn database(&self) -> Uuid {
        self.parts.database
    }

    /// The number of the last commit: the generation of the root it led to.
    pub fn commits(&self) -> u64 {
        self.parts.commits
    }

    /// The bytes of batches behind the newest snapshot.
    pub fn log_bytes(&self) -> u64 {
        self.parts.schedule.log_bytes()
    }

    fn usable(&self) -> Result<(), AppendError> {
        match self.parts.syncing.failure() {
            Some(reason) => Err(AppendError::Unknown { source: io::Error::other(reason) }),
            None => Ok(()),
        }
    }

    fn write(&mut self, commits: usize) -> Result<(), AppendError> {
        let (pieces, fresh) = self.place().map_err(|source| AppendError::NotWritten { source })?;
        let mut files = Vec::with_capacity(pieces.len());
        // Without a piece for it the active file stays what it is, unless others follow.
        files.extend(self.parts.active.take());
        files.extend(fresh);
        let skipped = files.len() - pieces.len();
        self.seal(&pieces, &files[skipped..]);
        for (at, piece) in pieces.iter().enumerate() {
            let file = &files[skipped + at];
            if let Err(source) = file.file.write_at(file.end, &self.encoder.buffer[piece.range.clone()]) {
                tracing::error!(file = %file.path.display(), %source, "writing to the journal failed");
                return Err(self.cut_back(&pieces[..=at], files, skipped, source));
            }
        }
        let written = pieces.iter().map(|piece| piece.range.len()).sum::<usize>();
        for (piece, file) in pieces.iter().zip(&mut files[skipped..]) {
            file.end += bytes(piece.range.len());
        }
        self.parts.sequence += self.encoder.frames.len() as u64;
        self.parts.commits += commits as u64;
        self.parts.schedule.wrote(bytes(written));
        self.parts.syncing.wrote(files[skipped..].iter().map(|file| &file.file), self.parts.sequence);
        self.parts.newest_number = files.last().map_or(0, |file| file.header.number);
        self.parts.active = files.pop();
        self.parts.closed.extend(files.iter().map(|file| file.header.number));
        self.parts.supply.prepare();
        Ok(())
    }

    /// Decides what goes to which file: the first piece to the active file, if there is room, the others to files that
    /// are taken from the supply.
    fn place(&mut self) -> io::Result<(Vec<Piece>, Vec<JournalFile>)> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut fresh: Vec<JournalFile> = Vec::new();
        let mut room = self.parts.active.as_ref().map_or(0, JournalFile::room);
        for (at, frame) in self.encoder.frames.iter().enumerate() {
            let length = bytes(frame.range.len());
            let begins_file = length > room;
            if begins_file {
                let file = match self.parts.supply.take() {
                    Ok(file) => file,
                    Err(error) => {
                        self.parts.supply.give_back(fresh.into_iter());
                        return Err(error);
                    }
                };
                room = file.room();
                fresh.push(file);
            }
            room = room.saturating_sub(length);
            match pieces.last_mut().filter(|_| !begins_file) {
                Some(piece) => {
                    piece.frames.end = at + 1;
                    piece.range.end = frame.range.end;
                }
                None => pieces.push(Piece { frames: at..at + 1, range: frame.range.clone() }),
            }
        }
        Ok((pieces, fresh))
    }

    /// Fills in the headers of the frames.
    fn seal(&mut self, pieces: &[Piece], files: &[JournalFile]) {
        let synced = self.parts.syncing.durable();
        for (piece, file) in pieces.iter().zip(files) {
            for at in piece.frames.clone() {
                let frame = &self.encoder.frames[at];
                let header = FrameHeader {
                    kind: frame.kind,
                    number: file.header.number,
                    sequence: self.parts.sequence + at as u64,
                    first_commit: frame.first_commit,
                    synced,
                    commits: frame.commits,
                    length: frame.payload,
                };
                header.seal(&file.header, &mut self.encoder.buffer[frame.range.clone()]);
            }
        }
    }

    /// Takes away, for good, what may have been written of a batch.
    fn cut_back(
        &mut self,
        pieces: &[Piece],
        mut files: Vec<JournalFile>,
        skipped: usize,
        source: io::Error,
    ) -> AppendError {
        let cut = pieces.iter().zip(&files[skipped..]).try_for_each(|(piece, file)| {
            let zeros = vec![0; piece.range.len()];
            file.file.write_at(file.end, &zeros)?;
            file.file.sync_data()
        });
        if let Err(error) = cut {
            let folder = self.parts.folder.display();
            tracing::error!(%folder, %error, "the journal is in an unknown state; the directory is read-only until it is reopened");
            self.parts.syncing.fail(format!("a failed write could not be taken back: {error}"));
            return AppendError::Unknown { source: error };
        }
        let newest = self.parts.newest_number;
        let fresh = files.split_off(files.iter().take_while(|file| file.header.number <= newest).count());
        self.parts.active = files.pop();
        self.parts.supply.give_back(fresh.into_iter());
        AppendError::NotWritten { source }
    }

    /// Lets go of what the snapshot of a number has made needless.
    fn release(&mut self, number: u64) {
        let Parts { closed, supply, folder, storage, .. } = &mut self.parts;
        for needless in closed.extract_if(.., |closed| *closed < number) {
            supply.recycle(journal_path(folder, needless));
        }
        let older = match Names::read(&**storage, folder) {
            Ok(names) => names.snapshots.into_iter().filter(|snapshot| *snapshot < number).collect(),
            Err(error) => {
                tracing::warn!(%error, "cannot look for snapshots that are not needed");
                Vec::new()
            }
        };
        for path in older.into_iter().map(|snapshot| snapshot_path(folder, snapshot)) {
            if let Err(error) = storage.remove(&path) {
                tracing::warn!(file = %path.display(), %error, "cannot remove a snapshot that is not needed");
            }
        }
    }
}

impl<M: Model, C: Codec<M>> Journal<M> for BinaryLog<M, C> {
    type Compaction = Compaction<M, C>;
    type Compacted = Compacted;

    fn append(&mut self, batch: &[Commit<M>]) -> Result<Vec<Uuid>, AppendError> {
        self.usable()?;
        let Parts { codec, commits, payload_bytes_max, database, .. } = &self.parts;
        let (database, commits) = (*database, *commits);
        let encoded = self.encoder.encode(&**codec, batch, commits, *payload_bytes_max);
        encoded.map_err(|error| AppendError::NotWritten { source: io::Error::other(error) })?;
        if !self.encoder.frames.is_empty() {
            self.write(batch.len())?;
        }
        self.encoder.shrink();
        Ok((commits + 1..=self.parts.commits).map(|commit| position(database, commit)).collect())
    }

    fn make_durable(&mut self) -> io::Result<()> {
        self.parts.syncing.sync()
    }

    fn position(&self) -> Uuid {
        position(self.parts.database, self.parts.commits)
    }

    fn wants_compaction(&self) -> bool {
        self.compacting.is_none() && self.parts.schedule.is_due() && self.parts.syncing.failure().is_none()
    }

    fn begin_compaction(&mut self, snapshot: Arc<Root<M>>) -> io::Result<Self::Compaction> {
        if self.compacting.is_some() {
            return Err(io::Error::other("a compaction is running already"));
        }
        if let Some(reason) = self.parts.syncing.failure() {
            return Err(io::Error::other(reason));
        }
        debug_assert_eq!(snapshot.generation(), self.parts.commits, "generations count commits");
        // What comes after the snapshot begins in a file of its own.
        self.parts.closed.extend(self.parts.active.take().map(|active| active.header.number));
        let number = self.parts.newest_number + 1;
        let (database, commits) = (self.parts.database, self.parts.commits);
        self.compacting = Some((number, self.parts.schedule.log_bytes()));
        Ok(Compaction {
            storage: Arc::clone(&self.parts.storage),
            folder: self.parts.folder.clone(),
            _lock: Arc::clone(&self.parts.lock),
            codec: Arc::clone(&self.parts.codec),
            header: SnapshotHeader { database, number, commits, sequence: self.parts.sequence },
            snapshot,
        })
    }

    fn run_compaction(compaction: Self::Compaction) -> Compacted {
        compaction.run()
    }

    fn abandon_compaction(&mut self) {
        self.compacting = None;
        self.parts.schedule.retry_later();
    }

    fn finish_compaction(&mut self, compacted: Compacted) -> Result<(), AppendError> {
        let begun = self.compacting.take().filter(|(number, _)| *number == compacted.number);
        let (storage, folder) = (&*self.parts.storage, &self.parts.folder);
        let path = snapshot_path(folder, compacted.number);
        let Some((number, log_bytes)) = begun else {
            let _ = storage.remove(&unfinished(&path));
            return Err(AppendError::NotWritten { source: io::Error::other("the compaction was abandoned") });
        };
        let named = compacted.bytes.and_then(|bytes| name_snapshot(storage, folder, &path).map(|()| bytes));
        match named {
            Ok(bytes) => {
                self.parts.schedule.compacted(bytes, log_bytes);
                self.release(number);
                self.parts.supply.prepare();
                Ok(())
            }
            Err(source) => {
                // If it is the sync of the name that failed, the snapshot is as good as what it would replace, and both
                // stay.
                tracing::warn!(file = %path.display(), %source, "a compaction of the journal failed");
                self.parts.schedule.retry_later();
                Err(AppendError::NotWritten { source })
            }
        }
    }
}
