//! `cowslip serve`: an OVSDB server with a sample database and an LDAP server with a sample directory, to try things on.
//!
//! The data directory is created at the first start and kept. The sample's rows come from an ordinary transaction, and
//! the file appears under its name when they are in it.

mod directory;

use crate::ovsdb_server::{Logging, start_logging, stop_signal};
use cowslip_engine::Root;
use cowslip_engine::storage::FileSystem;
use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::executor::{Circumstances, Everything, Execution, Outcome, execute};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_server::{Server, ServerOptions, file};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const SCHEMA: &str = include_str!("network.ovsschema");
const SAMPLE: &str = include_str!("network-sample.json");

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the data is kept; created at the first start
    #[arg(long, value_name = "DIRECTORY", default_value = "cowslip-data")]
    data: PathBuf,
    /// The TCP port of OVSDB on 127.0.0.1; any free one, if it is taken
    #[arg(long, value_name = "PORT", default_value_t = cowslip_net::address::OVSDB_PORT)]
    port: u16,
    /// The TCP port of LDAP on 127.0.0.1; any free one, if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 1389)]
    ldap_port: u16,
    #[command(flatten)]
    logging: Logging,
}

/// Runs the server until it is stopped.
pub(crate) fn main(args: Args) -> ExitCode {
    let run = || {
        start_logging(&args.logging, "cowslip")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|e| format!("cannot start the runtime: {e}"))?.block_on(serve(&args))
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("cowslip serve: {message}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: &Args) -> Result<(), String> {
    let stop = stop_signal()?;
    let shown = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    std::fs::create_dir_all(&args.data).map_err(|e| shown(&args.data, &e))?;
    let data = args.data.canonicalize().map_err(|e| shown(&args.data, &e))?;
    let path = data.join("network.db");
    let is_first_start = !path.exists();
    if is_first_start {
        create_sample(&path)?;
    }
    let server = Server::start(ServerOptions::default()).await.map_err(|e| e.to_string())?;
    server.add_file(Arc::new(FileSystem::new()), &path).await.map_err(|e| e.to_string())?;
    let socket = data.join("ovsdb.sock");
    let unix = Remote::Listen(Endpoint::Unix(socket.clone()));
    server.add_remote(&unix).await.map_err(|e| e.to_string())?;
    let port = listen(&server, args.port).await?;
    let (ldap, ldap_port, is_new) = directory::start(&data.join("directory"), args.ldap_port).await?;
    print_welcome(&data, &socket, port, is_first_start);
    print_directory(ldap_port, is_new);
    stop.await;
    println!("stopping");
    ldap.stop().await.map_err(|e| e.to_string())?;
    server.stop().await.map_err(|e| e.to_string())
}

/// Makes the file with the sample network in it, all or nothing.
fn create_sample(path: &Path) -> Result<(), String> {
    let schema = Arc::new(Schema::parse(SCHEMA.as_bytes()).map_err(|e| e.to_string())?);
    let sample = Json::parse(SAMPLE.as_bytes()).map_err(|e| e.to_string())?;
    let transaction = Transaction::parse(&schema, sample.as_array().unwrap_or_default());
    let mut root = Root::<Ovsdb>::new(schema);
    let alone = Circumstances { owns_lock: &|_| false, read_only: false, waited_ms: 0 };
    match execute(&root, &transaction, &Everything, &alone) {
        Execution::Done(Outcome { error: None, changes, .. }) => root.apply(&changes),
        refused => return Err(format!("the sample network is refused: {refused:?}")),
    }
    let comment = transaction.comment().unwrap_or_default();
    file::save(&FileSystem::new(), path, &root, &comment).map_err(|e| e.to_string())
}

async fn listen(server: &Server, port: u16) -> Result<u16, String> {
    let at = |port| Remote::Listen(Endpoint::Tcp { host: "127.0.0.1".to_string(), port });
    let actual = match server.add_remote(&at(port)).await {
        Ok(actual) => actual,
        Err(error) => {
            tracing::warn!(%error, "taking another port");
            server.add_remote(&at(0)).await.map_err(|e| e.to_string())?
        }
    };
    match actual {
        Remote::Listen(Endpoint::Tcp { port, .. }) => Ok(port),
        other => Err(format!("{other} is no TCP port")),
    }
}

fn print_welcome(data: &Path, socket: &Path, port: u16, is_first_start: bool) {
    let program = std::env::current_exe().map_or_else(|_| "cowslip".to_string(), |p| p.display().to_string());
    let unix = format!("unix:{}", socket.display());
    let made = if is_first_start { "created with a sample network" } else { "found" };
    println!(
        "\
OVSDB database \"Network\" in {data} ({made})
  listening on {unix}
           and tcp:127.0.0.1:{port}

Try, in another terminal:
  {program} ovsdb-client dump {unix} Network
  {program} ovsdb-client monitor {unix} Network Switch name,mtu
  {program} ovsdb-client transact {unix} '[\"Network\",{{\"op\":\"update\",\"table\":\"Switch\",\"where\":[[\"name\",\"==\",\"rack-b\"]],\"row\":{{\"mtu\":9000}}}}]'

Open vSwitch's own ovsdb-client takes the same words:
  ovsdb-client dump tcp:127.0.0.1:{port} Network

A transaction that breaks a rule is refused as a whole (a second switch with that name):
  {program} ovsdb-client transact {unix} '[\"Network\",{{\"op\":\"insert\",\"table\":\"Switch\",\"row\":{{\"name\":\"rack-a\",\"mtu\":1500}}}}]'
",
        data = data.display(),
    );
}

fn print_directory(port: u16, is_new: bool) {
    let made = if is_new { "created with sample people and groups" } else { "found" };
    let (suffix, (root, password)) = (directory::SUFFIX, directory::ROOT);
    println!(
        "\
LDAP directory {suffix} ({made})
  listening on ldap://127.0.0.1:{port}
  {root} may write, with the password \"{password}\"

Try, with the ldap-utils of your system:
  ldapsearch -x -LLL -H ldap://127.0.0.1:{port} -b {suffix} '(departmentNumber=sales)' cn mail memberOf
  ldapmodify -x -H ldap://127.0.0.1:{port} -D {root} -w {password} <<'END'
dn: uid=amy,ou=People,{suffix}
changetype: modify
replace: description
description: changed
END
  ldapwhoami -x -H ldap://127.0.0.1:{port} -D uid=amy,ou=People,{suffix} -w amy-password

Ctrl-C stops both servers; the data stays."
    );
}
