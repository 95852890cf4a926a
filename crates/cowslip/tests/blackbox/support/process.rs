//! Commands with a deadline, and the programs that must be installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often a wait looks again.
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// What a finished command left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The exit code, or `None` if a signal or the deadline ended it.
    pub(crate) code: Option<i32>,
    /// What it wrote to its standard output.
    pub(crate) stdout: String,
    /// What it wrote to its standard error.
    pub(crate) stderr: String,
}

impl Finished {
    /// The output of a command that must have succeeded.
    pub(crate) fn success(self, what: &str) -> String {
        assert!(self.code == Some(0), "{what}: exit {:?}\n{}\n{}", self.code, self.stdout, self.stderr);
        self.stdout
    }
}

/// Runs a command until it ends or `limit` is over, when it is killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Finished {
    run_with_input(command, b"", limit)
}

/// Runs a command that reads `input`.
pub(crate) fn run_with_input(command: &mut Command, input: &[u8], limit: Duration) -> Finished {
    let dir = super::scratch();
    let (out, err, inp) = (dir.path().join("out"), dir.path().join("err"), dir.path().join("in"));
    std::fs::write(&inp, input).expect("the input file can be written");
    let open = |p: &Path| std::fs::File::create(p).expect("an output file can be made");
    command.stdin(std::fs::File::open(&inp).expect("the input file can be read"));
    command.stdout(open(&out)).stderr(open(&err));
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let code = wait(&mut child, limit);
    if code.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let text = |p: &Path| String::from_utf8_lossy(&std::fs::read(p).unwrap_or_default()).into_owned();
    Finished { code: code.flatten(), stdout: text(&out), stderr: text(&err) }
}

/// Waits for a child; the outer `None` means that it still runs.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<Option<i32>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status.code());
        }
        if Instant::now() > end {
            return None;
        }
        std::thread::sleep(POLL);
    }
}

/// Sends a signal to a child that has not been waited for, so the pid is still its own.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// A background process that ends with its owner.
pub(crate) struct Background(Child);

impl Background {
    /// Starts it with its output in `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Background {
        let file = std::fs::File::create(log).expect("a log file can be made");
        command.stdin(Stdio::null());
        command.stdout(file.try_clone().expect("a file handle can be cloned")).stderr(file);
        Background(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }

    /// The exit code if it ends within the limit.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<Option<i32>> {
        wait(&mut self.0, limit)
    }

    /// The child itself.
    pub(crate) fn child(&self) -> &Child {
        &self.0
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        signal(&self.0, rustix::process::Signal::TERM);
        if wait(&mut self.0, Duration::from_secs(5)).is_none() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// The path of a program that the tests need; a missing one fails the test.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|dir| dir.join(name)).find(|p| p.is_file()).unwrap_or_else(
        || panic!("the program {name} is missing: run `cargo xtask peers`, which installs it"),
    )
}

/// A command of a peer program with the environment kept away from the machine's own Open vSwitch.
pub(crate) fn command<S: AsRef<OsStr>>(name: &str, dir: &Path, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program(name));
    command.args(args).current_dir(dir);
    isolate(&mut command, dir);
    command
}

/// Points the run and log directories of Open vSwitch and OVN to `dir`.
pub(crate) fn isolate(command: &mut Command, dir: &Path) {
    for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVN_RUNDIR", "OVN_LOGDIR", "OVN_DBDIR"] {
        command.env(name, dir);
    }
    command.env("OVS_SYSLOG_METHOD", "null").env("LC_ALL", "C.UTF-8");
}

/// The Python interpreter that has `ovs` and `ovsdbapp`.
pub(crate) fn python() -> PathBuf {
    let path = std::env::var_os("COWSLIP_PEERS_PYTHON").map_or_else(
        || super::repository().join("target/peers/venv/bin/python"),
        |given| super::repository().join(given),
    );
    assert!(path.exists(), "{} is missing: run `cargo xtask peers`, which makes it", path.display());
    path
}
