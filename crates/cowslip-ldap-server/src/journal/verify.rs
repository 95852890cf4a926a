//! Looking through a folder without a codec, and making a damaged one usable again.
//!
//! Invariants: looking changes nothing; saving copies aside whatever it cuts off before it cuts, and removes nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cowslip_engine::Uuid;
use cowslip_engine::storage::{OpenMode, Storage};

use super::error::OpenError;
use super::files::Maker;
use super::folder::{Names, aside_path, journal_path, lock, snapshot_path};
use super::format::{Fault, FrameHeader, FrameKind, frame_bytes};
use super::log::{Passed, Place, Tail, Visitor, Walked, walk};
use super::open::{JOURNAL_FILE_BYTES, is_there, snapshot_error};
use super::snapshot::{SnapshotHeader, SnapshotReader};

/// Something that a folder's journal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogItem<'a> {
    /// A batch. Its records come next; the record of a large commit comes after the last of several batches.
    Batch {
        /// The file.
        path: &'a Path,
        /// Where in it the batch begins, in bytes.
        offset: u64,
        /// The batch's number.
        sequence: u64,
        /// The number of the first commit in it, or of the one of which it holds a part.
        first_commit: u64,
        /// How many commits it completes.
        commits: u32,
        /// The length of what it holds, in bytes.
        payload_bytes: u32,
    },
    /// The record of a commit.
    Record {
        /// The commit's number.
        commit: u64,
        /// What the codec wrote.
        bytes: &'a [u8],
    },
}

/// What a folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderReport {
    /// The database's id.
    pub database: Uuid,
    /// The snapshots, the newest first, up to the first that is whole.
    pub snapshots: Vec<SnapshotReport>,
    /// The journal files that a start reads, in order.
    pub files: Vec<FileReport>,
    /// The number of the last commit.
    pub commits: u64,
    /// The number that the next batch will have.
    pub next_sequence: u64,
    /// The bytes of batches behind the snapshot.
    pub log_bytes: u64,
    /// What stops a start.
    pub damage: Option<Damage>,
    /// Where there is something behind the end that never became durable: the file and the offset in bytes.
    pub torn: Option<(PathBuf, u64)>,
}

/// What a snapshot's file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotReport {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many records are intact.
    pub records: u64,
    /// The number of the last commit in it, if its header is intact.
    pub commits: Option<u64>,
    /// What is wrong, and where in bytes, if something is.
    pub fault: Option<(u64, Fault)>,
}

/// What a journal file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// How many batches of it count, or would if the commit of which they are parts were complete.
    pub batches: u64,
    /// The numbers of the first and the last of them.
    pub sequences: Option<(u64, u64)>,
    /// The length of what they hold, in bytes.
    pub payload_bytes: u64,
}

/// Something durable that is unreadable or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is wrong there.
    pub fault: Fault,
    /// How many commits behind it are intact.
    pub intact_commits: u64,
}

/// What was given up to make a folder usable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The number of the last commit that is left.
    pub commits: u64,
    /// What was damaged, if anything was.
    pub damage: Option<Damage>,
    /// The files in which everything is that a start will not read any more, and what was around it.
    pub aside: Vec<PathBuf>,
}

impl fmt::Display for Salvaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "everything up to commit {} is there", self.commits)?;
        if let Some(damage) = &self.damage {
            let Damage { path, offset, fault, intact_commits } = damage;
            write!(f, "; {} was damaged at offset {offset}: {fault}", path.display())?;
            write!(f, "; {intact_commits} later commits that are intact were cut off with it")?;
        }
        for aside in &self.aside {
            write!(f, "; kept {}", aside.display())?;
        }
        Ok(())
    }
}

