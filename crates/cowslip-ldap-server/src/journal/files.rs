//! Journal files made ahead of need.
//!
//! Appending to a file that has to grow makes each sync write the file system's own journal, too. So files are written
//! full of zeros and synced before they are used, and a file whose batches a snapshot has taken over is used again under
//! another number. Invariants: a file has its name only after its content was synced, and is handed out only after its
//! name was; a file that failed in any step is handed out never; a file is renamed again only after it was handed out.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use cowslip_engine::storage::{OpenMode, Storage, StorageFile};
use uuid::Uuid;

use super::folder::{journal_path, unfinished};
use super::format::{FILE_HEADER_BYTES, FileHeader, bytes};

/// How many files, ready or to be used again, are kept besides those that are needed.
pub const SPARE_FILES_MAX: usize = 4;
/// The size of the pieces in which a new file is filled.
const PIECE_BYTES: u64 = 1 << 20;

/// A journal file that batches can be written to.
pub(super) struct JournalFile {
    pub(super) header: FileHeader,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn StorageFile>,
    /// The file's length, which does not change.
    pub(super) length: u64,
    /// Where the next batch goes.
    pub(super) end: u64,
}

impl JournalFile {
    /// How many bytes of batches it can still take.
    pub(super) fn room(&self) -> u64 {
        self.length.saturating_sub(self.end)
    }
}

impl fmt::Debug for JournalFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, end) = (&self.path, self.end);
        f.debug_struct("JournalFile").field("path", path).field("end", &end).finish_non_exhaustive()
    }
}

/// Makes journal files.
#[derive(Clone)]
pub(super) struct Maker {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) folder: PathBuf,
    pub(super) database: Uuid,
    pub(super) file_bytes: u64,
}

impl Maker {
    /// Makes a file with a number, of an old one if there is one.
    pub(super) fn make(&self, number: u64, old: Option<&Path>) -> io::Result<JournalFile> {
        let header = FileHeader::new(self.database, number);
        if let Some(old) = old {
            match self.make_again(header, old) {
                Ok(Some(file)) => return Ok(file),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(file = %old.display(), %error, "cannot use a journal file again");
                    // Whatever name it has now, it is never used again.
                    let _ = self.storage.remove(old);
                    let _ = self.storage.remove(&journal_path(&self.folder, number));
                }
            }
        }
        self.make_new(header)
    }

    /// None if the old file has another size.
    fn make_again(&self, header: FileHeader, old: &Path) -> io::Result<Option<JournalFile>> {
        let file = self.storage.open(old, OpenMode::Write)?;
        if file.len()? != self.file_bytes {
            self.storage.remove(old)?;
            return Ok(None);
        }
        file.write_at(0, &header.encode())?;
        file.sync_data()?;
        self.name(header, file, old).map(Some)
    }

    fn make_new(&self, header: FileHeader) -> io::Result<JournalFile> {
        let path = unfinished(&journal_path(&self.folder, header.number));
        if self.storage.exists(&path)? {
            self.storage.remove(&path)?;
        }
        let file = self.storage.open(&path, OpenMode::CreateNew)?;
        let made = self.fill(header, &*file).and_then(|()| self.name(header, file, &path));
        if made.is_err() {
            // The first error is the one to tell; what is left is removed at the next start.
            let _ = self.storage.remove(&path);
            let _ = self.storage.remove(&journal_path(&self.folder, header.number));
        }
        made
    }

    fn fill(&self, header: FileHeader, file: &dyn StorageFile) -> io::Result<()> {
        let piece = usize::try_from(PIECE_BYTES.min(self.file_bytes)).map_err(io::Error::other)?;
        let zeros = vec![0; piece];
        let mut end = 0;
        while end < self.file_bytes {
            let length = usize::try_from(self.file_bytes - end).map_or(piece, |rest| rest.min(piece));
            file.write_at(end, &zeros[..length])?;
            end += bytes(length);
        }
        file.write_at(0, &header.encode())?;
        file.sync_data()
    }

    fn name(&self, header: FileHeader, file: Box<dyn StorageFile>, from: &Path) -> io::Result<JournalFile> {
        let path = journal_path(&self.folder, header.number);
        self.storage.rename(from, &path)?;
        self.storage.sync_dir(&self.folder)?;
        let (length, end) = (self.file_bytes, bytes(FILE_HEADER_BYTES));
        Ok(JournalFile { header, path, file: file.into(), length, end })
    }
}

