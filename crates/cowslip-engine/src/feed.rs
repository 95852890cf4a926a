//! The change sets in commit order, for everyone who follows the database.
//!
//! A follower (a monitor, a relay, a reconnecting client) keeps only a cursor, the generation up to which it has seen
//! everything, and asks for what came since. Invariants: generations of entries strictly ascend; an entry is here only
//! after the root that has it was published; between the floor and the newest generation nothing is missing. Memory is
//! bounded by bytes, not by followers.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use uuid::Uuid;

use crate::change::ChangeSet;
use crate::model::Model;

/// How much history is kept unless told otherwise, in bytes as [`ChangeSet::bytes`] estimates them.
pub const HISTORY_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// One published commit.
pub struct Entry<M: Model> {
    /// The generation of the first root that has it.
    pub generation: u64,
    /// What changed.
    pub changes: Arc<ChangeSet<M>>,
    /// What the commit carried besides.
    pub note: Arc<M::Note>,
    /// The meta from here on, if this commit changed it.
    pub meta: Option<Arc<M::Meta>>,
    /// The journal's name for the state after this commit.
    pub position: Uuid,
}

/// The cursor is older than the history, or than a replacement of the whole database: start over from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The oldest cursor that still works.
    pub floor: u64,
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the history begins after generation {}", self.floor)
    }
}

impl std::error::Error for Behind {}

type Listener = Box<dyn Fn(u64) + Send + Sync>;

/// The change sets in commit order, kept up to a number of bytes.
pub struct Feed<M: Model> {
    history: Mutex<History<M>>,
    bytes_max: usize,
    listeners: RwLock<Vec<Listener>>,
}

struct History<M: Model> {
    entries: VecDeque<Arc<Entry<M>>>,
    positions: HashMap<Uuid, u64>,
    /// Every entry after this generation is here.
    floor: u64,
    floor_position: Uuid,
    newest: u64,
    bytes: usize,
    /// How many bytes each [`Hold`] allows.
    holds: Vec<usize>,
}

/// Keeps a longer history while it is there: see [`Feed::hold`].
pub struct Hold<'a, M: Model> {
    feed: &'a Feed<M>,
    bytes_max: usize,
}

impl<M: Model> Feed<M> {
    /// An empty feed that begins after `generation`, where the state is known as `position` to the journal.
    pub fn new(bytes_max: usize, generation: u64, position: Uuid) -> Self {
        let history = History {
            entries: VecDeque::new(),
            positions: HashMap::new(),
            floor: generation,
            floor_position: position,
            newest: generation,
            bytes: 0,
            holds: Vec::new(),
        };
        Self { history: Mutex::new(history), bytes_max, listeners: RwLock::default() }
    }

    /// Everything after a cursor, oldest first. A follower goes on from the last entry's generation.
    ///
    /// # Errors
    /// The cursor fell out of the history.
    pub fn since(&self, cursor: u64) -> Result<Vec<Arc<Entry<M>>>, Behind> {
        let history = self.history();
        if cursor < history.floor {
            return Err(Behind { floor: history.floor });
        }
        let first = history.entries.partition_point(|entry| entry.generation <= cursor);
        Ok(history.entries.range(first..).cloned().collect())
    }

    /// The generation up to which the feed goes.
    pub fn newest(&self) -> u64 {
        self.history().newest
    }

    /// The oldest cursor that works.
    pub fn floor(&self) -> u64 {
        self.history().floor
    }

    /// The cursor of a state by the journal's name for it, if the history reaches back that far.
    pub fn cursor_at(&self, position: &Uuid) -> Option<u64> {
        let history = self.history();
        let floor = (history.floor_position == *position).then_some(history.floor);
        history.positions.get(position).copied().or(floor)
    }

    /// The journal's name for the newest state.
    pub fn position(&self) -> Uuid {
        let history = self.history();
        history.entries.back().map_or(history.floor_position, |entry| entry.position)
    }

