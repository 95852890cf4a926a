//! Locks of the server's, which one client at a time owns.
//!
//! A client asks for its locks again on every connection. Invariant: what is observed as owned was told by the server
//! on the present connection.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The locks that a client wants, and whether it owns them.
#[derive(Debug, Default)]
pub(crate) struct Locks(Mutex<BTreeMap<String, watch::Sender<bool>>>);

impl Locks {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants a lock; tells whether it is a new one.
    pub(crate) fn want(&self, name: &str) -> (watch::Receiver<bool>, bool) {
        let mut all = self.all();
        let is_new = !all.contains_key(name);
        let owned = all.entry(name.to_string()).or_insert_with(|| watch::Sender::new(false)).subscribe();
        (owned, is_new)
    }

    /// Wants a lock no more.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    pub(crate) fn set(&self, name: &str, owned: bool) {
        if let Some(place) = self.all().get(name) {
            place.send_replace(owned);
        }
    }

    /// The connection is gone, and the locks with it.
    pub(crate) fn lose_all(&self) {
        for place in self.all().values() {
            place.send_replace(false);
        }
    }
}
