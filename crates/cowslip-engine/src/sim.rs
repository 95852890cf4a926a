//! A simulated disk for tests: it counts steps, stops or fails where it is told to, and forgets what was not synced.
//!
//! Public, because every crate that writes through [`Storage`] tests its recovery on it. Invariants: what a program
//! sees while it runs is what it did; what [`SimDisk::crash`] leaves holds everything that was synced, in order, and of
//! the rest any subset that the caller chooses, block by block and name by name.
//!
//! ```
//! use std::path::Path;
//! use cowslip_engine::sim::SimDisk;
//! use cowslip_engine::storage::{OpenMode, Storage};
//!
//! let disk = SimDisk::new();
//! let file = disk.open(Path::new("/log"), OpenMode::CreateNew)?;
//! disk.sync_dir(Path::new("/"))?;
//! file.append(b"kept")?;
//! file.sync_data()?;
//! file.append(b", lost")?;
//! let after = disk.crash(|| false);
//! assert_eq!(after.read(Path::new("/log"))?, b"kept");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::storage::{LockError, OpenMode, Storage, StorageFile, StorageLock};

/// The largest part of a write that survives a crash as a whole.
pub const BLOCK_BYTES: u64 = 512;

/// What happens at a chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The machine stops: this step and all later ones fail. What the step did may have reached the disk.
    Stop,
    /// The disk is full: a write leaves its first half, anything else does nothing.
    Full,
    /// The device fails once: a write leaves its first half, and what a sync covered may be lost for good although
    /// later syncs succeed.
    Failed,
}

/// A simulated disk. Clones share it.
#[derive(Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    steps: u64,
    syncs: u64,
    stopped: bool,
    faults: BTreeMap<u64, Fault>,
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    name_changes: Vec<Change<NameChange>>,
    locks: Vec<PathBuf>,
}

#[derive(Default)]
struct Inode {
    content: Vec<u8>,
    /// What a crash starts from; the changes lead from here to `content`.
    base: Vec<u8>,
    changes: Vec<Change<DataChange>>,
}

struct Change<T> {
    what: T,
    certainty: Certainty,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// Not synced yet.
    Pending,
    /// A sync that covered it failed: the system may have thrown it away and takes it for written.
    Doubtful,
    Durable,
}

enum DataChange {
    Block { offset: u64, bytes: Vec<u8> },
    Length(u64),
}

enum NameChange {
    Link(PathBuf, usize),
    Unlink(PathBuf),
    Rename { from: PathBuf, to: PathBuf, inode: usize },
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many steps were made: each creation, write, cut, sync, rename and removal is one.
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// How many syncs of files and folders succeeded.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Lets a step fail. The next step has the number [`steps`](Self::steps).
    pub fn inject(&self, step: u64, fault: Fault) {
        self.state().faults.insert(step, fault);
    }

    /// Whether the machine has stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// What another start finds: everything synced, and of the rest what `keep` says, asked once for each change.
    ///
    /// The disk itself is stopped; handles to it fail from now on.
    pub fn crash(&self, keep: impl FnMut() -> bool) -> Self {
        self.state().stopped = true;
        self.crash_copy(keep)
    }

    /// What a crash at this moment would leave, while this disk goes on.
    pub fn crash_copy(&self, mut keep: impl FnMut() -> bool) -> Self {
        let state = self.state();
        let inodes = state.inodes.iter().map(|inode| Inode::settled(inode.after_crash(&mut keep))).collect();
        let mut names = BTreeMap::new();
        for Change { what, certainty } in &state.name_changes {
            if *certainty == Certainty::Durable || keep() {
                what.apply(&mut names);
            }
        }
        let name_changes = names.iter().map(|(path, inode)| Change {
            what: NameChange::Link(path.clone(), *inode),
            certainty: Certainty::Durable,
        });
        let name_changes = name_changes.collect();
        let after = State { inodes, names, name_changes, ..State::default() };
        Self { state: Arc::new(Mutex::new(after)) }
    }

    /// As [`crash`](Self::crash), with a choice that depends on the seed only.
    pub fn crash_by(&self, seed: u64) -> Self {
        let mut bits = seed;
        self.crash(move || {
            // SplitMix64: good enough bits from any seed, zero included.
            bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) & 1 == 1
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("SimDisk").field("steps", &state.steps).field("stopped", &state.stopped).finish()
    }
}

impl State {
    fn alive(&self) -> io::Result<()> {
        if self.stopped { Err(io::Error::other("the simulated machine has stopped")) } else { Ok(()) }
    }

    /// Counts a step and says what goes wrong with it.
    fn step(&mut self) -> io::Result<Option<Fault>> {
        self.alive()?;
        let fault = self.faults.remove(&self.steps);
        self.steps += 1;
        self.stopped = fault == Some(Fault::Stop);
        Ok(fault)
    }

    /// A step that happens whole or not at all.
    fn whole_step(&mut self, act: impl FnOnce(&mut Self)) -> io::Result<()> {
        let fault = self.step()?;
        if matches!(fault, None | Some(Fault::Stop)) {
            act(self);
        }
        outcome(fault)
    }

