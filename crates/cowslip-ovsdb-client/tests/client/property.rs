//! Random transactions: validation with full knowledge accepts exactly what the server accepts; with partial knowledge
//! it refuses nothing that the server accepts.

use crate::random::Random;
use crate::support::{BOTH, Peer};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb_client::*;

const SCHEMA: &str = r#"{"name":"T","tables":{
 "Root":{"columns":{"name":{"type":"string"},
   "kids":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":3}},
   "friends":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":"unlimited"}},
   "named":{"type":{"key":"string","value":{"type":"uuid","refTable":"Kid","refType":"weak"},"min":0,"max":"unlimited"}},
   "level":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":9},"min":0,"max":1}}},
  "indexes":[["name"]],"isRoot":true},
 "Kid":{"columns":{"name":{"type":"string"},"n":{"type":"integer"},
   "next":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":1}}},
  "indexes":[["name","n"]]},
 "Must":{"columns":{"w":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":1,"max":"unlimited"}},
   "note":{"type":"string"}},
  "isRoot":true,"maxRows":4}}}"#;

const ROUNDS: u32 = 1500;

/// A reference to one of the rows that there are, or to a new one.
fn reference(random: &mut Random, rows: &[Uuid], news: &[String]) -> String {
    let at = random.below((rows.len() + news.len() * 2 + 1) as u64) as usize;
    if at < rows.len() {
        return format!(r#"["uuid","{}"]"#, rows[at]);
    }
    match news.get((at - rows.len()) / 2) {
        Some(name) => format!(r#"["named-uuid","{name}"]"#),
        None => r#"["uuid","00000000-0000-4000-8000-00000000dead"]"#.to_string(),
    }
}

struct Rows {
    root: Vec<Uuid>,
    kid: Vec<Uuid>,
    must: Vec<Uuid>,
    new_roots: Vec<String>,
    new_kids: Vec<String>,
}

fn column(random: &mut Random, table: &str, rows: &Rows) -> (String, String) {
    let set = |members: Vec<String>| format!(r#"["set",[{}]]"#, members.join(","));
    let some = |random: &mut Random, rows: &[Uuid], news: &[String], min: u64, span: u64| {
        let mut members: Vec<String> =
            (0..min + random.below(span)).map(|_| reference(random, rows, news)).collect();
        members.sort();
        members.dedup();
        set(members)
    };
    let name = format!("\"n{}\"", random.below(4));
    let (column, value) = match (table, random.below(5)) {
        ("Root", 0) => ("kids", some(random, &rows.kid, &rows.new_kids, 0, 4)),
        ("Root", 1) => ("friends", some(random, &rows.root, &rows.new_roots, 0, 3)),
        ("Root", 2) => {
            ("named", format!(r#"["map",[["k",{}]]]"#, reference(random, &rows.kid, &rows.new_kids)))
        }
        ("Root", 3) => ("level", random.below(11).to_string()),
        ("Root", _) | ("Kid", 0 | 1) => ("name", name),
        ("Kid", 2) => ("n", random.below(2).to_string()),
        ("Kid", _) => ("next", some(random, &rows.kid, &rows.new_kids, 0, 2)),
        (_, 0) => ("note", name),
        _ => ("w", some(random, &rows.root, &rows.new_roots, 1, 2)),
    };
    (column.to_string(), value)
}

fn row(random: &mut Random, table: &str, rows: &Rows) -> String {
    let mut columns: Vec<(String, String)> =
        (0..=random.below(3)).map(|_| column(random, table, rows)).collect();
    if table == "Must" && !columns.iter().any(|(name, _)| name == "w") {
        columns.push(("w".to_string(), reference(random, &rows.root, &rows.new_roots)));
    }
    columns.sort();
    columns.dedup_by(|b, a| a.0 == b.0);
    let members: Vec<String> =
        columns.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn condition(random: &mut Random, table: &str, rows: &Rows) -> String {
    let ids = match table {
        "Root" => &rows.root,
        "Kid" => &rows.kid,
        _ => &rows.must,
    };
    match (random.below(8), table) {
        (0, _) => "[]".to_string(),
        (1 | 2, "Root" | "Kid") => format!(r#"[["name","==","n{}"]]"#, random.below(4)),
        (3, "Root") => format!(r#"[["level",">",{}]]"#, random.below(9)),
        _ => format!(r#"[["_uuid","==",{}]]"#, reference(random, ids, &[])),
    }
}

fn mutation(random: &mut Random, table: &str, rows: &Rows) -> String {
    let verb = *random.of(&["insert", "delete"]);
    match (table, random.below(4)) {
        ("Root", 0) => format!(r#"["level","{}",{}]"#, random.of(&["+=", "-=", "/="]), random.below(3)),
        ("Root", 1) => format!(r#"["friends","{verb}",{}]"#, reference(random, &rows.root, &rows.new_roots)),
        ("Root", _) => format!(r#"["kids","{verb}",{}]"#, reference(random, &rows.kid, &rows.new_kids)),
        ("Kid", _) => format!(r#"["n","{}",{}]"#, random.of(&["+=", "-=", "%="]), random.below(3)),
        _ => format!(r#"["w","{verb}",{}]"#, reference(random, &rows.root, &rows.new_roots)),
    }
}

fn operation(random: &mut Random, rows: &mut Rows, number: u64) -> String {
    let table = *random.of(&["Root", "Root", "Kid", "Kid", "Must"]);
    match random.below(8) {
        0..=3 => {
            let row = row(random, table, rows);
            let name = format!("new{number}");
            match table {
                "Root" => rows.new_roots.push(name.clone()),
                "Kid" => rows.new_kids.push(name.clone()),
                _ => {}
            }
            format!(r#"{{"op":"insert","table":"{table}","uuid-name":"{name}","row":{row}}}"#)
        }
        4 | 5 => {
            let (row, condition) = (row(random, table, rows), condition(random, table, rows));
            format!(r#"{{"op":"update","table":"{table}","where":{condition},"row":{row}}}"#)
        }
        6 => {
            let (mutation, condition) = (mutation(random, table, rows), condition(random, table, rows));
            format!(r#"{{"op":"mutate","table":"{table}","where":{condition},"mutations":[{mutation}]}}"#)
        }
        _ => format!(r#"{{"op":"delete","table":"{table}","where":{}}}"#, condition(random, table, rows)),
    }
}

fn transaction(random: &mut Random, snapshot: &Snapshot) -> String {
    let ids = |table| snapshot.rows(table).unwrap().map(|row| row.uuid()).collect();
    let mut rows = Rows {
        root: ids("Root"),
        kid: ids("Kid"),
        must: ids("Must"),
        new_roots: Vec::new(),
        new_kids: Vec::new(),
    };
    let operations: Vec<String> = (0..=random.below(5)).map(|n| operation(random, &mut rows, n)).collect();
    format!("[{}]", operations.join(","))
}

/// A transaction of a client's own, and what validation says of it; none if the text cannot even be parsed.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validation_agrees_with_the_server() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let full = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let partial = [
            Monitor::nothing().table("Root").columns("Kid", ["name"]),
            Monitor::nothing().table("Kid").columns("Root", ["name", "kids"]),
            Monitor::everything().rows("Root", Filter::all().equal("name", "n1")),
            Monitor::nothing().columns("Root", ["level"]).table("Must"),
        ];
        let mut clients = Vec::new();
        for monitor in partial {
            clients.push(peer.builder().monitor(monitor).connect().await.unwrap());
        }
        let mut random = Random(7);
        let (mut accepted, mut refused, mut seen) = (0, 0, 0);
        for round in 0..ROUNDS {
            let text = transaction(&mut random, &full.snapshot());
            let Some((tx, verdict)) = judged(&full, &text) else { continue };
            for client in &clients {
                catch_up(client).await;
            }
            let partial: Vec<_> = clients.iter().map(|client| judged(client, &text).unwrap().1).collect();
            assert!(verdict.is_certain, "{kind:?} {round}: everything is known: {text}");
            let outcome = full.transact(tx).await;
            match (&outcome, &verdict.refusal) {
                (Ok(_), None) => accepted += 1,
                (Err(TransactError::Failed(_)), Some(_)) => refused += 1,
                _ => panic!("{kind:?} {round}: {outcome:?} but {:?}: {text}", verdict.refusal),
            }
            for (n, verdict) in partial.iter().enumerate() {
                if let Some(refusal) = &verdict.refusal {
                    assert!(outcome.is_err(), "{kind:?} {round} partial {n}: {refusal}: {text}");
                    seen += 1;
                }
            }
        }
        assert!(accepted > 100 && refused > 100 && seen > 100, "{accepted} {refused} {seen}");
        println!("{kind:?}: {accepted} accepted, {refused} refused, {seen} refused with partial knowledge");
    }
}
