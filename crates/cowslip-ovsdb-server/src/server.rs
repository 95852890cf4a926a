//! The server: its databases, its remotes, and the start and end of everything.

use crate::database::Database;
use crate::file;
use crate::host::{Answer, CommitHost, Job, Submitted};
use crate::locks::Locks;
use crate::server_db::{self, SERVER_DATABASE};
use crate::session::{self, Event, EventSender, SessionId};
use cowslip_engine::storage::Storage;
use cowslip_engine::{
    CompactionOutcome, Entry, Feed, HISTORY_BYTES_MAX_DEFAULT, Journal, NullJournal, Pipeline, Root, Uuid,
};
use cowslip_net::address::{Endpoint, Remote};
use cowslip_net::listener::Listener;
use cowslip_net::stream::Stream;
use cowslip_ovsdb::framing::MESSAGE_BYTES_MAX;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// What a server can be told.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The largest message taken from a client, in bytes.
    pub message_bytes_max: usize,
    /// How much of the past is kept for monitors that are behind, in bytes for each database.
    pub history_bytes_max: usize,
    /// The most sessions at once; more connections are closed when they come.
    pub sessions_max: usize,
    /// After how much silence a client is asked whether it lives, in milliseconds; 0 never asks. If none is given: 5000
    /// over TCP, never over unix sockets.
    pub probe_interval_ms: Option<u64>,
    /// Whether files get differences of columns with many members instead of whole values.
    pub column_differences: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            message_bytes_max: MESSAGE_BYTES_MAX,
            history_bytes_max: HISTORY_BYTES_MAX_DEFAULT,
            sessions_max: 20_000,
            probe_interval_ms: None,
            column_differences: true,
        }
    }
}

/// Why a database cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Its file cannot be opened.
    #[error(transparent)]
    Open(#[from] file::OpenError),
    /// Another database with its name is served already.
    #[error(
        "{name}: a database of this name is served already; remove one of the files from the command line"
    )]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A thread or a socket could not be had.
    #[error("{what}: {source}")]
    Io {
        /// For what.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: Uuid,
    pub(crate) options: ServerOptions,
    pub(crate) locks: Arc<Locks>,
    /// Counts publications of all databases.
    pub(crate) published: watch::Sender<u64>,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    databases: RwLock<BTreeMap<String, Arc<Database>>>,
    session_numbers: AtomicU64,
    sessions: AtomicUsize,
    /// Where each session hears of changes to the set of databases.
    listeners: Mutex<HashMap<SessionId, EventSender>>,
}

impl Shared {
    pub(crate) fn database(&self, name: &str) -> Option<Arc<Database>> {
        self.databases.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn database_names(&self) -> Vec<String> {
        self.databases.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// From now on a session hears of changes to the set of databases.
    pub(crate) fn register(&self, session: SessionId, events: &EventSender) {
        self.listeners().insert(session, events.clone());
    }

    /// A session has ended.
    pub(crate) fn forget(&self, session: SessionId) {
        self.listeners().remove(&session);
    }

    fn listeners(&self) -> MutexGuard<'_, HashMap<SessionId, EventSender>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_all(&self, event: impl Fn() -> Event) {
        for listener in self.listeners().values() {
            listener.send(event());
        }
    }
}

/// A database as it is when its serving begins.
struct Content {
    root: Root<Ovsdb>,
    /// The generation before the first entry.
    floor: u64,
    floor_position: Option<Uuid>,
    /// The latest changes.
    entries: VecDeque<Entry<Ovsdb>>,
}

impl Content {
    fn empty(schema: Schema) -> Self {
        let root = Root::new(Arc::new(schema));
        Content { floor: root.generation(), root, floor_position: None, entries: VecDeque::new() }
    }
}

/// A running server. Dropping it does not stop it: see [`Server::stop`].
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server without databases of its own and without remotes; must be called within a tokio runtime.
    ///
    /// # Errors
    /// A thread could not be started.
    pub async fn start(options: ServerOptions) -> Result<Self, ServerError> {
        let shared = Shared {
            id: Uuid::new_v4(),
            options,
            locks: Arc::default(),
            published: watch::Sender::new(0),
            stopping: watch::Sender::new(false),
            databases: RwLock::default(),
            session_numbers: AtomicU64::new(0),
            sessions: AtomicUsize::new(0),
            listeners: Mutex::default(),
        };
        let server = Server { shared: Arc::new(shared) };
        let schema = server_db::schema();
        let own = server_db::describe(SERVER_DATABASE, &schema);
        server.serve(Content::empty(schema), NullJournal::new(), true)?;
        server.tell_server_database(&own).await;
        Ok(server)
    }

