//! A database being served: its committer, its published root, its history.

use crate::dump::Dumps;
use crate::host::{CommitHost, Job};
use crate::locks::Locks;
use cowslip_engine::{Closed, Feed, Journal, Pipeline, PipelineOptions, Root, Uuid};
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use std::io;
use std::sync::Arc;
use tokio::sync::watch;

/// A database being served.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) pipeline: Pipeline<Ovsdb, CommitHost>,
    /// Whether clients may only read: `_Server`.
    pub(crate) is_read_only: bool,
    pub(crate) dumps: Dumps,
    /// The generation at which this process took over: what is not stored was lost before it.
    pub(crate) first_generation: u64,
}

impl Database {
    /// Begins to serve a root whose latest changes are in `feed`; `published` is told of each new state.
    pub(crate) fn start<J: Journal<Ovsdb>>(
        root: Root<Ovsdb>,
        feed: Feed<Ovsdb>,
        journal: J,
        locks: Arc<Locks>,
        is_read_only: bool,
        published: watch::Sender<u64>,
    ) -> io::Result<Self> {
        let name = root.meta().name.to_string();
        let first_generation = root.generation();
        feed.on_publish(Box::new(move |_| published.send_modify(|count| *count += 1)));
        let options = PipelineOptions { name: name.clone(), ..PipelineOptions::default() };
        let pipeline = Pipeline::start(root, feed, journal, CommitHost::new(locks), options)?;
        Ok(Database { name, pipeline, is_read_only, dumps: Dumps::default(), first_generation })
    }

    /// The newest published root.
    pub(crate) fn root(&self) -> Arc<Root<Ovsdb>> {
        self.pipeline.publication().current()
    }

    /// The schema of the newest published root.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.root().meta().clone()
    }

    /// The newest published root with the id of its state.
    pub(crate) fn snapshot(&self) -> (Arc<Root<Ovsdb>>, Uuid) {
        let feed = self.pipeline.feed();
        loop {
            let root = self.root();
            if let Some(position) = feed.position_at(root.generation()) {
                return (root, position);
            }
            // A commit is being published right now: the feed gets it, or has forgotten it already for a later one.
            std::thread::yield_now();
        }
    }

    /// Gives the committer something to do, here if it is sure to take little time.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Closed> {
        match &job {
            Job::Transact(submitted) if !submitted.transaction.is_quick => self.pipeline.enqueue(job),
            _ => self.pipeline.submit(job),
        }
    }
}
