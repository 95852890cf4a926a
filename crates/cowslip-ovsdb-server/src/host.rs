//! What a database's committer does with a transaction: executes it on the working root, commits what it changes, and
//! parks it if a `wait` does not hold yet.
//!
//! Parked transactions are tried again inside the batch, in the order of their arrival, after each applied transaction
//! that touched the table that their `wait` looks at; one may wake the next. Their time running out, a `cancel` and the
//! end of their session remove them.
//!
//! Invariant: a submitted transaction is answered exactly once, unless its session has ended.

use crate::locks::Locks;
use crate::session::{Event, EventSender, SessionId};
use cowslip_engine::{Batch, ChangeSet, Host, Outcome, TableIx};
use cowslip_ovsdb::error::{Error, ErrorKind};
use cowslip_ovsdb::executor::{self, Circumstances, Everything, Execution};
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::row::{Note, Ovsdb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most transactions of one database that may wait at once.
pub const PARKED_MAX: usize = 10_000;

/// The most of them that one session may have: each is tried again after each commit to its table.
pub const PARKED_PER_SESSION_MAX: usize = 500;

/// Work for the committer.
pub(crate) enum Job {
    /// Executes a transaction.
    Transact(Box<Submitted>),
    /// Drops a parked transaction of a session.
    Cancel {
        /// The session.
        session: SessionId,
        /// The session's number of the request.
        request: u64,
    },
    /// A session has ended: drops what it has parked.
    End(SessionId),
    /// The database goes away: cancels what is parked.
    Close,
}

/// A transaction on its way.
pub(crate) struct Submitted {
    /// Whose it is.
    pub(crate) session: SessionId,
    /// The session's number of the request.
    pub(crate) request: u64,
    /// What to do.
    pub(crate) transaction: Transaction,
    /// Where the answer goes, until it has gone there.
    pub(crate) events: Option<EventSender>,
    /// Set when the session ends: what is not started then is dropped.
    pub(crate) ended: Arc<AtomicBool>,
    /// When it came.
    pub(crate) arrived: Instant,
    /// Whether it may not write.
    pub(crate) read_only: bool,
}

/// What a session is told of its transaction.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It ran; its results as of this generation.
    Executed { outcome: executor::Outcome, generation: u64 },
    /// It ran, and its changes could not be stored.
    NotStored(Error),
    /// It was canceled while it waited.
    Canceled,
}

struct Parked {
    submitted: Box<Submitted>,
    deadline: Option<Instant>,
    table: TableIx,
}

/// The committer's part that knows OVSDB.
pub(crate) struct CommitHost {
    locks: Arc<Locks>,
    /// In order of arrival.
    parked: Vec<Parked>,
}

impl CommitHost {
    pub(crate) fn new(locks: Arc<Locks>) -> Self {
        CommitHost { locks, parked: Vec::new() }
    }

    /// Executes a transaction; gives back what it changed, or the transaction if it has to wait.
    fn attempt(&self, submitted: Box<Submitted>, batch: &mut Batch<'_, Ovsdb>) -> Attempt {
        if submitted.ended.load(Ordering::Acquire) {
            return Attempt::Over;
        }
        let session = submitted.session;
        let owns_lock = |name: &str| self.locks.owns(name, session);
        let circumstances = Circumstances {
            owns_lock: &owns_lock,
            read_only: submitted.read_only,
            waited_ms: submitted.arrived.elapsed().as_millis() as u64,
        };
        let root = batch.root();
        if !Arc::ptr_eq(root.meta(), &submitted.transaction.schema) {
            // The database was converted after the request was parsed; its numbers mean other tables now.
            let error = Error::new(ErrorKind::Aborted, "the schema has changed");
            submitted.answer(Answer::NotStored(error));
            return Attempt::Over;
        }
        match executor::execute(root, &submitted.transaction, &Everything, &circumstances) {
            Execution::Waiting { timeout_ms, table } => {
                let deadline =
                    timeout_ms.and_then(|ms| submitted.arrived.checked_add(Duration::from_millis(ms)));
                Attempt::Waits(Parked { submitted, deadline, table })
            }
            Execution::Done(mut outcome) => {
                let changes = Arc::new(std::mem::replace(&mut outcome.changes, ChangeSet::empty()));
                let durable = outcome.error.is_none() && submitted.transaction.is_durable();
                let note = Note { comment: submitted.transaction.comment() };
                let touched = changes.clone();
                batch.commit(changes, note, durable, move |stored| submitted.settle(outcome, stored));
                Attempt::Applied(touched)
            }
        }
    }

    /// Tries the parked transactions that `changes` may have made ready, and those that their changes make ready.
    fn wake(&mut self, changes: Arc<ChangeSet<Ovsdb>>, batch: &mut Batch<'_, Ovsdb>) {
        let mut changed = vec![changes];
        while let Some(changes) = changed.pop() {
            for parked in self.take_parked() {
                if changes.table(parked.table).is_none() {
                    self.parked.push(parked);
                    continue;
                }
                match self.attempt(parked.submitted, batch) {
                    Attempt::Waits(parked) => self.parked.push(parked),
                    Attempt::Applied(more) if !more.is_empty() => changed.push(more),
                    Attempt::Applied(_) | Attempt::Over => {}
                }
            }
        }
    }

