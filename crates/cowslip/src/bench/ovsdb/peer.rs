//! The servers under test: the installed one of Open vSwitch, ours, or one that runs already.
//!
//! What is started here works in a temporary directory of its own and is ended, by its process id, with its owner.

use super::schema::SCHEMA;
use crate::bench::error::BenchError;
use crate::bench::machine::version_of;
use crate::bench::process::{Started, installed};
use crate::ovsdb_client::connection::Stream;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
            Peer::Real => version_of(&installed("ovsdb-server")).ok_or_else(|| BenchError::Program {
                name: "ovsdb-server".to_owned(),
                source: std::io::ErrorKind::NotFound.into(),
            }),
            Peer::Cowslip => Ok(format!("cowslip {}", env!("CARGO_PKG_VERSION"))),
            Peer::Running(address, _) => Ok(format!("the server at {address}")),
        }
    }

    fn command(&self, program: &str, directory: &Path) -> Result<Command, BenchError> {
        let mut command = if *self == Peer::Real {
            Command::new(installed(program))
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
            return Ok(Server { address: address.clone(), pid: *pid, _started: None });
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
        let mut started = Started::new(child, directory);
        match started.wait_until(|| Stream::open(&address).is_ok()) {
            true => Ok(Server { address, pid: Some(started.id()), _started: Some(started) }),
            false => Err(BenchError::NotListening {
                name: self.name().to_owned(),
                log: fs::read_to_string(&log).unwrap_or_default(),
            }),
        }
    }
}

/// A server to measure.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: String,
    /// Its process, where that is known.
    pub(crate) pid: Option<u32>,
    _started: Option<Started>,
}
