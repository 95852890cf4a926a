//! `cowslip ldap`: the tools of the directory: LDIF in and out, a look through a folder, schema, indexes.
//!
//! Exit status: 0 if all was done; 1 if something was not, with the reason on stderr; 2 for a wrong command line.

pub(crate) mod client;
mod explain;
mod export;
mod import;
mod index;
mod progress;
mod remote;
mod schema;
mod verify;

use clap::Subcommand;
use std::process::ExitCode;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a directory from LDIF, or send LDIF to a server
    Import(import::Args),
    /// Write a directory as LDIF, from its folder or from a server
    Export(export::Args),
    /// Look through a directory's folder: checksums, tree, references, schema
    Verify(verify::Args),
    /// Say which indexes a search uses and how many entries it looks at
    Explain(explain::Args),
    /// List, show or change the schema
    Schema(schema::Args),
    /// List, add or remove indexes of a server
    Index(index::Args),
}

/// Runs a tool.
pub(crate) fn main(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Index(args) => index::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("cowslip ldap: {message}");
            ExitCode::FAILURE
        }
    }
}
