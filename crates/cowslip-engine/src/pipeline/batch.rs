//! The batch that is being prepared, and the working root under it.
//!
//! Invariants: the working root is the published root plus the batch in flight plus this batch; each commit raises its
//! generation by one; answers are kept in the order of their making.

use std::sync::Arc;

use super::{Answer, CompactionAnswer, CompactionOutcome, Outcome};
use crate::change::ChangeSet;
use crate::feed::Feed;
use crate::index_builder::{CATCH_UP_RECORDS_MAX, IndexBuilder, IndexRefusal, RefusedIndexes};
use crate::journal::Commit;
use crate::model::Model;
use crate::root::Root;

/// What a [`Host`](super::Host) may do with the database during one job.
pub struct Batch<'a, M: Model> {
    working: &'a mut Working<M>,
}

/// The changes that led to a generation.
type Numbered<M> = (u64, Arc<ChangeSet<M>>);

pub(super) struct Working<M: Model> {
    pub(super) root: Root<M>,
    pub(super) prepared: Prepared<M>,
    /// The writing thread is busy.
    pub(super) in_flight: bool,
    /// The changes of the batch that the writing thread may have, by generation.
    pub(super) in_flight_changes: Vec<Numbered<M>>,
    /// The generation of the last replacement of everything that may not be published yet.
    pub(super) replaced_at: Option<u64>,
    feed: Arc<Feed<M>>,
    pub(super) read_only: bool,
    /// Compactions asked for and not begun.
    pub(super) compactions: Vec<CompactionAnswer>,
}

/// Commits and answers that wait to be written together.
pub(super) struct Prepared<M: Model> {
    pub(super) commits: Vec<Commit<M>>,
    /// The last commit that replaced everything.
    pub(super) replaced: Option<usize>,
    /// Whether the root was exchanged, so that more may be superseded than the changes say.
    pub(super) exchanged: bool,
    pub(super) answers: Vec<(u64, Answer)>,
    pub(super) durable: bool,
    pub(super) jobs: usize,
    pub(super) bytes: usize,
}

impl<M: Model> Default for Prepared<M> {
    fn default() -> Self {
        Self {
            commits: Vec::new(),
            replaced: None,
            exchanged: false,
            answers: Vec::new(),
            durable: false,
            jobs: 0,
            bytes: 0,
        }
    }
}

impl<M: Model> Prepared<M> {
    pub(super) fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.answers.is_empty()
    }

    pub(super) fn answer_committed(self) {
        for (generation, answer) in self.answers {
            answer(Outcome::Committed { generation });
        }
    }

    pub(super) fn answer_all(self, outcome: &Outcome) {
        for (_, answer) in self.answers {
            answer(outcome.clone());
        }
    }
}

impl<M: Model> Working<M> {
    pub(super) fn new(root: Root<M>, feed: Arc<Feed<M>>) -> Self {
        Self {
            root,
            prepared: Prepared::default(),
            in_flight: false,
            in_flight_changes: Vec::new(),
            replaced_at: None,
            feed,
            read_only: false,
            compactions: Vec::new(),
        }
    }

    pub(super) fn batch(&mut self) -> Batch<'_, M> {
        Batch { working: self }
    }

    /// Whether an answer would rely on nothing that is not published.
    fn is_clean(&self) -> bool {
        !self.in_flight && self.prepared.is_empty()
    }

    /// The prepared commits with their generations.
    pub(super) fn prepared_changes(&self) -> impl Iterator<Item = (u64, &Arc<ChangeSet<M>>)> {
        let commits = &self.prepared.commits;
        let first = self.root.generation() + 1 - commits.len() as u64;
        (first..).zip(commits).map(|(generation, commit)| (generation, &commit.changes))
    }

    /// The changes after a generation, up to the working root.
    fn changes_since(&self, generation: u64) -> Result<Vec<Numbered<M>>, IndexRefusal> {
        if self.replaced_at.is_some_and(|replaced| replaced > generation) {
            return Err(IndexRefusal::Stale);
        }
        let published = self.feed.since(generation).map_err(|_| IndexRefusal::Stale)?;
        let published = published.iter().map(|entry| (entry.generation, &entry.changes));
        // What is in flight may be published by now.
        let in_flight = self.in_flight_changes.iter().map(|(generation, changes)| (*generation, changes));
        let mut newest = generation;
        let mut changes = Vec::new();
        for (generation, change) in published.chain(in_flight).chain(self.prepared_changes()) {
            if generation == newest + 1 {
                newest = generation;
                changes.push((generation, Arc::clone(change)));
            }
        }
        if newest == self.root.generation() { Ok(changes) } else { Err(IndexRefusal::Stale) }
    }

    /// Makes up for what the indexes lack.
    fn catch_up(&self, indexes: &mut [IndexBuilder<M>]) -> Result<(), IndexRefusal> {
        let Some(oldest) = indexes.iter().map(IndexBuilder::generation).min() else { return Ok(()) };
        let changes = self.changes_since(oldest)?;
        let lacking = |index: &IndexBuilder<M>| {
            let changes = changes.iter().filter(|(generation, _)| *generation > index.generation());
            changes
                .map(|(_, changes)| changes.table(index.table()).map_or(0, |table| table.records.len()))
                .sum::<usize>()
        };
        if indexes.iter().map(lacking).sum::<usize>() > CATCH_UP_RECORDS_MAX {
            return Err(IndexRefusal::TooFar);
        }
        for index in indexes {
            for (generation, changes) in &changes {
                index.follow(*generation, changes);
            }
        }
        Ok(())
    }

    fn push(&mut self, commit: Commit<M>, durable: bool, answer: Answer) {
        let prepared = &mut self.prepared;
        prepared.bytes += commit.changes.bytes();
        prepared.commits.push(commit);
        prepared.durable |= durable;
        prepared.answers.push((self.root.generation(), answer));
    }
}

