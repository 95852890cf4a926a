//! `cowslip ldap-server`: a directory served from a folder.

use crate::ovsdb_server::{Logging, start_logging, stop_signal};
use cowslip_engine::storage::FileSystem;
use cowslip_ldap_server::journal::OpenError;
use cowslip_ldap_server::server::{Server, ServerOptions};
use cowslip_ldap_server::service::{Service, ServiceError, ServiceOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of the directory; made if it is missing or empty
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// A name at the top of the directory, such as dc=example,dc=com; may be repeated
    #[arg(long = "suffix", value_name = "DN", required = true)]
    suffixes: Vec<String>,
    /// Where to listen: ldap://HOST:PORT or ldapi://%2Fpath%2Fto%2Fsocket; may be repeated
    #[arg(long = "listen", value_name = "URL", default_value = "ldap://127.0.0.1:1389")]
    listen: Vec<String>,
    /// The name of the user who may do everything; by default cn=admin below the first suffix
    #[arg(long, value_name = "DN")]
    root_dn: Option<String>,
    /// That user's password, as text or hashed like {SSHA}…; others can read it in the list of processes
    #[arg(long, value_name = "PASSWORD", conflicts_with = "root_password_file")]
    root_password: Option<String>,
    /// A file whose first line is that user's password, as text or hashed
    #[arg(long, value_name = "FILE")]
    root_password_file: Option<PathBuf>,
    /// Answer writes at once and sync every so many milliseconds: a crash of the machine loses what came after the last
    #[arg(long, value_name = "MILLISECONDS")]
    sync_interval_ms: Option<u64>,
    /// The most entries that a search answers to others than root; 0 for any number
    #[arg(long, value_name = "ENTRIES", default_value_t = 10_000)]
    size_limit: u32,
    /// The most seconds that a search of others than root takes; 0 for any
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    time_limit_s: u32,
    /// The most entries that a search of others than root looks at; 0 for any number
    #[arg(long, value_name = "ENTRIES", default_value_t = 0)]
    look_limit: u64,
    /// Close connections that ask for nothing for so many seconds; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    idle_s: u64,
    /// The most connections at once
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 10_000)]
    connections_max: usize,
    /// Refuse searches of clients that have not said who they are
    #[arg(long)]
    no_anonymous_reads: bool,
    /// The number of this server in change sequence numbers, 0 to 4095
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..4096))]
    server_id: u16,
    #[command(flatten)]
    logging: Logging,
}

/// Runs the server.
pub(crate) fn main(args: Args) -> ExitCode {
    let run = || {
        start_logging(&args.logging, "ldap-server")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|e| format!("cannot start the runtime: {e}"))?.block_on(serve(&args))
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("ldap-server: {message}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: &Args) -> Result<(), String> {
    let stop = stop_signal()?;
    let service = open(args)?;
    let root_dn = args.root_dn.clone().unwrap_or_else(|| format!("cn=admin,{}", args.suffixes[0]));
    let password = password(args)?;
    if password.is_none() {
        tracing::warn!("no password for {root_dn}: nobody may write (--root-password-file)");
    }
    let defaults = ServerOptions::new(root_dn, password);
    let search = cowslip_ldap_server::search::Limits {
        entries_max: args.size_limit,
        time_s: args.time_limit_s,
        looked_at_max: args.look_limit,
    };
    let options = ServerOptions {
        search,
        idle: Duration::from_secs(args.idle_s),
        connections_max: args.connections_max,
        anonymous_reads: !args.no_anonymous_reads,
        is_durable: args.sync_interval_ms.is_none(),
        ..defaults
    };
    let server = Server::start(service, options).map_err(|e| e.to_string())?;
    for url in &args.listen {
        let endpoint = server.listen(url).await.map_err(|e| e.to_string())?;
        tracing::info!(%endpoint, "listening");
    }
    tracing::info!("cowslip {} is ready", env!("CARGO_PKG_VERSION"));
    stop.await;
    tracing::info!(planned_again = server.service().planned_again(), "stopping");
    server.stop().await.map_err(|e| e.to_string())
}

fn open(args: &Args) -> Result<Service, String> {
    let mut options = ServiceOptions::new(args.suffixes.iter().cloned());
    options.host.server = args.server_id;
    options.journal.sync_interval = args.sync_interval_ms.map(Duration::from_millis);
    let (service, is_new) = open_or_create(&args.data, &options)?;
    tracing::info!(folder = %args.data.display(), is_new, "serving");
    Ok(service)
}

/// Opens the directory in a folder, which is made if there is none; says whether it was.
pub(crate) fn open_or_create(folder: &Path, options: &ServiceOptions) -> Result<(Service, bool), String> {
    let storage = Arc::new(FileSystem::new());
    match Service::open(storage.clone(), folder, options) {
        Ok((service, _)) => Ok((service, false)),
        Err(ServiceError::Open(OpenError::Missing { .. })) => {
            Service::create(&*storage, folder, options).map_err(|e| e.to_string())?;
            let (service, _) = Service::open(storage, folder, options).map_err(|e| e.to_string())?;
            Ok((service, true))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn password(args: &Args) -> Result<Option<Vec<u8>>, String> {
    if let Some(path) = &args.root_password_file {
        let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line).to_vec()));
    }
    Ok(args.root_password.as_ref().map(|password| password.clone().into_bytes()))
}
