//! The commit pipeline: one committer per database, which makes many small transactions cost one write.
//!
//! Whoever wants something changed submits a job. The committer takes all that waits, lets the protocol's [`Host`] run
//! each job on the working root, appends what they committed as one batch, syncs once if any of it asked for that,
//! publishes one root, feeds the feed and then answers. A batch that must be synced goes to a thread that writes, and the
//! next batch is prepared while it syncs; no timer waits for a batch to fill. The committer is a role, not a thread: a
//! job that finds it idle is run by the thread that submits it (see `turns`).
//!
//! Invariants: batches are appended, published and answered in the order of their preparation; no answer leaves before
//! everything it may rely on is published; a batch that failed, and all that was prepared on it, leaves nothing.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::feed::Feed;
use crate::journal::Journal;
use crate::model::Model;
use crate::publication::{Publication, Reader};
use crate::reclaim::Reclaimer;
use crate::root::Root;

pub use batch::Batch;
use committer::{Committer, Drive, Message};
use sink::Sink;
use turns::{Mailbox, Turns, mailbox};

mod batch;
mod committer;
mod sink;
mod turns;

/// The protocol's part of the pipeline: part of the committer, run by one thread at a time.
pub trait Host<M: Model>: Send + 'static {
    /// What sessions submit.
    type Job: Send + 'static;

    /// Runs one job, whose work must be bounded: everybody waits for it.
    fn run(&mut self, job: Self::Job, batch: &mut Batch<'_, M>);

    /// When [`tick`](Self::tick) wants to be called. Asked after each job and tick.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Does what had to wait until now, and moves the deadline.
    fn tick(&mut self, now: Instant, batch: &mut Batch<'_, M>) {
        let _ = (now, batch);
    }

    /// The working root went back to the published one: commits that were not answered yet never happened.
    fn reset(&mut self) {}
}

/// What became of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is published, and durable if that was asked for.
    Committed {
        /// The generation from which on roots have it.
        generation: u64,
    },
    /// It was not written, or was prepared on something that was not. Nothing of it is left.
    Failed {
        /// What went wrong.
        reason: Arc<str>,
    },
    /// It may or may not be there when the database is reopened; until then it is not visible.
    Unknown {
        /// What went wrong.
        reason: Arc<str>,
    },
    /// The database takes no commits until it is reopened, because the fate of an earlier one is unknown.
    ReadOnly,
}

/// What became of a compaction that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// The journal holds a snapshot and what came after.
    Done,
    /// The journal goes on as it was.
    Failed {
        /// What went wrong.
        reason: Arc<str>,
    },
}

/// The function that gets an outcome. It runs on a thread of the pipeline and should only pass the word on.
pub(crate) type Answer = Box<dyn FnOnce(Outcome) + Send>;
pub(crate) type CompactionAnswer = Box<dyn FnOnce(CompactionOutcome) + Send>;

/// Sizes and names of a pipeline.
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// Names the threads.
    pub name: String,
    /// How many jobs at most go into one batch, so that the first need not wait for ever.
    pub jobs_per_batch_max: usize,
    /// At how many bytes of changes, as [`ChangeSet::bytes`](crate::ChangeSet::bytes) estimates them, a batch is full.
    pub batch_bytes_max: usize,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self { name: "cowslip".to_owned(), jobs_per_batch_max: 1024, batch_bytes_max: 16 << 20 }
    }
}

/// The pipeline has been shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the database has been shut down")
    }
}

impl std::error::Error for Closed {}

/// The way into a database: submit jobs, read roots, follow the feed. Clones share it.
///
/// If a host's job panics, the committer ends: nothing further is committed or answered, and submitting gives
/// [`Closed`].
pub struct Pipeline<M: Model, H: Host<M>> {
    shared: Arc<Shared<M, H>>,
}

struct Shared<M: Model, H: Host<M>> {
    messages: Mailbox<Message<M, H>>,
    turns: Arc<Turns>,
    publication: Arc<Publication<M>>,
    feed: Arc<Feed<M>>,
    committer: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

impl<M: Model, H: Host<M>> Shared<M, H> {
    fn send(&self, message: Message<M, H>) -> Result<(), Closed> {
        self.messages.post(message)?;
        self.turns.drive();
        Ok(())
    }
}

impl<M: Model, H: Host<M>> Drop for Shared<M, H> {
    fn drop(&mut self) {
        // If it is closed, it has stopped already.
        let _ = self.send(Message::Stop);
    }
}

impl<M: Model, H: Host<M>> Clone for Pipeline<M, H> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M: Model, H: Host<M>> fmt::Debug for Pipeline<M, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("feed", &self.shared.feed).finish_non_exhaustive()
    }
}

