//! When to compact a database file, and the new file that a compaction makes.
//!
//! A compaction writes schema and content beside the running file; commits go on meanwhile, and the journal switches to
//! the new file at the end. Invariant: the new file has its final name only after everything in it was synced.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cowslip_engine::storage::{OpenMode, Storage, StorageFile};
use cowslip_engine::{Root, Uuid};
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use sha1::{Digest, Sha1};

use super::date::now_ms;
use super::log::{Hash, header, write_record};
use super::record::{Pieces, encode_snapshot};

/// No file below this size is compacted for its growth.
pub const COMPACTION_BYTES_MIN: u64 = 10 << 20;
/// A file is compacted when it has grown by this factor.
pub const COMPACTION_GROWTH: u64 = 2;
/// No file is compacted before so many commits were added to it.
pub const COMPACTION_COMMITS_MIN: u64 = 100;
/// The least time between two automatic compactions; as much again is added at random, so that the databases of a
/// server, or the servers of a site, don't compact all at once.
pub const COMPACTION_INTERVAL_MIN: Duration = Duration::from_secs(10 * 60);
/// After this time the size doesn't matter.
pub const COMPACTION_INTERVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How much sooner a failed compaction is tried again.
const RETRY_DIVISOR: u32 = 10;
/// The size of the pieces in which a new file is gathered and written.
const PIECE_BYTES: usize = 1 << 20;

/// How a file has grown since it was last compacted.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// The file's size.
    pub file_bytes: u64,
    /// Its size after the last compaction, or up to the end of its first transaction.
    pub base_bytes: u64,
    /// The commits added since.
    pub commits: u64,
    /// The time since the last compaction, or since the file was opened.
    pub age: Duration,
    /// How long to wait at least.
    pub interval: Duration,
}

/// Whether a file is to be compacted: the reference server's rule.
pub fn is_due(growth: &Growth) -> bool {
    if growth.age < growth.interval || growth.commits < COMPACTION_COMMITS_MIN {
        return false;
    }
    let grew = growth.file_bytes >= COMPACTION_BYTES_MIN
        && growth.file_bytes / COMPACTION_GROWTH > growth.base_bytes;
    grew || growth.age >= COMPACTION_INTERVAL_MAX
}

/// The waiting time until the next compaction may begin, and what it needs to be told.
#[derive(Debug)]
pub(super) struct Schedule {
    last: Instant,
    interval: Duration,
    pub(super) base_bytes: u64,
    pub(super) commits: u64,
}

impl Schedule {
    pub(super) fn new(base_bytes: u64, commits: u64) -> Self {
        Self { last: Instant::now(), interval: interval(), base_bytes, commits }
    }

    /// A compaction failed.
    pub(super) fn retry_soon(&mut self) {
        self.last = Instant::now();
        self.interval = interval() / RETRY_DIVISOR;
    }

    pub(super) fn is_due(&self, file_bytes: u64) -> bool {
        let Self { last, interval, base_bytes, commits } = *self;
        is_due(&Growth { file_bytes, base_bytes, commits, age: last.elapsed(), interval })
    }
}

fn interval() -> Duration {
    let random = f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    COMPACTION_INTERVAL_MIN + COMPACTION_INTERVAL_MIN.mul_f64(random)
}

/// A compaction, ready to run on another thread.
pub struct Compaction {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) path: PathBuf,
    pub(super) snapshot: Arc<Root<Ovsdb>>,
    pub(super) comment: String,
    /// Which file it was begun on: a conversion in between makes it pointless.
    pub(super) epoch: u64,
    pub(super) sync: bool,
}

/// The new file of a compaction, or why there is none.
pub struct Compacted {
    pub(super) path: PathBuf,
    pub(super) epoch: u64,
    pub(super) result: io::Result<NewFile>,
}

/// A file that holds a snapshot, synced, not yet under its final name.
pub(super) struct NewFile {
    pub(super) file: Box<dyn StorageFile>,
    pub(super) bytes: u64,
    pub(super) schema_hash: Hash,
    /// None for an empty database: its schema is all there is.
    pub(super) snapshot_hash: Option<Hash>,
}

