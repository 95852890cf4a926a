//! What the journal asks of whoever knows what commits and roots hold.

use std::io;

use cowslip_engine::{Commit, Model, Root};

use super::error::CodecError;
use super::snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

/// Turns commits and roots into records and back.
///
/// Reading a folder goes `read_snapshot`, `replay` for each commit after it, `finish`. The state in between is the
/// implementation's own, so that a large directory can be built at once at the end. What is read was checked to be what
/// was written, but perhaps by another version: a record that means nothing is an error, never a panic.
pub trait Codec<M: Model>: Send + Sync + 'static {
    /// A root that is being read.
    type State;

    /// Appends the record of a commit, from which [`replay`](Self::replay) can bring about the same state.
    ///
    /// A commit whose [`root`](Commit::root) is set changed more than its changes tell.
    ///
    /// # Errors
    /// The commit cannot be kept; nothing of its batch is written.
    fn encode_commit(&self, commit: &Commit<M>, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Makes the change of a record. The commit's number is the generation of the root it led to.
    ///
    /// # Errors
    /// The record means nothing, or does not fit to the state.
    fn replay(&self, state: &mut Self::State, commit: u64, record: &[u8]) -> Result<(), CodecError>;

    /// Writes a whole root, record by record.
    ///
    /// # Errors
    /// Those of the writer.
    fn write_snapshot(&self, root: &Root<M>, snapshot: &mut SnapshotWriter<'_>) -> io::Result<()>;

    /// Reads the records of a snapshot, up to the end.
    ///
    /// # Errors
    /// Those of the reader; a record that means nothing.
    fn read_snapshot(&self, snapshot: &mut SnapshotReader<'_>) -> Result<Self::State, SnapshotError>;

    /// Makes a root of what was read. Its generation is set by the journal.
    ///
    /// # Errors
    /// What was read contradicts itself.
    fn finish(&self, state: Self::State) -> Result<Root<M>, CodecError>;
}
