//! Locks of the server's, which one connection at a time owns.
//!
//! The clients of a connection own a lock together, since to the server they are one: it is given up when the last client
//! that wants it no longer does. Locks are asked for again on every connection. Invariant: what is observed as owned was
//! told by the server on the present connection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The locks that a connection's clients want, and whether it owns them.
#[derive(Debug, Default)]
pub(crate) struct Locks(Mutex<BTreeMap<String, Wish>>);

#[derive(Debug)]
struct Wish {
    owned: watch::Sender<bool>,
    /// The places of the clients that want it.
    places: BTreeSet<u32>,
    /// Whether it was asked for on the present connection.
    is_asked: bool,
}

impl Locks {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Wish>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants a lock.
    pub(crate) fn want(&self, name: &str, place: u32) -> watch::Receiver<bool> {
        let mut all = self.all();
        let new = || Wish { owned: watch::Sender::new(false), places: BTreeSet::new(), is_asked: false };
        let wish = all.entry(name.to_string()).or_insert_with(new);
        wish.places.insert(place);
        wish.owned.subscribe()
    }

    /// A client wants a lock no more; tells whether nobody else does, so that it is to be given up.
    pub(crate) fn forget(&self, name: &str, place: u32) -> bool {
        let mut all = self.all();
        let Some(wish) = all.get_mut(name) else { return false };
        wish.places.remove(&place);
        let is_last = wish.places.is_empty();
        is_last && all.remove(name).is_some()
    }

    /// All that a client wants.
    pub(crate) fn names(&self, place: u32) -> Vec<String> {
        let all = self.all();
        all.iter().filter(|(_, wish)| wish.places.contains(&place)).map(|(name, _)| name.clone()).collect()
    }

    /// Whether a lock is still to be asked for on this connection; from now on it is not.
    pub(crate) fn ask(&self, name: &str) -> bool {
        self.all().get_mut(name).is_some_and(|wish| !std::mem::replace(&mut wish.is_asked, true))
    }

    pub(crate) fn set(&self, name: &str, owned: bool) {
        if let Some(wish) = self.all().get(name) {
            wish.owned.send_replace(owned);
        }
    }

    /// The connection is gone, and the locks with it.
    pub(crate) fn lose_all(&self) {
        for wish in self.all().values_mut() {
            wish.is_asked = false;
            wish.owned.send_replace(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_who_wants_a_lock_gives_it_up() {
        let locks = Locks::default();
        let first = locks.want("l", 0);
        let second = locks.want("l", 1);
        assert_eq!((locks.ask("l"), locks.ask("l")), (true, false));
        locks.set("l", true);
        assert!(*first.borrow() && *second.borrow());
        assert!(!locks.forget("l", 0) && *second.borrow());
        assert!(locks.names(0).is_empty());
        assert!(locks.forget("l", 1) && !locks.forget("l", 1));

        let third = locks.want("l", 2);
        assert!(locks.ask("l"));
        locks.set("l", true);
        locks.lose_all();
        assert!(!*third.borrow() && locks.ask("l"), "a new connection begins anew");
    }
}
