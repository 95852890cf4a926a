//! Locks (RFC 7047 sections 4.1.8 to 4.1.10): server-wide names, each with its owner and a queue behind it.
//!
//! Invariant: a session stands in a name's queue at most once; the first in the queue owns the lock.

use crate::session::{Event, EventSender, SessionId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most locks that one session may hold or wait for.
pub const LOCKS_PER_SESSION_MAX: usize = 1000;

/// All locks of a server.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    queues: Mutex<HashMap<String, VecDeque<Waiter>>>,
}

#[derive(Debug)]
struct Waiter {
    session: SessionId,
    events: EventSender,
}

impl Locks {
    fn queues(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Waiter>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a session that is not in the queue at its end; tells whether it owns the lock now.
    pub(crate) fn lock(&self, name: &str, session: SessionId, events: &EventSender) -> bool {
        let mut queues = self.queues();
        let queue = queues.entry(name.to_string()).or_default();
        queue.push_back(Waiter { session, events: events.clone() });
        queue.len() == 1
    }

    /// Puts a session that is not in the queue at its head; the owner so far is told and comes next.
    pub(crate) fn steal(&self, name: &str, session: SessionId, events: &EventSender) {
        let mut queues = self.queues();
        let queue = queues.entry(name.to_string()).or_default();
        if let Some(owner) = queue.front() {
            owner.events.send(Event::Stolen(name.to_string()));
        }
        queue.push_front(Waiter { session, events: events.clone() });
    }

    /// Takes a session out of the queue; if it owned the lock, the next owner is told.
    pub(crate) fn unlock(&self, name: &str, session: SessionId) {
        let mut queues = self.queues();
        let Some(queue) = queues.get_mut(name) else { return };
        let owned = queue.front().is_some_and(|w| w.session == session);
        queue.retain(|w| w.session != session);
        match queue.front() {
            None => {
                queues.remove(name);
            }
            Some(next) if owned => next.events.send(Event::Locked(name.to_string())),
            Some(_) => {}
        }
    }

    /// Whether a session owns a lock.
    pub(crate) fn owns(&self, name: &str, session: SessionId) -> bool {
        self.queues().get(name).and_then(|q| q.front()).is_some_and(|w| w.session == session)
    }
}
