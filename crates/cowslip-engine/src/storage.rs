//! The only door to the disk.
//!
//! Journals write through [`Storage`], so that tests can put a disk behind it that stops, forgets and fails
//! ([`SimDisk`](crate::sim::SimDisk)). Invariants that a caller may rely on, and no others: data of a file survives a
//! crash once `sync_data` returned; a name (new file, rename, removal) once `sync_dir` of its folder did; a rename is
//! never half done. After a failed sync nothing is known about what came before it.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, fcntl_lock};

/// How [`Storage::open`] treats a file that is there or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must exist and is only read.
    Read,
    /// It must exist.
    Write,
    /// It must not exist.
    CreateNew,
    /// It is made if it is missing.
    Create,
}

/// The only door to the disk.
pub trait Storage: Send + Sync + 'static {
    /// Opens or creates a file.
    ///
    /// # Errors
    /// As for files: not found, exists already, permission denied and so on.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn StorageFile>>;

    /// Whether a file of this name exists.
    ///
    /// # Errors
    /// It cannot be told.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// It cannot be opened or read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Read)?;
        let mut content = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
        let length = file.read_at(0, &mut content)?;
        content.truncate(length);
        Ok(content)
    }

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// It cannot be read.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// Makes a folder and those above it, if they are missing.
    ///
    /// # Errors
    /// It cannot be made.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Gives a file another name, replacing what had that name.
    ///
    /// # Errors
    /// It did not happen.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// It did not happen.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// Nothing is known about any of them.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// The path with symbolic links resolved.
    ///
    /// # Errors
    /// The file does not exist.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// Takes the lock of which this file is the token, making the file if needed. Dropping the result gives it back.
    ///
    /// # Errors
    /// See [`LockError`].
    fn lock(&self, path: &Path) -> Result<Box<dyn StorageLock>, LockError>;
}

/// An open file of a [`Storage`].
pub trait StorageFile: Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// It cannot be told.
    fn len(&self) -> io::Result<u64>;

    /// Whether its length is 0.
    ///
    /// # Errors
    /// It cannot be told.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads until the buffer is full or the file ends; gives the number of bytes read.
    ///
    /// # Errors
    /// It cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// Any part of it may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes all bytes at the end and gives the offset where they begin.
    ///
    /// # Errors
    /// Any part of it may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let end = self.len()?;
        self.write_at(end, bytes)?;
        Ok(end)
    }

    /// Cuts the file, or extends it by zeros.
    ///
    /// # Errors
    /// It did not happen.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes data and length durable, but not the file's name.
    ///
    /// # Errors
    /// Nothing is known about what was written before.
    fn sync_data(&self) -> io::Result<()>;
}

/// A lock that is held until this is dropped.
pub trait StorageLock: Send + Sync {}

/// Why a lock was not taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum LockError {
    /// Another process holds it.
    Held,
    /// This process holds it.
    HeldHere,
    /// The file of the lock cannot be used.
    Io {
        /// What went wrong.
        source: io::Error,
    },
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("another process holds the lock"),
            Self::HeldHere => f.write_str("this process holds the lock already"),
            Self::Io { source } => write!(f, "the lock file cannot be used: {source}"),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source } => Some(source),
            Self::Held | Self::HeldHere => None,
        }
    }
}

impl From<io::Error> for LockError {
    fn from(source: io::Error) -> Self {
        Self::Io { source }
    }
}

/// The file system of the operating system.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem {
    file_mode: u32,
}

impl FileSystem {
    /// New files are for their owner only: a directory holds password hashes, a network database keys.
    pub const fn new() -> Self {
        Self { file_mode: 0o600 }
    }

    /// Gives new files these permission bits, less what the process masks.
    #[must_use]
    pub const fn with_file_mode(self, file_mode: u32) -> Self {
        Self { file_mode }
    }
}

impl Default for FileSystem {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for FileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn StorageFile>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(self.file_mode);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
            OpenMode::Create => {
                options.write(true).create(true);
            }
        }
        Ok(Box::new(options.open(path)?))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // The parent of a bare file name is the empty path.
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        fs::File::open(dir)?.sync_all()
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn StorageLock>, LockError> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked before opening: closing any handle of the file would give the process's lock away.
        match fs::metadata(path) {
            Ok(metadata) if held.contains(&file_identity(&metadata)) => return Err(LockError::HeldHere),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(self.file_mode).open(path)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::AGAIN) => return Err(LockError::Held),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let identity = file_identity(&file.metadata()?);
        held.push(identity);
        Ok(Box::new(FileLock { identity, file: Some(file) }))
    }
}

impl StorageFile for fs::File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, mut offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match FileExt::read_at(self, &mut buffer[filled..], offset) {
                Ok(0) => break,
                Ok(length) => {
                    filled += length;
                    offset += length as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        fs::File::sync_data(self)
    }
}

/// POSIX record locks belong to the process, so a second lock of the same file by this process would succeed. This
/// list, of device and inode numbers, keeps it from happening.
static HELD: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

fn file_identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

struct FileLock {
    identity: (u64, u64),
    /// Closing it gives the lock back.
    file: Option<fs::File>,
}

impl StorageLock for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|identity| *identity != self.identity);
        // While the list is locked: closed later, it would take away the lock of whoever came next.
        self.file = None;
    }
}
