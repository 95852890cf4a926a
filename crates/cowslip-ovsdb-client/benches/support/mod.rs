//! The databases of the benches: bridges with an index on one `external_ids` key.

#![allow(dead_code, reason = "each bench uses a part")]

use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_client::{
    Client, Datum, Filter, Index, IntoDatum, Monitor, Mutator, TransactError, Transaction, Uuid, Validation,
};
use cowslip_ovsdb_server::{Server, ServerOptions};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// What the rows are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A bridge's ports are UUIDs of nothing.
    Plain,
    /// Each bridge has the integers 0 to 4095 in a column besides.
    Large,
    /// A bridge's ports are rows, which live as long as a bridge refers to them.
    Ports,
}

impl Shape {
    pub(crate) const ALL: [Shape; 3] = [Shape::Plain, Shape::Large, Shape::Ports];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Plain => "plain",
            Shape::Large => "4,096 integers",
            Shape::Ports => "Port rows",
        }
    }

    pub(crate) fn schema(self) -> String {
        let port = match self {
            Shape::Plain | Shape::Large => r#""uuid""#,
            Shape::Ports => r#"{"type":"uuid","refTable":"Port"}"#,
        };
        SCHEMA.replace("PORT", port)
    }
}

const SCHEMA: &str = r#"{"name":"Bench","tables":{"Bridge":{"isRoot":true,"indexes":[["name"]],"columns":{
 "name":{"type":"string","mutable":false},
 "datapath_version":{"type":"string"},
 "ports":{"type":{"key":PORT,"min":0,"max":"unlimited"}},
 "flood_vlans":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":4095},"min":0,"max":4096}},
 "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
 "other_config":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
 "fail_mode":{"type":{"key":{"type":"string","enum":["set",["standalone","secure"]]},"min":0,"max":1}},
 "stp_enable":{"type":"boolean"}}},
 "Port":{"indexes":[["name"]],"columns":{
 "name":{"type":"string","mutable":false},
 "tag":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":4095},"min":0,"max":1}}}}}}"#;

/// How many rows the databases of the transactions have.
pub(crate) const ROWS: usize = 1000;

/// What the operations of a transaction do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Update,
    Mutate,
}

/// How transactions are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Off,
    Serialized,
    Pipelined,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Off => "off",
            Mode::Serialized => "serialized",
            Mode::Pipelined => "pipelined",
        })
    }
}

impl Mode {
    pub(crate) const ALL: [Mode; 3] = [Mode::Off, Mode::Serialized, Mode::Pipelined];

    pub(crate) fn prepare(self, tx: Transaction) -> Transaction {
        let validation = if self == Mode::Off { Validation::Off } else { Validation::All };
        tx.validated(validation).serialized(self == Mode::Serialized)
    }

    /// Checks that a planted duplicate is refused in every mode that validates.
    pub(crate) async fn check(self, client: &Client, ids: &[Uuid]) {
        if self != Mode::Off {
            let planted = client.transact(self.prepare(duplicate(client, ids))).await;
            assert!(matches!(planted, Err(TransactError::Refused(_))), "{self:?}: {planted:?}");
        }
    }
}

pub(crate) async fn ours(directory: &Path, shape: Shape) -> Server {
    let server = Server::start(ServerOptions::default()).await.expect("threads");
    let schema = Schema::parse(shape.schema().as_bytes()).expect("the schema is good");
    server.add_memory(schema).await.expect("one database");
    let remote = Remote::Listen(Endpoint::Unix(directory.join("ours")));
    server.add_remote(&remote).await.expect("a socket");
    server
}

pub(crate) async fn client(endpoint: &str, validation: Validation) -> Client {
    Client::builder("Bench")
        .endpoint(endpoint)
        .monitor(Monitor::everything())
        .index(Index::primary("Bridge", "by_owner").map_key("external_ids", "owner"))
        .validation(validation)
        .with(|options| options.probe_interval = Duration::ZERO)
        .connect()
        .await
        .expect("the server is there")
}

fn map(key: &str, value: String) -> Datum {
    BTreeMap::from([(key.to_string(), value)]).to_datum()
}

