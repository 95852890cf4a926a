//! Where the directory keeps its commits for good: a binary log with snapshots.
//!
//! A folder holds numbered journal files and a snapshot. The snapshot is a whole root; the journal files hold what was
//! committed after it, in batches: one write and one sync for everything that was committed together. Files are written
//! full and synced ahead of need, and used again after a snapshot has taken over what they hold, because an append that
//! has to allocate makes each sync more expensive. What the records mean is the matter of a [`Codec`].
//!
//! A start reads the newest snapshot and replays the batches behind it. Every batch says up to which one everything was
//! durable when it was written. So where the next batch is missing or unreadable, the ones behind it tell a batch that
//! never became durable, which is cut off, from damage, which stops the start ([`OpenError::Damaged`]) until
//! [`salvage`] was told to do without.
//!
//! Invariants, besides those of the engine's `Journal`: a batch number is never used for two batches that both count; no
//! byte of a batch that counts is overwritten before a durable snapshot has taken it over, except by itself; what was
//! cut off can never come back, because what follows it begins in a new file and says so.

pub use binary_log::BinaryLog;
pub use codec::Codec;
pub use compaction::{Compacted, Compaction};
pub use error::{CodecError, OpenError};
pub use files::SPARE_FILES_MAX;
pub(crate) use folder::lock_path;
pub use format::{Fault, decode_journal_file};
pub use open::{
    COMPACTION_BYTES_MIN, JOURNAL_FILE_BYTES, JournalOptions, Loaded, OpenReport, Opened, RECORD_BYTES_MAX,
    create, load, open,
};
pub use snapshot::{
    BLOCK_BYTES, BLOCK_BYTES_MAX, SnapshotError, SnapshotReader, SnapshotWriter, decode_snapshot_file,
};
pub use verify::{Damage, FileReport, FolderReport, LogItem, Salvaged, SnapshotReport, salvage, verify};

mod binary_log;
mod codec;
mod compaction;
mod encoder;
mod error;
mod files;
mod folder;
mod format;
mod log;
mod open;
mod snapshot;
mod sync;
mod verify;
