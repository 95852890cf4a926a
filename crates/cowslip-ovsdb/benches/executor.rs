//! Whole transactions in memory: execution, rules and application. The cost has to depend on the transaction, not on the
//! database: compare the columns for 1,000 and 1,000,000 rows, and the large set with the small one.

use cowslip_engine::{Root, TableIx, Uuid};
use cowslip_ovsdb::executor::{Circumstances, Everything, Execution, Outcome, execute};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use std::sync::Arc;

fn main() {
    divan::main();
}

const SCHEMA: &str = r#"{"name":"E","tables":{
 "Switch":{"isRoot":true,"indexes":[["name"]],"columns":{"name":{"type":"string"},"numbers":{"type":{"key":"integer","min":0,"max":"unlimited"}},
   "ports":{"type":{"key":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}}}},
 "Port":{"indexes":[["name"]],"columns":{"name":{"type":"string"},"tag":{"type":{"key":"integer","min":0,"max":1}},
   "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;

fn run(root: &Root<Ovsdb>, text: &str) -> Outcome {
    let json = Json::parse(text.as_bytes()).expect("JSON");
    let transaction = Transaction::parse(root.meta(), json.as_array().expect("an array"));
    run_parsed(root, &transaction)
}

fn run_parsed(root: &Root<Ovsdb>, transaction: &Transaction) -> Outcome {
    let circumstances = Circumstances { owns_lock: &|_| true, read_only: false, waited_ms: 0 };
    match execute(root, transaction, &Everything, &circumstances) {
        Execution::Done(outcome) if outcome.error.is_none() => outcome,
        other => panic!("{other:?}"),
    }
}

fn port(n: usize) -> Uuid {
    Uuid::from_u128((n as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// One switch with `ports` ports.
fn network(ports: usize) -> Root<Ovsdb> {
    let mut root = Root::new(Arc::new(Schema::parse(SCHEMA.as_bytes()).expect("the schema is good")));
    let mut operations: Vec<String> = (0..ports)
        .map(|n| {
            let uuid = port(n);
            format!(
                r#"{{"op":"insert","table":"Port","uuid":"{uuid}","row":{{"name":"port-{n}","external_ids":["map",[["owner","bench"]]]}}}}"#
            )
        })
        .collect();
    let members: Vec<String> = (0..ports).map(|n| format!(r#"["uuid","{}"]"#, port(n))).collect();
    operations.push(format!(
        r#"{{"op":"insert","table":"Switch","row":{{"name":"s","ports":["set",[{}]]}}}}"#,
        members.join(",")
    ));
    let outcome = run(&root, &format!("[{}]", operations.join(",")));
    root.apply(&outcome.changes);
    assert_eq!(root.len(TableIx(0)), ports, "tables are in the order of their names");
    root
}

const ROWS: [usize; 3] = [1_000, 30_000, 1_000_000];

#[divan::bench(args = ROWS, sample_count = 30)]
fn update_one_row_by_uuid(bencher: divan::Bencher<'_, '_>, rows: usize) {
    let mut root = network(rows);
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let uuid = port(n % rows);
        let text = format!(
            r#"[{{"op":"update","table":"Port","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"tag":{}}}}}]"#,
            n % 4096
        );
        let outcome = run(&root, &text);
        root.apply(&outcome.changes);
    });
}

#[divan::bench(args = ROWS, sample_count = 30)]
fn look_up_one_row_by_index(bencher: divan::Bencher<'_, '_>, rows: usize) {
    let root = network(rows);
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        run(
            &root,
            &format!(r#"[{{"op":"select","table":"Port","where":[["name","==","port-{}"]]}}]"#, n % rows),
        )
    });
}

/// Adding a port to a switch with that many: a strong reference, two indexes, a set that grows.
#[divan::bench(args = [10, 1_000, 100_000], sample_count = 30)]
fn add_one_port_to_a_switch_of(bencher: divan::Bencher<'_, '_>, ports: usize) {
    let mut root = network(ports);
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let text = format!(
            r#"[{{"op":"insert","table":"Port","uuid-name":"p","row":{{"name":"new-{n}"}}}},
                {{"op":"mutate","table":"Switch","where":[["name","==","s"]],"mutations":[["ports","insert",["named-uuid","p"]]]}}]"#
        );
        let outcome = run(&root, &text);
        root.apply(&outcome.changes);
    });
}

/// Inserting one member into a set of that many, through execution, change set and application.
#[divan::bench(args = [10, 1_000, 100_000], sample_count = 30)]
fn insert_one_member_into_a_set_of(bencher: divan::Bencher<'_, '_>, members: usize) {
    let mut root = network(1);
    let all: Vec<String> = (0..members).map(|n| (2 * n).to_string()).collect();
    let text = format!(
        r#"[{{"op":"update","table":"Switch","where":[],"row":{{"numbers":["set",[{}]]}}}}]"#,
        all.join(",")
    );
    let outcome = run(&root, &text);
    root.apply(&outcome.changes);
    let mut n = 0;
    bencher.bench_local(|| {
        // In and out by turns, so that the small set stays small.
        n += 1;
        let verb = if n % 2 == 1 { "insert" } else { "delete" };
        let text = format!(
            r#"[{{"op":"mutate","table":"Switch","where":[["name","==","s"]],"mutations":[["numbers","{verb}",7]]}}]"#
        );
        let outcome = run(&root, &text);
        root.apply(&outcome.changes);
    });
}
