//! The server under test, commands with a deadline, and a small client that speaks the protocol itself.
//!
//! Invariants: nothing a test started outlives it; every wait has a deadline; a missing program is a failure that names
//! the command which installs it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cowslip_ldap::framing::{Framing, frame};
use cowslip_ldap::message::{
    Authentication, ChangeOperation, MessageId, ResponseOperation, decode_response, write_bind, write_modify,
};
use cowslip_ldap::result::ResultCode;

/// The suffix of every test's directory.
pub(crate) const SUFFIX: &str = "dc=example,dc=com";
/// The user who may do everything.
pub(crate) const ROOT_DN: &str = "cn=admin,dc=example,dc=com";
/// That user's password.
pub(crate) const ROOT_PASSWORD: &str = "secret";

/// How long a server may take to listen, a debug build on a busy machine included.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to stop when asked.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);
/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(5);
/// The largest answer that the small client takes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A directory of one test, removed when the test ends.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cow").tempdir_in("/tmp").expect("a directory in /tmp can be made")
}

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("COWSLIP_TEST_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_cowslip")), PathBuf::from)
}

/// A file of test data.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// The path of a program that the tests need.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    let mut found = std::env::split_paths(&path).chain(more).map(|dir| dir.join(name));
    found.find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("the program {name} is missing: run `cargo xtask peers`, which installs it")
    })
}

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

/// Runs a command that reads `input` until it ends or its time is over, when it is killed.
pub(crate) fn run(command: &mut Command, input: &str) -> Finished {
    let dir = scratch();
    let (out, err, inp) = (dir.path().join("out"), dir.path().join("err"), dir.path().join("in"));
    std::fs::write(&inp, input).expect("the input file can be written");
    let create = |path: &Path| std::fs::File::create(path).expect("an output file can be made");
    command.stdin(std::fs::File::open(&inp).expect("the input file can be read"));
    command.stdout(create(&out)).stderr(create(&err)).env("LC_ALL", "C.UTF-8").env("LDAPNOINIT", "1");
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let code = wait(&mut child, COMMAND_LIMIT);
    if code.is_none() {
        end(&mut child);
    }
    let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    Finished { code: code.flatten(), stdout: text(&out), stderr: text(&err) }
}

/// Waits for a child; the outer `None` means that it still runs.
fn wait(child: &mut Child, limit: Duration) -> Option<Option<i32>> {
    let over = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status.code());
        }
        if Instant::now() > over {
            return None;
        }
        std::thread::sleep(POLL);
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// A server in the background.
pub(crate) struct Server {
    child: Child,
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    /// The name and password of the user who may do everything.
    pub(crate) root: (String, String),
}

impl Server {
    /// Starts ours on a folder.
    pub(crate) fn start(folder: &Path) -> Server {
        Self::start_with(folder, &[], &[])
    }

