//! The servers under test: the installed one of Open vSwitch, ours, or one that runs already.
//!
//! What is started here works in a temporary directory of its own and is ended, by its process id, with its owner.

use super::schema::SCHEMA;
use crate::bench::error::BenchError;
use crate::bench::machine::version_of;
use crate::ovsdb_client::connection::Stream;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(20);
/// How long it may take to end when asked to.
const STOP_MAX: Duration = Duration::from_secs(10);
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(10);

/// Whose server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// `ovsdb-server` from the search path.
    Real,
    /// This program.
    Cowslip,
    /// A server that runs already, with the process id if it is known.
    Running(String, Option<u32>),
}

impl Peer {
    /// The name in tables.
    pub(crate) fn name(&self) -> &str {
        match self {
            Peer::Real => "ovsdb-server",
            Peer::Cowslip => "cowslip",
            Peer::Running(address, _) => address,
        }
    }

    /// What the peer says of its version.
    pub(crate) fn version(&self) -> Result<String, BenchError> {
        match self {
            Peer::Real => version_of(&real_program("ovsdb-server")).ok_or_else(|| BenchError::Program {
                name: "ovsdb-server".to_owned(),
                source: std::io::ErrorKind::NotFound.into(),
            }),
            Peer::Cowslip => Ok(format!("cowslip {}", env!("CARGO_PKG_VERSION"))),
            Peer::Running(address, _) => Ok(format!("the server at {address}")),
        }
    }

    fn command(&self, program: &str, directory: &Path) -> Result<Command, BenchError> {
        let mut command = if *self == Peer::Real {
            Command::new(real_program(program))
        } else {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(program);
            command
        };
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
            command.env(variable, directory);
        }
        command.current_dir(directory).stdin(Stdio::null());
        Ok(command)
    }

    /// Starts the server on an empty database.
    pub(crate) fn start(&self) -> Result<Server, BenchError> {
        if let Peer::Running(address, pid) = self {
            return Ok(Server { address: address.clone(), pid: *pid, started: None });
        }
        let directory = tempfile::Builder::new().prefix("cowslip-bench-").tempdir()?;
        let path = directory.path();
        let (schema, database, log) = (path.join("schema"), path.join("db"), path.join("log"));
        fs::write(&schema, SCHEMA)?;
        let mut create = self.command("ovsdb-tool", path)?;
        create.arg("create").arg(&database).arg(&schema);
        let named = |source| BenchError::Program { name: self.name().to_owned(), source };
        let output = create.output().map_err(named)?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(BenchError::Failed { name: format!("{}: ovsdb-tool create", self.name()), output });
        }
        let mut command = self.command("ovsdb-server", path)?;
        let option = |name: &str, value: PathBuf| {
            let mut option = OsString::from(name);
            option.push(value);
            option
        };
        command.arg(option("--remote=punix:", path.join("s"))).arg(option("--unixctl=", path.join("ctl")));
        command.arg("--no-chdir").arg(&database);
        let file = File::create(&log)?;
        let child = command.stdout(file.try_clone()?).stderr(file).spawn().map_err(named)?;
        let address = format!("unix:{}", path.join("s").display());
        let pid = child.id();
        let mut server =
            Server { address, pid: Some(pid), started: Some(Started { child, _directory: directory }) };
        match server.wait_until_listening() {
            true => Ok(server),
            false => Err(BenchError::NotListening {
                name: self.name().to_owned(),
                log: fs::read_to_string(&log).unwrap_or_default(),
            }),
        }
    }
}

/// The installed program: Debian keeps servers where the search path of a user does not look.
fn real_program(name: &str) -> String {
    let in_sbin = format!("/usr/sbin/{name}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    if !found && Path::new(&in_sbin).is_file() { in_sbin } else { name.to_owned() }
}

/// A server to measure.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: String,
    /// Its process, where that is known.
    pub(crate) pid: Option<u32>,
    started: Option<Started>,
}

/// What has to be ended and removed.
struct Started {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Server {
    fn wait_until_listening(&mut self) -> bool {
        let end = Instant::now() + START_MAX;
        while Instant::now() < end {
            if Stream::open(&self.address).is_ok() {
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
