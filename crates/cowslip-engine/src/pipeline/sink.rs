//! Where a prepared batch goes: journal, publication, feed, answers, in this order.
//!
//! Invariants: nothing is published that was not appended, and nothing that asked for durability before it was synced;
//! after a failure whose extent is unknown the journal gets nothing more.

use std::sync::Arc;

use super::Outcome;
use super::batch::Prepared;
use crate::feed::{Entry, Feed};
use crate::journal::{AppendError, Journal};
use crate::model::Model;
use crate::publication::Publication;
use crate::reclaim::{Reclaimer, Retired};
use crate::root::Root;

pub(super) struct Sink<M: Model, J: Journal<M>> {
    pub(super) journal: J,
    publication: Arc<Publication<M>>,
    feed: Arc<Feed<M>>,
    reclaimer: Reclaimer<M>,
}

/// Why a batch, or a compaction, came to nothing.
pub(super) struct Failure {
    pub(super) reason: Arc<str>,
    /// Nobody knows what the journal holds now.
    pub(super) unknown: bool,
}

/// What became of a batch: whether the journal wants a compaction, or the batch that failed, if it is still there.
pub(super) type Written<M> = Result<bool, (Failure, Option<Prepared<M>>)>;

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        let unknown = !matches!(error, AppendError::NotWritten { .. });
        Self { reason: error.to_string().into(), unknown }
    }
}

impl Failure {
    pub(super) fn panicked() -> Self {
        Self { reason: "the writer panicked".into(), unknown: true }
    }

    pub(super) fn outcome(&self) -> Outcome {
        let reason = Arc::clone(&self.reason);
        if self.unknown { Outcome::Unknown { reason } } else { Outcome::Failed { reason } }
    }
}

impl<M: Model, J: Journal<M>> Sink<M, J> {
    pub(super) fn new(
        journal: J,
        publication: Arc<Publication<M>>,
        feed: Arc<Feed<M>>,
        reclaimer: Reclaimer<M>,
    ) -> Self {
        Self { journal, publication, feed, reclaimer }
    }

    pub(super) fn feed(&self) -> &Arc<Feed<M>> {
        &self.feed
    }

    pub(super) fn publication(&self) -> &Arc<Publication<M>> {
        &self.publication
    }

    /// Writes a batch and makes it the newest state, `root`. Says whether the journal wants a compaction. A batch that
    /// failed comes back unanswered: who hears of a failure may go on at once, so the working root must be put right first.
    pub(super) fn write(&mut self, mut prepared: Prepared<M>, root: Root<M>) -> Written<M> {
        if prepared.commits.is_empty() {
            // Whatever the answers rely on was published before this was called.
            prepared.answer_committed();
            return Ok(false);
        }
        match self.keep(&prepared) {
            Ok(positions) => {
                let generation = root.generation();
                let retired = self.publish(&mut prepared, &positions, root);
                prepared.answer_committed();
                self.feed.announce(generation);
                self.reclaimer.retire(retired.into_iter().filter_map(free_if_small).collect());
                Ok(self.journal.wants_compaction())
            }
            Err(failure) => Err((failure, Some(prepared))),
        }
    }

    fn keep(&mut self, prepared: &Prepared<M>) -> Result<Vec<uuid::Uuid>, Failure> {
        let positions = self.journal.append(&prepared.commits)?;
        debug_assert_eq!(positions.len(), prepared.commits.len(), "each commit has a position");
        if prepared.durable {
            self.journal.make_durable().map_err(|source| AppendError::Unknown { source })?;
        }
        Ok(positions)
    }

    /// Publishes; gives what is superseded by that, each with about how many bytes are freed with it.
    fn publish(
        &mut self,
        prepared: &mut Prepared<M>,
        positions: &[uuid::Uuid],
        root: Root<M>,
    ) -> Vec<(Retired<M>, usize)> {
        let newest = root.generation();
        let superseded = self.publication.publish(Arc::new(root));
        let commits = std::mem::take(&mut prepared.commits);
        // The superseded root differs from its successor by this batch, unless that exchanged it.
        let changed = if prepared.exchanged { usize::MAX } else { prepared.bytes };
        let mut retired = vec![(Retired::Root(superseded), changed)];
        // One that was exchanged again at once is superseded, too.
        let exchanged = commits.iter().filter_map(|commit| commit.root.clone());
        retired.extend(exchanged.map(|root| (Retired::Root(root), usize::MAX)));
        let first = newest + 1 - commits.len() as u64;
        let mut entries =
            (first..).zip(positions).zip(commits).map(|((generation, position), commit)| Entry {
                generation,
                position: *position,
                changes: commit.changes,
                note: commit.note,
                meta: commit.root.map(|root| Arc::clone(root.meta())),
            });
        // What came before a replacement leads to nothing that still is.
        if let Some(replacement) = prepared.replaced.and_then(|replaced| entries.by_ref().nth(replaced)) {
            let dropped = self.feed.restart(replacement.generation, replacement.position);
            retired.extend(dropped.into_iter().map(retired_entry));
        }
        retired.extend(self.feed.push(entries).into_iter().map(retired_entry));
        retired
    }
}

fn retired_entry<M: Model>(entry: Arc<Entry<M>>) -> (Retired<M>, usize) {
    let bytes = entry.changes.bytes();
    (Retired::Entry(entry), bytes)
}

/// Frees what is small and has no other owner: what a small commit allocated is still in this core's cache, and another
/// thread would fetch every count that it lowers from there. Gives back the rest.
fn free_if_small<M: Model>((retired, bytes): (Retired<M>, usize)) -> Option<Retired<M>> {
    /// About what freeing may cost of the time that a commit takes.
    const FREED_HERE_BYTES_MAX: usize = 64 << 10;
    let is_small = bytes <= FREED_HERE_BYTES_MAX && retired.is_last_owner();
    (!is_small).then_some(retired)
}