    /// The journal's name for the state of a generation; none if that is not in the history, or not yet.
    pub fn position_at(&self, generation: u64) -> Option<Uuid> {
        let history = self.history();
        if generation == history.floor {
            return Some(history.floor_position);
        }
        let at = history.entries.binary_search_by_key(&generation, |entry| entry.generation).ok()?;
        history.entries.get(at).map(|entry| entry.position)
    }

    /// The estimated bytes of the history.
    pub fn bytes(&self) -> usize {
        self.history().bytes
    }

    /// Has a function called with the newest generation after each publication, on the publishing thread: it should do
    /// no more than wake someone.
    pub fn on_publish(&self, listener: Box<dyn Fn(u64) + Send + Sync>) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// Adds published commits and gives back what fell out of the history, for another thread to free.
    ///
    /// The newest entry always stays, however large: a follower that is up to date must not fall behind by one commit.
    pub fn push(&self, entries: impl IntoIterator<Item = Entry<M>>) -> Vec<Arc<Entry<M>>> {
        let mut history = self.history();
        for entry in entries {
            debug_assert!(entry.generation > history.newest, "entries come in commit order");
            history.newest = entry.generation;
            history.bytes += entry.bytes();
            history.positions.insert(entry.position, entry.generation);
            history.entries.push_back(Arc::new(entry));
        }
        history.trim(self.bytes_max)
    }

    /// Keeps up to `bytes_max` bytes of history from here on until the hold is dropped, which frees what was too much.
    ///
    /// For a follower that comes now and then, such as an index that is built beside the commits: a long history that
    /// nobody reads costs each commit more than itself, because all that is allocated comes from cold memory then. Whoever
    /// holds first and then takes the newest root can follow on from that root.
    pub fn hold(&self, bytes_max: usize) -> Hold<'_, M> {
        self.history().holds.push(bytes_max);
        Hold { feed: self, bytes_max }
    }

    /// Forgets everything: from here on only cursors at `generation` or later work.
    pub fn restart(&self, generation: u64, position: Uuid) -> Vec<Arc<Entry<M>>> {
        let mut history = self.history();
        let dropped = history.entries.drain(..).collect();
        history.positions.clear();
        history.floor = generation;
        history.floor_position = position;
        history.newest = generation;
        history.bytes = 0;
        dropped
    }

    /// Wakes everyone who asked for it.
    pub fn announce(&self, generation: u64) {
        for listener in self.listeners.read().unwrap_or_else(PoisonError::into_inner).iter() {
            listener(generation);
        }
    }

    fn history(&self) -> MutexGuard<'_, History<M>> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Model> fmt::Debug for Feed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let history = self.history();
        f.debug_struct("Feed")
            .field("floor", &history.floor)
            .field("newest", &history.newest)
            .field("bytes", &history.bytes)
            .finish_non_exhaustive()
    }
}

impl<M: Model> Drop for Hold<'_, M> {
    fn drop(&mut self) {
        let mut history = self.feed.history();
        let place = history.holds.iter().position(|held| *held == self.bytes_max);
        place.map(|place| history.holds.swap_remove(place));
        let dropped = history.trim(self.feed.bytes_max);
        // Freeing it takes time in which nobody should wait for the history.
        drop(history);
        drop(dropped);
    }
}

impl<M: Model> fmt::Debug for Hold<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

impl<M: Model> History<M> {
    /// Takes out what is beyond the limit.
    fn trim(&mut self, bytes_max: usize) -> Vec<Arc<Entry<M>>> {
        let bytes_max = self.holds.iter().copied().fold(bytes_max, usize::max);
        let mut dropped = Vec::new();
        while self.bytes > bytes_max && self.entries.len() > 1 {
            dropped.extend(self.drop_oldest());
        }
        dropped
    }

    fn drop_oldest(&mut self) -> Option<Arc<Entry<M>>> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.bytes();
        self.positions.remove(&entry.position);
        // A cursor at this entry itself still works; one before it does not.
        self.floor = entry.generation;
        self.floor_position = entry.position;
        Some(entry)
    }
}

impl<M: Model> Entry<M> {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.changes.bytes()
    }
}