    fn change_name(&mut self, what: NameChange) {
        what.apply(&mut self.names);
        self.name_changes.push(Change { what, certainty: Certainty::Pending });
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Inode {
    fn settled(content: Vec<u8>) -> Self {
        Self { base: content.clone(), content, changes: Vec::new() }
    }

    fn change(&mut self, what: DataChange) {
        what.apply(&mut self.content);
        self.changes.push(Change { what, certainty: Certainty::Pending });
    }

    fn write(&mut self, mut offset: u64, mut bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        if end > self.content.len() as u64 {
            self.change(DataChange::Length(end));
        }
        while !bytes.is_empty() {
            let room = size(BLOCK_BYTES - offset % BLOCK_BYTES).min(bytes.len());
            let (block, rest) = bytes.split_at(room);
            self.change(DataChange::Block { offset, bytes: block.to_vec() });
            offset += room as u64;
            bytes = rest;
        }
    }

    fn sync(&mut self, succeeds: bool) {
        for change in &mut self.changes {
            if change.certainty == Certainty::Pending {
                change.certainty = if succeeds { Certainty::Durable } else { Certainty::Doubtful };
            }
        }
        if self.changes.iter().all(|change| change.certainty == Certainty::Durable) {
            self.changes.clear();
            self.base.clone_from(&self.content);
        }
    }

    fn after_crash(&self, keep: &mut impl FnMut() -> bool) -> Vec<u8> {
        let mut content = self.base.clone();
        for Change { what, certainty } in &self.changes {
            if *certainty == Certainty::Durable || keep() {
                what.apply(&mut content);
            }
        }
        content
    }
}

impl DataChange {
    /// A block beyond the end, whose change of length was lost, is lost with it.
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Length(length) => content.resize(size(*length), 0),
            Self::Block { offset, bytes } => {
                let start = size(*offset).min(content.len());
                let end = (size(*offset) + bytes.len()).min(content.len());
                content[start..end].copy_from_slice(&bytes[..end - start]);
            }
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
            Self::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        let (Self::Link(path, _) | Self::Unlink(path) | Self::Rename { to: path, .. }) = self;
        path.parent() == Some(dir)
    }
}

fn size(length: u64) -> usize {
    usize::try_from(length).expect("a simulated file fits into memory")
}

fn outcome(fault: Option<Fault>) -> io::Result<()> {
    match fault {
        None => Ok(()),
        Some(Fault::Stop) => Err(io::Error::other("the simulated machine has stopped")),
        Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
        Some(Fault::Failed) => Err(io::Error::other("the simulated device failed")),
    }
}

impl Storage for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.state();
        state.alive()?;
        let inode = match (state.find(path), mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(inode), _) => inode,
            (Err(error), OpenMode::Read | OpenMode::Write) => return Err(error),
            (Err(_), OpenMode::CreateNew | OpenMode::Create) => {
                let inode = state.inodes.len();
                state.whole_step(|state| {
                    state.inodes.push(Inode::default());
                    state.change_name(NameChange::Link(path.to_owned(), inode));
                })?;
                inode
            }
        };
        Ok(Box::new(SimFile { disk: self.clone(), inode, writable: mode != OpenMode::Read }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.alive()?;
        Ok(state.names.contains_key(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        state.alive()?;
        Ok(state.names.keys().filter(|path| path.parent() == Some(dir)).cloned().collect())
    }

    /// Folders are there as soon as they are named.
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        self.state().alive()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.find(from)?;
        let change = NameChange::Rename { from: from.to_owned(), to: to.to_owned(), inode };
        state.whole_step(|state| state.change_name(change))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.find(path)?;
        state.whole_step(|state| state.change_name(NameChange::Unlink(path.to_owned())))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let fault = state.step()?;
        if fault == Some(Fault::Stop) {
            return outcome(fault);
        }
        let certainty = if fault.is_none() { Certainty::Durable } else { Certainty::Doubtful };
        for change in &mut state.name_changes {
            if change.what.is_in(dir) && change.certainty == Certainty::Pending {
                change.certainty = certainty;
            }
        }
        state.syncs += u64::from(fault.is_none());
        outcome(fault)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let state = self.state();
        state.alive()?;
        state.find(path)?;
        Ok(path.to_owned())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn StorageLock>, LockError> {
        let mut state = self.state();
        state.alive()?;
        if state.locks.iter().any(|held| held == path) {
            return Err(LockError::HeldHere);
        }
        state.locks.push(path.to_owned());
        Ok(Box::new(SimLock { disk: self.clone(), path: path.to_owned() }))
    }
}

struct SimFile {
    disk: SimDisk,
    inode: usize,
    writable: bool,
}

impl SimFile {
    fn writable_step(&self, state: &mut State) -> io::Result<Option<Fault>> {
        if self.writable { state.step() } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl StorageFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state();
        state.alive()?;
        Ok(state.inodes[self.inode].content.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state();
        state.alive()?;
        let content = &state.inodes[self.inode].content;
        let rest = content.get(size(offset)..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let fault = self.writable_step(&mut state)?;
        let written = match fault {
            None | Some(Fault::Stop) => bytes,
            Some(Fault::Full | Fault::Failed) => &bytes[..bytes.len() / 2],
        };
        state.inodes[self.inode].write(offset, written);
        outcome(fault)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let fault = self.writable_step(&mut state)?;
        if matches!(fault, None | Some(Fault::Stop)) {
            state.inodes[self.inode].change(DataChange::Length(length));
        }
        outcome(fault)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let fault = state.step()?;
        if fault != Some(Fault::Stop) {
            state.inodes[self.inode].sync(fault.is_none());
            state.syncs += u64::from(fault.is_none());
        }
        outcome(fault)
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl StorageLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state().locks.retain(|held| *held != self.path);
    }
}
