//! Where commits are kept for good.
//!
//! The pipeline appends batches and asks for durability; how that is done is the implementation's matter, and nothing
//! here assumes a local file. Opening and replaying are not part of the trait, because they give a different root for
//! each protocol; the pipeline is started with what they gave. Invariants that an implementation keeps: a replay gives
//! whole commits, in the order of appending and without gaps; what was appended before a
//! [`make_durable`](Journal::make_durable) that succeeded is among them after any crash; what was reported as not
//! written is not.

use std::fmt;
use std::io;
use std::sync::Arc;

use uuid::Uuid;

use crate::change::ChangeSet;
use crate::model::Model;
use crate::root::Root;

/// One commit as the journal sees it.
pub struct Commit<M: Model> {
    /// What changed.
    pub changes: Arc<ChangeSet<M>>,
    /// What it carries besides.
    pub note: Arc<M::Note>,
    /// The whole state after it, if it changed the meta or replaced everything: then `changes` don't tell all.
    pub root: Option<Arc<Root<M>>>,
}

impl<M: Model> Clone for Commit<M> {
    fn clone(&self) -> Self {
        Self {
            changes: Arc::clone(&self.changes),
            note: Arc::clone(&self.note),
            root: self.root.as_ref().map(Arc::clone),
        }
    }
}

/// Why a batch was not appended, or a compaction not finished.
#[derive(Debug)]
#[non_exhaustive]
pub enum AppendError {
    /// The journal is as it was before; the next batch may be tried.
    NotWritten {
        /// What went wrong.
        source: io::Error,
    },
    /// Nobody can say what a replay would find. The journal takes nothing more until it is reopened.
    Unknown {
        /// What went wrong.
        source: io::Error,
    },
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWritten { source } => write!(f, "not written: {source}"),
            Self::Unknown { source } => write!(f, "the journal is in an unknown state: {source}"),
        }
    }
}

impl std::error::Error for AppendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotWritten { source } | Self::Unknown { source } => Some(source),
        }
    }
}

/// Where commits are kept for good.
pub trait Journal<M: Model>: Send + 'static {
    /// What a compaction needs to run on another thread.
    type Compaction: Send + 'static;
    /// What such a run gives.
    type Compacted: Send + 'static;

    /// Appends a batch, if it can be done for all of it, and names the state after each of its commits.
    ///
    /// # Errors
    /// See [`AppendError`]. After `Unknown` the pipeline calls nothing more than `position`.
    fn append(&mut self, batch: &[Commit<M>]) -> Result<Vec<Uuid>, AppendError>;

    /// Returns once everything appended so far would survive a crash.
    ///
    /// # Errors
    /// Any error leaves it unknown what survives: after a failed sync, a second one that succeeds proves nothing.
    fn make_durable(&mut self) -> io::Result<()>;

    /// The name of the state after the last commit.
    fn position(&self) -> Uuid;

    /// Whether it is time to compact. Asked after each batch.
    fn wants_compaction(&self) -> bool {
        false
    }

    /// Begins to replace the history by a snapshot, which holds exactly what was appended so far.
    ///
    /// Appending goes on while the compaction runs.
    ///
    /// # Errors
    /// The compaction could not be begun; the journal goes on as it is.
    fn begin_compaction(&mut self, snapshot: Arc<Root<M>>) -> io::Result<Self::Compaction>;

    /// Does the long part of a compaction, on another thread.
    fn run_compaction(compaction: Self::Compaction) -> Self::Compacted;

    /// Forgets a compaction that was begun, because running it came to nothing.
    fn abandon_compaction(&mut self) {}

    /// Switches to the result, with what was appended meanwhile.
    ///
    /// # Errors
    /// After `NotWritten` the journal goes on as if no compaction had been begun.
    fn finish_compaction(&mut self, compacted: Self::Compacted) -> Result<(), AppendError>;
}

/// The journal of a database that lives in memory only.
#[derive(Debug)]
pub struct NullJournal {
    position: Uuid,
}

impl NullJournal {
    /// A journal that keeps nothing and gives each state a random name.
    pub fn new() -> Self {
        Self { position: Uuid::new_v4() }
    }
}

impl Default for NullJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Model> Journal<M> for NullJournal {
    type Compaction = ();
    type Compacted = ();

    fn append(&mut self, batch: &[Commit<M>]) -> Result<Vec<Uuid>, AppendError> {
        let positions: Vec<_> = batch.iter().map(|_| Uuid::new_v4()).collect();
        if let Some(last) = positions.last() {
            self.position = *last;
        }
        Ok(positions)
    }

    fn make_durable(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn position(&self) -> Uuid {
        self.position
    }

    fn begin_compaction(&mut self, _snapshot: Arc<Root<M>>) -> io::Result<()> {
        Ok(())
    }

    fn run_compaction((): ()) {}

    fn finish_compaction(&mut self, (): ()) -> Result<(), AppendError> {
        Ok(())
    }
}
