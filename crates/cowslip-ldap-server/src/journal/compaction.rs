//! When to make a snapshot, and making it on another thread.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cowslip_engine::storage::{Storage, StorageLock};
use cowslip_engine::{Model, Root};

use super::codec::Codec;
use super::folder::snapshot_path;
use super::open::write_unfinished;
use super::snapshot::SnapshotHeader;

/// How the log has grown since the last snapshot.
///
/// A snapshot is due when reading it again would take less than reading the log, so that both what is written and what a
/// start reads stays within a factor of what is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    bytes_min: u64,
    snapshot_bytes: u64,
    log_bytes: u64,
    /// The length at which a compaction is tried again that failed.
    retry_bytes: u64,
    /// Files that only a compaction can remove take up room.
    leftovers: bool,
}

impl Schedule {
    pub(super) fn new(bytes_min: u64, snapshot_bytes: u64, log_bytes: u64, leftovers: bool) -> Self {
        Self { bytes_min, snapshot_bytes, log_bytes, retry_bytes: 0, leftovers }
    }

    pub(super) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    pub(super) fn is_due(&self) -> bool {
        let has_grown = self.log_bytes > self.bytes_min.max(self.snapshot_bytes);
        (has_grown || self.leftovers) && self.log_bytes >= self.retry_bytes
    }

    pub(super) fn wrote(&mut self, bytes: u64) {
        self.log_bytes += bytes;
    }

    /// A compaction failed.
    pub(super) fn retry_later(&mut self) {
        self.retry_bytes = self.log_bytes + self.bytes_min.max(1);
    }

    /// A snapshot has taken over what the log had when it was so long.
    pub(super) fn compacted(&mut self, snapshot_bytes: u64, at_log_bytes: u64) {
        self.snapshot_bytes = snapshot_bytes;
        self.log_bytes -= at_log_bytes.min(self.log_bytes);
        self.retry_bytes = 0;
        self.leftovers = false;
    }
}

/// A compaction, ready to run on another thread.
pub struct Compaction<M: Model, C: Codec<M>> {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) folder: PathBuf,
    /// The folder stays locked until this has run.
    pub(super) _lock: Arc<dyn StorageLock>,
    pub(super) codec: Arc<C>,
    pub(super) header: SnapshotHeader,
    pub(super) snapshot: Arc<Root<M>>,
}

impl<M: Model, C: Codec<M>> fmt::Debug for Compaction<M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compaction").field("header", &self.header).finish_non_exhaustive()
    }
}

/// A snapshot that waits to be switched to, or why there is none.
#[derive(Debug)]
pub struct Compacted {
    pub(super) number: u64,
    pub(super) bytes: io::Result<u64>,
}

impl<M: Model, C: Codec<M>> Compaction<M, C> {
    /// Writes the snapshot beside the running log.
    pub(super) fn run(self) -> Compacted {
        let Self { storage, folder, codec, header, snapshot, .. } = self;
        let path = snapshot_path(&folder, header.number);
        let bytes = write_unfinished(&*storage, &path, header, &*codec, &snapshot);
        Compacted { number: header.number, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_when_the_log_is_longer() {
        for (bytes_min, snapshot, log, leftovers, due) in [
            (100, 0, 100, false, false),
            (100, 0, 101, false, true),
            (100, 150, 150, false, false),
            (100, 150, 151, false, true),
            (100, 150, 0, true, true),
        ] {
            assert_eq!(Schedule::new(bytes_min, snapshot, log, leftovers).is_due(), due);
        }
    }

    #[test]
    fn a_failure_is_not_repeated_at_once() {
        let mut schedule = Schedule::new(100, 0, 101, true);
        schedule.retry_later();
        assert!(!schedule.is_due());
        schedule.wrote(100);
        assert!(schedule.is_due());
        schedule.compacted(150, 190);
        assert_eq!((schedule.log_bytes(), schedule.is_due()), (11, false));
    }
}