impl<M: Model> Batch<'_, M> {
    /// The state after everything committed so far, published or not. Draft on this.
    pub fn root(&self) -> &Root<M> {
        &self.working.root
    }

    /// Whether commits are refused until the database is reopened.
    pub fn is_read_only(&self) -> bool {
        self.working.read_only
    }

    /// Commits changes that were drafted on [`root`](Self::root), which has them from now on.
    ///
    /// The answer comes once they are published, and durable if that is asked for. Changes that are empty need no
    /// commit; their answer comes as by [`answer`](Self::answer).
    pub fn commit(
        &mut self,
        changes: impl Into<Arc<ChangeSet<M>>>,
        note: impl Into<Arc<M::Note>>,
        durable: bool,
        answer: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let changes = changes.into();
        if changes.is_empty() {
            return self.answer(answer);
        }
        if self.working.read_only {
            return answer(Outcome::ReadOnly);
        }
        let root = &mut self.working.root;
        root.apply(&changes);
        root.set_generation(root.generation() + 1);
        self.working.push(Commit { changes, note: note.into(), root: None }, durable, Box::new(answer));
    }

    /// Commits another meta for the same records, as by [`Root::with_meta`].
    pub fn set_meta(
        &mut self,
        meta: Arc<M::Meta>,
        note: impl Into<Arc<M::Note>>,
        durable: bool,
        answer: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let root = self.working.root.with_meta(meta);
        self.exchange(root, note.into(), durable, Box::new(answer));
    }

    /// Commits another meta for the same records, with indexes that were built aside, as by [`Root::with_indexes`].
    ///
    /// The indexes may lack what was committed since they were built or caught up last; this makes up for up to
    /// [`CATCH_UP_RECORDS_MAX`] changed records, and costs nothing else that grows. What the meta says of these indexes
    /// must be what their own meta says. Indexes that are no more are freed elsewhere.
    ///
    /// # Errors
    /// Nothing was committed, the answer is dropped, and the indexes come back: see [`IndexRefusal`].
    pub fn set_meta_with(
        &mut self,
        meta: Arc<M::Meta>,
        mut indexes: Vec<IndexBuilder<M>>,
        note: impl Into<Arc<M::Note>>,
        durable: bool,
        answer: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<(), RefusedIndexes<M>> {
        if let Err(reason) = self.working.catch_up(&mut indexes) {
            return Err(RefusedIndexes { reason, indexes });
        }
        let root = self.working.root.with_indexes(meta, indexes)?;
        self.exchange(root, note.into(), durable, Box::new(answer));
        Ok(())
    }

    /// Commits another state of everything, records and meta. Followers of the feed have to start over.
    ///
    /// The root given may have any generation; it gets the next one.
    pub fn replace(
        &mut self,
        root: Root<M>,
        note: impl Into<Arc<M::Note>>,
        durable: bool,
        answer: impl FnOnce(Outcome) + Send + 'static,
    ) {
        if self.exchange(root, note.into(), durable, Box::new(answer)) {
            self.working.prepared.replaced = Some(self.working.prepared.commits.len() - 1);
            self.working.replaced_at = Some(self.working.root.generation());
        }
    }

    /// Answers once everything committed so far is published: for results that were read from [`root`](Self::root).
    ///
    /// The outcome is `Committed` with the working generation, or the failure of what the answer relied on. If nothing
    /// is outstanding the function is called at once.
    pub fn answer(&mut self, answer: impl FnOnce(Outcome) + Send + 'static) {
        let generation = self.working.root.generation();
        if self.working.is_clean() {
            answer(Outcome::Committed { generation });
        } else {
            self.working.prepared.answers.push((generation, Box::new(answer)));
        }
    }

    /// Asks for a compaction of the journal, which runs beside the commits.
    pub fn compact(&mut self, answer: impl FnOnce(CompactionOutcome) + Send + 'static) {
        self.working.compactions.push(Box::new(answer));
    }

    fn exchange(&mut self, mut root: Root<M>, note: Arc<M::Note>, durable: bool, answer: Answer) -> bool {
        if self.working.read_only {
            answer(Outcome::ReadOnly);
            return false;
        }
        root.set_generation(self.working.root.generation() + 1);
        self.working.root = root.clone();
        let commit = Commit { changes: Arc::new(ChangeSet::empty()), note, root: Some(Arc::new(root)) };
        self.working.prepared.exchanged = true;
        self.working.push(commit, durable, answer);
        true
    }
}
