//! `ovsdb-tool`: makes, inspects and changes database files that no server has open.
//!
//! Invariants: what goes to standard output, and the exit status, are the reference tool's; a command that writes holds
//! the file's lock, one that reads takes none; a file with a damaged end is not rewritten here, because only the server
//! puts the damaged part aside.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{ArgAction, Subcommand};
use cowslip_engine::Journal;
use cowslip_engine::storage::{FileSystem, OpenMode, Storage};
use cowslip_ovsdb::error::Error;
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_server::file::{self, Damage, FileJournal, OpenError, OpenOptions, log};

use self::version::Relation;
use crate::environment;

mod compare;
mod show_log;
mod transact;
mod version;

/// The exit status of a test that says no.
const EXIT_NO: u8 = 2;

/// The permission bits of new files, less what the process masks: as the reference tool's.
const FILE_MODE: u32 = 0o660;

/// What `ovsdb-tool` is told on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shows more with show-log: once the rows of each change, twice their values.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    more: u8,
    /// Accepted for compatibility: the tool says everything on standard error and logs nothing.
    #[arg(short, long, value_name = "SPEC", global = true, hide = true)]
    #[arg(num_args = 0..=1, default_missing_value = "", action = ArgAction::Append)]
    verbose: Vec<String>,
    /// Accepted for compatibility.
    #[arg(long, value_name = "FILE", global = true, hide = true, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    log_file: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, global = true, hide = true)]
    syslog_method: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, global = true, hide = true)]
    syslog_target: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Creates DB with the given SCHEMA.
    Create {
        /// The database file, which must not exist.
        db: Option<PathBuf>,
        /// The file of a schema.
        schema: Option<PathBuf>,
    },
    /// Compacts DB in place, or into the new file TARGET.
    Compact {
        /// The database file.
        db: Option<PathBuf>,
        /// A file to be made instead.
        target: Option<PathBuf>,
    },
    /// Tells whether DB's schema differs from SCHEMA.
    NeedsConversion {
        /// The database file.
        db: Option<PathBuf>,
        /// The file of a schema.
        schema: Option<PathBuf>,
    },
    /// Prints the name of the schema that DB uses.
    DbName {
        /// The database file.
        db: Option<PathBuf>,
    },
    /// Prints the version of the schema that DB uses.
    DbVersion {
        /// The database file.
        db: Option<PathBuf>,
    },
    /// Prints the checksum of the schema that DB uses.
    DbCksum {
        /// The database file.
        db: Option<PathBuf>,
    },
    /// Exits with 0 if DB is a clustered database, with 2 if it is a standalone one.
    DbIsClustered {
        /// The database file.
        db: PathBuf,
    },
    /// Exits with 0 if DB is a standalone database, with 2 if it is a clustered one.
    DbIsStandalone {
        /// The database file.
        db: PathBuf,
    },
    /// Prints SCHEMA's name.
    SchemaName {
        /// The file of a schema.
        schema: Option<PathBuf>,
    },
    /// Prints SCHEMA's version.
    SchemaVersion {
        /// The file of a schema.
        schema: Option<PathBuf>,
    },
    /// Prints SCHEMA's checksum.
    SchemaCksum {
        /// The file of a schema.
        schema: Option<PathBuf>,
    },
    /// Compares two versions; exits with 0 if the comparison holds, else with 2.
    CompareVersions {
        /// A version x.y.z.
        a: String,
        /// One of < <= == >= > !=.
        #[arg(allow_hyphen_values = true)]
        op: String,
        /// Another version.
        b: String,
    },
    /// Executes a transaction on DB without changing it, and prints the results.
    Query {
        /// [DB] TRANSACTION, the latter as the parameters of a "transact" request.
        #[arg(num_args = 1..=2, required = true)]
        args: Vec<String>,
    },
    /// Executes a transaction on DB, prints the results, and keeps the changes.
    Transact {
        /// [DB] TRANSACTION, the latter as the parameters of a "transact" request.
        #[arg(num_args = 1..=2, required = true)]
        args: Vec<String>,
    },
    /// Prints the records of DB's log.
    ShowLog {
        /// The database file.
        db: Option<PathBuf>,
    },
    /// Not supported: use `ovsdb-client convert`, or the reference tool.
    Convert(Rest),
    /// Not supported: clustered databases.
    #[command(alias = "join-cluster", alias = "check-cluster", alias = "db-cid", alias = "db-sid")]
    #[command(alias = "db-local-address", alias = "cluster-to-standalone")]
    CreateCluster(Rest),
}

