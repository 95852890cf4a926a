//! A client's session: requests in, replies and updates out.
//!
//! A [`Session`] does no input or output itself: the [`driver`] gives it messages and events and sends what it leaves
//! in its [`Output`]. So the order of messages is decided here alone:
//!
//! * the reply to a transaction leaves after this session's monitors were sent up to the transaction's generation;
//! * a first reply of a monitor leaves before updates after its snapshot;
//! * while such a reply is made, only `echo` is answered; what else comes is held back and handled after it;
//! * before anything is answered, monitors are sent up to what is published.
//!
//! No session owns a queue of updates: it has a cursor in each database's history and takes everything from there to
//! now when its socket has room.

mod driver;
mod monitors;
mod output;
mod requests;
mod transact;

pub use monitors::MONITORS_MAX;
pub use output::OUTPUT_BYTES_MAX;
pub use requests::{HELD_BYTES_MAX, REQUEST_BYTES_OPEN_MAX, REQUESTS_OPEN_MAX};

pub(crate) use driver::run;

use crate::database::Database;
use crate::dump::Dump;
use crate::host::{Answer, Job};
use crate::server::Shared;
use cowslip_ovsdb::error::Error;
use cowslip_ovsdb::message::{write_error_reply, write_error_text_reply, write_notification, write_reply};
use monitors::{Beginning, Monitor};
use output::Output;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};

/// A session, by its number on this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub(crate) u64);

/// What happens to a session from elsewhere than its socket.
#[derive(Debug)]
pub(crate) enum Event {
    /// A transaction is done.
    Answered { request: u64, answer: Answer },
    /// A lock has become this session's.
    Locked(String),
    /// A lock was taken from this session.
    Stolen(String),
    /// A database was added.
    DatabaseAdded,
    /// A database is no longer served.
    DatabaseRemoved(Arc<Database>),
    /// The content for the first reply of a monitor is ready; none if its making failed.
    Dumped(Option<Arc<Dump>>),
}

/// Sends events to a session; they are lost when it has ended.
#[derive(Clone, Debug)]
pub(crate) struct EventSender(mpsc::UnboundedSender<Event>);

impl EventSender {
    pub(crate) fn new(sender: mpsc::UnboundedSender<Event>) -> Self {
        EventSender(sender)
    }

    pub(crate) fn send(&self, event: Event) {
        // A session that has ended has nobody to tell.
        let _ = self.0.send(event);
    }
}

/// Why a session ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Ended {
    #[error("the client closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("malformed input: {0}")]
    Malformed(String),
    #[error("no answer to a probe within {0} ms")]
    Silent(u64),
    #[error("the client is too far behind: its updates have left the history")]
    Behind,
    #[error("the set of databases has changed, which the client did not want to be told of")]
    DatabasesChanged,
    #[error("the content of the database could not be put together")]
    NoDump,
    #[error("the server is stopping")]
    Stopping,
}

/// A client's session.
pub(crate) struct Session {
    id: SessionId,
    shared: Arc<Shared>,
    output: Output,
    monitors: Vec<Monitor>,
    /// Locks owned or waited for.
    locks: Vec<String>,
    /// Transactions that are not answered yet: their ids as JSON text, and the database they are in.
    open: HashMap<u64, Open>,
    requests: u64,
    /// The bytes of the open transactions' requests.
    open_bytes: usize,
    /// A monitor whose first reply is being made.
    beginning: Option<Beginning>,
    /// What the client sent after that, to be handled when the reply has left.
    held: VecDeque<Vec<u8>>,
    held_bytes: usize,
    events: EventSender,
    arrivals: mpsc::UnboundedReceiver<Event>,
    ended: Arc<AtomicBool>,
    is_change_aware: bool,
    awaits_probe: bool,
}

struct Open {
    id: String,
    database: Arc<Database>,
    bytes: usize,
}

impl Session {
    fn new(id: SessionId, shared: Arc<Shared>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let events = EventSender::new(sender);
        shared.register(id, &events);
        Session {
            id,
            shared,
            output: Output::default(),
            monitors: Vec::new(),
            locks: Vec::new(),
            open: HashMap::new(),
            requests: 0,
            open_bytes: 0,
            beginning: None,
            held: VecDeque::new(),
            held_bytes: 0,
            events,
            arrivals: receiver,
            ended: Arc::default(),
            is_change_aware: false,
            awaits_probe: false,
        }
    }

    /// Takes all events that have come.
    fn take_events(&mut self) -> Result<(), Ended> {
        while let Ok(event) = self.arrivals.try_recv() {
            self.handle_event(event)?;
        }
        Ok(())
    }