/// Looks through a folder and reports what it holds, without changing or locking it: while no server runs on it. The
/// function is given each batch and each record that a start would replay.
///
/// # Errors
/// The folder holds no directory, or cannot be read, or has no snapshot that is whole. Other damage is in the report.
pub fn verify(
    storage: &dyn Storage,
    folder: &Path,
    visit: &mut dyn FnMut(LogItem<'_>),
) -> Result<FolderReport, OpenError> {
    if !is_there(storage, folder)? {
        return Err(OpenError::Missing { folder: folder.to_owned() });
    }
    let names = Names::read(storage, folder)?;
    let (snapshots, header) = check_snapshots(storage, folder, &names)?;
    let start = header.start();
    let mut looking = Looking { visit, files: Vec::new() };
    let walked = walk(storage, folder, &names, start, &mut looking);
    let mut report = FolderReport {
        database: header.database,
        snapshots,
        files: looking.files,
        commits: start.commits,
        next_sequence: start.sequence,
        log_bytes: 0,
        damage: None,
        torn: None,
    };
    match walked {
        Ok(Walked { sequence, commits, log_bytes, tail, .. }) => {
            (report.commits, report.next_sequence, report.log_bytes) = (commits, sequence, log_bytes);
            match tail {
                Tail::Clean => {}
                Tail::Torn { at } => report.torn = Some((at.path, at.offset)),
                Tail::Damaged { at, fault, intact_commits } => {
                    report.damage = Some(damage(at, fault, intact_commits));
                }
            }
        }
        Err(OpenError::Damaged { path, offset, fault, intact_commits, .. }) => {
            report.damage = Some(Damage { path, offset, fault, intact_commits });
        }
        Err(error) => return Err(error),
    }
    Ok(report)
}

/// Makes a damaged folder usable: everything up to the damage stays, and a start goes on from there. What is damaged and
/// what comes after it is copied to files whose names begin with `aside-`, which nobody removes.
///
/// # Errors
/// See [`OpenError`]; [`OpenError::Snapshot`] if no snapshot is whole, and then nothing was changed.
pub fn salvage(storage: &Arc<dyn Storage>, folder: &Path) -> Result<Salvaged, OpenError> {
    if !is_there(&**storage, folder)? {
        return Err(OpenError::Missing { folder: folder.to_owned() });
    }
    let _lock = lock(&**storage, folder)?;
    let mut salvaged = Salvaged::default();
    let names = Names::read(&**storage, folder)?;
    let (snapshots, header) = check_snapshots(&**storage, folder, &names)?;
    for damaged in snapshots.into_iter().filter(|snapshot| snapshot.fault.is_some()) {
        salvaged.move_aside(&**storage, &damaged.path)?;
    }
    let start = header.start();
    loop {
        let names = Names::read(&**storage, folder)?;
        match walk(&**storage, folder, &names, start, &mut Nobody) {
            Ok(walked) => {
                salvaged.commits = walked.commits;
                if let Tail::Damaged { at, fault, intact_commits } = &walked.tail {
                    salvaged.cut(storage, folder, &names, start.database, &walked, at)?;
                    salvaged.damage.get_or_insert(damage(at.clone(), *fault, *intact_commits));
                }
                return Ok(salvaged);
            }
            // The header of a file: nothing of that file can be read. What is missing then is found in the next round.
            Err(OpenError::Damaged { path, offset: 0, fault, intact_commits, .. }) => {
                salvaged.move_aside(&**storage, &path)?;
                salvaged.damage.get_or_insert(Damage { path, offset: 0, fault, intact_commits });
            }
            Err(error) => return Err(error),
        }
    }
}

impl Salvaged {
    fn move_aside(&mut self, storage: &dyn Storage, path: &Path) -> Result<(), OpenError> {
        let moved = aside_path(storage, path).and_then(|aside| {
            storage.rename(path, &aside)?;
            storage.sync_dir(path.parent().unwrap_or(Path::new("")))?;
            Ok(aside)
        });
        self.aside.push(moved.map_err(OpenError::io(path, "put the damaged file aside"))?);
        Ok(())
    }

    /// Copies what is behind the end aside, and writes an empty batch behind which the log goes on.
    fn cut(
        &mut self,
        storage: &Arc<dyn Storage>,
        folder: &Path,
        names: &Names,
        database: Uuid,
        walked: &Walked,
        at: &Place,
    ) -> Result<(), OpenError> {
        for number in walked.used.iter().filter(|number| **number >= at.number) {
            let path = journal_path(folder, *number);
            let copied = copy_aside(&**storage, &path);
            self.aside.push(copied.map_err(OpenError::io(&path, "copy the damaged file"))?);
        }
        let (storage, folder) = (Arc::clone(storage), folder.to_owned());
        let maker = Maker { storage, folder: folder.clone(), database, file_bytes: JOURNAL_FILE_BYTES };
        let write = || {
            let file = maker.make(names.newest() + 1, None)?;
            let header = FrameHeader {
                kind: FrameKind::Whole,
                number: file.header.number,
                sequence: walked.sequence,
                first_commit: walked.commits + 1,
                synced: walked.sequence,
                commits: 0,
                length: 0,
            };
            let mut frame = vec![0; frame_bytes(0)];
            header.seal(&file.header, &mut frame);
            file.file.write_at(file.end, &frame)?;
            file.file.sync_data()
        };
        write().map_err(OpenError::io(&folder, "write a new journal file"))
    }
}

fn copy_aside(storage: &dyn Storage, path: &Path) -> io::Result<PathBuf> {
    let aside = aside_path(storage, path)?;
    let content = storage.read(path)?;
    let file = storage.open(&aside, OpenMode::CreateNew)?;
    file.write_at(0, &content)?;
    file.sync_data()?;
    storage.sync_dir(path.parent().unwrap_or(Path::new("")))?;
    Ok(aside)
}

/// Checks snapshots from the newest on until one is whole.
fn check_snapshots(
    storage: &dyn Storage,
    folder: &Path,
    names: &Names,
) -> Result<(Vec<SnapshotReport>, SnapshotHeader), OpenError> {
    let mut reports = Vec::new();
    let mut first_error = None;
    for number in names.snapshots.iter().rev() {
        let path = snapshot_path(folder, *number);
        let file = storage.open(&path, OpenMode::Read).map_err(OpenError::io(&path, "open the snapshot"))?;
        let bytes = file.len().map_err(OpenError::io(&path, "read the snapshot"))?;
        let mut report = SnapshotReport { path, bytes, records: 0, commits: None, fault: None };
        let checked = SnapshotReader::new(&*file).and_then(|mut reader| {
            let header = *reader.header();
            report.commits = Some(header.commits);
            let drained =
                if header.number == *number { reader.drain() } else { Err(Fault::Misplaced.into()) };
            report.records = reader.records();
            report.fault = Some((reader.offset(), Fault::Unmarked));
            drained.map(|()| header)
        });
        let offset = report.fault.map_or(0, |(offset, _)| offset);
        match checked.map_err(|error| snapshot_error(&report.path, offset, error)) {
            Ok(header) => {
                report.fault = None;
                reports.push(report);
                return Ok((reports, header));
            }
            Err(error @ OpenError::Snapshot { fault, .. }) => {
                report.fault = Some((offset, fault));
                reports.push(report);
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(first_error.unwrap_or_else(|| OpenError::Missing { folder: folder.to_owned() }))
}

fn damage(at: Place, fault: Fault, intact_commits: u64) -> Damage {
    Damage { path: at.path, offset: at.offset, fault, intact_commits }
}

struct Nobody;

impl Visitor for Nobody {
    fn record(&mut self, _: u64, _: &[u8], _: &Passed<'_>) -> Result<(), OpenError> {
        Ok(())
    }
}

/// Tells somebody everything, and keeps count.
struct Looking<'a> {
    visit: &'a mut dyn FnMut(LogItem<'_>),
    files: Vec<FileReport>,
}

impl Visitor for Looking<'_> {
    fn batch(&mut self, batch: &Passed<'_>) {
        let FrameHeader { sequence, first_commit, commits, length, .. } = *batch.header;
        if self.files.last().is_none_or(|file| file.path != batch.path) {
            let path = batch.path.to_owned();
            self.files.push(FileReport { path, batches: 0, sequences: None, payload_bytes: 0 });
        }
        if let Some(file) = self.files.last_mut() {
            file.batches += 1;
            file.payload_bytes += u64::from(length);
            file.sequences = Some((file.sequences.map_or(sequence, |(first, _)| first), sequence));
        }
        let Passed { path, offset, .. } = *batch;
        (self.visit)(LogItem::Batch { path, offset, sequence, first_commit, commits, payload_bytes: length });
    }

    fn record(&mut self, commit: u64, bytes: &[u8], _: &Passed<'_>) -> Result<(), OpenError> {
        (self.visit)(LogItem::Record { commit, bytes });
        Ok(())
    }
}
