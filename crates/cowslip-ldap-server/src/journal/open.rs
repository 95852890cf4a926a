//! Making a directory's folder, reading it, and opening it for writing.
//!
//! Invariants: a folder holds a directory as soon as a snapshot has its name, and not before; what opening gives is
//! durable, because everything that may not have been is written once more and synced; opening removes only what never
//! held a batch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cowslip_engine::storage::{OpenMode, Storage, StorageFile};
use cowslip_engine::{Model, Root, Uuid};

use super::binary_log::{BinaryLog, Parts};
use super::codec::Codec;
use super::compaction::Schedule;
use super::error::OpenError;
use super::files::{JournalFile, Maker, Supply};
use super::folder::{Names, journal_path, lock, snapshot_path, unfinished};
use super::format::{FILE_HEADER_BYTES, Fault, FileHeader, frame_bytes, position};
use super::log::{Passed, Start, Tail, Visitor, Walked, walk};
use super::snapshot::{SnapshotError, SnapshotHeader, SnapshotReader, SnapshotWriter};
use super::sync::Syncing;

/// The size of a journal file, unless said otherwise.
pub const JOURNAL_FILE_BYTES: u64 = 16 << 20;
/// The length above which the record of one commit is split, unless said otherwise.
pub const RECORD_BYTES_MAX: usize = 1 << 20;
/// No snapshot is made for a log that is shorter than this, unless said otherwise.
pub const COMPACTION_BYTES_MIN: u64 = 64 << 20;
/// The smallest size of a journal file that is of any use.
const FILE_BYTES_MIN: u64 = 1 << 10;

/// How a directory's journal is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JournalOptions {
    /// The size of a journal file in bytes. Another size than before is fine.
    pub file_bytes: u64,
    /// The length in bytes above which the record of one commit is split; lowered so that a part fits into a file.
    pub record_bytes_max: usize,
    /// A snapshot is made when the log behind the last one is longer than this, in bytes, and longer than the snapshot.
    pub compaction_bytes_min: u64,
    /// If set, commits that do not ask for durability are durable after about this time, by one sync for all. A pipeline
    /// whose commits never ask for it then answers without waiting for the disk.
    pub sync_interval: Option<Duration>,
    /// Whether files are made ahead of need on a thread of their own. Without it they are made when they are needed.
    pub in_background: bool,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            file_bytes: JOURNAL_FILE_BYTES,
            record_bytes_max: RECORD_BYTES_MAX,
            compaction_bytes_min: COMPACTION_BYTES_MIN,
            sync_interval: None,
            in_background: true,
        }
    }
}

impl JournalOptions {
    fn file_bytes(&self) -> u64 {
        self.file_bytes.max(FILE_BYTES_MIN).next_multiple_of(FILE_BYTES_MIN)
    }

    /// The most bytes of payload in one batch.
    pub(super) fn payload_bytes_max(&self) -> usize {
        let room =
            usize::try_from(self.file_bytes()).unwrap_or(usize::MAX) - FILE_HEADER_BYTES - frame_bytes(0);
        self.record_bytes_max.clamp(1, room.min(super::format::FRAME_PAYLOAD_BYTES_MAX))
    }
}

/// What reading a folder came by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// The last commit that came from the snapshot.
    pub snapshot_commit: u64,
    /// The snapshot's length in bytes.
    pub snapshot_bytes: u64,
    /// How many commits were replayed after it.
    pub replayed_commits: u64,
    /// How many bytes of batches they take.
    pub replayed_bytes: u64,
    /// Newer snapshots that are damaged; what they held was read from an older one and the log.
    pub damaged_snapshots: Vec<PathBuf>,
    /// What was written last and never became durable, if there is such: the file and the offset in bytes. It is left
    /// alone until the next compaction.
    pub torn: Option<(PathBuf, u64)>,
}

/// A directory that was read.
pub struct Loaded<M: Model> {
    /// The newest state; its generation is the number of its last commit.
    pub root: Root<M>,
    /// The name of that state.
    pub position: Uuid,
    /// What reading came by.
    pub report: OpenReport,
}

/// A directory that was opened.
pub struct Opened<M: Model, C: Codec<M>> {
    /// The newest state; its generation is the number of its last commit.
    pub root: Root<M>,
    /// The name of that state.
    pub position: Uuid,
    /// Where commits are kept from now on.
    pub journal: BinaryLog<M, C>,
    /// What reading came by.
    pub report: OpenReport,
}

