//! Random schemas, states and transactions: validation with full knowledge accepts exactly what the server accepts, and
//! foresees what comes of it; with partial knowledge it refuses nothing that the server accepts, other than duplicates in
//! client primary indexes, which are duplicates indeed.
//!
//! `COWSLIP_TEST_SEED` is the first schema's seed, each further schema has the next one; `COWSLIP_TEST_SCHEMAS` says how
//! many there are.

use crate::random::{Base, ColumnPlan, Generator, Kind as AtomKind, Random, Rows, SchemaPlan, TablePlan};
use crate::support::{Kind, Peer};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb_client::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const SCHEMAS: u64 = 30;
const TRANSACTIONS: usize = 60;

fn number(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// A session that sends what no client can be brought to send.
struct Raw(UnixStream);

impl Raw {
    async fn connect(socket: &Path) -> Self {
        Raw(UnixStream::connect(socket).await.unwrap())
    }

    /// Whether the server accepts these operations.
    async fn accepts(&mut self, operations: &str) -> bool {
        let inner = &operations[1..operations.len() - 1];
        let request = format!(r#"{{"id":1,"method":"transact","params":["T",{inner}]}}"#);
        self.0.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        loop {
            assert!(self.0.read_buf(&mut reply).await.unwrap() > 0, "the server hangs up on {operations}");
            let Ok(reply) = serde_json::from_slice::<Value>(&reply) else { continue };
            let is_fault = |result: &Value| result.get("error").is_some();
            return reply["error"].is_null() && !reply["result"].as_array().unwrap().iter().any(is_fault);
        }
    }
}

/// A client that knows a part, and its primary indexes: the index's name, table and column.
struct Partial {
    client: Client,
    primary: Option<(String, ColumnPlan)>,
}

/// A column that a monitor's condition or a client's index can be on.
fn simple_column<'t>(random: &mut Random, table: &'t TablePlan) -> Option<&'t ColumnPlan> {
    let is_simple = |column: &&ColumnPlan| {
        column.is_scalar() && matches!(column.key.kind, AtomKind::Integer | AtomKind::String)
    };
    let simple: Vec<&ColumnPlan> = table.columns.iter().filter(is_simple).collect();
    if simple.is_empty() { None } else { Some(*random.of(&simple)) }
}

fn datum_of(column: &ColumnPlan, random: &mut Random) -> Datum {
    let atom: Value = serde_json::from_str(random.of::<String>(&column.key.legal)).unwrap();
    match atom {
        Value::String(text) => text.to_datum(),
        number => number.as_i64().unwrap().to_datum(),
    }
}

/// A part of the database: some tables, some columns, some rows.
fn monitor(random: &mut Random, schema: &SchemaPlan) -> Monitor {
    let mut monitor = Monitor::nothing();
    for table in &schema.tables {
        monitor = match random.below(5) {
            0 => continue,
            1 | 2 => monitor.table(&table.name),
            3 => {
                let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
                let some: Vec<&str> = columns.into_iter().filter(|_| random.one_in(2)).collect();
                monitor.columns(&table.name, some)
            }
            _ => {
                let monitor = monitor.table(&table.name);
                match simple_column(random, table) {
                    None => monitor,
                    Some(column) => {
                        let value = datum_of(column, random);
                        monitor.rows(&table.name, Filter::all().equal(&column.name, &value))
                    }
                }
            }
        };
    }
    monitor
}

async fn partial_clients(peer: &Peer, random: &mut Random, schema: &SchemaPlan) -> Vec<Partial> {
    let mut clients = Vec::new();
    for n in 0..4 {
        // The first knows everything and has an index of its own.
        let mut builder =
            peer.builder().monitor(if n == 0 { Monitor::everything() } else { monitor(random, schema) });
        let table = random.of(&schema.tables);
        let primary = simple_column(random, table).map(|column| (table.name.clone(), column.clone()));
        if let Some((table, column)) = &primary {
            builder = builder.index(Index::primary(table, "own").column(&column.name));
        }
        clients.push(Partial { client: builder.connect().await.unwrap(), primary });
    }
    clients
}

/// A server, and who judges its transactions.
struct Parties<'s> {
    kind: Kind,
    schema: &'s SchemaPlan,
    full: Client,
    partial: Vec<Partial>,
    raw: Raw,
}

