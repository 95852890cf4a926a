//! The two servers: the installed one of Open vSwitch, and ours.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::process::{self, Finished};
use super::rpc::Session;

/// How long a server may take to listen, a debug build on a busy machine included.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long it may take to stop when asked.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Whose programs are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Open vSwitch's, as packaged.
    Real,
    /// The binary of this workspace.
    Cowslip,
}

impl Peer {
    /// The server under test: ours, or the real one if `COWSLIP_TEST_SERVER=real`, by which a test proves itself.
    pub(crate) fn under_test() -> Peer {
        match std::env::var("COWSLIP_TEST_SERVER").as_deref() {
            Ok("real") => Peer::Real,
            Ok("cowslip") | Err(_) => Peer::Cowslip,
            Ok(other) => panic!("COWSLIP_TEST_SERVER={other}: say real or cowslip"),
        }
    }

    /// A command that runs this peer's program of that name.
    pub(crate) fn command(self, name: &str, dir: &Path) -> Command {
        let mut command = match self {
            Peer::Real => Command::new(process::program(name)),
            Peer::Cowslip => {
                let mut command = Command::new(binary());
                command.arg(name);
                command
            }
        };
        command.current_dir(dir);
        process::isolate(&mut command, dir);
        command
    }

    /// Makes a database file; the outcome is the tool's.
    pub(crate) fn create(self, dir: &Path, file: &Path, schema: &Path) -> Finished {
        let mut command = self.command("ovsdb-tool", dir);
        command.arg("create").arg(file).arg(schema);
        process::run(&mut command, Duration::from_secs(20))
    }
}

/// The binary under test: `COWSLIP_TEST_BINARY`, or the one that cargo built for this test.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("COWSLIP_TEST_BINARY")
        .map(PathBuf::from)
        .or_else(|| option_env!("CARGO_BIN_EXE_cowslip").map(PathBuf::from))
        .expect("COWSLIP_TEST_BINARY names the binary when the tests are not built with it")
}

/// How a server is started.
pub(crate) struct Setup {
    /// Whose server.
    pub(crate) peer: Peer,
    /// Where it runs, and where its sockets are.
    pub(crate) dir: PathBuf,
    /// Files to serve.
    pub(crate) databases: Vec<PathBuf>,
    /// More flags.
    pub(crate) flags: Vec<String>,
    /// More environment.
    pub(crate) environment: Vec<(String, String)>,
    /// A command to put in front, as strace is.
    pub(crate) wrapper: Vec<String>,
}

impl Setup {
    /// A server of `peer` in `dir` with these files.
    pub(crate) fn new(peer: Peer, dir: &Path, databases: &[PathBuf]) -> Setup {
        Setup {
            peer,
            dir: dir.to_owned(),
            databases: databases.to_vec(),
            flags: Vec::new(),
            environment: Vec::new(),
            wrapper: Vec::new(),
        }
    }

    /// The command line.
    pub(crate) fn command(&self) -> Command {
        let plain = self.peer.command("ovsdb-server", &self.dir);
        let mut command = match self.wrapper.split_first() {
            None => plain,
            Some((first, rest)) => {
                let mut wrapped = Command::new(process::program(first));
                wrapped.args(rest).arg(plain.get_program()).args(plain.get_args()).current_dir(&self.dir);
                process::isolate(&mut wrapped, &self.dir);
                wrapped
            }
        };
        command.arg(format!("--remote=punix:{}", self.dir.join("s").display()));
        command.arg(format!("--unixctl={}", self.dir.join("ctl").display()));
        command.arg("--no-chdir").args(&self.flags).args(&self.databases);
        command.envs(self.environment.iter().map(|(k, v)| (k, v)));
        command
    }

    /// Starts it and waits until it listens.
    pub(crate) fn start(&self) -> Server {
        let socket = self.dir.join("s");
        let _ = std::fs::remove_file(&socket);
        let log = self.dir.join("server.log");
        let file =
            std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log can be made");
        let mut command = self.command();
        command.stdin(Stdio::null());
        command.stdout(file.try_clone().expect("a file handle can be cloned")).stderr(file);
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let wrapped = !self.wrapper.is_empty();
        let mut server = Server { peer: self.peer, child, wrapped, socket, log };
        let end = Instant::now() + START_LIMIT;
        while Session::try_connect(&server.socket).is_err() {
            let ended = server.child.try_wait().expect("a child can be waited for");
            assert!(ended.is_none(), "the server ended at start: {ended:?}\n{}", server.log_tail());
            assert!(Instant::now() < end, "the server did not listen in time\n{}", server.log_tail());
            std::thread::sleep(process::POLL);
        }
        server
    }
}

/// A running server, stopped when it is dropped.
pub(crate) struct Server {
    /// Whose server.
    pub(crate) peer: Peer,
    child: Child,
    wrapped: bool,
    /// Where it listens.
    pub(crate) socket: PathBuf,
    log: PathBuf,
}

impl Server {
    /// A server in `dir` with one fresh database per schema file; the files are named after the schemas.
    pub(crate) fn fresh(peer: Peer, dir: &Path, schemas: &[&Path]) -> (Server, Setup) {
        let mut files = Vec::new();
        for schema in schemas {
            let name = schema.file_stem().expect("a schema file has a name");
            let file = dir.join(name).with_extension("db");
            peer.create(dir, &file, schema).success("ovsdb-tool create");
            files.push(file);
        }
        let setup = Setup::new(peer, dir, &files);
        (setup.start(), setup)
    }

    /// `unix:PATH`, as the client programs want it.
    pub(crate) fn remote(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// A new session.
    pub(crate) fn connect(&self) -> Session {
        Session::connect(&self.socket)
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// The end of what it logged.
    pub(crate) fn log_tail(&self) -> String {
        let text = String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned();
        let start = text.char_indices().rev().nth(1500).map_or(0, |(at, _)| at);
        text[start..].to_owned()
    }

    /// Sends a signal to the server. A command in front of it ends by itself when the server has ended, and would
    /// leave it running if it were signalled instead.
    fn signal(&self, signal: rustix::process::Signal) {
        if !self.wrapped {
            return process::signal(&self.child, signal);
        }
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let text = std::fs::read_to_string(children).unwrap_or_default();
        for pid in text.split_whitespace().filter_map(|word| word.parse().ok()) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
    }

    /// Asks it to stop; the exit code, where `None` means that it had to be killed or died by a signal.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        if self.is_running() {
            self.signal(rustix::process::Signal::TERM);
        }
        if let Some(code) = process::wait(&mut self.child, STOP_LIMIT) {
            return code;
        }
        self.kill();
        None
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        if process::wait(&mut self.child, STOP_LIMIT).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
