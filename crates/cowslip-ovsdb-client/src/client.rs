//! The client: how it is made, and what can be done with it.

use crate::connection::Connection;
use crate::driver;
use crate::error::{BuildError, ClientError, Duplicate, Failure, Refusal, TransactError};
use crate::events::{Batch, Events, EventsError};
use crate::filter::Filter;
use crate::model::Model;
use crate::options::{self, Options};
use crate::plan::{Index, Monitor};
use crate::results::Results;
use crate::shared::{Command, Shared};
use crate::snapshot::{Snapshot, SnapshotReader};
use crate::state::State;
use crate::ticket::{Ticket, is_same_schema};
use crate::transaction::Transaction;
use crate::validation::{self, Validation};
use cowslip_engine::{ChangeSet, Reclaimer, Root};
use cowslip_net::tls::{TlsError, TlsOptions};
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{broadcast, watch};

/// Makes a client.
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    options: Options,
    endpoints: Vec<String>,
    /// Another client's, to be shared.
    connection: Option<Arc<Connection>>,
}

impl ClientBuilder {
    /// Adds a server: `unix:FILE`, `tcp:HOST:PORT` or `ssl:HOST:PORT` (which needs [`tls`](Self::tls)). They are tried
    /// in order.
    #[must_use]
    pub fn endpoint(mut self, endpoint: &str) -> Self {
        self.endpoints.push(endpoint.to_string());
        self
    }

    /// What `ssl:` endpoints need: the CA's certificate, and what this client shows of itself. The files are read before
    /// each connection, so that certificates can be replaced while the client runs.
    ///
    /// ```no_run
    /// use cowslip_ovsdb_client::{Client, Monitor, TlsOptions};
    /// # async fn example() -> Result<(), cowslip_ovsdb_client::ClientError> {
    /// let client = Client::builder("OVN_Northbound")
    ///     .endpoint("ssl:192.0.2.1:6641")
    ///     .tls(TlsOptions::new("/etc/ovn/cacert.pem").identity("/etc/ovn/key.pem", "/etc/ovn/cert.pem"))
    ///     .monitor(Monitor::everything())
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tls(mut self, tls: TlsOptions) -> Self {
        self.options.tls = Some(tls);
        self
    }

    /// What the cache holds; nothing, if this is not called.
    #[must_use]
    pub fn monitor(mut self, monitor: Monitor) -> Self {
        self.options.monitor = monitor;
        self
    }

    /// Keeps an index on the cache. Its columns are monitored if its table is.
    #[must_use]
    pub fn index(mut self, index: Index) -> Self {
        self.options.indexes.push(index);
        self
    }

    /// Which transactions are validated.
    #[must_use]
    pub fn validation(mut self, validation: Validation) -> Self {
        self.options.validation = validation;
        self
    }

    /// Changes other settings.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Starts the client without waiting for a server; must be called within a tokio runtime.
    ///
    /// # Errors
    /// An endpoint or a TLS file cannot be used, a monitor's filter asks for what no monitor can, the system refused a thread, or the connection to be shared is closed or
    /// full.
    pub fn start(self) -> Result<Client, ClientError> {
        self.options.monitor.check()?;
        let endpoints = self.endpoints.iter().map(|text| options::endpoint(text));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
        let (connection, is_new) = match (self.connection, endpoints.first()) {
            (None, _) => (Arc::new(Connection::new(self.options.clone(), endpoints)?), true),
            (Some(connection), None) => (connection, false),
            (Some(_), Some(endpoint)) => {
                let reason = "the connection is another client's, and has its endpoints".to_string();
                return Err(ClientError::Endpoint { endpoint: endpoint.to_string(), reason });
            }
        };
        let empty = Schema::parse(br#"{"name":"none","tables":{}}"#);
        let root = Root::<Ovsdb>::new(Arc::new(empty.expect("the empty schema is part of the program")));
        let reclaimer = Reclaimer::start("cowslip-client")
            .map_err(|error| ClientError::Thread { reason: error.to_string() })?;
        let make = |place| Shared::new(self.options, root, reclaimer, &connection, place);
        let shared = connection.join(make)?;
        if is_new {
            tokio::spawn(driver::run(connection.clone()));
        }
        Ok(Client { handle: Arc::new(Handle { shared, connection }) })
    }

    /// Starts the client and waits for a synchronised cache.
    ///
    /// # Errors
    /// As for [`start`](Self::start); and the server's schema does not fit what was asked for as required, or there was
    /// no synchronised cache within [`Options::ready_within`].
    pub async fn connect(self) -> Result<Client, ClientError> {
        let client = self.start()?;
        client.ready().await?;
        Ok(client)
    }
}

/// An OVSDB client. Clones are handles of the same one, which is closed with the last of them.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        close(&self.shared);
    }
}

