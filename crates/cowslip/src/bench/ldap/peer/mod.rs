//! The servers under test: slapd, 389-ds, ours, the floor, or one that runs already.
//!
//! What is started here works in a temporary folder of its own on a free port of the loopback interface, and is ended,
//! by its process id, with its owner. Invariant: all start with the same entries and, unless said otherwise, the same
//! indexes, and none answers a write before it is on the disk.

mod cowslip;
mod dirsrv;
mod slapd;

use super::population::{self, PASSWORD, SUFFIX};
use crate::bench::error::BenchError;
use crate::bench::machine::resident_mb;
use clap::ValueEnum;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(60);
/// How long it may take to end when asked to.
const STOP_MAX: Duration = Duration::from_secs(20);
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(20);

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// OpenLDAP's, with its mdb backend
    Slapd,
    /// 389 Directory Server, with its bdb backend
    #[value(name = "389ds")]
    Dirsrv,
    /// This program's
    Cowslip,
    /// One that only decodes, appends, syncs and answers (for modrate, addrate and deleterate)
    Floor,
}

/// The indexes of the entries' attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Indexes {
    /// Equality on objectClass and uid
    Common,
    /// Those that 389-ds makes by itself for these entries
    #[value(name = "389ds")]
    Dirsrv,
}

impl Indexes {
    /// Attributes and kinds of indexes.
    fn list(self) -> &'static [(&'static str, &'static [Form])] {
        const BOTH: &[Form] = &[Form::Equality, Form::Substring];
        match self {
            Self::Common => &[("objectClass", &[Form::Equality]), ("uid", &[Form::Equality])],
            Self::Dirsrv => &[
                ("objectClass", &[Form::Equality]),
                ("uid", &[Form::Equality]),
                ("cn", BOTH),
                ("sn", BOTH),
                ("givenName", BOTH),
                ("mail", BOTH),
                ("telephoneNumber", BOTH),
            ],
        }
    }
}

/// A kind of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Equality,
    Substring,
}

impl Form {
    /// Its name in our and in OpenLDAP's configuration.
    fn name(self) -> &'static str {
        match self {
            Self::Equality => "eq",
            Self::Substring => "sub",
        }
    }
}

/// How all servers are set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// How many people there are.
    pub(crate) entries: u64,
    /// The indexes.
    pub(crate) indexes: Indexes,
    /// Whether each operation is noted in a log.
    pub(crate) access_log: bool,
    /// Whether an answer to a write waits until it is on the disk.
    pub(crate) is_durable: bool,
}

impl Peer {
    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Slapd => "slapd",
            Self::Dirsrv => "389ds",
            Self::Cowslip => "cowslip",
            Self::Floor => "floor",
        }
    }

    /// What it says of its version and how it is set up.
    pub(crate) fn version(self) -> Result<String, BenchError> {
        match self {
            Self::Slapd => slapd::version(),
            Self::Dirsrv => dirsrv::version(),
            Self::Cowslip => {
                Ok(format!("cowslip: {}; it has no access log to switch on", env!("CARGO_PKG_VERSION")))
            }
            Self::Floor => Ok("floor: decodes, appends, syncs, answers; nothing else".to_owned()),
        }
    }

    /// Fills a folder and starts the server on it.
    pub(crate) fn start(self, setup: &Setup) -> Result<Server, BenchError> {
        let folder = tempfile::Builder::new().prefix("cowslip-bench-").tempdir()?;
        let place = Place { root: folder.path().to_owned(), port: free_port()?, setup: *setup };
        let name = self.name();
        let command = match self {
            Self::Slapd => slapd::prepare(&place),
            Self::Dirsrv => dirsrv::prepare(&place),
            Self::Cowslip => cowslip::prepare(&place),
            Self::Floor => cowslip::prepare_floor(&place),
        }?;
        let user = match self {
            Self::Dirsrv => dirsrv::ROOT_DN.to_owned(),
            _ => root_dn(),
        };
        let url = format!("ldap://127.0.0.1:{}", place.port);
        let child = start(command, name, &place)?;
        let mut server = Server {
            url,
            user,
            password: PASSWORD.to_owned(),
            pid: Some(child.id()),
            started: Some(Started { child, _folder: folder }),
        };
        if server.wait_until_listening(place.port) {
            if self == Self::Cowslip {
                cowslip::remove_other_indexes(&server, &place)?;
            }
            return Ok(server);
        }
        Err(BenchError::NotListening { name: name.to_owned(), log: place.log_text() })
    }
}

/// The user who may do everything, below the suffix as slapd wants it.
fn root_dn() -> String {
    format!("cn=admin,{SUFFIX}")
}

fn free_port() -> Result<u16, BenchError> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Where a server lives.
struct Place {
    root: PathBuf,
    port: u16,
    setup: Setup,
}

impl Place {
    /// A path below the folder.
    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The same as text for a configuration file.
    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes the entries; gives the file.
    fn write_population(&self) -> Result<PathBuf, BenchError> {
        let path = self.path("population.ldif");
        let mut file = BufWriter::new(File::create(&path)?);
        population::write_ldif(&mut file, self.setup.entries)?;
        file.flush()?;
        Ok(path)
    }

    /// The end of what the server said.
    fn log_text(&self) -> String {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

/// Runs something that prepares a folder to its end.
fn run(command: &mut Command, name: &str) -> Result<(), BenchError> {
    let named = |source| BenchError::Program { name: name.to_owned(), source };
    let output = command.stdin(Stdio::null()).output().map_err(named)?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(BenchError::Failed { name: name.to_owned(), output: String::from_utf8_lossy(&said).into_owned() })
}

fn start(mut command: Command, name: &str, place: &Place) -> Result<Child, BenchError> {
    let log = File::create(place.path("log"))?;
    command.current_dir(&place.root).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().map_err(|source| BenchError::Program { name: name.to_owned(), source })
}

/// An installed program: Debian keeps servers where the search path of a user does not look.
fn installed(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let mut found = folders.map(|folder| folder.join(name)).filter(|program| program.is_file());
    found.next().unwrap_or_else(|| Path::new(name).to_owned())
}

/// A server to measure.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) url: String,
    /// Who may do everything.
    pub(crate) user: String,
    /// That user's password.
    pub(crate) password: String,
    /// Its process, where that is known.
    pub(crate) pid: Option<u32>,
    started: Option<Started>,
}

/// What has to be ended and removed.
struct Started {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Server {
    /// A server that runs already.
    pub(crate) fn running(url: &str, user: &str, password: &str, pid: Option<u32>) -> Self {
        let (url, user, password) = (url.to_owned(), user.to_owned(), password.to_owned());
        Self { url, user, password, pid, started: None }
    }

    /// The memory that it has in use, in megabytes.
    pub(crate) fn memory_mb(&self) -> Option<f64> {
        resident_mb(self.pid?).map(|(now, _)| now)
    }

    fn wait_until_listening(&mut self, port: u16) -> bool {
        let end = Instant::now() + START_MAX;
        while Instant::now() < end {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return true;
            }
            let ended = self.started.as_mut().is_some_and(|s| !matches!(s.child.try_wait(), Ok(None)));
            if ended {
                return false;
            }
            std::thread::sleep(POLL);
        }
        false
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let end = Instant::now() + STOP_MAX;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
