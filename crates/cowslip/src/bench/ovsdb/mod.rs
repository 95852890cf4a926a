//! Measurements of OVSDB servers: transactions, and first dumps of a large table.

mod answer;
mod dump;
mod load;
mod peer;
mod schema;
mod transact;

use super::error::BenchError;
use clap::{Subcommand, ValueEnum};
use load::Shape;
use peer::Peer;
use schema::Operation;

/// A measurement.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Transactions: rate, latency and the server's processor time
    Transact(TransactArgs),
    /// First dumps of a table to one and to many clients at once
    Dump(DumpArgs),
    /// Print the schema of the measurements, for a server of your own (see --server)
    Schema,
}

/// Whose server is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Open vSwitch's ovsdb-server, as installed
    Real,
    /// This program
    Cowslip,
    /// First the one, then the other, in turns
    Both,
}

/// The choice of servers.
#[derive(Debug, clap::Args)]
struct PeerArgs {
    /// Whose server to start and measure
    #[arg(long, value_enum, default_value = "both")]
    peer: Which,
    /// Measure a running server instead: unix:PATH or tcp:HOST:PORT, with an empty database of the schema that
    /// `bench ovsdb schema` prints
    #[arg(long, value_name = "ADDRESS", conflicts_with = "peer")]
    server: Option<String>,
    /// The process of the running server, to measure its processor time and memory
    #[arg(long, requires = "server")]
    pid: Option<u32>,
}

impl PeerArgs {
    fn peers(&self) -> Vec<Peer> {
        match (&self.server, self.peer) {
            (Some(address), _) => vec![Peer::Running(address.clone(), self.pid)],
            (None, Which::Real) => vec![Peer::Real],
            (None, Which::Cowslip) => vec![Peer::Cowslip],
            (None, Which::Both) => vec![Peer::Real, Peer::Cowslip],
        }
    }
}

/// `transact`
#[derive(Debug, clap::Args)]
pub(crate) struct TransactArgs {
    #[command(flatten)]
    peers: PeerArgs,
    /// What the transactions do
    #[arg(long, value_enum, value_delimiter = ',', default_value = "insert,update,mutate,port-add")]
    ops: Vec<Operation>,
    /// Connections x requests under way on each
    #[arg(long, value_delimiter = ',', value_name = "CxD", default_value = "1x1,8x1,8x16")]
    shapes: Vec<Shape>,
    /// How long each operation runs in each shape and round
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// How often the servers take turns, each time on a fresh database
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Have every transaction on the disk before its reply
    #[arg(long)]
    durable: bool,
}

/// `dump`
#[derive(Debug, clap::Args)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    peers: PeerArgs,
    /// The rows of the table
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rows: u64,
    /// How many clients ask at once
    #[arg(long, value_delimiter = ',', default_value = "1,20")]
    clients: Vec<usize>,
}

/// Runs a measurement and prints what came of it.
pub(crate) fn run(bench: Bench) -> Result<(), BenchError> {
    match bench {
        Bench::Transact(args) => transact::run(&args),
        Bench::Dump(args) => dump::run(&args),
        Bench::Schema => {
            println!("{}", schema::SCHEMA);
            Ok(())
        }
    }
}

/// The versions of the servers, for the heading.
fn versions(peers: &[Peer]) -> Result<Vec<String>, BenchError> {
    peers.iter().map(Peer::version).collect()
}
