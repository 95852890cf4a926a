//! `cowslip bench`: measurements that anybody can repeat, against the peers that are installed.
//!
//! Every run prints what it ran on and its whole command line, and shows losses like wins. Peers take turns within one
//! run, under the same load.

mod error;
mod ldap;
mod machine;
mod ovsdb;
mod process;
mod report;

use clap::Subcommand;
use std::process::ExitCode;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    protocol: Protocol,
}

#[derive(Debug, Subcommand)]
enum Protocol {
    /// An OVSDB server
    Ovsdb {
        #[command(subcommand)]
        bench: ovsdb::Bench,
    },
    /// An LDAP server
    Ldap {
        #[command(subcommand)]
        bench: Box<ldap::Bench>,
    },
}

/// Runs a measurement and prints its table in Markdown.
pub(crate) fn main(args: Args) -> ExitCode {
    let done = match args.protocol {
        Protocol::Ovsdb { bench } => ovsdb::run(bench),
        Protocol::Ldap { bench } => ldap::run(&bench),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cowslip bench: {error}");
            ExitCode::FAILURE
        }
    }
}