/// A transaction of a client's own, and what validation says of it; none if the client can tell from the text alone that
/// it is wrong.
fn judged(client: &Client, text: &str) -> Option<(Transaction, DryRun)> {
    let mut tx = client.transaction().validated(Validation::Off);
    let json = Json::parse(text.as_bytes()).unwrap();
    tx.add_json(json.as_array().unwrap()).ok()?;
    let verdict = client.dry_run(&tx).unwrap();
    Some((tx, verdict))
}

/// Waits until a client has seen everything that the server has committed.
async fn catch_up(client: &Client) {
    let mut tx = client.transaction();
    tx.comment("a barrier: updates come before replies");
    client.transact(tx).await.unwrap();
}

/// Every row with its columns' values.
type Content = BTreeMap<Uuid, Vec<(String, Datum)>>;

fn content(schema: &SchemaPlan, snapshot: &Snapshot) -> Content {
    let mut content = BTreeMap::new();
    for table in &schema.tables {
        for row in snapshot.rows(&table.name).unwrap() {
            let columns = table.columns.iter();
            let values = columns.map(|c| (c.name.clone(), row.datum(&c.name).unwrap().clone())).collect();
            assert!(content.insert(row.uuid(), values).is_none(), "one UUID in two tables");
        }
    }
    content
}

fn rows(schema: &SchemaPlan, snapshot: &Snapshot) -> Rows {
    let of = |table: &TablePlan| snapshot.rows(&table.name).unwrap().map(|row| row.uuid()).collect();
    schema.tables.iter().map(of).collect()
}

/// Whether the content differs from what was foreseen by nothing but weak references to rows that are gone.
fn is_unpruned(foreseen: &Content, found: &Content) -> bool {
    let is_gone = |atom: &Atom| atom.as_uuid().is_some_and(|uuid| !found.contains_key(uuid));
    let is_less = |(before, after): (&(String, Datum), &(String, Datum))| {
        let pruned = |(key, value): (&Atom, Option<&Atom>)| is_gone(key) || value.is_some_and(is_gone);
        before.1.is_subset_of(&after.1)
            && after.1.members().all(|(key, value)| before.1.contains(key) || pruned((key, value)))
    };
    let of_row = |(before, after): (&Vec<_>, &Vec<_>)| before.iter().zip(after).all(is_less);
    foreseen.keys().eq(found.keys()) && foreseen.values().zip(found.values()).all(of_row)
}

/// Whether a reference is to a row that is not there.
fn has_dangling(schema: &SchemaPlan, snapshot: &Snapshot) -> bool {
    let is_gone = |base: &Base, atom: &Atom| match (base.kind, atom.as_uuid()) {
        (AtomKind::Reference(table), Some(uuid)) => snapshot.row(&schema.tables[table].name, *uuid).is_none(),
        _ => false,
    };
    let dangles = |column: &ColumnPlan, row: &RowView<'_>| {
        row.datum(&column.name).unwrap().members().any(|(key, value)| {
            let is_value_gone =
                column.value.as_ref().zip(value).is_some_and(|(base, value)| is_gone(base, value));
            is_gone(&column.key, key) || is_value_gone
        })
    };
    schema.tables.iter().any(|table| {
        let mut rows = snapshot.rows(&table.name).unwrap();
        rows.any(|row| table.columns.iter().any(|column| dangles(column, &row)))
    })
}

#[derive(Default, Debug)]
struct Tally {
    accepted: usize,
    refused: usize,
    unparsed: usize,
    partly_refused: usize,
    own_duplicates: usize,
    /// How often the real server forgot to prune weak references (REF-15), after which its content breaks its own rules.
    unpruned: usize,
}

