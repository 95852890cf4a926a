//! Where superseded roots and change sets are freed.
//!
//! Freeing a large replaced version takes long (half a second for a million records), so it happens on one thread of
//! its own; only what a small batch superseded and nobody else has is freed where that batch was committed. Invariant: this
//! thread keeps whatever it was given until nobody else owns it; hence no other thread ever frees more than about what a
//! small batch allocated.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::change::ChangeSet;
use crate::feed::Entry;
use crate::model::Model;
use crate::root::Root;

/// How many deliveries may wait to be freed before the committer waits: freeing must not fall behind for ever.
const DELIVERIES_WAITING_MAX: usize = 4096;

/// How long the thread lets deliveries gather: while it does not wait for one, delivering wakes nobody up.
const GATHERING: Duration = Duration::from_millis(5);

/// How long the thread waits before it looks again at what others still own.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Something superseded that others may still be reading.
pub enum Retired<M: Model> {
    /// A root that is no longer the newest.
    Root(Arc<Root<M>>),
    /// An entry that the feed dropped.
    Entry(Arc<Entry<M>>),
    /// A change set that was applied and is in no feed.
    Changes(Arc<ChangeSet<M>>),
}

impl<M: Model> Retired<M> {
    /// Whether nobody else has it, so that dropping it frees it.
    pub(crate) fn is_last_owner(&self) -> bool {
        match self {
            Self::Root(root) => Arc::strong_count(root) == 1,
            Self::Entry(entry) => Arc::strong_count(entry) == 1,
            Self::Changes(changes) => Arc::strong_count(changes) == 1,
        }
    }
}

/// The reclaiming thread. Dropping this ends the thread once all that was delivered is freed or has other owners.
pub struct Reclaimer<M: Model> {
    deliveries: Option<SyncSender<Vec<Retired<M>>>>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Model> Reclaimer<M> {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system refused a thread.
    pub fn start(name: &str) -> io::Result<Self> {
        let (deliveries, arrivals) = sync_channel(DELIVERIES_WAITING_MAX);
        let thread =
            thread::Builder::new().name(format!("{name}-reclaim")).spawn(move || reclaim(&arrivals))?;
        Ok(Self { deliveries: Some(deliveries), thread: Some(thread) })
    }

    /// Hands over what was superseded.
    pub fn retire(&self, retired: Vec<Retired<M>>) {
        if retired.is_empty() {
            return;
        }
        // The thread ends only after the sender is gone, so this fails only if it panicked in a value's `drop`; then
        // the value is freed here.
        if let Some(deliveries) = &self.deliveries {
            let _ = deliveries.send(retired);
        }
    }
}

impl<M: Model> Drop for Reclaimer<M> {
    fn drop(&mut self) {
        self.deliveries = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn reclaim<M: Model>(arrivals: &Receiver<Vec<Retired<M>>>) {
    let mut held: Vec<Retired<M>> = Vec::new();
    loop {
        let arrived = if held.is_empty() {
            arrivals.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            arrivals.recv_timeout(LOOK_AGAIN)
        };
        match arrived {
            Ok(retired) => {
                held.extend(retired);
                thread::sleep(GATHERING);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Ok(retired) = arrivals.try_recv() {
            held.extend(retired);
        }
        held.retain(|retired| !retired.is_last_owner());
    }
}