fn close(shared: &Shared) {
    shared.inner().is_closed = true;
    shared.wake.notify_one();
    shared.ended.notify_waiters();
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared();
        f.debug_struct("Client")
            .field("database", &shared.options.database)
            .field("state", &*shared.state.borrow())
            .finish_non_exhaustive()
    }
}

/// Counts since the client was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Updates that came.
    pub updates: u64,
    /// Updates that could not be right, each of which led to a resynchronisation.
    pub resyncs: u64,
    /// Connections.
    pub connections: u64,
    /// Transactions sent.
    pub sent: u64,
    /// Validations; more than one per transaction if a verdict had to wait.
    pub validated: u64,
    /// Transactions refused by validation.
    pub refused: u64,
    /// Times that a transaction waited for others in flight.
    pub waited: u64,
}

/// What a transaction would do, by the cache.
#[derive(Debug)]
#[non_exhaustive]
pub struct DryRun {
    /// What would change; nothing, if it would fail.
    pub changes: ChangeSet<Ovsdb>,
    /// Why it would be refused, if it would.
    pub refusal: Option<Refusal>,
    /// Whether all of this follows from the cache alone.
    pub is_certain: bool,
    /// The cache as the transaction would leave it: to read through its writes.
    pub after: Snapshot,
}

impl Client {
    /// Begins to make a client of a database.
    pub fn builder(database: &str) -> ClientBuilder {
        ClientBuilder { options: Options::new(database), endpoints: Vec::new(), connection: None }
    }

