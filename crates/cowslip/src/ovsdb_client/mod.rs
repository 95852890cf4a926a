//! `cowslip ovsdb-client`: asks an OVSDB server from the command line.
//!
//! Command lines, output and exit codes are those of the reference tool of the same name, so that scripts need no change.
//! Where that one prints rows, tables or columns in the order of its hash tables, this one sorts them by name or UUID.
//! Messages on standard error are our own.

pub(crate) mod clock;
mod commands;
pub(crate) mod connection;
mod dump;
pub(crate) mod error;
mod json;
mod lock;
mod monitor;
mod remote;
mod restore;
mod schema_text;
mod table;

use clap::{ArgAction, Parser};
use error::ClientError;
use json::Value;
use remote::Need;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use table::{CellFormat, Format, Style, Table};

/// The words after the program's name. The client has a parser of its own, because the reference tool's exit codes and
/// its `-vSPEC` are not those of the other commands.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARG")]
    words: Vec<OsString>,
}

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "ovsdb-client",
    about = "Asks an OVSDB server: lists, dumps, changes and watches its databases",
    after_help = HELP,
    version,
    infer_long_args = true,
    disable_version_flag = true,
    override_usage = "cowslip ovsdb-client [OPTIONS] COMMAND [SERVER] [DATABASE] [ARG]..."
)]
struct Options {
    /// How tables are laid out.
    #[arg(short, long, value_enum, default_value = "table")]
    format: Format,
    /// How values are written in tables (JSON tables always hold JSON).
    #[arg(short, long, value_enum, default_value = "string")]
    data: CellFormat,
    /// Leaves out the names of the columns.
    #[arg(long)]
    no_headings: bool,
    /// Spreads JSON over lines.
    #[arg(long)]
    pretty: bool,
    /// Short for --format=list --data=bare --no-headings.
    #[arg(long)]
    bare: bool,
    /// Cuts the columns of text tables to this many bytes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_column_width: usize,
    /// Prints the time with each update of a monitor.
    #[arg(long)]
    timestamp: bool,
    /// Ends the program with SIGALRM after so many seconds.
    #[arg(short, long, value_name = "SECS")]
    timeout: Option<u64>,
    /// Restores in spite of a different schema.
    #[arg(long)]
    force: bool,
    /// Of a cluster, uses the leader only (the default).
    #[arg(long, overrides_with = "no_leader_only")]
    leader_only: bool,
    /// Of a cluster, uses any connected member.
    #[arg(long, overrides_with = "leader_only")]
    no_leader_only: bool,
    /// Accepted so that scripts need no change; this program does not log.
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true, action = ArgAction::Append)]
    verbose: Vec<Option<String>>,
    /// Accepted so that scripts need no change; this program does not log.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    log_file: Option<Option<String>>,
    /// Prints the version.
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// What to do; see below.
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// The command's arguments.
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    args: Vec<String>,
}

const HELP: &str = "\
Commands:
  list-dbs [SERVER]                              the names of the databases
  get-schema [SERVER] [DATABASE]                 the schema as JSON
  get-schema-version [SERVER] [DATABASE]         the schema's version
  get-schema-cksum [SERVER] [DATABASE]           the schema's checksum
  list-tables [SERVER] [DATABASE]                the names of the tables
  list-columns [SERVER] [DATABASE] [TABLE]       the columns and their types
  transact [SERVER] TRANSACTION                  runs a transaction, prints the results
  query [SERVER] TRANSACTION                     the same without changing anything
  dump [SERVER] [DATABASE] [TABLE [COLUMN]...]   the rows
  monitor [SERVER] [DATABASE] TABLE|ALL [COLUMN,...]...
                                                 the rows and then every change; !initial, !insert,
                                                 !delete and !modify among the columns leave these out
  monitor-cond [SERVER] [DATABASE] CONDITIONS TABLE [COLUMN,...]
                                                 the same for rows that match
  monitor-cond-since [SERVER] [DATABASE] [LASTID] CONDITIONS TABLE [COLUMN,...]
                                                 the same from a transaction id on
  wait [SERVER] DATABASE added|connected|removed
                                                 returns when it is so, even if the server starts later
  backup [SERVER] [DATABASE] > FILE              the content as a database file
  restore [SERVER] [DATABASE] < FILE             replaces the content by that of a database file
  needs-conversion [SERVER] SCHEMA-FILE          whether the server's schema differs: yes or no
  convert [SERVER] SCHEMA-FILE                   converts a database to another schema
  lock|steal|unlock [SERVER] LOCK                does so, prints what becomes of the lock, and stays connected

SERVER is unix:PATH, tcp:HOST[:PORT], or punix:PATH, ptcp:[PORT][:HOST] to wait for a server that connects; several with
commas between them are tried in turn. Without it: unix:$OVS_RUNDIR/db.sock, where OVS_RUNDIR is /var/run/openvswitch if
not set. Without DATABASE: Open_vSwitch if the server has it, else the only one it has.

Example: cowslip ovsdb-client dump unix:/tmp/db.sock Open_vSwitch Port name tag";

/// What the handlers of the commands work with.
struct Context {
    style: Style,
    timestamp: bool,
    force: bool,
    leader_only: bool,
    /// Whether no table was printed so far.
    first_table: bool,
}

