//! First replies of monitors, encoded away from the committer and shared between the clients that ask for the same.
//!
//! Requests form groups: one encoding runs per (tables, columns, conditions); those that arrive while it waits to begin
//! share it, those that arrive later share the next. The snapshot is taken when the encoding begins, so that each client
//! sees what it wrote before it asked. At most half the cores encode at once.

use crate::database::Database;
use cowslip_engine::Uuid;
use cowslip_ovsdb::monitor::{MonitorSpec, write_initial};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OnceCell, Semaphore};

/// A database's content as the clients of one specification see it.
#[derive(Debug)]
pub(crate) struct Dump {
    /// The generation it shows.
    pub(crate) generation: u64,
    /// The id of that state.
    pub(crate) position: Uuid,
    /// The `<table-updates>` object.
    pub(crate) text: Arc<str>,
}

#[derive(Debug, Default)]
struct Group {
    dump: OnceCell<Arc<Dump>>,
}

/// The encodings that run or wait to run, by what they show.
#[derive(Debug)]
pub(crate) struct Dumps {
    waiting: Mutex<HashMap<String, Weak<Group>>>,
    running: Semaphore,
}

impl Default for Dumps {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Dumps { waiting: Mutex::default(), running: Semaphore::new((cores / 2).max(1)) }
    }
}

impl Dumps {
    /// The content for a specification; `key` is the same for equal specifications only.
    ///
    /// None if the encoding failed, which is a fault of this program.
    pub(crate) async fn of(
        &self,
        database: &Arc<Database>,
        spec: &MonitorSpec,
        key: String,
    ) -> Option<Arc<Dump>> {
        let group = self.join(&key);
        let encode = async {
            let permit = self.running.acquire().await;
            // From now on the snapshot is fixed: later requests need a later one.
            self.leave(&key, &group);
            let (database, spec) = (database.clone(), spec.clone());
            let encoded = tokio::task::spawn_blocking(move || Arc::new(encode(&database, &spec))).await;
            drop(permit);
            encoded
        };
        match group.dump.get_or_try_init(|| encode).await {
            Ok(dump) => Some(dump.clone()),
            Err(error) => {
                tracing::error!(database = database.name, %error, "the first reply of a monitor could not be made");
                None
            }
        }
    }

    fn join(&self, key: &str) -> Arc<Group> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = waiting.get(key).and_then(Weak::upgrade) {
            return group;
        }
        let group = Arc::new(Group::default());
        waiting.insert(key.to_string(), Arc::downgrade(&group));
        group
    }

    fn leave(&self, key: &str, group: &Arc<Group>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.get(key).is_some_and(|w| std::ptr::eq(w.as_ptr(), Arc::as_ptr(group))) {
            waiting.remove(key);
        }
    }
}

fn encode(database: &Database, spec: &MonitorSpec) -> Dump {
    let (root, position) = database.snapshot();
    let mut text = String::new();
    write_initial(spec, &root, &mut text);
    Dump { generation: root.generation(), position, text: text.into() }
}
