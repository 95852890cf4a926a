//! Running in the background, and the file with the process id.
//!
//! To detach, the program starts itself again in a session of its own and waits until that copy is ready, so that
//! whoever started it finds all remotes listening. The copy tells so over its standard output.

use crate::environment;
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Tells the copy that it is the one to run in the background.
const DETACHED_VARIABLE: &str = "COWSLIP_DETACHED";

const READY: &str = "ready";

/// The flags.
#[derive(clap::Args)]
pub(crate) struct Daemon {
    /// Go to the background as soon as clients can connect
    #[arg(long)]
    detach: bool,
    /// With --detach, stay in the working directory
    #[arg(long)]
    no_chdir: bool,
    /// Keep the process id in a file; by default PROGRAM.pid in $OVS_RUNDIR (/var/run/openvswitch)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pidfile: Option<Option<PathBuf>>,
    /// Start even if the file names a running process
    #[arg(long)]
    overwrite_pidfile: bool,
}

impl Daemon {
    fn is_copy() -> bool {
        std::env::var_os(DETACHED_VARIABLE).is_some()
    }

    /// Starts the copy that runs in the background, if that is asked for; then this process ends with the code given.
    ///
    /// # Errors
    /// The copy cannot be started.
    pub(super) fn detach(&self) -> Result<Option<ExitCode>, String> {
        if !self.detach {
            return Ok(None);
        }
        if Self::is_copy() {
            // It fails only for the leader of a session, and then there is no need.
            let _ = rustix::process::setsid();
            if !self.no_chdir {
                std::env::set_current_dir("/").map_err(|e| format!("cannot change to /: {e}"))?;
            }
            return Ok(None);
        }
        let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let mut copy = Command::new(program)
            .args(std::env::args_os().skip(1))
            .arg0(std::env::args_os().next().unwrap_or_default())
            .env(DETACHED_VARIABLE, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start in the background: {e}"))?;
        let mut line = String::new();
        if let Some(stdout) = copy.stdout.take() {
            // An error reads as an empty line: the copy has ended.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        if line.trim() == READY {
            return Ok(Some(ExitCode::SUCCESS));
        }
        let status = copy.wait().map_err(|e| format!("waiting for the background process: {e}"))?;
        Err(format!(
            "the background process did not start ({status}); its own message is above or in its log"
        ))
    }

    /// Tells the process that started this one that clients can connect, and lets go of the starter's terminal or pipe:
    /// a script that collects what the starter prints would otherwise wait for this process to end.
    ///
    /// # Errors
    /// `/dev/null` cannot be had in their place.
    pub(super) fn report_ready(&self) -> Result<(), String> {
        if !(self.detach && Self::is_copy()) {
            return Ok(());
        }
        let failed = |e: std::io::Error| format!("cannot let go of standard output and error: {e}");
        let null = OpenOptions::new().write(true).open("/dev/null").map_err(failed)?;
        let mut stdout = std::io::stdout();
        // The starter may have been interrupted; the server runs on all the same.
        let _ = writeln!(stdout, "{READY}").and_then(|()| stdout.flush());
        rustix::stdio::dup2_stdout(&null).map_err(|e| failed(e.into()))?;
        rustix::stdio::dup2_stderr(&null).map_err(|e| failed(e.into()))
    }

    /// Keeps from a command that this process runs what this process was told by the one that started it.
    pub(super) fn disown(command: &mut Command) -> &mut Command {
        command.env_remove(DETACHED_VARIABLE)
    }

    /// Writes the file with the process id, if that is asked for.
    ///
    /// # Errors
    /// Another process holds it, or it cannot be written.
    pub(super) fn pid_file(&self, program: &str) -> Result<Option<PidFile>, String> {
        let Some(path) = &self.pidfile else { return Ok(None) };
        let name = path.clone().unwrap_or_else(|| format!("{program}.pid").into());
        let path = environment::run_directory().join(name);
        PidFile::create(&path, self.overwrite_pidfile).map(Some)
    }
}

/// The file with the process id; locked while the process lives, removed at its end.
pub(super) struct PidFile {
    path: PathBuf,
    _file: File,
}

impl PidFile {
    fn create(path: &Path, overwrite: bool) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("cannot write the pidfile {}: {e}", path.display());
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(failed)?;
        if fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() && !overwrite {
            let holder = std::fs::read_to_string(path).unwrap_or_default();
            return Err(format!("{}: already running as pid {}, aborting", path.display(), holder.trim()));
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(PidFile { path: path.to_path_buf(), _file: file })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Someone else may have removed it; there is nobody to tell.
        let _ = std::fs::remove_file(&self.path);
    }
}