impl Context {
    /// Prints a table.
    fn print_table(&mut self, table: &Table) -> Result<(), ClientError> {
        let mut out = String::new();
        table.print(&self.style, self.first_table, &mut out);
        self.first_table = false;
        self.print(&out)
    }

    /// Prints a value on lines of its own.
    fn print_json(&mut self, value: &Value) -> Result<(), ClientError> {
        self.print(&format!("{}\n", json::text(value, self.style.pretty)))
    }

    /// Prints text and makes sure that it leaves the program.
    fn print(&mut self, text: &str) -> Result<(), ClientError> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(ClientError::Output)
    }
}

/// Runs the program.
pub(crate) fn main(args: Args) -> ExitCode {
    let program = std::iter::once(OsString::from("ovsdb-client"));
    let options = match Options::try_parse_from(program.chain(args.words.into_iter().map(spell_out))) {
        Ok(options) => options,
        Err(error) => {
            let _ = error.print();
            // The reference tool ends with 1 where clap's own code would be 2.
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ovsdb-client: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Turns `-vSPEC`, which cannot be told from bundled flags, into `--verbose=SPEC`.
fn spell_out(arg: OsString) -> OsString {
    match arg.to_str().and_then(|a| a.strip_prefix("-v")) {
        Some("") => "--verbose".into(),
        Some(spec) => format!("--verbose={spec}").into(),
        None => arg,
    }
}

fn run(options: Options) -> Result<(), ClientError> {
    if let Some(seconds) = options.timeout {
        if seconds == 0 {
            return Err(ClientError::Usage("--timeout needs at least 1 second".to_owned()));
        }
        std::thread::spawn(move || end_after(Duration::from_secs(seconds)));
    }
    let mut style = Style {
        format: options.format,
        cells: options.data,
        headings: !options.no_headings,
        pretty: options.pretty,
        max_column_width: options.max_column_width,
    };
    if options.bare {
        style = Style { format: Format::List, cells: CellFormat::Bare, headings: false, ..style };
    }
    let context = Context {
        style,
        timestamp: options.timestamp,
        force: options.force,
        leader_only: !options.no_leader_only,
        first_table: true,
    };
    match options.command {
        Some(command) => dispatch(context, &command, &options.args),
        None => Err(ClientError::Usage("no command given; --help lists them".to_owned())),
    }
}

/// Ends the program as the alarm clock does, so that callers see the signal they expect.
fn end_after(time: Duration) {
    std::thread::sleep(time);
    eprintln!("ovsdb-client: no result after {} seconds (--timeout)", time.as_secs());
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::ALARM);
}

/// The handler of a command that needs a connection or a database.
type Handler = fn(&mut Context, remote::Target<'_>) -> Result<(), ClientError>;

/// A command with the least and the largest number of its own arguments.
const COMMANDS: [(&str, Need, usize, usize, Handler); 15] = [
    ("list-dbs", Need::Server, 0, 0, commands::list_dbs),
    ("get-schema", Need::Database, 0, 0, commands::get_schema),
    ("get-schema-version", Need::Database, 0, 0, commands::get_schema_version),
    ("get-schema-cksum", Need::Database, 0, 0, commands::get_schema_cksum),
    ("list-tables", Need::Database, 0, 0, commands::list_tables),
    ("list-columns", Need::Database, 0, 1, commands::list_columns),
    ("dump", Need::Database, 0, usize::MAX, dump::dump),
    ("backup", Need::Database, 0, 0, dump::backup),
    ("restore", Need::Database, 0, 0, restore::restore),
    ("monitor", Need::Database, 1, usize::MAX, monitor::monitor),
    ("monitor-cond", Need::Database, 2, 3, monitor::monitor_cond),
    ("monitor-cond-since", Need::Database, 2, 4, monitor::monitor_cond_since),
    ("lock", Need::Server, 1, 1, lock::lock),
    ("steal", Need::Server, 1, 1, lock::steal),
    ("unlock", Need::Server, 1, 1, lock::unlock),
];

/// The handler of a command that finds its server and database itself.
type FreeHandler = fn(&mut Context, &[String]) -> Result<(), ClientError>;

const FREE_COMMANDS: [(&str, usize, usize, FreeHandler); 5] = [
    ("transact", 1, 2, commands::transact),
    ("query", 1, 2, commands::query),
    ("needs-conversion", 1, 2, commands::needs_conversion),
    ("convert", 1, 2, commands::convert),
    ("wait", 2, 3, commands::wait),
];

fn dispatch(mut context: Context, command: &str, args: &[String]) -> Result<(), ClientError> {
    let misfit =
        || ClientError::Usage(format!("{command} does not take these arguments; --help shows its form"));
    if let Some((_, min, max, handler)) = FREE_COMMANDS.into_iter().find(|c| c.0 == command) {
        return if (min..=max).contains(&args.len()) { handler(&mut context, args) } else { Err(misfit()) };
    }
    if let Some((_, need, min, max, handler)) = COMMANDS.into_iter().find(|c| c.0 == command) {
        let target = remote::open(args, min, need, None, context.leader_only)?;
        let fits = (min..=max).contains(&target.rest.len());
        return if fits { handler(&mut context, target) } else { Err(misfit()) };
    }
    if command == "help" {
        use clap::CommandFactory;
        return context.print(&Options::command().render_help().to_string());
    }
    Err(ClientError::Usage(format!("there is no command {command:?}; --help lists them")))
}
