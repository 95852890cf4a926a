//! A simulated disk that is looked at after each step.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cowslip_engine::sim::SimDisk;
use cowslip_engine::storage::{LockError, OpenMode, Storage, StorageFile, StorageLock};

/// Whoever looks.
pub(crate) trait Looking: Send + 'static {
    /// The disk has taken a step.
    fn check(&mut self, disk: &SimDisk);
}

/// A disk that is looked at after each step.
pub(crate) struct Watched<B> {
    pub(crate) disk: SimDisk,
    pub(crate) book: Arc<Mutex<B>>,
}

impl<B> Clone for Watched<B> {
    fn clone(&self) -> Self {
        Self { disk: self.disk.clone(), book: Arc::clone(&self.book) }
    }
}

impl<B: Looking> Watched<B> {
    fn looked_at<T>(&self, result: T) -> T {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).check(&self.disk);
        result
    }
}

impl<B: Looking> Storage for Watched<B> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn StorageFile>> {
        let file = self.looked_at(self.disk.open(path, mode))?;
        Ok(Box::new(WatchedFile { file, watched: self.clone() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.looked_at(self.disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.looked_at(self.disk.remove(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.looked_at(self.disk.sync_dir(dir))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.disk.canonical(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn StorageLock>, LockError> {
        self.disk.lock(path)
    }
}

struct WatchedFile<B> {
    file: Box<dyn StorageFile>,
    watched: Watched<B>,
}

impl<B: Looking> StorageFile for WatchedFile<B> {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.watched.looked_at(self.file.write_at(offset, bytes))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.watched.looked_at(self.file.truncate(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watched.looked_at(self.file.sync_data())
    }
}
