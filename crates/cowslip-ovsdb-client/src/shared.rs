//! What a client's handles and its driver share.
//!
//! Readers take snapshots from the publication. Whoever sends takes the one lock here, under which validation, the
//! order of what is sent and what is in flight agree; the driver takes it to publish an update and to end a transaction.
//! Invariants: the snapshot under the lock is the published one; a transaction is in `in_flight` from the moment in
//! which its text is queued until its outcome is told.

use crate::connection::Connection;
use crate::error::{Duplicate, TransactError};
use crate::locks::Locks;
use crate::options::Options;
use crate::plan::{Known, Monitor};
use crate::results::Results;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::transaction::Transaction;
use crate::validation::{Changed, Guard};
use cowslip_engine::{
    ChangeSet, Entry, Feed, IndexKind, Publication, Reclaimer, Retired, Root, TableIx, Uuid,
};
use cowslip_ovsdb::row::{Note, Ovsdb};
use cowslip_ovsdb::schema::Schema;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, oneshot, watch};

/// How many reports of duplicate keys wait for a slow reader.
const DUPLICATES_WAITING_MAX: usize = 64;

/// What the driver tells the one who sent a transaction.
pub(crate) type Answer = Result<Results, TransactError>;

/// A transaction that waits for its reply.
pub(crate) struct InFlight {
    pub(crate) transaction: Arc<Transaction>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) changed: Changed,
    pub(crate) is_serialized: bool,
    /// Whether bytes of it may have left.
    pub(crate) is_sent: bool,
    pub(crate) answer: oneshot::Sender<Answer>,
    /// Given back with the reply, even if the caller has given up.
    pub(crate) _room: OwnedSemaphorePermit,
}

/// A transaction that cannot be sent yet.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) changed: Changed,
    pub(crate) is_serialized: bool,
}

/// What the driver is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// The filters have changed.
    Conditions,
    /// The monitor has changed.
    Monitor,
    /// The cache is not to be trusted.
    Resync,
    Lock {
        name: String,
        steals: bool,
    },
    Unlock {
        name: String,
    },
}

/// What is under the lock.
pub(crate) struct Inner {
    pub(crate) snapshot: Snapshot,
    pub(crate) is_live: bool,
    pub(crate) is_closed: bool,
    /// Whether there was a first dump.
    pub(crate) is_synchronised: bool,
    pub(crate) monitor: Monitor,
    pub(crate) next_ticket: u64,
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    pub(crate) in_flight: BTreeMap<u64, InFlight>,
    pub(crate) queue: VecDeque<(u64, String)>,
    pub(crate) commands: VecDeque<Command>,
    pub(crate) conditions_requested: u64,
}

/// What handles and driver share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) publication: Arc<Publication<Ovsdb>>,
    pub(crate) feed: Feed<Ovsdb>,
    known: Mutex<Arc<Known>>,
    known_version: AtomicU64,
    inner: Mutex<Inner>,
    pub(crate) state: watch::Sender<State>,
    pub(crate) published: watch::Sender<u64>,
    /// The number of the last change of conditions that the server has acknowledged.
    pub(crate) conditions: watch::Sender<u64>,
    pub(crate) locks: Arc<Locks>,
    pub(crate) duplicates: broadcast::Sender<Duplicate>,
    /// Wakes the driver.
    pub(crate) wake: Arc<Notify>,
    /// The client's place on its connection.
    pub(crate) place: u32,
    /// Wakes those who wait for something in flight to end.
    pub(crate) ended: Notify,
    pub(crate) room: Arc<Semaphore>,
    pub(crate) statistics: Statistics,
    reclaimer: Reclaimer<Ovsdb>,
}

/// Counts since the client was made.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) updates: AtomicU64,
    pub(crate) impossible: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) validated: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) waited: AtomicU64,
}