    /// Begins to make a client of another database of the same server, over this client's connection: with a cache,
    /// monitors, indexes and transactions of its own, and the settings of this one where they are not changed. It is
    /// brought up to date on each reconnection like this one.
    ///
    /// * The connection closes with the last of its clients; each may be closed alone.
    /// * If the server lacks one of the databases, or its schema does not fit, or it is not the leader that
    ///   [`Options::leader_only`] asks for, that client waits and tries again from time to time, and the others go on; the
    ///   next server is tried when no client can use this one. Databases with leaders of their own are better served by
    ///   a connection for each.
    /// * To the server they are one: [locks](Self::lock) belong to all of them together.
    ///
    /// ```no_run
    /// # use cowslip_ovsdb_client::{Client, Monitor};
    /// # async fn example(vswitch: Client) -> Result<(), cowslip_ovsdb_client::ClientError> {
    /// let north = vswitch.database("OVN_Northbound").monitor(Monitor::everything()).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn database(&self, database: &str) -> ClientBuilder {
        ClientBuilder {
            options: self.shared().options.for_database(database),
            endpoints: Vec::new(),
            connection: Some(self.handle.connection.clone()),
        }
    }

    /// Reads the TLS files again now, instead of before the next connection; tells whether they are others than before.
    /// The present connection goes on as it is. Without TLS there is nothing to read.
    ///
    /// # Errors
    /// The files do not work; the ones before stay in use.
    pub fn reload_certificates(&self) -> Result<bool, TlsError> {
        self.handle.connection.connector.tls().map_or(Ok(false), |tls| tls.reload())
    }

    /// Why the TLS files, as they were when last read, are not in use; none if they are.
    pub fn certificate_problem(&self) -> Option<TlsError> {
        self.handle.connection.connector.tls().and_then(|tls| tls.problem())
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// The connection's states, to observe.
    pub fn states(&self) -> watch::Receiver<State> {
        self.shared().state.subscribe()
    }

    /// The connection's state now.
    pub fn state(&self) -> State {
        self.shared().state.borrow().clone()
    }

    /// Waits until the cache follows the server.
    ///
    /// # Errors
    /// The schema does not fit, the client was closed, or time is up.
    pub async fn ready(&self) -> Result<(), ClientError> {
        let mut states = self.states();
        let limit = self.shared().options.ready_within;
        let mut reason = String::new();
        let wait = async {
            loop {
                match states.borrow_and_update().clone() {
                    State::Live { .. } => return Ok(()),
                    State::Unfit { mismatches } => return Err(ClientError::Schema { mismatches }),
                    State::Closed => return Err(ClientError::Closed),
                    State::Waiting { reason: why, .. } => reason = why,
                    _ => {}
                }
                if states.changed().await.is_err() {
                    return Err(ClientError::Closed);
                }
            }
        };
        match limit {
            None => wait.await,
            Some(limit) => match tokio::time::timeout(limit, wait).await {
                Ok(outcome) => outcome,
                Err(_) => Err(ClientError::TimedOut { waited: limit, reason }),
            },
        }
    }

    /// Waits for a generation of the cache.
    ///
    /// # Errors
    /// The client was closed.
    pub async fn generation(&self, at_least: u64) -> Result<Snapshot, ClientError> {
        let mut published = self.shared().published.subscribe();
        let mut states = self.states();
        tokio::select! {
            _ = published.wait_for(|generation| *generation >= at_least) => Ok(self.snapshot()),
            _ = states.wait_for(|state| *state == State::Closed) => Err(ClientError::Closed),
        }
    }

    /// The newest snapshot of the cache.
    pub fn snapshot(&self) -> Snapshot {
        self.shared().snapshot()
    }

    /// A way to the newest snapshot for a thread that reads often: it writes to no memory that others read.
    pub fn reader(&self) -> SnapshotReader {
        SnapshotReader::new(self.shared().clone())
    }

    /// What changes from now on.
    pub fn events(&self) -> Events {
        Events::new(self.shared().clone(), self.snapshot().generation())
    }

    /// A snapshot, and what changes after it.
    pub fn snapshot_and_events(&self) -> (Snapshot, Events) {
        let snapshot = self.snapshot();
        let events = Events::new(self.shared().clone(), snapshot.generation());
        (snapshot, events)
    }

    /// Has a function called with every batch, on a thread of its own: it may take its time and use the client.
    /// If it is too slow for the history it is told so, with a snapshot to go on from. A function that holds a handle of
    /// the client keeps it open until [`close`](Self::close) is called.
    ///
    /// # Errors
    /// The system refused a thread.
    pub fn on_change(
        &self,
        mut callback: impl FnMut(Result<Batch, Snapshot>) + Send + 'static,
    ) -> Result<(), ClientError> {
        let mut events = self.events();
        let runtime = tokio::runtime::Handle::current();
        let run = move || loop {
            match runtime.block_on(events.next()) {
                Ok(batch) => callback(Ok(batch)),
                Err(EventsError::Lagged { .. }) => callback(Err(events.resync())),
                Err(EventsError::Closed) => return,
            }
        };
        let thread = std::thread::Builder::new().name("cowslip-client-events".to_string()).spawn(run);
        thread.map(drop).map_err(|error| ClientError::Thread { reason: error.to_string() })
    }

    /// Keys of primary client indexes that turn out to be held twice by the server's rows.
    pub fn duplicates(&self) -> broadcast::Receiver<Duplicate> {
        self.shared().duplicates.subscribe()
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let s = &self.shared().statistics;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            updates: load(&s.updates),
            resyncs: load(&s.impossible),
            connections: load(&s.connections),
            sent: load(&s.sent),
            validated: load(&s.validated),
            refused: load(&s.refused),
            waited: load(&s.waited),
        }
    }

    /// Changes which rows of a table the cache holds: those that meet the filter, or all. Gives the number of the
    /// change; [`conditions_acknowledged`](Self::conditions_acknowledged) reaches it when the cache is so.
    pub fn set_filter(&self, table: &str, filter: Option<Filter>) -> Result<u64, BuildError> {
        let snapshot = self.snapshot();
        if let Some(filter) = &filter {
            let ix = crate::filter::table_of(snapshot.schema(), table)?;
            filter.resolve_any(snapshot.schema(), ix)?;
        }
        let number = {
            let mut inner = self.shared().inner();
            inner.monitor.set_filter(table, filter);
            inner.conditions_requested += 1;
            inner.commands.push_back(Command::Conditions);
            inner.conditions_requested
        };
        self.shared().wake.notify_one();
        Ok(number)
    }

    /// The number of the last change of filters that the cache follows.
    pub fn conditions_acknowledged(&self) -> watch::Receiver<u64> {
        self.shared().conditions.subscribe()
    }

    /// Replaces what the cache holds. Rows that are no longer asked for leave it as if they were deleted.
    pub fn set_monitor(&self, monitor: Monitor) {
        self.shared().inner().monitor = monitor;
        self.shared().command(Command::Monitor);
    }

    /// Takes the whole content from the server anew; the differences come as events.
    pub fn resync(&self) {
        self.shared().command(Command::Resync);
    }

    /// Wants a lock; the receiver tells whether the client owns it. It is asked for again after each reconnection. Clients
    /// that share a connection own their locks together.
    pub fn lock(&self, name: &str) -> watch::Receiver<bool> {
        self.want_lock(name, false)
    }

    /// Takes a lock away from whoever owns it.
    pub fn steal_lock(&self, name: &str) -> watch::Receiver<bool> {
        self.want_lock(name, true)
    }

    fn want_lock(&self, name: &str, steals: bool) -> watch::Receiver<bool> {
        let owned = self.shared().locks.want(name, self.shared().place);
        if self.shared().inner().is_live {
            self.shared().command(Command::Lock { name: name.to_string(), steals });
        }
        owned
    }

    /// Gives a lock up, or the wish for it, unless another client of the connection wants it.
    pub fn unlock(&self, name: &str) {
        if self.shared().locks.forget(name, self.shared().place) {
            self.shared().command(Command::Unlock { name: name.to_string() });
        }
    }

    /// Begins a transaction on the newest snapshot.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.snapshot())
    }

    /// Inserts a model's row in a transaction of its own.
    ///
    /// # Errors
    /// As for [`transact`](Self::transact).
    pub async fn create<M: Model>(&self, model: &M) -> Result<crate::Ref<M>, TransactError> {
        let mut tx = self.transaction();
        let row = tx.create(model);
        let results = self.transact(tx).await?;
        Ok(crate::Ref::new(results.uuid(row.uuid())))
    }

    /// The snapshot that a transaction can be tried on.
    fn snapshot_for(&self, transaction: &Transaction) -> Result<Snapshot, TransactError> {
        if let Some(fault) = &transaction.fault {
            return Err(fault.clone().into());
        }
        let snapshot = self.snapshot();
        if snapshot.known.tables.is_empty() {
            return Err(TransactError::NotSynchronised);
        }
        if !is_same_schema(&snapshot, transaction) {
            return Err(TransactError::SchemaChanged);
        }
        Ok(snapshot)
    }

    /// Runs a transaction on the cache, without sending it.
    ///
    /// # Errors
    /// The transaction could not be built, or there is no cache yet.
    pub fn dry_run(&self, transaction: &Transaction) -> Result<DryRun, TransactError> {
        let snapshot = self.snapshot_for(transaction)?;
        let prepared = &transaction.prepared;
        let mut outcome = validation::run(&snapshot, prepared);
        if outcome.error.is_some() {
            outcome.changes = ChangeSet::empty();
        }
        let refusal = validation::refusal(&snapshot, prepared, &outcome);
        let mut root = snapshot.root.as_ref().clone();
        root.apply(&outcome.changes);
        let after = Snapshot { root: Arc::new(root), known: snapshot.known };
        Ok(DryRun { changes: outcome.changes, refusal, is_certain: outcome.is_certain, after })
    }

    /// Validates a transaction without sending it.
    ///
    /// # Errors
    /// It would be refused, it could not be built, or there is no cache yet.
    pub fn validate(&self, transaction: &Transaction) -> Result<(), TransactError> {
        let snapshot = self.snapshot_for(transaction)?;
        match validation::try_on(&snapshot, &transaction.prepared, false).refusal {
            None => Ok(()),
            Some(refusal) => Err(TransactError::Refused(Box::new(refusal))),
        }
    }

    /// Sends a transaction and waits for its results; its own update is in the cache then, if its tables are monitored.
    ///
    /// With validation, it is run on the cache first. Where the verdict depends on something that other transactions of
    /// this client have in flight, it waits for their replies and is made again. Dropping the future before anything was
    /// sent takes the transaction back; afterwards it only gives up the reply.
    ///
    /// # Errors
    /// See [`TransactError`]: each variant tells whether anything was sent and what became of it.
    pub async fn transact(&self, transaction: Transaction) -> Result<Results, TransactError> {
        if let Some(fault) = &transaction.fault {
            return Err(fault.clone().into());
        }
        let mut ticket = Ticket::new(self.shared());
        let run = ticket.run(Arc::new(transaction));
        let answer = match self.shared().options.request_timeout {
            None => run.await,
            Some(limit) => match tokio::time::timeout(limit, run).await {
                Ok(answer) => answer,
                Err(_) => Err(TransactError::TimedOut { waited: limit, is_sent: ticket.withdraw() }),
            },
        };
        if let Err(TransactError::Failed(failure)) = &answer
            && names_unseen_row(&self.snapshot(), failure)
        {
            // Without this a caller would insert the row that it does not see again and again.
            tracing::warn!(details = failure.details, "the server has a row that the cache lacks");
            self.resync();
        }
        answer
    }

    /// Closes the client, whoever else holds a handle.
    pub fn close(&self) {
        close(self.shared());
    }
}

/// Whether the server refused a duplicate of a row that it had before, and that the cache should have but has not. Updates
/// come before replies, so the row is not just on its way.
fn names_unseen_row(snapshot: &Snapshot, failure: &Failure) -> bool {
    const INTRODUCTION: &str = "row, with UUID ";
    let Some(table) = failure.table.as_deref().filter(|table| snapshot.has_all_rows(table)) else {
        return false;
    };
    failure.details.split(INTRODUCTION).skip(1).any(|text| {
        let uuid = text.get(..36).and_then(cowslip_ovsdb::atom::parse_uuid);
        let is_old = text.contains("existed in the database before this transaction");
        is_old && uuid.is_some_and(|uuid| snapshot.row(table, uuid).is_none())
    })
}