/// Makes a directory that holds a root, in a folder that is made if it is missing. Gives the database's id.
///
/// # Errors
/// See [`OpenError`]; [`OpenError::Exists`] if there is one.
pub fn create<M: Model, C: Codec<M>>(
    storage: &dyn Storage,
    folder: &Path,
    codec: &C,
    root: &Root<M>,
) -> Result<Uuid, OpenError> {
    storage.create_dir(folder).map_err(OpenError::io(folder, "make the folder"))?;
    if let Some(parent) = folder.parent() {
        storage.sync_dir(parent).map_err(OpenError::io(parent, "sync the folder"))?;
    }
    let _lock = lock(storage, folder)?;
    let names = Names::read(storage, folder)?;
    if !names.snapshots.is_empty() || !names.journals.is_empty() {
        return Err(OpenError::Exists { folder: folder.to_owned() });
    }
    let database = Uuid::new_v4();
    let header = SnapshotHeader { database, number: 1, commits: root.generation(), sequence: 1 };
    let path = snapshot_path(folder, header.number);
    let written = write_unfinished(storage, &path, header, codec, root);
    let named = written.and_then(|_| name_snapshot(storage, folder, &path));
    if named.is_err() {
        // A name that may vanish is none to build on. The first error is the one to tell.
        let _ = storage.remove(&path);
    }
    named.map_err(OpenError::io(&path, "write the snapshot"))?;
    Ok(database)
}

/// Writes and syncs a snapshot under the name of what is not finished; gives its length in bytes.
pub(super) fn write_unfinished<M: Model, C: Codec<M>>(
    storage: &dyn Storage,
    path: &Path,
    header: SnapshotHeader,
    codec: &C,
    root: &Root<M>,
) -> std::io::Result<u64> {
    let path = unfinished(path);
    if storage.exists(&path)? {
        storage.remove(&path)?;
    }
    let file = storage.open(&path, OpenMode::CreateNew)?;
    let written = SnapshotWriter::new(&*file, &header).and_then(|mut writer| {
        codec.write_snapshot(root, &mut writer)?;
        writer.finish()
    });
    if written.is_err() {
        // The first error is the one to tell; a leftover is removed by the next attempt.
        let _ = storage.remove(&path);
    }
    written
}

/// Gives a finished snapshot its name.
pub(super) fn name_snapshot(storage: &dyn Storage, folder: &Path, path: &Path) -> std::io::Result<()> {
    storage.rename(&unfinished(path), path)?;
    storage.sync_dir(folder)
}

/// Reads a directory without changing or locking anything: for tools, while no server runs on it.
///
/// # Errors
/// See [`OpenError`].
pub fn load<M: Model, C: Codec<M>>(
    storage: &dyn Storage,
    folder: &Path,
    codec: &C,
) -> Result<Loaded<M>, OpenError> {
    let Read { root, start, walked, report, .. } = read(storage, folder, codec)?;
    Ok(Loaded { root, position: position(start.database, walked.commits), report })
}

/// Opens a directory for writing.
///
/// # Errors
/// See [`OpenError`].
pub fn open<M: Model, C: Codec<M>>(
    storage: Arc<dyn Storage>,
    folder: &Path,
    codec: C,
    options: &JournalOptions,
) -> Result<Opened<M, C>, OpenError> {
    if !is_there(&*storage, folder)? {
        return Err(OpenError::Missing { folder: folder.to_owned() });
    }
    let lock = lock(&*storage, folder)?;
    let Read { root, names, start, snapshot_bytes, walked, report } = read(&*storage, folder, &codec)?;
    make_sure(&*storage, &walked)?;
    clean_up(&*storage, folder, &names, &walked);
    let active = active(&*storage, &walked, options)?;
    let database = start.database;
    let maker = Maker {
        storage: Arc::clone(&storage),
        folder: folder.to_owned(),
        database,
        file_bytes: options.file_bytes(),
    };
    let mut supply = Supply::start(maker, names.newest() + 1, options.in_background)
        .map_err(OpenError::io(folder, "start a thread for the journal"))?;
    supply.prepare();
    let syncing = Syncing::start(walked.sequence, options.sync_interval)
        .map_err(OpenError::io(folder, "start a thread for the journal"))?;
    let active_number = active.as_ref().map(|file| file.header.number);
    let superseded = names.journals.iter().copied().filter(|number| *number < start.number);
    let closed = superseded.chain(walked.used).filter(|number| Some(*number) != active_number);
    let leftovers = names.snapshots.len() > 1;
    let journal = BinaryLog::new(Parts {
        schedule: Schedule::new(options.compaction_bytes_min, snapshot_bytes, walked.log_bytes, leftovers),
        storage,
        folder: folder.to_owned(),
        lock: lock.into(),
        codec: Arc::new(codec),
        database,
        active,
        closed: closed.collect(),
        newest_number: names.journals.iter().copied().fold(start.number - 1, u64::max),
        supply,
        syncing,
        sequence: walked.sequence,
        commits: walked.commits,
        payload_bytes_max: options.payload_bytes_max(),
    });
    Ok(Opened { root, position: position(database, walked.commits), journal, report })
}

