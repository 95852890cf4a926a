//! Measurements of LDAP servers: modifies, searches, binds, adds and deletes, of slapd, 389-ds, ours and the floor in
//! turns.

mod answer;
mod floor;
mod load;
mod measure;
mod pattern;
mod peer;
mod population;
mod requests;
mod usage;

use super::error::BenchError;
use clap::Subcommand;
use pattern::NamePattern;
use peer::{Indexes, Peer};
use requests::Kind;
use std::path::PathBuf;

/// A measurement.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Replace the values of attributes of random entries
    Modrate(LoadArgs),
    /// Find random entries by the attribute that names them
    Searchrate(LoadArgs),
    /// Bind as random entries
    Bindrate(LoadArgs),
    /// Add entries
    Addrate(LoadArgs),
    /// Delete entries, each once
    Deleterate(LoadArgs),
    /// Modifies among searches
    Mixed {
        #[command(flatten)]
        load: LoadArgs,
        /// How many of a hundred operations are modifies
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=100))]
        writes_percent: u8,
    },
    /// Modifies against a server that only decodes, appends, syncs and answers
    Floor(LoadArgs),
    /// Be that server
    #[command(hide = true)]
    FloorServer {
        /// A new folder for the journal
        #[arg(long, value_name = "FOLDER")]
        data: PathBuf,
        /// Where to listen
        #[arg(long, value_name = "URL")]
        listen: String,
    },
}

/// What is measured, and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// The servers to start and measure in turns: slapd, 389ds, cowslip, floor
    #[arg(long, value_enum, value_delimiter = ',', default_value = "cowslip")]
    against: Vec<Peer>,
    /// Measure a running server instead: ldap://HOST:PORT or ldapi://%2Fpath
    #[arg(long, value_name = "URL", conflicts_with = "against")]
    url: Option<String>,
    /// The process of the running server, to measure its processor time
    #[arg(long, requires = "url")]
    pid: Option<u32>,
    /// As whom to bind to the running server
    #[arg(long, value_name = "DN", requires = "url", default_value = "")]
    bind_dn: String,
    /// That user's password
    #[arg(long, value_name = "PASSWORD", requires = "url", default_value = "")]
    bind_password: String,
    /// How many entries a server that is started gets
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    entries: u64,
    /// The entries of the load [default: uid=user.[1-ENTRIES],ou=People,dc=example,dc=com]
    #[arg(long, value_name = "PATTERN")]
    entry_dn: Option<NamePattern>,
    /// Where searches begin
    #[arg(long, value_name = "DN", default_value = population::SUFFIX)]
    base: String,
    /// The password of all entries, for bindrate
    #[arg(long, value_name = "PASSWORD", default_value = population::PASSWORD)]
    entry_password: String,
    /// An attribute that modifies replace; may be repeated [default: street, description]
    #[arg(long = "attribute", value_name = "NAME")]
    attributes: Vec<String>,
    /// The length of the new values, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    value_length: u32,
    /// How many connections; several numbers give several rows
    #[arg(long, value_delimiter = ',', value_name = "NUMBER", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: Vec<u16>,
    /// How many requests each keeps under way (binds: one)
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pipeline: u16,
    /// How long each load runs, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    duration: f64,
    /// How long each load runs before it is measured, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    warm_up: f64,
    /// How often the servers take turns
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The indexes that every server has
    #[arg(long, value_enum, default_value = "common")]
    indexes: Indexes,
    /// Note each operation in a log, on the servers that can
    #[arg(long)]
    access_log: bool,
    /// Answer writes before they are on the disk
    #[arg(long)]
    no_sync: bool,
    /// Append the results to this file as JSON, one object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs a measurement and prints what came of it.
pub(crate) fn run(bench: &Bench) -> Result<(), BenchError> {
    match bench {
        Bench::Modrate(load) => measure::run(Kind::Modify, load),
        Bench::Searchrate(load) => measure::run(Kind::Search, load),
        Bench::Bindrate(load) => measure::run(Kind::Bind, load),
        Bench::Addrate(load) => measure::run(Kind::Add, load),
        Bench::Deleterate(load) => measure::run(Kind::Delete, load),
        Bench::Mixed { load, writes_percent } => {
            measure::run(Kind::Mixed { writes_percent: *writes_percent }, load)
        }
        Bench::Floor(load) => {
            measure::run(Kind::Modify, &LoadArgs { against: vec![Peer::Floor], ..load.clone() })
        }
        Bench::FloorServer { data, listen } => floor::serve(data, listen),
    }
}