    /// Waits until a database's committer has reached what this session sent before, and takes the answers: what comes
    /// next sees what was written, and its reply follows theirs. Transactions that wait for something are not waited for.
    async fn catch_up(&mut self, database: &Arc<Database>) -> Result<(), Ended> {
        if self.open.values().any(|open| Arc::ptr_eq(&open.database, database)) {
            let (reached, passed) = oneshot::channel();
            let mark = database.pipeline.call(move |_, batch| {
                batch.answer(move |_| {
                    // A session that has ended does not wait any more.
                    let _ = reached.send(());
                });
            });
            if mark.is_ok() {
                // An error means that the committer is gone; then there is nothing to wait for.
                let _ = passed.await;
            }
        }
        self.take_events()
    }

    /// Takes an event; updates that belong before its message are sent first.
    fn handle_event(&mut self, event: Event) -> Result<(), Ended> {
        self.flush_monitors()?;
        match event {
            Event::Answered { request, answer } => self.answered(request, answer),
            Event::Locked(name) if self.owns(&name) => self.notify_lock("locked", &name),
            Event::Stolen(name) if self.locks.contains(&name) && !self.owns(&name) => {
                self.notify_lock("stolen", &name);
            }
            // Unlocked meanwhile, and perhaps asked for again: the reply to that said how it stands.
            Event::Locked(_) | Event::Stolen(_) => {}
            // A client that does not know of changes to the set of databases learns by connecting anew.
            Event::DatabaseAdded | Event::DatabaseRemoved(_) if !self.is_change_aware => {
                return Err(Ended::DatabasesChanged);
            }
            Event::DatabaseAdded => {}
            Event::DatabaseRemoved(database) => self.cancel_monitors(&database),
            Event::Dumped(dump) => self.reply_dump(dump.ok_or(Ended::NoDump)?.as_ref()),
        }
        Ok(())
    }

    fn owns(&self, lock: &str) -> bool {
        self.shared.locks.owns(lock, self.id)
    }

    fn notify_lock(&mut self, method: &str, name: &str) {
        self.output.append(|out| {
            write_notification(out, method, |out| {
                out.push('[');
                cowslip_ovsdb::json::write_str(out, name);
                out.push(']');
            });
        });
    }

    fn reply(&mut self, id: &str, result: impl FnOnce(&mut String)) {
        self.output.append(|out| write_reply(out, id, result));
    }

    fn reply_error(&mut self, id: &str, error: &Error) {
        self.output.append(|out| write_error_reply(out, id, error));
    }

    fn reply_error_text(&mut self, id: &str, error: &str) {
        self.output.append(|out| write_error_text_reply(out, id, error));
    }
}

impl Drop for Session {
    /// Unstarted transactions go first, then the locks are passed on.
    fn drop(&mut self) {
        self.shared.forget(self.id);
        self.ended.store(true, Ordering::Release);
        let mut left: Vec<&Arc<Database>> = Vec::new();
        for Open { database, .. } in self.open.values() {
            if !left.iter().any(|known| Arc::ptr_eq(known, database)) {
                left.push(database);
                // A database that is gone has nothing of this session's any more.
                let _ = database.submit(Job::End(self.id));
            }
        }
        for name in &self.locks {
            self.shared.locks.unlock(name, self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Server, ServerOptions};

    fn sent(session: &Session) -> String {
        session.output.slices().iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect()
    }

    /// A word of a lock that was given up and asked for again meanwhile is about the past.
    #[tokio::test]
    async fn a_session_is_told_that_it_owns_a_lock_only_if_it_does() {
        let server = Server::start(ServerOptions::default()).await.expect("threads");
        let mut session = Session::new(SessionId(100), server.shared().clone());
        let mut other = Session::new(SessionId(101), server.shared().clone());
        let locks = server.shared().locks.clone();
        locks.lock("l", other.id, &other.events);
        locks.lock("l", session.id, &session.events);
        session.locks.push("l".to_owned());
        locks.unlock("l", other.id);
        // The word that the lock is its own is on its way.
        locks.unlock("l", session.id);
        locks.lock("l", other.id, &other.events);
        locks.lock("l", session.id, &session.events);
        session.take_events().expect("the session goes on");
        assert_eq!(sent(&session), "");
        locks.unlock("l", other.id);
        session.take_events().expect("the session goes on");
        assert!(sent(&session).contains("\"locked\""), "{}", sent(&session));

        other.locks.push("l".to_owned());
        locks.steal("l", other.id, &other.events);
        session.take_events().expect("the session goes on");
        assert!(sent(&session).contains("\"stolen\""), "{}", sent(&session));
        server.stop().await.expect("nothing to write");
    }
}
