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
use crate::bench::process::Started;
use clap::ValueEnum;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

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
        let mut started = Started::new(child, folder);
        if started.wait_until(|| TcpStream::connect(("127.0.0.1", place.port)).is_ok()) {
            let password = PASSWORD.to_owned();
            let server = Server { url, user, password, pid: Some(started.id()), _started: Some(started) };
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
    _started: Option<Started>,
}

impl Server {
    /// A server that runs already.
    pub(crate) fn running(url: &str, user: &str, password: &str, pid: Option<u32>) -> Self {
        let (url, user, password) = (url.to_owned(), user.to_owned(), password.to_owned());
        Self { url, user, password, pid, _started: None }
    }

    /// The memory that it has in use, in megabytes.
    pub(crate) fn memory_mb(&self) -> Option<f64> {
        resident_mb(self.pid?).map(|(now, _)| now)
    }
}