/// Fills the database.
pub(crate) async fn fill(client: &Client, rows: usize, shape: Shape) {
    let at_once = if shape == Shape::Large { 100 } else { 5_000 };
    let vlans: Vec<i64> = if shape == Shape::Large { (0..4096).collect() } else { Vec::new() };
    let vlans = vlans.to_datum();
    for first in (0..rows).step_by(at_once) {
        let mut tx = client.transaction().validated(Validation::Off);
        for n in first..rows.min(first + at_once) {
            let ports: Vec<Uuid> = match shape {
                Shape::Plain | Shape::Large => Vec::new(),
                Shape::Ports => (0..2)
                    .map(|port| tx.insert("Port", [("name", format!("Port-{n}-{port}").to_datum())]))
                    .collect(),
            };
            let row = [
                ("name", format!("Name-{n}").to_datum()),
                ("datapath_version", format!("DatapathVersion-{n}").to_datum()),
                ("external_ids", map("owner", format!("owner-{n}"))),
                ("flood_vlans", vlans.clone()),
                ("ports", ports.to_datum()),
            ];
            tx.insert("Bridge", row);
        }
        client.transact(tx).await.expect("the rows are good");
    }
}

pub(crate) fn ids(client: &Client) -> Vec<Uuid> {
    client.snapshot().rows("Bridge").expect("the table is there").map(|row| row.uuid()).collect()
}

/// Where a row's transactions are taken from: the number of changes so far makes each differ from the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) shape: Shape,
    pub(crate) operation: Operation,
    /// How many of them.
    pub(crate) count: usize,
    /// Whether the same transaction comes again and again, and so changes nothing from the second time on.
    pub(crate) repeated: bool,
}

/// Changes that are so far apart meet on no row's port, and each begins by adding ports.
pub(crate) const CHANGES_APART: u64 = 2_000_000;

impl Recipe {
    /// A transaction on rows spread over the table.
    ///
    /// Of mutations with a real change each time, every second one on a row takes away the port that the one before
    /// gave it, so that the rows stay as large as they are.
    pub(crate) fn transaction(self, client: &Client, ids: &[Uuid], change: u64) -> Transaction {
        let mut tx = client.transaction();
        for n in 0..self.count {
            let step = n + change as usize * self.count;
            // A large odd step visits rows all over the table.
            let id = ids[step.wrapping_mul(7919) % ids.len()];
            let row = Filter::uuid(id);
            if self.operation == Operation::Update {
                let version = format!("version-{change}-Updated").to_datum();
                tx.update("Bridge", &row, [("datapath_version", version)]);
                continue;
            }
            let (pass, place) = (step / ids.len(), step % ids.len());
            let port = Uuid::from_u128((pass as u128 / 2) << 64 | 1 << 32 | place as u128);
            if self.shape == Shape::Ports && self.repeated {
                let known = client.snapshot();
                let ports = known.row("Bridge", id).and_then(|row| row.datum("ports").cloned());
                let first = ports.and_then(|ports| ports.keys().next().cloned()).expect("each row has ports");
                tx.mutate("Bridge", &row, [("ports", Mutator::Insert, Datum::One(first))]);
            } else if self.repeated || pass.is_multiple_of(2) {
                if self.shape == Shape::Ports {
                    let name = format!("Added-{}-{place}", pass / 2).to_datum();
                    tx.insert_with_uuid("Port", port, [("name", name)]);
                }
                tx.mutate("Bridge", &row, [("ports", Mutator::Insert, port.to_datum())]);
            } else {
                tx.mutate("Bridge", &row, [("ports", Mutator::Delete, port.to_datum())]);
            }
        }
        tx
    }
}

/// The operations of one update or mutation each, as they travel: what a server takes apart and executes.
pub(crate) fn text(ids: &[Uuid], operation: Operation, count: usize) -> String {
    let operations = (0..count).map(|n| {
        let row = format!(r#""where":[["_uuid","==",["uuid","{}"]]]"#, ids[n.wrapping_mul(7919) % ids.len()]);
        match operation {
            Operation::Update => format!(
                r#"{{"op":"update","table":"Bridge",{row},"row":{{"datapath_version":"version-x-Updated"}}}}"#
            ),
            Operation::Mutate => format!(
                r#"{{"op":"mutate","table":"Bridge",{row},"mutations":[["ports","insert",["uuid","{}"]]]}}"#,
                Uuid::from_u128(n as u128 + 1)
            ),
        }
    });
    format!("[{}]", operations.collect::<Vec<_>>().join(","))
}

/// A transaction that takes a key that another row holds.
pub(crate) fn duplicate(client: &Client, ids: &[Uuid]) -> Transaction {
    let snapshot = client.snapshot();
    let row = snapshot.row("Bridge", ids[0]).expect("the row is there");
    let taken = row.datum("external_ids").expect("the column is known").clone();
    let mut tx = client.transaction();
    tx.update("Bridge", &Filter::uuid(ids[1]), [("external_ids", taken)]);
    tx
}