#[derive(Debug, clap::Args)]
struct Rest {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Why a command failed.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum ToolError {
    /// A database file cannot be used.
    File(OpenError),
    /// A file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The end of a file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        damage: Box<Damage>,
    },
    /// A record of a file is bad.
    Record {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is no schema.
    Schema {
        /// The file.
        path: PathBuf,
        /// Which rule it breaks.
        source: Error,
    },
    /// The transaction is not JSON.
    Json {
        /// Where and why.
        source: cowslip_ovsdb::json::JsonError,
    },
    /// Changes could not be written.
    Write {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: cowslip_engine::AppendError,
    },
    /// An argument is not what it must be.
    Argument {
        /// The argument.
        text: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A command of the reference tool that does not exist here.
    Unsupported {
        /// What to do instead.
        instead: &'static str,
    },
    /// Standard output is closed.
    Output(io::Error),
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Damaged { path, damage } => write!(
                f,
                "{}: the end of the file is damaged: {damage}; a server that opens the file goes on without that \
                 part, and puts it into a file of its own when it first writes",
                path.display()
            ),
            Self::Record { path, offset, reason } => {
                write!(f, "{}: bad record at offset {offset}: {reason}", path.display())
            }
            Self::Schema { path, source } => {
                write!(f, "failed to read schema: \"{}\": {source}", path.display())
            }
            Self::Json { source } => write!(f, "the transaction is not JSON: {source}"),
            Self::Write { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Argument { text, expected } => write!(f, "{text}: not {expected}"),
            Self::Unsupported { instead } => write!(f, "this command is not supported; {instead}"),
            Self::Output(source) => write!(f, "cannot write the output: {source}"),
        }
    }
}

impl std::error::Error for ToolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(source) => Some(source),
            Self::Io { source, .. } | Self::Output(source) => Some(source),
            Self::Schema { source, .. } => Some(source),
            Self::Json { source } => Some(source),
            Self::Write { source, .. } => Some(source),
            Self::Damaged { .. } | Self::Record { .. } | Self::Argument { .. } | Self::Unsupported { .. } => {
                None
            }
        }
    }
}

impl From<OpenError> for ToolError {
    fn from(error: OpenError) -> Self {
        Self::File(error)
    }
}

/// Runs the command and reports its error.
pub(crate) fn main(args: Args) -> ExitCode {
    let mut out = io::stdout().lock();
    let done = execute(args, &mut out).and_then(|code| {
        out.flush().map_err(ToolError::Output)?;
        Ok(code)
    });
    match done {
        Ok(code) => code,
        Err(error) => {
            // Standard error is the last resort; there is nobody left to tell if it fails.
            let _ = writeln!(io::stderr(), "ovsdb-tool: {error}");
            ExitCode::FAILURE
        }
    }
}

