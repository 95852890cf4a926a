//! Who runs the committer: whoever has something for it and finds it idle.
//!
//! A small job that comes alone runs on the thread that submits it, without waking another one: that halves the cost of a
//! small transaction. A thread that finds the committer busy leaves its message and goes; the one that runs it looks again
//! before it stops. When more than [`INLINE_PENDING_MAX`] messages wait, or after [`TURNS_MAX`] turns, the committer's own
//! thread takes over, so that no submitter works for the others for long; that thread also runs what may be large, wakes
//! for deadlines, and ends everything.
//!
//! Invariants: one thread at a time runs the committer; a posted message is taken by the thread that runs it, or by the one
//! that posted it. The count of pending messages is raised before a message is posted and the committer's lock is tried
//! after; the runner releases the lock before it reads the count. So one of the two sees the other.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use super::Closed;

/// How many turns in a row a thread that submits may take.
const TURNS_MAX: usize = 4;

/// How many messages may wait for a thread that submits to still run them.
const INLINE_PENDING_MAX: usize = 4;

/// The committer, as far as running it goes.
pub(super) trait Committing: Send {
    /// Takes what has arrived and does what can be done now.
    fn turn(&mut self) -> Next;

    /// Ends the threads below.
    ///
    /// # Errors
    /// The last sync failed.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// What a turn leaves to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Next {
    /// When a turn is due even if nothing arrives.
    pub(super) deadline: Option<Instant>,
    /// Everything is done, and nothing more will be.
    pub(super) is_done: bool,
}

/// Where messages for the committer are left.
pub(super) struct Mailbox<T> {
    sender: Sender<T>,
    pending: Arc<AtomicUsize>,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), pending: Arc::clone(&self.pending) }
    }
}

impl<T> Mailbox<T> {
    /// Leaves a message. Whoever does so drives the turns next.
    pub(super) fn post(&self, message: T) -> Result<(), Closed> {
        self.pending.fetch_add(1, Ordering::SeqCst);
        self.sender.send(message).map_err(|_| {
            self.pending.fetch_sub(1, Ordering::SeqCst);
            Closed
        })
    }
}

/// The messages left.
pub(super) struct Arrivals<T> {
    receiver: Receiver<T>,
    pending: Arc<AtomicUsize>,
}

impl<T> Arrivals<T> {
    /// The next message, if one is there.
    pub(super) fn take(&self) -> Option<T> {
        let message = self.receiver.try_recv().ok()?;
        self.pending.fetch_sub(1, Ordering::SeqCst);
        Some(message)
    }
}

/// A mailbox and its two ends.
pub(super) fn mailbox<T>() -> (Mailbox<T>, Arrivals<T>) {
    let (sender, receiver) = channel();
    let pending = Arc::new(AtomicUsize::new(0));
    (Mailbox { sender, pending: Arc::clone(&pending) }, Arrivals { receiver, pending })
}

/// The committer and whose turn it is.
pub(super) struct Turns {
    core: Mutex<Core>,
    pending: Arc<AtomicUsize>,
    alarm: Mutex<Alarm>,
    rang: Condvar,
}

#[derive(Default)]
struct Core {
    committer: Option<Box<dyn Committing>>,
    /// What the alarm was set to last.
    next: Next,
}

/// What the committer's own thread waits for.
#[derive(Default)]
struct Alarm {
    next: Next,
    is_handed_over: bool,
}

impl Turns {
    /// Turns without a committer yet: see [`begin`](Self::begin).
    pub(super) fn new<T>(mailbox: &Mailbox<T>) -> Self {
        Self {
            core: Mutex::default(),
            pending: Arc::clone(&mailbox.pending),
            alarm: Mutex::default(),
            rang: Condvar::new(),
        }
    }

    /// Puts the committer in.
    pub(super) fn begin(&self, committer: Box<dyn Committing>) {
        locked(&self.core).committer = Some(committer);
    }

    /// Runs the committer here while messages are pending, unless another thread does.
    pub(super) fn drive(&self) {
        for _ in 0..TURNS_MAX {
            if self.pending.load(Ordering::SeqCst) > INLINE_PENDING_MAX {
                break;
            }
            let core = match self.core.try_lock() {
                Ok(core) => core,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            if !self.turn(core) || self.pending.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
        self.hand_over();
    }

    /// Has the committer's own thread run what is pending.
    pub(super) fn hand_over(&self) {
        locked(&self.alarm).is_handed_over = true;
        self.rang.notify_one();
    }

    /// One turn. The alarm is set while the committer is locked, so that the last turn's word counts.
    /// False if there is no committer any more.
    fn turn(&self, mut core: MutexGuard<'_, Core>) -> bool {
        let Some(committer) = &mut core.committer else { return false };
        let next = catch_unwind(AssertUnwindSafe(|| committer.turn()));
        let next = next.unwrap_or_else(|_| {
            // The protocol's part panicked: the state is not to be trusted, the pipeline is closed.
            core.committer = None;
            Next { deadline: None, is_done: true }
        });
        if core.next != next {
            core.next = next;
            locked(&self.alarm).next = next;
            self.rang.notify_one();
        }
        core.committer.is_some()
    }

    /// The committer's own thread.
    ///
    /// # Errors
    /// The last sync failed, or the protocol's part panicked.
    pub(super) fn run(&self) -> io::Result<()> {
        while self.wait() {
            while self.turn(locked(&self.core)) && self.pending.load(Ordering::SeqCst) > 0 {}
        }
        let committer = locked(&self.core).committer.take();
        committer.map_or_else(|| Err(io::Error::other("the committer panicked")), Committing::finish)
    }

    /// Waits until a turn is due; false if there is to be none any more.
    fn wait(&self) -> bool {
        let mut alarm = locked(&self.alarm);
        loop {
            if alarm.next.is_done {
                return false;
            }
            if std::mem::take(&mut alarm.is_handed_over) {
                return true;
            }
            alarm = match alarm.next.deadline {
                None => self.rang.wait(alarm).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return true;
                    }
                    self.rang.wait_timeout(alarm, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
