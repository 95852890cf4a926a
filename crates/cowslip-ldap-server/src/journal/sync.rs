//! What was written and not synced yet, and how far everything is durable.
//!
//! Syncs come from whoever needs durability and, if an interval is set, from a thread that sees to it that nothing stays
//! unsynced for much longer than that. Invariants: one sync runs at a time, and who asks for durability waits for the
//! one that runs; after a failed sync nothing is durable that was not before, for ever.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cowslip_engine::storage::StorageFile;

/// The files of a journal that have to be synced.
pub(super) struct Syncing {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Held while a sync runs.
    turn: Mutex<()>,
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    dirty: Vec<Arc<dyn StorageFile>>,
    /// The number of the first batch that is not written.
    written: u64,
    /// The number of the first batch that is not durable.
    durable: u64,
    failure: Option<String>,
    stopping: bool,
}

impl fmt::Debug for Syncing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syncing").field("durable", &self.durable()).finish_non_exhaustive()
    }
}

impl Syncing {
    /// All batches below a number are durable.
    pub(super) fn start(durable: u64, interval: Option<Duration>) -> io::Result<Self> {
        let state = Mutex::new(State { written: durable, durable, ..State::default() });
        let shared = Arc::new(Shared { turn: Mutex::new(()), state, woken: Condvar::new() });
        let thread = interval.map(|interval| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("journal-sync".to_owned()).spawn(move || shared.run(interval))
        });
        Ok(Self { shared, thread: thread.transpose()? })
    }

    /// The number of the first batch that is not known to be durable.
    pub(super) fn durable(&self) -> u64 {
        self.shared.state().durable
    }

    /// Why nothing more can become durable, if that is so.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.state().failure.clone()
    }

    /// Nothing more can become durable.
    pub(super) fn fail(&self, reason: String) {
        self.shared.state().failure.get_or_insert(reason);
    }

    /// Batches below a number were written, the newest of them to these files.
    pub(super) fn wrote<'a>(&self, files: impl Iterator<Item = &'a Arc<dyn StorageFile>>, written: u64) {
        let mut state = self.shared.state();
        for file in files {
            if !state.dirty.iter().any(|dirty| Arc::ptr_eq(dirty, file)) {
                state.dirty.push(Arc::clone(file));
            }
        }
        state.written = written;
        if self.thread.is_some() {
            self.shared.woken.notify_one();
        }
    }

    /// Returns once everything written before is durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.shared.sync()
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.shared.state().stopping = true;
        self.shared.woken.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in it was told by the hook already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sync(&self) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (dirty, written) = {
            let mut state = self.state();
            if let Some(reason) = &state.failure {
                return Err(io::Error::other(reason.clone()));
            }
            (std::mem::take(&mut state.dirty), state.written)
        };
        // In the order of writing, so that what is durable has no gaps if the machine stops in between.
        let synced = dirty.iter().try_for_each(|file| file.sync_data());
        let mut state = self.state();
        match &synced {
            Ok(()) => state.durable = written,
            Err(error) => {
                tracing::error!(%error, "syncing the journal failed; the directory is read-only until it is reopened");
                state.failure.get_or_insert(format!("a sync of the journal failed: {error}"));
            }
        }
        synced
    }

    fn run(&self, interval: Duration) {
        let mut state = self.state();
        loop {
            while state.dirty.is_empty() && !state.stopping {
                state = self.woken.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            // What is written now may wait for as long as the interval, and nothing is synced more often.
            let slept = self.woken.wait_timeout_while(state, interval, |state| !state.stopping);
            state = slept.unwrap_or_else(PoisonError::into_inner).0;
            if state.stopping || state.failure.is_some() {
                return;
            }
            drop(state);
            // A failure is kept in the state.
            let _ = self.sync();
            state = self.state();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cowslip_engine::sim::{Fault, SimDisk};
    use cowslip_engine::storage::{OpenMode, Storage};

    use super::*;

    fn file(disk: &SimDisk, path: &str) -> Arc<dyn StorageFile> {
        disk.open(Path::new(path), OpenMode::Create).expect("the disk works").into()
    }

    #[test]
    fn a_failed_sync_is_never_made_good() {
        let disk = SimDisk::new();
        let file = file(&disk, "/a");
        let syncing = Syncing::start(3, None).expect("it needs no thread");
        syncing.wrote([&file].into_iter(), 5);
        assert_eq!(syncing.durable(), 3);
        syncing.sync().expect("the disk works");
        assert_eq!(syncing.durable(), 5);
        syncing.wrote([&file].into_iter(), 6);
        disk.inject(disk.steps(), Fault::Failed);
        assert!(syncing.sync().is_err());
        assert!(syncing.sync().is_err());
        assert_eq!(syncing.durable(), 5);
        assert!(syncing.failure().is_some());
    }

    #[test]
    fn an_interval_syncs_what_nobody_waits_for() {
        let disk = SimDisk::new();
        let files = [file(&disk, "/a"), file(&disk, "/b")];
        let syncing = Syncing::start(0, Some(Duration::from_millis(1))).expect("threads can be had");
        syncing.wrote(files.iter(), 2);
        while syncing.durable() < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(disk.syncs(), 2);
    }
}