fn execute(Args { more, command, .. }: Args, out: &mut dyn Write) -> Result<ExitCode, ToolError> {
    let storage = storage();
    let database = |db: Option<PathBuf>| db.unwrap_or_else(default_database);
    let db_schema = |db| file::schema(&storage, &database(db)).map_err(ToolError::from);
    let file_schema = |path: Option<PathBuf>| read_schema(&path.unwrap_or_else(default_schema));
    let line = match command {
        Command::Create { db, schema } => {
            file::create(&storage, &database(db), &file_schema(schema)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Compact { db, target } => {
            compact(&database(db), target.as_deref())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::ShowLog { db } => {
            show_log::show_log(&database(db), more, out)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::DbIsClustered { db } => return Ok(verdict(is_clustered(&db)?)),
        Command::DbIsStandalone { db } => return Ok(verdict(!is_clustered(&db)?)),
        Command::CompareVersions { a, op, b } => return Ok(verdict(Relation::parse(&op)?.holds(&a, &b)?)),
        Command::NeedsConversion { db, schema } => {
            let same = compare::are_equal(&db_schema(db)?, &file_schema(schema)?);
            if same { "no".into() } else { "yes".into() }
        }
        Command::DbName { db } => db_schema(db)?.name,
        Command::DbVersion { db } => db_schema(db)?.version,
        Command::DbCksum { db } => db_schema(db)?.cksum,
        Command::SchemaName { schema } => file_schema(schema)?.name,
        Command::SchemaVersion { schema } => file_schema(schema)?.version,
        Command::SchemaCksum { schema } => file_schema(schema)?.cksum,
        Command::Query { args } => transact::query(&split(args))?.into(),
        Command::Transact { args } => transact::transact(&split(args))?.into(),
        Command::Convert(Rest { .. }) => {
            let instead =
                "restart the server on a file made with the new schema, or use Open vSwitch's own tool";
            return Err(ToolError::Unsupported { instead });
        }
        Command::CreateCluster(Rest { .. }) => {
            let instead = "clustered databases need Open vSwitch's own tool, whose `cluster-to-standalone` command \
                           makes a file that is supported here";
            return Err(ToolError::Unsupported { instead });
        }
    };
    writeln!(out, "{line}").map_err(ToolError::Output)?;
    Ok(ExitCode::SUCCESS)
}

fn storage() -> FileSystem {
    FileSystem::new().with_file_mode(FILE_MODE)
}

fn verdict(yes: bool) -> ExitCode {
    if yes { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NO) }
}

/// `[DB] TRANSACTION`
fn split(mut args: Vec<String>) -> (PathBuf, String) {
    let transaction = args.pop().unwrap_or_default();
    (args.pop().map_or_else(default_database, PathBuf::from), transaction)
}

fn default_database() -> PathBuf {
    environment::database_directory().join("conf.db")
}

fn default_schema() -> PathBuf {
    let directory = std::env::var_os("OVS_PKGDATADIR").filter(|value| !value.is_empty());
    PathBuf::from(directory.unwrap_or_else(|| "/usr/share/openvswitch".into())).join("vswitch.ovsschema")
}

fn read_schema(path: &Path) -> Result<Schema, ToolError> {
    let text = fs::read(path).map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
    Schema::parse(&text).map_err(|source| ToolError::Schema { path: path.to_owned(), source })
}

fn is_clustered(path: &Path) -> Result<bool, ToolError> {
    match file::schema(&storage(), path) {
        // A standalone file is one whatever its schema is worth.
        Ok(_) | Err(OpenError::BadSchema { .. }) => Ok(false),
        Err(OpenError::Clustered { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn undamaged(path: &Path, damage: Option<Damage>) -> Result<(), ToolError> {
    match damage {
        Some(damage) => Err(ToolError::Damaged { path: path.to_owned(), damage: Box::new(damage) }),
        None => Ok(()),
    }
}

fn compact(path: &Path, target: Option<&Path>) -> Result<(), ToolError> {
    let comment = concat!("compacted by ovsdb-tool (Cowslip) ", env!("CARGO_PKG_VERSION"));
    if let Some(target) = target {
        let loaded = file::load(&storage(), path)?;
        undamaged(path, loaded.report.damage)?;
        return Ok(file::save(&storage(), target, &loaded.root, comment)?);
    }
    let opened = file::open(Arc::new(storage()), path, &OpenOptions::default())?;
    undamaged(path, opened.report.damage)?;
    let mut journal = opened.journal;
    let begun = journal.begin_commented_compaction(Arc::new(opened.root), comment);
    let compaction = begun.map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
    let finished = journal.finish_compaction(FileJournal::run_compaction(compaction));
    finished.map_err(|source| ToolError::Write { path: path.to_owned(), source })
}

/// Reads the records of a file one by one.
fn each_record(path: &Path, mut act: impl FnMut(&[u8]) -> Result<(), ToolError>) -> Result<(), ToolError> {
    let failed = |source| ToolError::Io { path: path.to_owned(), source };
    let file = storage().open(path, OpenMode::Read).map_err(failed)?;
    let mut reader = log::LogReader::new(&*file, 0).map_err(failed)?;
    loop {
        let offset = reader.offset();
        match reader.next_record() {
            Ok(Some(record)) => act(record.body)?,
            Ok(None) if offset == 0 => {
                return Err(OpenError::NoSchema { path: path.to_owned(), source: None }.into());
            }
            Ok(None) => return Ok(()),
            Err(log::FrameFault::Clustered) => {
                return Err(OpenError::Clustered { path: path.to_owned() }.into());
            }
            Err(fault) => {
                return Err(ToolError::Record { path: path.to_owned(), offset, reason: fault.to_string() });
            }
        }
    }
}