    /// Starts ours with more arguments, within another program.
    pub(crate) fn start_with(folder: &Path, more: &[&str], wrapper: &[String]) -> Server {
        let log = folder.with_extension("log");
        let mut words = wrapper.iter().map(Into::into).chain([binary()]);
        let mut command = Command::new(words.next().expect("the binary at least"));
        command.args(words).arg("ldap-server").arg("--data").arg(folder);
        command.args(["--suffix", SUFFIX, "--root-dn", ROOT_DN, "--root-password", ROOT_PASSWORD]);
        command.args(["--listen", "ldap://127.0.0.1:0"]).args(more);
        let child = spawn(&mut command, &log);
        let root = (ROOT_DN.to_owned(), ROOT_PASSWORD.to_owned());
        let mut server = Server { child, port: 0, root };
        server.port = server.await_some(&log, || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let line = text.lines().find_map(|line| line.split_once("endpoint=tcp:127.0.0.1:"));
            line.and_then(|(_, port)| port.trim().parse().ok())
        });
        server
    }

    /// Starts another server, which listens on a port that it is told.
    pub(crate) fn foreign(command: &mut Command, port: u16, root: (&str, &str), log: &Path) -> Server {
        let child = spawn(command, log);
        let mut server = Server { child, port, root: (root.0.to_owned(), root.1.to_owned()) };
        server.await_some(log, || TcpStream::connect(("127.0.0.1", port)).ok());
        server
    }

    fn await_some<T>(&mut self, log: &Path, mut look: impl FnMut() -> Option<T>) -> T {
        let over = Instant::now() + START_LIMIT;
        loop {
            if let Some(found) = look() {
                return found;
            }
            let has_ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || Instant::now() > over {
                panic!("the server does not listen: {}", std::fs::read_to_string(log).unwrap_or_default());
            }
            std::thread::sleep(POLL);
        }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("ldap://127.0.0.1:{}", self.port)
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn stop(mut self) {
        assert!(self.terminate().is_some(), "the server does not stop");
    }

    fn terminate(&mut self) -> Option<Option<i32>> {
        if let Some(code) = self.child.try_wait().expect("a child can be waited for") {
            return Some(code.code());
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // The child has not been waited for, so the number is still its own.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        wait(&mut self.child, STOP_LIMIT)
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        end(&mut self.child);
    }

    /// A program of ldap-utils as root of this server.
    pub(crate) fn tool(&self, name: &str, arguments: &[&str]) -> Command {
        self.tool_as(name, &self.root.0, &self.root.1, arguments)
    }

    /// A program of ldap-utils as some user.
    pub(crate) fn tool_as(&self, name: &str, dn: &str, password: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command.args(["-x", "-H", &self.url(), "-D", dn, "-w", password]).args(arguments);
        command
    }

    /// Adds the entries of an LDIF text.
    pub(crate) fn add(&self, ldif: &str) {
        run(&mut self.tool("ldapadd", &[]), ldif).success("ldapadd");
    }

    /// The entries of a search, as LDIF with one line for each value.
    pub(crate) fn search(&self, arguments: &[&str]) -> String {
        let arguments = [&["-LLL", "-o", "ldif-wrap=no"], arguments].concat();
        run(&mut self.tool("ldapsearch", &arguments), "").success("ldapsearch")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asked first, because a tracer that is killed would leave what it traces behind.
        if self.terminate().is_none() {
            end(&mut self.child);
        }
    }
}

fn spawn(command: &mut Command, log: &Path) -> Child {
    let file = std::fs::File::create(log).expect("a log file can be made");
    command.stdin(Stdio::null()).stdout(file.try_clone().expect("a file handle can be cloned")).stderr(file);
    command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// A connection that speaks the protocol itself: one request after the other, with numbers of its own choice.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    /// Connects and binds as root.
    pub(crate) fn root(port: u16) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let mut connection = Connection { stream, received: Vec::new() };
        let mut out = Vec::new();
        let password = Authentication::Simple(ROOT_PASSWORD.as_bytes());
        write_bind(&mut out, id(1), ROOT_DN.as_bytes(), password, &[]);
        connection.stream.write_all(&out)?;
        connection.answer()?;
        Ok(connection)
    }

    /// Sends a modification that replaces attributes by one value each.
    pub(crate) fn send_replace(
        &mut self,
        number: u32,
        dn: &str,
        values: &[(&str, &str)],
    ) -> std::io::Result<()> {
        let values: Vec<(&str, [&str; 1])> = values.iter().map(|(name, value)| (*name, [*value])).collect();
        let mut out = Vec::new();
        let changes = values.iter().map(|(name, value)| (ChangeOperation::Replace, *name, &value[..]));
        write_modify(&mut out, id(number), dn.as_bytes(), changes, &[]);
        self.stream.write_all(&out)
    }

    /// Waits for the next answer, which must be a success.
    pub(crate) fn answer(&mut self) -> std::io::Result<()> {
        let mut piece = [0; 4_096];
        loop {
            if let Ok(Framing::Complete { bytes }) = frame(&self.received, ANSWER_BYTES_MAX) {
                let response = decode_response(&self.received[..bytes]).expect("a response");
                let (ResponseOperation::Done { result, .. } | ResponseOperation::Bind { result, .. }) =
                    &response.operation
                else {
                    panic!("{response:?}");
                };
                assert_eq!(result.code, ResultCode::Success, "{result:?}");
                self.received.drain(..bytes);
                return Ok(());
            }
            match self.stream.read(&mut piece)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                bytes => self.received.extend_from_slice(&piece[..bytes]),
            }
        }
    }
}

fn id(number: u32) -> MessageId {
    MessageId::new(number).expect("in range")
}
