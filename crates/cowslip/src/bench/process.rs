//! Servers that a bench has started: waited for, and ended with their owner.
//!
//! Invariant: what is started here works in a temporary folder of its own and is ended, by its process id, before that folder
//! goes.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(60);
/// How long it may take to end when asked to.
const STOP_MAX: Duration = Duration::from_secs(20);
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(10);

/// A server that was started, and the folder that goes with it.
pub(crate) struct Started {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Started {
    /// Takes over a process and its folder.
    pub(crate) fn new(child: Child, folder: tempfile::TempDir) -> Self {
        Self { child, _folder: folder }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is ready; false if it ended or took too long.
    pub(crate) fn wait_until(&mut self, is_ready: impl Fn() -> bool) -> bool {
        let end = Instant::now() + START_MAX;
        while Instant::now() < end {
            if is_ready() {
                return true;
            }
            if self.has_ended() {
                return false;
            }
            std::thread::sleep(POLL);
        }
        false
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // If it has ended meanwhile, there is nobody to ask.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let end = Instant::now() + STOP_MAX;
        while Instant::now() < end {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(POLL);
        }
        // What does not end when asked to is ended; a second failure leaves nothing to try.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An installed program: Debian keeps servers where the search path of a user does not look.
pub(crate) fn installed(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let mut found = folders.map(|folder| folder.join(name)).filter(|program| program.is_file());
    found.next().unwrap_or_else(|| Path::new(name).to_owned())
}