impl Compaction {
    /// Writes and syncs the new file.
    pub(super) fn run(self) -> Compacted {
        let Self { storage, path, snapshot, comment, epoch, sync } = self;
        let result = write_file(&*storage, &path, &snapshot, Some(&comment), sync);
        drop(snapshot);
        Compacted { path, epoch, result }
    }
}

/// Makes a file of a whole database; without a comment, of its schema only. A file of that name that is there is taken
/// for what an interrupted compaction left. On failure nothing is left behind, as far as the disk allows.
pub(super) fn write_file(
    storage: &dyn Storage,
    path: &Path,
    root: &Root<Ovsdb>,
    comment: Option<&str>,
    sync: bool,
) -> io::Result<NewFile> {
    if storage.exists(path)? {
        storage.remove(path)?;
    }
    let file = storage.open(path, OpenMode::CreateNew)?;
    let written = fill(&*file, root, comment).and_then(|sizes| {
        if sync {
            file.sync_data()?;
        }
        Ok(sizes)
    });
    match written {
        Ok((bytes, schema_hash, snapshot_hash)) => Ok(NewFile { file, bytes, schema_hash, snapshot_hash }),
        Err(error) => {
            // The first error is the one to tell; a leftover is removed by the next attempt.
            let _ = storage.remove(path);
            Err(error)
        }
    }
}

fn fill(
    file: &dyn StorageFile,
    root: &Root<Ovsdb>,
    comment: Option<&str>,
) -> io::Result<(u64, Hash, Option<Hash>)> {
    let (schema, schema_hash) = schema_record(root.meta());
    file.write_at(0, &schema)?;
    let mut end = schema.len() as u64;
    let Some(comment) = comment else { return Ok((end, schema_hash, None)) };
    // The header, which comes first, holds the length and hash of what follows, so that has to be complete.
    let mut hash = Sha1::new();
    let mut gathered: Vec<Box<[u8]>> = Vec::new();
    let mut gather = |piece: &[u8]| {
        hash.update(piece);
        gathered.push(piece.into());
    };
    encode_snapshot(root, comment, now_ms(), &mut Pieces::new(PIECE_BYTES, &mut gather));
    let hash = hash.finalize().into();
    let bytes = gathered.iter().map(|piece| piece.len() as u64).sum();
    let header = header(bytes, &hash);
    for piece in std::iter::once(header.into_bytes().into()).chain(gathered) {
        file.write_at(end, &piece)?;
        end += piece.len() as u64;
    }
    Ok((end, schema_hash, Some(hash)))
}

/// The first record of a file.
fn schema_record(schema: &Schema) -> (Vec<u8>, Hash) {
    let mut record = Vec::new();
    let hash = write_record(&mut record, &mut schema.text().to_string());
    (record, hash)
}

/// The name of a file beside another one.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn files_are_compacted_by_the_reference_servers_rule() {
        let interval = 12 * MINUTE;
        for (megabytes, base, commits, minutes, due) in [
            (21, 10, 100, 13, true),
            (21, 10, 100, 11, false),
            (21, 10, 99, 13, false),
            (20, 10, 1_000, 13, false),
            (9, 0, 1_000, 13, false),
            (10, 0, 100, 13, true),
            (1, 1, 100, 24 * 60, true),
            (1, 1, 99, 24 * 60, false),
            (1, 1, 100, 24 * 60 - 1, false),
        ] {
            let growth = Growth {
                file_bytes: megabytes * MIB,
                base_bytes: base * MIB,
                commits,
                age: minutes * MINUTE,
                interval,
            };
            assert_eq!(is_due(&growth), due, "{growth:?}");
        }
    }

    #[test]
    fn intervals_are_spread() {
        for _ in 0..100 {
            let interval = interval();
            assert!((COMPACTION_INTERVAL_MIN..=2 * COMPACTION_INTERVAL_MIN).contains(&interval));
        }
    }
}