/// One transaction, judged by all and then sent. Whether one can go on from there.
async fn try_one(parties: &mut Parties<'_>, what: &str, text: &str, tally: &mut Tally) -> bool {
    let Parties { kind, schema, full, partial, raw } = parties;
    let Some((tx, verdict)) = judged(full, text) else {
        assert!(!raw.accepts(text).await, "{what}: the server can read it: {text}");
        tally.unparsed += 1;
        return true;
    };
    assert!(verdict.is_certain, "{what}: everything is known: {text}");
    let mut verdicts = Vec::new();
    for partial in partial.iter() {
        catch_up(&partial.client).await;
        verdicts.push(judged(&partial.client, text).expect("the schema is the same").1);
    }
    let outcome = full.transact(tx).await;
    match (&outcome, &verdict.refusal) {
        (Ok(_), None) => {
            tally.accepted += 1;
            // What the server chooses cannot be foreseen.
            if text.matches("\"uuid-name\"").count() == text.matches("\"uuid\":\"").count() {
                let (foreseen, found) = (content(schema, &verdict.after), content(schema, &full.snapshot()));
                if *kind == Kind::Real && foreseen != found && is_unpruned(&foreseen, &found) {
                    tally.unpruned += 1;
                    return false;
                }
                assert_eq!(foreseen, found, "{what}: {text}");
            }
        }
        (Err(TransactError::Failed(failure)), Some(refusal)) => {
            tally.refused += 1;
            assert_eq!(failure.operation, refusal.operation, "{what}: {failure}, not {refusal}: {text}");
            // Of several rows the real server meets any first, and each may break another rule.
            let is_free = *kind == Kind::Real && failure.operation.is_some_and(|at| is_about_many(text, at));
            let is_same = failure.kind == refusal.error.kind.tag();
            assert!(is_same || is_free, "{what}: {failure}, not {refusal}: {text}");
        }
        // REF-15 again: with what it forgot to prune, a rule would be broken.
        (Ok(_), Some(_)) if *kind == Kind::Real && has_dangling(schema, &full.snapshot()) => {
            tally.unpruned += 1;
            return false;
        }
        _ => panic!("{what}: {outcome:?} but {:?}: {text}", verdict.refusal),
    }
    for (n, (partial, verdict)) in partial.iter().zip(&verdicts).enumerate() {
        let Some(refusal) = &verdict.refusal else { continue };
        match (&refusal.duplicate, &outcome) {
            (_, Err(_)) => tally.partly_refused += 1,
            (Some(duplicate), Ok(_)) if duplicate.index == "own" => {
                tally.own_duplicates += 1;
                check_duplicate(&format!("{what} partial {n}: {text}"), full, partial, duplicate);
            }
            _ => panic!("{what} partial {n}: {refusal}: {text}"),
        }
    }
    true
}

/// Whether an operation may be about more than one row.
fn is_about_many(text: &str, operation: usize) -> bool {
    let operations: Value = serde_json::from_str(text).unwrap();
    let clauses = operations[operation]["where"].as_array();
    clauses.is_some_and(|clauses| !clauses.iter().any(|c| c[0] == "_uuid" && c[1] == "=="))
}

/// The server has accepted it, and now two rows hold the key.
fn check_duplicate(what: &str, full: &Client, partial: &Partial, duplicate: &Duplicate) {
    let (table, column) = partial.primary.as_ref().expect("it has an index");
    assert_eq!(duplicate.table, *table, "{what}");
    let snapshot = full.snapshot();
    let rows = snapshot.rows(table).unwrap();
    let key = &duplicate.key[0];
    let holders: BTreeSet<Uuid> =
        rows.filter(|row| row.datum(&column.name) == Some(key)).map(|row| row.uuid()).collect();
    assert!(holders.len() > 1, "{what}: {duplicate} is held by {holders:?}");
}

async fn run(kind: Kind) {
    let first = number("COWSLIP_TEST_SEED", 1);
    let mut tally = Tally::default();
    for seed in first..first + number("COWSLIP_TEST_SCHEMAS", SCHEMAS) {
        let mut random = Random(seed);
        let schema = SchemaPlan::random(&mut random);
        let text = schema.text();
        let peer = Peer::start(kind, &text).await;
        let full = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let partial = partial_clients(&peer, &mut random, &schema).await;
        let raw = Raw::connect(&peer.socket()).await;
        let mut generator = Generator::new(&schema, random);
        let mut parties = Parties { kind, schema: &schema, full, partial, raw };
        for n in 0..TRANSACTIONS {
            let text = generator.transaction(&rows(&schema, &parties.full.snapshot()));
            let what = format!("{kind:?}, COWSLIP_TEST_SEED={seed}, transaction {n}");
            if !try_one(&mut parties, &what, &text, &mut tally).await {
                break;
            }
        }
    }
    println!("{kind:?}, seeds from {first}: {tally:?}");
    let Tally { accepted, refused, unparsed, partly_refused, own_duplicates, .. } = tally;
    let least = [accepted, refused, unparsed, partly_refused, own_duplicates].into_iter().min();
    assert!(least > Some(10), "{kind:?}: too little of something: {tally:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validation_agrees_with_our_server_on_random_schemas() {
    run(Kind::Ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validation_agrees_with_the_real_server_on_random_schemas() {
    run(Kind::Real).await;
}
