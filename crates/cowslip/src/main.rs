//! `cowslip`: copy-on-write state for infrastructure. This file reads the command line and hands over to the command.
//!
//! Started under the name of one of Open vSwitch's programs that it replaces (by a link), it behaves as that program.
#![forbid(unsafe_code)]
// Doc comments of flags are help texts, with brackets as in manual pages.
#![allow(rustdoc::broken_intra_doc_links)]

mod bench;
mod codegen;
mod environment;
mod ldap;
mod ldap_server;
mod ovsdb_client;
mod ovsdb_server;
mod ovsdb_tool;
mod serve;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// What one thread allocates, another one mostly frees here (a worker plans, the committer changes, the writer frees),
/// which is what this allocator is good at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Copy-on-write state for infrastructure: an OVSDB server, an LDAP server, and their tools.
#[derive(Parser)]
#[command(name = "cowslip", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Try it: serve a sample database and a sample directory from ./cowslip-data and print commands to paste
    Serve(serve::Args),
    /// Serve OVSDB databases, with the flags of Open vSwitch's ovsdb-server
    #[command(version)]
    OvsdbServer(ovsdb_server::Args),
    /// Ask an OVSDB server, with the command line of Open vSwitch's ovsdb-client
    #[command(disable_help_flag = true)]
    OvsdbClient(ovsdb_client::Args),
    /// Make, inspect and change database files that no server has open
    #[command(version)]
    OvsdbTool(ovsdb_tool::Args),
    /// Serve an LDAP directory from a folder
    LdapServer(ldap_server::Args),
    /// Tools of the directory: LDIF in and out, checks, schema, indexes
    Ldap(ldap::Args),
    /// Write Rust models of an OVSDB schema's tables
    Codegen(codegen::Args),
    /// Measure OVSDB and LDAP servers against the installed ones of others
    Bench(bench::Args),
}

/// The programs that a link may name.
const PROGRAMS: [&str; 3] = ["ovsdb-server", "ovsdb-client", "ovsdb-tool"];

/// Prints what is wrong with the command line, or the help that it asked for.
fn refuse(error: &clap::Error, command: Option<&OsString>) -> ExitCode {
    // Nobody is there to hear that the message could not be printed.
    let _ = error.print();
    let replaces_a_program = command.and_then(|c| c.to_str()).is_some_and(|c| PROGRAMS.contains(&c));
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        // Scripts know the exit status of Open vSwitch's programs.
        _ if replaces_a_program => ExitCode::FAILURE,
        code => ExitCode::from(u8::try_from(code).unwrap_or(2)),
    }
}

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().and_then(|a| Path::new(a).file_name()?.to_str().map(str::to_string));
    if let Some(program) = program.filter(|p| PROGRAMS.contains(&p.as_str())) {
        arguments.insert(1, program.into());
    }
    let command = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli.command,
        Err(error) => return refuse(&error, arguments.get(1)),
    };
    match command {
        Command::Serve(args) => serve::main(args),
        Command::OvsdbServer(args) => ovsdb_server::main(args),
        Command::OvsdbClient(args) => ovsdb_client::main(args),
        Command::OvsdbTool(args) => ovsdb_tool::main(args),
        Command::LdapServer(args) => ldap_server::main(args),
        Command::Ldap(args) => ldap::main(args),
        Command::Codegen(args) => codegen::main(args),
        Command::Bench(args) => bench::main(args),
    }
}