impl Statistics {
    /// Counts one more, for the client's own count and for the process's metrics.
    pub(crate) fn count(counter: &AtomicU64, name: &'static str) {
        counter.fetch_add(1, Ordering::Relaxed);
        metrics::counter!(name).increment(1);
    }
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        root: Root<Ovsdb>,
        reclaimer: Reclaimer<Ovsdb>,
        connection: &Connection,
        place: u32,
    ) -> Self {
        let root = Arc::new(root);
        let known = Arc::new(Known::default());
        let inner = Inner {
            snapshot: Snapshot { root: root.clone(), known: known.clone() },
            is_live: false,
            is_closed: false,
            is_synchronised: false,
            monitor: options.monitor.clone(),
            next_ticket: 0,
            waiting: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            queue: VecDeque::new(),
            commands: VecDeque::new(),
            conditions_requested: 0,
        };
        Shared {
            publication: Arc::new(Publication::new(root)),
            feed: Feed::new(options.history_bytes_max, 0, Uuid::nil()),
            known: Mutex::new(known),
            known_version: AtomicU64::new(0),
            inner: Mutex::new(inner),
            state: watch::Sender::new(State::Connecting { endpoint: None }),
            published: watch::Sender::new(0),
            conditions: watch::Sender::new(0),
            locks: connection.locks.clone(),
            duplicates: broadcast::Sender::new(DUPLICATES_WAITING_MAX),
            wake: connection.wake.clone(),
            place,
            ended: Notify::new(),
            room: Arc::new(Semaphore::new(options.in_flight_max)),
            statistics: Statistics::default(),
            reclaimer,
            options,
        }
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, and the number of its version.
    pub(crate) fn known(&self) -> (u64, Arc<Known>) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        (self.known_version.load(Ordering::Acquire), known.clone())
    }

    pub(crate) fn known_version(&self) -> u64 {
        self.known_version.load(Ordering::Acquire)
    }

    /// The newest snapshot.
    pub(crate) fn snapshot(&self) -> Snapshot {
        loop {
            let (version, known) = self.known();
            let root = self.publication.current();
            // Knowledge shrinks before and grows after a publication; so unchanged knowledge is true of the root.
            if self.known_version() == version {
                return Snapshot { root, known };
            }
        }
    }

    pub(crate) fn command(&self, command: Command) {
        self.inner().commands.push_back(command);
        self.wake.notify_one();
    }

    /// Makes something else known: less before the rows that it is about are published, more after.
    pub(crate) fn set_known(&self, known: Known) {
        let known = Arc::new(known);
        {
            let mut place = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            *place = known.clone();
            self.known_version.fetch_add(1, Ordering::Release);
        }
        self.inner().snapshot.known = known;
    }

    /// Applies a change set and publishes the root.
    pub(crate) fn publish(&self, changes: ChangeSet<Ovsdb>) {
        if changes.is_empty() {
            return;
        }
        let mut root = self.publication.current().as_ref().clone();
        root.apply(&changes);
        let generation = root.generation() + 1;
        root.set_generation(generation);
        self.report_duplicates(&root, &changes);
        let root = Arc::new(root);
        let superseded = {
            let mut inner = self.inner();
            inner.snapshot.root = root.clone();
            self.publication.publish(root)
        };
        let entry = Entry {
            generation,
            changes: Arc::new(changes),
            note: Arc::new(Note::default()),
            meta: None,
            position: Uuid::from_u128(u128::from(generation)),
        };
        let dropped = self.feed.push([entry]);
        let mut retired = vec![Retired::Root(superseded)];
        retired.extend(dropped.into_iter().map(Retired::Entry));
        self.reclaimer.retire(retired);
        self.published.send_replace(generation);
        metrics::gauge!("cowslip_ovsdb_client_generation").set(generation as f64);
    }

    /// Begins anew under another schema, without rows; readers of events have to begin anew, too.
    pub(crate) fn restart(&self, schema: &Arc<Schema>) {
        let mut root = Root::<Ovsdb>::new(schema.clone());
        let generation = self.publication.generation() + 1;
        root.set_generation(generation);
        let root = Arc::new(root);
        self.set_known(Known::default());
        let superseded = {
            let mut inner = self.inner();
            inner.is_synchronised = false;
            inner.snapshot.root = root.clone();
            self.publication.publish(root)
        };
        let dropped = self.feed.restart(generation, Uuid::from_u128(u128::from(generation)));
        let mut retired = vec![Retired::Root(superseded)];
        retired.extend(dropped.into_iter().map(Retired::Entry));
        self.reclaimer.retire(retired);
        self.published.send_replace(generation);
    }

    /// Tells of keys of primary client indexes that the server's rows hold twice.
    fn report_duplicates(&self, root: &Root<Ovsdb>, changes: &ChangeSet<Ovsdb>) {
        let schema = root.meta();
        let is_primary = |table: TableIx, index| {
            schema.at(table).client_index(index).is_some_and(|i| i.kind == IndexKind::Primary)
        };
        for changed in changes.tables() {
            let table = changed.table;
            for (index, key, _, is_taken) in changed.keys() {
                if !is_taken || !is_primary(table, index) || root.lookup(table, index, key).nth(1).is_none() {
                    continue;
                }
                let duplicate = Duplicate {
                    table: schema.at(table).name.to_string(),
                    index: self.known().1.index_name(schema, table, index),
                    key: key.values(),
                    rows: root.lookup(table, index, key).collect(),
                };
                tracing::warn!(%duplicate, "the server has a key of a primary client index twice");
                metrics::counter!("cowslip_ovsdb_client_duplicate_keys_total").increment(1);
                // Nobody may be listening.
                let _ = self.duplicates.send(duplicate);
            }
        }
    }

    /// Tells the outcome of a transaction that was in flight.
    pub(crate) fn end(&self, ticket: u64, answer: Answer) {
        let ended = self.inner().in_flight.remove(&ticket);
        if let Some(ended) = ended {
            // The caller may have given up.
            let _ = ended.answer.send(answer);
            self.ended.notify_waiters();
        }
    }

    /// Ends everything in flight when the connection is lost.
    pub(crate) fn end_all(&self, is_closed: bool) {
        let lost = {
            let mut inner = self.inner();
            inner.is_live = false;
            inner.is_closed |= is_closed;
            inner.queue.clear();
            std::mem::take(&mut inner.in_flight)
        };
        for in_flight in lost.into_values() {
            let error = match (in_flight.is_sent, is_closed) {
                (true, _) => TransactError::OutcomeUnknown,
                (false, true) => TransactError::Closed,
                (false, false) => TransactError::Disconnected,
            };
            let _ = in_flight.answer.send(Err(error));
        }
        self.ended.notify_waiters();
    }
}