/// Whether there is a directory; nothing is made where there is none, not even a lock.
pub(super) fn is_there(storage: &dyn Storage, folder: &Path) -> Result<bool, OpenError> {
    match Names::read(storage, folder) {
        Ok(names) => Ok(!names.snapshots.is_empty()),
        Err(OpenError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

struct Read<M: Model> {
    root: Root<M>,
    names: Names,
    start: Start,
    snapshot_bytes: u64,
    walked: Walked,
    report: OpenReport,
}

fn read<M: Model, C: Codec<M>>(
    storage: &dyn Storage,
    folder: &Path,
    codec: &C,
) -> Result<Read<M>, OpenError> {
    let names = Names::read(storage, folder)?;
    let mut report = OpenReport::default();
    let newest = read_newest(storage, folder, codec, &names, &mut report)?;
    let Newest { mut state, path, start, bytes: snapshot_bytes, damaged } = newest;
    let mut replay = Replayer { codec, state: &mut state };
    let walked = walk(storage, folder, &names, start, &mut replay)?;
    let end = walked.end.as_ref().map_or((path, 0), |end| (end.path.clone(), end.offset));
    match &walked.tail {
        Tail::Damaged { at, fault, intact_commits } => {
            let (folder, path, fault) = (folder.to_owned(), at.path.clone(), *fault);
            let intact_commits = *intact_commits;
            return Err(OpenError::Damaged { folder, path, offset: at.offset, fault, intact_commits });
        }
        Tail::Torn { at } => {
            tracing::warn!(
                file = %at.path.display(), offset = at.offset,
                "the journal ends with something that never became durable; it is left out"
            );
            report.torn = Some((at.path.clone(), at.offset));
        }
        Tail::Clean => {}
    }
    if let Some((commits, error)) = damaged
        && walked.commits < commits
    {
        // An older snapshot was read, and the log behind it doesn't reach the damaged one.
        return Err(error);
    }
    let content = |source| OpenError::Content { path: end.0, offset: end.1, source };
    let mut root = codec.finish(state).map_err(content)?;
    root.set_generation(walked.commits);
    report.snapshot_commit = start.commits;
    report.snapshot_bytes = snapshot_bytes;
    report.replayed_commits = walked.commits - start.commits;
    report.replayed_bytes = walked.log_bytes;
    Ok(Read { root, names, start, snapshot_bytes, walked, report })
}

/// The newest snapshot that is whole.
struct Newest<S> {
    state: S,
    path: PathBuf,
    start: Start,
    bytes: u64,
    /// How many commits there must be to make up for newer snapshots, and what is wrong with the newest.
    damaged: Option<(u64, OpenError)>,
}

fn read_newest<M: Model, C: Codec<M>>(
    storage: &dyn Storage,
    folder: &Path,
    codec: &C,
    names: &Names,
    report: &mut OpenReport,
) -> Result<Newest<C::State>, OpenError> {
    let mut damaged = None;
    for number in names.snapshots.iter().rev() {
        let path = snapshot_path(folder, *number);
        let file = storage.open(&path, OpenMode::Read).map_err(OpenError::io(&path, "open the snapshot"))?;
        let mut header = None;
        match read_snapshot(&*file, &path, *number, codec, &mut header) {
            Ok((state, start, bytes)) => return Ok(Newest { state, path, start, bytes, damaged }),
            Err(error @ OpenError::Snapshot { .. }) => {
                tracing::error!(%error, "trying an older snapshot");
                report.damaged_snapshots.push(path);
                let (required, first) = damaged.unwrap_or((0, error));
                // Without its header nobody can tell whether the older one and the log make up for it.
                let Some(header) = header else { return Err(first) };
                damaged = Some((required.max(header.commits), first));
            }
            Err(error) => return Err(error),
        }
    }
    Err(damaged.map_or_else(|| OpenError::Missing { folder: folder.to_owned() }, |(_, error)| error))
}

/// Reads a snapshot; leaves its header even if only that is intact.
fn read_snapshot<M: Model, C: Codec<M>>(
    file: &dyn StorageFile,
    path: &Path,
    number: u64,
    codec: &C,
    intact: &mut Option<SnapshotHeader>,
) -> Result<(C::State, Start, u64), OpenError> {
    let mut reader = SnapshotReader::new(file).map_err(|error| snapshot_error(path, 0, error))?;
    let header = *intact.insert(*reader.header());
    let read = if header.number == number {
        codec.read_snapshot(&mut reader).and_then(|state| reader.drain().map(|()| state))
    } else {
        Err(Fault::Misplaced.into())
    };
    let state = read.map_err(|error| snapshot_error(path, reader.offset(), error))?;
    Ok((state, header.start(), reader.file_bytes()))
}

pub(super) fn snapshot_error(path: &Path, offset: u64, error: SnapshotError) -> OpenError {
    let path = path.to_owned();
    match error {
        SnapshotError::Io { source } => OpenError::Io { path, action: "read the snapshot", source },
        SnapshotError::Damaged { fault } => OpenError::Snapshot { path, offset, fault },
        SnapshotError::Content { source } => OpenError::Content { path, offset, source },
    }
}

/// Gives the records to the codec.
struct Replayer<'a, M: Model, C: Codec<M>> {
    codec: &'a C,
    state: &'a mut C::State,
}

impl<M: Model, C: Codec<M>> Visitor for Replayer<'_, M, C> {
    fn record(&mut self, commit: u64, record: &[u8], batch: &Passed<'_>) -> Result<(), OpenError> {
        let content =
            |source| OpenError::Content { path: batch.path.to_owned(), offset: batch.offset, source };
        self.codec.replay(self.state, commit, record).map_err(content)
    }
}

/// Writes once more what may have been lost behind our back by a sync that failed in an earlier life: it can be read, but
/// the system may hold it for written when it is not.
fn make_sure(storage: &dyn Storage, walked: &Walked) -> Result<(), OpenError> {
    let mut rest = walked.doubtful.iter().peekable();
    while let Some(first) = rest.next() {
        // Within a file they stand one behind the other.
        let mut end = first.offset + first.bytes;
        while let Some(next) = rest.next_if(|next| next.path == first.path) {
            end = next.offset + next.bytes;
        }
        let write = || {
            let file = storage.open(&first.path, OpenMode::Write)?;
            let mut content = vec![0; usize::try_from(end - first.offset).map_err(std::io::Error::other)?];
            file.read_at(first.offset, &mut content)?;
            file.write_at(first.offset, &content)?;
            file.sync_data()
        };
        write().map_err(OpenError::io(&first.path, "make the end of the journal durable"))?;
    }
    Ok(())
}

/// Removes files that were not finished or never used. What is left of a compaction that was not finished goes with the
/// next one that is: until then nothing tells whether the name of the newest snapshot is durable.
fn clean_up(storage: &dyn Storage, folder: &Path, names: &Names, walked: &Walked) {
    let unused = walked.unused.iter().map(|number| journal_path(folder, *number));
    for path in names.unfinished.iter().cloned().chain(unused) {
        if let Err(error) = storage.remove(&path) {
            tracing::warn!(file = %path.display(), %error, "cannot remove a file that is not needed");
        }
    }
}

/// The file in which the log goes on, if it ends cleanly in one.
fn active(
    storage: &dyn Storage,
    walked: &Walked,
    options: &JournalOptions,
) -> Result<Option<JournalFile>, OpenError> {
    let (Tail::Clean, Some(end)) = (&walked.tail, &walked.end) else { return Ok(None) };
    let read = || {
        let file = storage.open(&end.path, OpenMode::Write)?;
        let mut header = [0; FILE_HEADER_BYTES];
        file.read_at(0, &mut header)?;
        let header = FileHeader::decode(&header).map_err(std::io::Error::other)?;
        let (length, path) = (file.len()?, end.path.clone());
        let file = JournalFile { header, path, file: file.into(), length, end: end.offset };
        Ok((length == options.file_bytes()).then_some(file))
    };
    read().map_err(OpenError::io(&end.path, "open the journal"))
}
