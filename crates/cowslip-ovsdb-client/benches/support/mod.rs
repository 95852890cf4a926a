//! The databases that both benches use: bridges with an index on one `external_ids` key.

use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_client::{
    Client, Datum, Filter, Index, IntoDatum, Monitor, Mutator, Transaction, Uuid, Validation,
};
use cowslip_ovsdb_server::{Server, ServerOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub(crate) const SCHEMA: &str = r#"{"name":"Bench","tables":{"Bridge":{"isRoot":true,"indexes":[["name"]],"columns":{
 "name":{"type":"string","mutable":false},
 "datapath_version":{"type":"string"},
 "ports":{"type":{"key":"uuid","min":0,"max":"unlimited"}},
 "flood_vlans":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":4095},"min":0,"max":4096}},
 "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
 "other_config":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
 "fail_mode":{"type":{"key":{"type":"string","enum":["set",["standalone","secure"]]},"min":0,"max":1}},
 "stp_enable":{"type":"boolean"}}}}}"#;

/// What the operations of a transaction do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Update,
    Mutate,
}

pub(crate) async fn ours(directory: &Path) -> Server {
    let server = Server::start(ServerOptions::default()).await.expect("threads");
    let schema = Schema::parse(SCHEMA.as_bytes()).expect("the schema is good");
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

/// Fills the database; `large` gives each row the column with 4,096 members.
pub(crate) async fn fill(client: &Client, rows: usize, large: bool) {
    const AT_ONCE: usize = 5_000;
    let vlans: Vec<i64> = if large { (0..4096).collect() } else { Vec::new() };
    let vlans = vlans.to_datum();
    for first in (0..rows).step_by(if large { 100 } else { AT_ONCE }) {
        let mut tx = client.transaction().validated(Validation::Off);
        for n in first..rows.min(first + if large { 100 } else { AT_ONCE }) {
            let name = format!("Name-{n}").to_datum();
            let version = format!("DatapathVersion-{n}").to_datum();
            let owner = map("owner", format!("owner-{n}"));
            let row = [
                ("name", name),
                ("datapath_version", version),
                ("external_ids", owner),
                ("flood_vlans", vlans.clone()),
            ];
            tx.insert("Bridge", row);
        }
        client.transact(tx).await.expect("the rows are good");
    }
}

pub(crate) fn ids(client: &Client) -> Vec<Uuid> {
    client.snapshot().rows("Bridge").expect("the table is there").map(|row| row.uuid()).collect()
}

/// A transaction of so many operations on rows spread over the table; `change` makes it differ from the last one.
pub(crate) fn transaction(
    client: &Client,
    ids: &[Uuid],
    operation: Operation,
    count: usize,
    change: u64,
) -> Transaction {
    let mut tx = client.transaction();
    for n in 0..count {
        // A large odd step visits rows all over the table.
        let at = (n + change as usize * count).wrapping_mul(7919) % ids.len();
        let row = Filter::uuid(ids[at]);
        match operation {
            Operation::Update => {
                let version = format!("version-{change}-Updated").to_datum();
                tx.update("Bridge", &row, [("datapath_version", version)]);
            }
            Operation::Mutate => {
                let port = Uuid::from_u128(u128::from(change) << 32 | n as u128).to_datum();
                tx.mutate("Bridge", &row, [("ports", Mutator::Insert, port)]);
            }
        }
    }
    tx
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
