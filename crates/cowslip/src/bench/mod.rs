//! `cowslip bench`: measurements that anybody can repeat, against the peers that are installed.
//!
//! Every run prints what it ran on and its whole command line, and shows losses like wins. Peers take turns within one
//! run, under the same load.

mod error;
mod machine;
mod ovsdb;

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
}

/// Runs a measurement and prints its table in Markdown.
pub(crate) fn main(args: Args) -> ExitCode {
    let Protocol::Ovsdb { bench } = args.protocol;
    match ovsdb::run(bench) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cowslip bench: {error}");
            ExitCode::FAILURE
        }
    }
}