    /// All that is parked, to be tried in order; what goes on waiting is pushed back.
    fn take_parked(&mut self) -> Vec<Parked> {
        let room = Vec::with_capacity(self.parked.len());
        std::mem::replace(&mut self.parked, room)
    }
}

impl CommitHost {
    /// Why no more transactions of a session may wait.
    fn refusal(&self, session: SessionId) -> Option<Error> {
        let of_session = || self.parked.iter().filter(|p| p.submitted.session == session).count();
        let details = if self.parked.len() >= PARKED_MAX {
            format!("more than {PARKED_MAX} transactions are waiting")
        } else if of_session() >= PARKED_PER_SESSION_MAX {
            format!("more than {PARKED_PER_SESSION_MAX} transactions of this session are waiting")
        } else {
            return None;
        };
        Some(Error::new(ErrorKind::ResourcesExhausted, details))
    }
}

enum Attempt {
    Applied(Arc<ChangeSet<Ovsdb>>),
    Waits(Parked),
    Over,
}

impl Submitted {
    fn answer(mut self, answer: Answer) {
        self.send(answer);
    }

    fn send(&mut self, answer: Answer) {
        if let Some(events) = self.events.take() {
            events.send(Event::Answered { request: self.request, answer });
        }
    }

    fn settle(self, outcome: executor::Outcome, stored: Outcome) {
        let failed = |details: String| Answer::NotStored(Error::new(ErrorKind::Io, details));
        self.answer(match stored {
            Outcome::Committed { generation } => Answer::Executed { outcome, generation },
            Outcome::Failed { reason } => failed(format!("the transaction could not be written: {reason}")),
            Outcome::Unknown { reason } => {
                failed(format!("it is not known whether the transaction was written: {reason}"))
            }
            _ => failed("the database is read-only since a failed write; restart the server".to_string()),
        });
    }
}

impl Drop for Submitted {
    /// What a committer that ends leaves undone is answered all the same: a client must not wait for ever.
    fn drop(&mut self) {
        let details = "the database was shut down; it is not known whether the transaction was written";
        if self.events.is_some() && !self.ended.load(Ordering::Acquire) {
            tracing::error!(
                "a transaction was dropped: the database is shut down, or its committer has failed"
            );
        }
        self.send(Answer::NotStored(Error::new(ErrorKind::Io, details)));
    }
}

impl Host<Ovsdb> for CommitHost {
    type Job = Job;

    fn run(&mut self, job: Job, batch: &mut Batch<'_, Ovsdb>) {
        match job {
            Job::Transact(submitted) => match self.attempt(submitted, batch) {
                Attempt::Applied(changes) if !changes.is_empty() && !self.parked.is_empty() => {
                    self.wake(changes, batch);
                }
                Attempt::Waits(parked) => match self.refusal(parked.submitted.session) {
                    Some(error) => parked.submitted.answer(Answer::NotStored(error)),
                    None => self.parked.push(parked),
                },
                Attempt::Applied(_) | Attempt::Over => {}
            },
            Job::Cancel { session, request } => {
                let is_it = |p: &Parked| (p.submitted.session, p.submitted.request) == (session, request);
                if let Some(at) = self.parked.iter().position(is_it) {
                    self.parked.remove(at).submitted.answer(Answer::Canceled);
                }
            }
            Job::End(session) => self.parked.retain(|p| p.submitted.session != session),
            Job::Close => {
                for parked in self.parked.drain(..) {
                    parked.submitted.answer(Answer::Canceled);
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.parked.iter().filter_map(|p| p.deadline).min()
    }

    fn tick(&mut self, now: Instant, batch: &mut Batch<'_, Ovsdb>) {
        for parked in self.take_parked() {
            if parked.deadline.is_none_or(|deadline| deadline > now) {
                self.parked.push(parked);
            } else if let Attempt::Waits(parked) = self.attempt(parked.submitted, batch) {
                self.parked.push(parked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_ovsdb::schema::Schema;
    use tokio::sync::mpsc;

    #[test]
    fn what_a_committer_leaves_undone_is_answered_once() {
        let schema = Arc::new(Schema::parse(br#"{"name":"D","tables":{}}"#).expect("a schema"));
        let (sender, mut answers) = mpsc::unbounded_channel();
        let submitted = || Submitted {
            session: SessionId(1),
            request: 7,
            transaction: Transaction::parse(&schema, &[]),
            events: Some(EventSender::new(sender.clone())),
            ended: Arc::default(),
            arrived: Instant::now(),
            read_only: false,
        };
        drop(submitted());
        let lost = answers.try_recv();
        assert!(matches!(lost, Ok(Event::Answered { request: 7, answer: Answer::NotStored(_) })), "{lost:?}");
        submitted().answer(Answer::Canceled);
        let told = answers.try_recv();
        assert!(matches!(told, Ok(Event::Answered { request: 7, answer: Answer::Canceled })), "{told:?}");
        assert!(answers.try_recv().is_err(), "one answer each");
    }
}
