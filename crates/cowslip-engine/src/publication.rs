//! How readers get the newest root without writing to memory that they share.
//!
//! The committer puts the new root behind a mutex and then raises a generation counter that nobody else writes. A
//! reader looks at the counter, whose cache line stays shared until the next publication, and only if it moved takes
//! the mutex and exchanges its own pointer. Invariants: generations only grow; a reader that sees generation `n` gets a
//! root of generation `n` or later; each hot word has its cache lines to itself.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::Model;
use crate::root::Root;

/// Two cache lines, because the processors that matter fetch lines in pairs.
#[repr(align(128))]
struct Padded<T>(T);

/// The newest root, and its generation for all to see.
pub struct Publication<M: Model> {
    generation: Padded<AtomicU64>,
    current: Padded<Mutex<Arc<Root<M>>>>,
}

impl<M: Model> Publication<M> {
    /// Publishes a first root.
    pub fn new(root: Arc<Root<M>>) -> Self {
        Self { generation: Padded(AtomicU64::new(root.generation())), current: Padded(Mutex::new(root)) }
    }

    /// The generation of the newest root.
    pub fn generation(&self) -> u64 {
        self.generation.0.load(Ordering::Acquire)
    }

    /// The newest root. This writes to its shared count: fine for a long reader, wrong for each operation.
    pub fn current(&self) -> Arc<Root<M>> {
        Arc::clone(&locked(&self.current.0))
    }

    /// A reader with its own place to keep the newest root.
    pub fn reader(self: &Arc<Self>) -> Reader<M> {
        Reader { publication: Arc::clone(self), own: Padded(Mutex::new(None)) }
    }

    /// A reader for each thread.
    pub fn readers(self: &Arc<Self>) -> Readers<M> {
        Readers((0..READERS).map(|_| self.reader()).collect())
    }

    /// Makes a root the newest and gives back the one before. For the committer, or whoever else owns the writing side.
    pub fn publish(&self, root: Arc<Root<M>>) -> Arc<Root<M>> {
        let generation = root.generation();
        let mut current = locked(&self.current.0);
        debug_assert!(generation >= current.generation(), "generations only grow");
        let superseded = std::mem::replace(&mut *current, root);
        // Inside the lock, so that two publishers could not leave the counter behind the root.
        self.generation.0.store(generation, Ordering::Release);
        superseded
    }
}

impl<M: Model> fmt::Debug for Publication<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

/// One worker's way to the newest root.
///
/// Each worker has its own: the mutex inside is then never contended, and its line stays with the worker's core.
pub struct Reader<M: Model> {
    publication: Arc<Publication<M>>,
    own: Padded<Mutex<Option<Arc<Root<M>>>>>,
}

/// A root borrowed from a [`Reader`] for the length of one operation. It must not be held while waiting.
pub struct RootGuard<'a, M: Model>(MutexGuard<'a, Option<Arc<Root<M>>>>);

impl<M: Model> Reader<M> {
    /// The newest root at this moment. The guard must be gone before this reader is asked again.
    pub fn root(&self) -> RootGuard<'_, M> {
        let mut own = locked(&self.own.0);
        let newest = self.publication.generation();
        if own.as_ref().is_none_or(|root| root.generation() < newest) {
            *own = Some(self.publication.current());
        }
        RootGuard(own)
    }

    /// Lets go of the root, so that a parked worker does not keep an old version alive.
    pub fn release(&self) {
        *locked(&self.own.0) = None;
    }

    /// Where this reader reads.
    pub fn publication(&self) -> &Arc<Publication<M>> {
        &self.publication
    }
}

impl<M: Model> Clone for Reader<M> {
    /// Another reader of the same publication.
    fn clone(&self) -> Self {
        self.publication.reader()
    }
}

impl<M: Model> fmt::Debug for Reader<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("publication", &self.publication).finish_non_exhaustive()
    }
}

/// How many threads have a reader of their own among [`Readers`]; more share them.
const READERS: usize = 64;

/// A reader for each thread, for tasks that move between threads.
///
/// A task that had a reader of its own would keep an old root alive while it waits, and fetch a new one for each of its
/// operations; there are far fewer threads than tasks, and between two publications a thread fetches one root for all.
pub struct Readers<M: Model>(Box<[Reader<M>]>);

impl<M: Model> Readers<M> {
    /// The newest root, by this thread's reader. The guard must be gone before this thread asks again, and before the
    /// task waits for anything.
    pub fn root(&self) -> RootGuard<'_, M> {
        self.0[THREAD.with(|thread| *thread) % READERS].root()
    }
}

impl<M: Model> fmt::Debug for Readers<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

thread_local! {
    /// This thread among those that ever asked.
    static THREAD: usize = {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        ASKED.fetch_add(1, Ordering::Relaxed)
    };
}

impl<M: Model> Deref for RootGuard<'_, M> {
    type Target = Arc<Root<M>>;

    fn deref(&self) -> &Arc<Root<M>> {
        self.0.as_ref().expect("a guard is made after the root was filled in")
    }
}

/// A lock whose data cannot be left half changed, so that a panic elsewhere need not spread.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