/// A supply of files, in ascending order of their numbers.
pub(super) struct Supply {
    ready: VecDeque<JournalFile>,
    /// Files whose batches are needed no more.
    old: Vec<PathBuf>,
    next_number: u64,
    maker: Maker,
    helper: Option<Helper>,
}

/// A thread that makes files.
struct Helper {
    orders: Option<Sender<(u64, Option<PathBuf>)>>,
    made: Receiver<io::Result<JournalFile>>,
    outstanding: usize,
    thread: Option<JoinHandle<()>>,
}

impl Supply {
    /// A supply that begins with a number, and makes files on a thread of its own or else when they are asked for.
    pub(super) fn start(maker: Maker, next_number: u64, in_background: bool) -> io::Result<Self> {
        let helper = in_background.then(|| Helper::start(maker.clone())).transpose()?;
        Ok(Self { ready: VecDeque::new(), old: Vec::new(), next_number, maker, helper })
    }

    /// Sees to it that a file is ready, or will be.
    pub(super) fn prepare(&mut self) {
        self.collect();
        if !self.ready.is_empty() || self.helper.as_ref().is_some_and(|helper| helper.outstanding > 0) {
            return;
        }
        let order = self.order();
        match &mut self.helper {
            Some(helper) => helper.order(order),
            // Whoever needs it will try again and hear of the error.
            None => match self.maker.make(order.0, order.1.as_deref()) {
                Ok(file) => self.ready.push_back(file),
                Err(error) => tracing::warn!(%error, "cannot make a journal file ahead of need"),
            },
        }
    }

    /// The next file; waits for it if none is ready.
    pub(super) fn take(&mut self) -> io::Result<JournalFile> {
        self.collect();
        while self.ready.is_empty() {
            let Some(helper) = self.helper.as_mut().filter(|helper| helper.outstanding > 0) else { break };
            match helper.wait() {
                Ok(file) => self.ready.push_back(file),
                // It may be long ago that it failed.
                Err(error) => tracing::warn!(%error, "could not make a journal file ahead of need"),
            }
        }
        match self.ready.pop_front() {
            Some(file) => Ok(file),
            None => {
                let (number, old) = self.order();
                self.maker.make(number, old.as_deref())
            }
        }
    }

    /// Gives back files that were taken, the first of them first, and not used.
    pub(super) fn give_back(&mut self, files: impl DoubleEndedIterator<Item = JournalFile>) {
        files.rev().for_each(|file| self.ready.push_front(file));
    }

    /// Takes a file whose batches are needed no more, to use it again or remove it.
    pub(super) fn recycle(&mut self, path: PathBuf) {
        if self.old.len() + self.ready.len() < SPARE_FILES_MAX {
            self.old.push(path);
        } else if let Err(error) = self.maker.storage.remove(&path) {
            tracing::warn!(file = %path.display(), %error, "cannot remove a journal file that is not needed");
        }
    }

    fn order(&mut self) -> (u64, Option<PathBuf>) {
        let number = self.next_number;
        self.next_number += 1;
        (number, self.old.pop())
    }

    fn collect(&mut self) {
        let Some(helper) = &mut self.helper else { return };
        while let Ok(made) = helper.made.try_recv() {
            helper.outstanding -= 1;
            match made {
                Ok(file) => self.ready.push_back(file),
                Err(error) => tracing::warn!(%error, "could not make a journal file ahead of need"),
            }
        }
    }
}

impl Helper {
    fn start(maker: Maker) -> io::Result<Self> {
        let (orders, queue) = channel::<(u64, Option<PathBuf>)>();
        let (results, made) = channel();
        let work = move || {
            while let Ok((number, old)) = queue.recv() {
                if results.send(maker.make(number, old.as_deref())).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("journal-files".to_owned()).spawn(work)?;
        Ok(Self { orders: Some(orders), made, outstanding: 0, thread: Some(thread) })
    }

    fn order(&mut self, order: (u64, Option<PathBuf>)) {
        // If the thread is gone, the file is made when it is needed.
        if self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok()) {
            self.outstanding += 1;
        }
    }

    fn wait(&mut self) -> io::Result<JournalFile> {
        let made = self.made.recv();
        self.outstanding = if made.is_ok() { self.outstanding - 1 } else { 0 };
        made.unwrap_or_else(|_| Err(io::Error::other("the thread that makes journal files is gone")))
    }
}

impl Drop for Helper {
    /// Waits, so that nothing happens in the folder after its lock was given back.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was told by the hook already.
            let _ = thread.join();
        }
    }
}