    /// Serves the database of a file, which stays locked.
    ///
    /// # Errors
    /// The file cannot be opened, or its name is taken.
    pub async fn add_file(&self, storage: Arc<dyn Storage>, path: &Path) -> Result<String, ServerError> {
        let mut options = file::OpenOptions::default();
        options.history_bytes_max = self.shared.options.history_bytes_max;
        options.column_differences = self.shared.options.column_differences;
        let path = path.to_path_buf();
        let open = tokio::task::spawn_blocking(move || file::open(storage, &path, &options));
        let opened = open.await.unwrap_or_else(|lost| std::panic::resume_unwind(lost.into_panic()))?;
        let file::History { floor, floor_position, entries, .. } = opened.history;
        let content = Content { root: opened.root, floor, floor_position: Some(floor_position), entries };
        self.add(content, opened.journal).await
    }

    /// Serves an empty database that lives as long as the server.
    ///
    /// # Errors
    /// Its name is taken.
    pub async fn add_memory(&self, schema: Schema) -> Result<String, ServerError> {
        self.add(Content::empty(schema), NullJournal::new()).await
    }

    async fn add<J: Journal<Ovsdb>>(&self, content: Content, journal: J) -> Result<String, ServerError> {
        let schema = content.root.meta().clone();
        let name = self.serve(content, journal, false)?;
        let row = server_db::describe(&name, &schema);
        self.tell_server_database(&row).await;
        self.shared.tell_all(|| Event::DatabaseAdded);
        Ok(name)
    }

