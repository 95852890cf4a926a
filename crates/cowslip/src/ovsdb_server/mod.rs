//! `cowslip ovsdb-server`: the server with the flags of Open vSwitch's own (ovsdb-server(1)), as far as what they ask for
//! is there; other flags are refused by name.

mod daemon;
mod logging;

pub(crate) use logging::{Logging, start_logging};

use crate::environment;
use cowslip_engine::storage::FileSystem;
use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb_server::{Server, ServerOptions};
use daemon::{Daemon, PidFile};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Database files; without one, conf.db in $OVS_DBDIR (/etc/openvswitch)
    #[arg(value_name = "DATABASE")]
    databases: Vec<PathBuf>,
    /// Where to meet clients: punix:FILE, ptcp:[PORT][:IP], unix:FILE or tcp:IP:PORT; may be repeated
    #[arg(long = "remote", value_name = "REMOTE")]
    remotes: Vec<String>,
    /// Run a command when the server is ready, and end with it, with its exit status
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// The control socket, which this version does not have: accepted and ignored, with a warning unless it is "none"
    #[arg(long, value_name = "SOCKET")]
    unixctl: Option<String>,
    /// Largest message taken from a client, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = ServerOptions::default().message_bytes_max)]
    message_bytes_max: usize,
    /// How much history each database keeps for clients that are behind or reconnect, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = ServerOptions::default().history_bytes_max)]
    history_bytes_max: usize,
    /// Write whole values of columns with many members, for files that servers before 2.15 are to read
    #[arg(long)]
    disable_file_column_diff: bool,
    #[command(flatten)]
    daemon: Daemon,
    #[command(flatten)]
    logging: Logging,
}

/// Runs the server.
pub(crate) fn main(args: Args) -> ExitCode {
    match prepare(args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("ovsdb-server: {message}");
            ExitCode::FAILURE
        }
    }
}

fn prepare(mut args: Args) -> Result<ExitCode, String> {
    if args.databases.is_empty() {
        args.databases.push(environment::database_directory().join("conf.db"));
    }
    let run_directory = environment::run_directory();
    let remotes = args
        .remotes
        .iter()
        .map(|text| text.parse::<Remote>().map(|remote| remote.in_directory(&run_directory)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    // Detaching changes the working directory, so paths must not depend on it.
    for path in &mut args.databases {
        *path = std::path::absolute(&*path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if let Some(code) = args.daemon.detach()? {
        return Ok(code);
    }
    start_logging(&args.logging, "ovsdb-server")?;
    let pid_file = args.daemon.pid_file("ovsdb-server")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("cannot start the runtime: {e}"))?;
    runtime.block_on(serve(args, remotes, pid_file))
}

async fn serve(args: Args, remotes: Vec<Remote>, pid_file: Option<PidFile>) -> Result<ExitCode, String> {
    let options = ServerOptions {
        message_bytes_max: args.message_bytes_max,
        history_bytes_max: args.history_bytes_max,
        column_differences: !args.disable_file_column_diff,
        ..ServerOptions::default()
    };
    // Signals that come while a large file is read must not be lost.
    let stop = stop_signal()?;
    let server = Server::start(options).await.map_err(|e| e.to_string())?;
    for path in &args.databases {
        let name = server.add_file(Arc::new(FileSystem::new()), path).await.map_err(|e| e.to_string())?;
        tracing::info!(database = name, file = %path.display(), "serving");
    }
    for remote in &remotes {
        let actual = server.add_remote(remote).await.map_err(|e| e.to_string())?;
        announce(remote, &actual);
    }
    if args.unixctl.as_deref().is_some_and(|socket| socket != "none") {
        tracing::warn!("--unixctl: there is no control socket in this version; the flag is ignored");
    }
    tracing::info!("cowslip {} is ready", env!("CARGO_PKG_VERSION"));
    args.daemon.report_ready()?;
    let code = match &args.run {
        Some(command) => run_command(command, stop).await?,
        None => {
            stop.await;
            ExitCode::SUCCESS
        }
    };
    tracing::info!("stopping");
    server.stop().await.map_err(|e| e.to_string())?;
    drop(pid_file);
    Ok(code)
}

/// Scripts read the chosen port off this line.
fn announce(asked: &Remote, actual: &Remote) {
    match actual {
        Remote::Listen(Endpoint::Tcp { port, .. }) => {
            let asked = asked.to_string();
            let place = asked.strip_prefix("ptcp:").unwrap_or(&asked);
            tracing::info!("{place}: listening on port {port}");
        }
        other => tracing::info!(remote = %other, "listening"),
    }
}

/// Resolves when the process is asked to stop.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, String> {
    let handler = |kind| signal(kind).map_err(|e| format!("cannot handle signals: {e}"));
    let mut terminate = handler(SignalKind::terminate())?;
    let mut interrupt = handler(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn run_command(command: &str, stop: impl Future<Output = ()>) -> Result<ExitCode, String> {
    let mut child = Daemon::disown(&mut Command::new("/bin/sh"))
        .arg("-c")
        .arg(command)
        .spawn()
        .map_err(|e| format!("cannot run \"{command}\": {e}"))?;
    let waiting = tokio::task::spawn_blocking(move || child.wait());
    tokio::select! {
        status = waiting => {
            let status = status.map_err(|e| e.to_string())?.map_err(|e| format!("waiting for \"{command}\": {e}"))?;
            if status.success() {
                return Ok(ExitCode::SUCCESS);
            }
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            Err(format!("\"{command}\" failed: {status}"))
                .or_else(|message: String| code.map(ExitCode::from).ok_or(message))
        }
        () = stop => Ok(ExitCode::SUCCESS),
    }
}