impl<M: Model, H: Host<M>> Pipeline<M, H> {
    /// Starts the threads of a database whose state was read from its journal.
    ///
    /// The feed must go up to the root's generation.
    ///
    /// # Errors
    /// The operating system refused a thread.
    pub fn start<J: Journal<M>>(
        root: Root<M>,
        feed: Feed<M>,
        journal: J,
        host: H,
        options: PipelineOptions,
    ) -> io::Result<Self> {
        debug_assert_eq!(root.generation(), feed.newest(), "the feed goes up to the root");
        let (messages, arrivals) = mailbox();
        let turns = Arc::new(Turns::new(&messages));
        let publication = Arc::new(Publication::new(Arc::new(root.clone())));
        let feed = Arc::new(feed);
        let reclaimer = Reclaimer::start(&options.name)?;
        let sink = Sink::new(journal, Arc::clone(&publication), Arc::clone(&feed), reclaimer);
        let name = format!("{}-commit", options.name);
        let weak = Arc::downgrade(&turns);
        let drive: Drive = Arc::new(move || {
            if let Some(turns) = weak.upgrade() {
                turns.drive();
            }
        });
        let mail = (messages.clone(), arrivals);
        turns.begin(Box::new(Committer::new(root, host, sink, mail, drive, options)?));
        let own = Arc::clone(&turns);
        let committer = thread::Builder::new().name(name).spawn(move || own.run())?;
        let committer = Mutex::new(Some(committer));
        Ok(Self { shared: Arc::new(Shared { messages, turns, publication, feed, committer }) })
    }

    /// Queues a job, and runs it here if the committer is idle: for small ones. The number of jobs a peer may have queued
    /// is for its session to limit.
    ///
    /// # Errors
    /// The pipeline has been shut down.
    pub fn submit(&self, job: H::Job) -> Result<(), Closed> {
        self.send(Message::Job(job))
    }

    /// Queues a job that may take long: it runs on the committer's own thread.
    ///
    /// # Errors
    /// The pipeline has been shut down.
    pub fn enqueue(&self, job: H::Job) -> Result<(), Closed> {
        self.shared.messages.post(Message::Job(job))?;
        self.shared.turns.hand_over();
        Ok(())
    }

    /// Queues a function that runs between jobs: for control and inspection.
    ///
    /// # Errors
    /// The pipeline has been shut down.
    pub fn call(
        &self,
        function: impl FnOnce(&mut H, &mut Batch<'_, M>) + Send + 'static,
    ) -> Result<(), Closed> {
        self.send(Message::Call(Box::new(function)))
    }

    /// Asks for a compaction of the journal, which runs beside the commits.
    ///
    /// # Errors
    /// The pipeline has been shut down.
    pub fn compact(&self, answer: impl FnOnce(CompactionOutcome) + Send + 'static) -> Result<(), Closed> {
        self.send(Message::Compact(Box::new(answer)))
    }

    /// A reader of the published root; each worker should have its own.
    pub fn reader(&self) -> Reader<M> {
        self.shared.publication.reader()
    }

    /// The published root.
    pub fn publication(&self) -> &Arc<Publication<M>> {
        &self.shared.publication
    }

    /// The published commits.
    pub fn feed(&self) -> &Arc<Feed<M>> {
        &self.shared.feed
    }

    /// Runs all that was submitted before, makes it durable, and ends the threads. Not to be called from an answer or
    /// a job, which would wait for itself.
    ///
    /// # Errors
    /// The last sync failed: commits that did not ask for durability may be lost in a crash.
    pub fn shutdown(&self) -> io::Result<()> {
        let _ = self.send(Message::Stop);
        let committer = self.shared.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        match committer.map(JoinHandle::join) {
            Some(Ok(synced)) => synced,
            Some(Err(_)) => Err(io::Error::other("the committer panicked")),
            None => Ok(()),
        }
    }

    fn send(&self, message: Message<M, H>) -> Result<(), Closed> {
        self.shared.send(message)
    }
}