    /// Stops serving a database: what waits in it is canceled, its monitors are ended (`monitor_canceled`) and clients
    /// that have not asked to be told of such changes are disconnected.
    ///
    /// # Errors
    /// There is no such database, it is `_Server`, or its last sync failed.
    pub async fn remove_database(&self, name: &str) -> io::Result<()> {
        let removed = match name {
            SERVER_DATABASE => None,
            _ => self.shared.databases.write().unwrap_or_else(PoisonError::into_inner).remove(name),
        };
        let Some(database) = removed else {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{name}: no such database")));
        };
        self.tell_server_database(&server_db::forget(name)).await;
        self.shared.tell_all(|| Event::DatabaseRemoved(database.clone()));
        // A committer that has ended has nothing parked.
        let _ = database.submit(Job::Close);
        let stop = tokio::task::spawn_blocking(move || database.pipeline.shutdown());
        stop.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn serve<J: Journal<Ovsdb>>(
        &self,
        content: Content,
        journal: J,
        is_read_only: bool,
    ) -> Result<String, ServerError> {
        let Content { root, floor, floor_position, entries } = content;
        let name = root.meta().name.to_string();
        let mut databases = self.shared.databases.write().unwrap_or_else(PoisonError::into_inner);
        if databases.contains_key(&name) {
            return Err(ServerError::Duplicate { name });
        }
        let shared = &self.shared;
        let position = floor_position.unwrap_or_else(|| journal.position());
        let feed = Feed::new(shared.options.history_bytes_max, floor, position);
        feed.push(entries);
        let database = Database::start(
            root,
            feed,
            journal,
            shared.locks.clone(),
            is_read_only,
            shared.published.clone(),
        )
        .map_err(|source| ServerError::Io { what: format!("{name}: starting its threads"), source })?;
        databases.insert(name.clone(), Arc::new(database));
        Ok(name)
    }

    /// Changes what `_Server` tells of the others.
    async fn tell_server_database(&self, operations: &[Json<'_>]) {
        if let Err(error) = self.transact(SERVER_DATABASE, operations).await {
            tracing::error!(error, "the database _Server refused its own content");
        }
    }

    /// Executes a transaction as a client without locks would, and waits for its end.
    ///
    /// # Errors
    /// There is no such database, or the transaction failed: with the error's text.
    pub async fn transact(&self, name: &str, operations: &[Json<'_>]) -> Result<(), String> {
        let database = self.shared.database(name).ok_or_else(|| format!("{name}: no such database"))?;
        let transaction = Transaction::parse(&database.schema(), operations);
        let (events, mut answers) = mpsc::unbounded_channel();
        let submitted = Submitted {
            session: SessionId(self.shared.session_numbers.fetch_add(1, Ordering::Relaxed)),
            request: 0,
            transaction,
            events: Some(EventSender::new(events)),
            ended: Arc::new(AtomicBool::new(false)),
            arrived: Instant::now(),
            read_only: false,
        };
        database.submit(Job::Transact(Box::new(submitted))).map_err(|e| e.to_string())?;
        let error = match answers.recv().await {
            Some(Event::Answered { answer: Answer::Executed { outcome, .. }, .. }) => outcome.error,
            Some(Event::Answered { answer: Answer::NotStored(error), .. }) => Some(error),
            _ => return Err("the transaction was dropped".to_string()),
        };
        error.map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// The names of the databases, `_Server` included.
    pub fn database_names(&self) -> Vec<String> {
        self.shared.database_names()
    }

    /// Compacts a database's file beside the running log; the result tells what failed, if anything did.
    ///
    /// # Errors
    /// There is no such database, or the compaction failed; the file is then as it was.
    pub async fn compact(&self, name: &str) -> Result<(), String> {
        let database = self.shared.database(name).ok_or_else(|| format!("{name}: no such database"))?;
        let (done, outcome) = oneshot::channel();
        let pipeline: &Pipeline<Ovsdb, CommitHost> = &database.pipeline;
        let asked = pipeline.compact(move |outcome| {
            // Nobody may be waiting any more.
            let _ = done.send(outcome);
        });
        asked.map_err(|e| e.to_string())?;
        match outcome.await {
            Ok(CompactionOutcome::Done) => Ok(()),
            Ok(CompactionOutcome::Failed { reason }) => Err(reason.to_string()),
            _ => Err("the database was shut down meanwhile".to_string()),
        }
    }

    /// Meets clients at a remote until the server stops; tells where it listens, with the real port.
    ///
    /// # Errors
    /// The remote cannot be listened to. An active remote that does not answer is tried again later instead.
    pub async fn add_remote(&self, remote: &Remote) -> Result<Remote, ServerError> {
        match remote {
            Remote::Listen(endpoint) => {
                let listener = Listener::bind(endpoint)
                    .await
                    .map_err(|source| ServerError::Io { what: remote.to_string(), source })?;
                let actual = listener.remote().clone();
                tokio::spawn(accept(listener, self.shared.clone()));
                Ok(actual)
            }
            Remote::Connect(endpoint) => {
                tokio::spawn(connect(endpoint.clone(), self.shared.clone()));
                Ok(remote.clone())
            }
        }
    }

    /// The number of sessions.
    pub fn session_count(&self) -> usize {
        self.shared.sessions.load(Ordering::Relaxed)
    }

    /// Tells everybody to stop, without waiting for that.
    pub(crate) fn begin_stop(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// Stops: takes no more connections, ends the sessions, writes and syncs what was committed.
    ///
    /// # Errors
    /// The last sync of a database failed; its name is in the message.
    pub async fn stop(&self) -> io::Result<()> {
        const DRAIN_MS: u64 = 1000;
        self.begin_stop();
        let deadline = Instant::now() + Duration::from_millis(DRAIN_MS);
        while self.session_count() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let databases: Vec<_> = {
            let mut databases = self.shared.databases.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *databases).into_values().collect()
        };
        let stop = tokio::task::spawn_blocking(move || {
            let mut result = Ok(());
            for database in databases {
                if let Err(error) = database.pipeline.shutdown() {
                    result = Err(io::Error::new(error.kind(), format!("{}: {error}", database.name)));
                }
            }
            result
        });
        stop.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

#[cfg(test)]
impl Server {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// Counts a session while it runs.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

fn begin_session(
    shared: &Arc<Shared>,
    stream: Stream,
    peer: String,
) -> Option<impl Future<Output = ()> + use<>> {
    if shared.sessions.fetch_add(1, Ordering::Relaxed) >= shared.options.sessions_max {
        shared.sessions.fetch_sub(1, Ordering::Relaxed);
        tracing::warn!(peer, limit = shared.options.sessions_max, "too many sessions, connection closed");
        return None;
    }
    let id = SessionId(shared.session_numbers.fetch_add(1, Ordering::Relaxed));
    let counted = Counted(shared.clone());
    let run = session::run(stream, id, shared.clone(), peer);
    Some(async move {
        run.await;
        drop(counted);
    })
}

async fn accept(listener: Listener, shared: Arc<Shared>) {
    /// After a failed accept, mostly for want of file descriptors.
    const PAUSE_MS: u64 = 100;
    let mut stopping = shared.stopping.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(run) = begin_session(&shared, stream, peer) {
                    tokio::spawn(run);
                }
            }
            Err(error) => {
                tracing::warn!(remote = %listener.remote(), %error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
            }
        }
    }
}

/// Keeps a connection to a client that listens, with growing pauses between tries.
async fn connect(endpoint: Endpoint, shared: Arc<Shared>) {
    const PAUSE_FIRST_MS: u64 = 1000;
    const PAUSE_MAX_MS: u64 = 8000;
    let mut stopping = shared.stopping.subscribe();
    let mut pause_ms = PAUSE_FIRST_MS;
    loop {
        let attempt = async {
            match Stream::connect(&endpoint).await {
                Ok(stream) => {
                    pause_ms = PAUSE_FIRST_MS;
                    if let Some(run) = begin_session(&shared, stream, endpoint.to_string()) {
                        run.await;
                    }
                }
                Err(error) => tracing::info!(remote = %endpoint, %error, "cannot connect"),
            }
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            pause_ms = (pause_ms * 2).min(PAUSE_MAX_MS);
        };
        tokio::select! {
            () = attempt => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}
