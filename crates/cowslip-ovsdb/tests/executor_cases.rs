//! Runs the transaction cases of `tests/cases` on the executor in this process. What needs a server (monitors, sessions,
//! restarts) is run over the wire by the binary's own tests, which also run every case on the real server.

use cowslip_engine::Root;
use cowslip_ovsdb::executor::{Circumstances, Everything, Execution, execute};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Writes `"#3"` out as a UUID, wherever it stands.
fn expand(value: &Value) -> Value {
    let uuid = |text: &str| match text.strip_prefix('#') {
        Some(digits) => format!("a0000000-0000-4000-8000-{digits:0>12}"),
        None => text.to_string(),
    };
    match value {
        Value::String(text) => Value::String(uuid(text)),
        Value::Array(elements) => Value::Array(elements.iter().map(expand).collect()),
        Value::Object(members) => Value::Object(members.iter().map(|(k, v)| (uuid(k), expand(v))).collect()),
        other => other.clone(),
    }
}

struct Database {
    root: Root<Ovsdb>,
}

impl Database {
    fn transact(&mut self, operations: &str) -> Value {
        // A text that is no JSON never reaches the executor: the connection ends.
        let Ok(json) = Json::parse(operations.as_bytes()) else { return Value::String("closed".into()) };
        let transaction =
            Transaction::parse(self.root.meta(), json.as_array().expect("operations are an array"));
        let mut waited_ms = 0;
        let outcome = loop {
            let circumstances = Circumstances { owns_lock: &|_| false, read_only: false, waited_ms };
            match execute(&self.root, &transaction, &Everything, &circumstances) {
                Execution::Done(outcome) => break outcome,
                Execution::Waiting { timeout_ms, .. } => {
                    waited_ms =
                        timeout_ms.expect("nobody else is there who could end a wait without a time-out");
                }
            }
        };
        self.root.apply(&outcome.changes);
        let mut text = String::new();
        outcome.write(self.root.meta(), &mut text);
        serde_json::from_str(&text).expect("results are JSON")
    }
}

/// Compares a result with what is wanted: names of new UUIDs are bound, rows have no order, of an error only what is
/// given counts.
fn matches(got: &Value, want: &Value, names: &mut BTreeMap<String, String>) -> bool {
    match (got, want) {
        (_, Value::String(word)) if word == "malformed" => {
            *got == "closed" || got[0]["error"] == "syntax error"
        }
        (_, Value::Object(choices)) if choices.contains_key("any") => {
            choices["any"].as_array().is_some_and(|choices| choices.iter().any(|w| matches(got, w, names)))
        }
        (Value::String(got), Value::String(name)) if name.starts_with("<new") => {
            names.entry(name.clone()).or_insert_with(|| got.clone()) == got
        }
        (Value::Array(got), Value::Array(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(g, w)| matches(g, w, names))
        }
        (Value::Object(got), Value::Object(want)) if want.contains_key("error") => {
            want.iter().all(|(key, w)| got.get(key).is_some_and(|g| g == w))
        }
        (Value::Object(got), Value::Object(want)) => {
            got.len() == want.len()
                && want.iter().all(|(key, w)| {
                    got.get(key).is_some_and(|g| match (key.as_str(), g, w) {
                        ("rows", Value::Array(g), Value::Array(w)) => same_rows(g, w, names),
                        _ => matches(g, w, names),
                    })
                })
        }
        (Value::Number(got), Value::Number(want)) => got == want || got.as_f64() == want.as_f64(),
        _ => got == want,
    }
}

fn same_rows(got: &[Value], want: &[Value], names: &mut BTreeMap<String, String>) -> bool {
    let mut left: Vec<&Value> = got.iter().collect();
    got.len() == want.len()
        && want.iter().all(|w| {
            let at = left.iter().position(|g| matches(g, w, names));
            at.map(|at| left.remove(at)).is_some()
        })
}

/// The step's operations as text, if the step is a transaction and nothing else.
fn transaction_of(step: &Value) -> Option<String> {
    ["setup", "transact"]
        .iter()
        .find_map(|kind| step.get(kind))
        .map(|operations| expand(operations).to_string())
        .or_else(|| step.get("text").and_then(Value::as_str).map(str::to_string))
}

fn run_file(name: &str) {
    let data: Value = serde_json::from_str(&read(name)).expect("cases are JSON");
    let schema = Arc::new(Schema::parse(read("lab.ovsschema").as_bytes()).expect("the schema is good"));
    let (mut ran, mut faults) = (0, Vec::new());
    for case in data["cases"].as_array().expect("cases") {
        let steps = case["steps"].as_array().expect("steps");
        if steps.iter().any(|step| transaction_of(step).is_none() && step.get("monitor").is_none()) {
            continue;
        }
        ran += 1;
        let mut database = Database { root: Root::new(schema.clone()) };
        let mut names = BTreeMap::new();
        for (i, step) in steps.iter().enumerate() {
            let Some(operations) = transaction_of(step) else { continue };
            let got = database.transact(&operations);
            let fault = match step.get("result") {
                Some(want) => !matches(&got, &expand(want), &mut names),
                None => {
                    got.as_array().is_some_and(|results| results.iter().any(|r| r.get("error").is_some()))
                }
            };
            if fault {
                let want = step.get("result").unwrap_or(&Value::Null);
                faults.push(format!("{} step {i}: {operations}\n   got {got}\n  want {want}", case["id"]));
            }
        }
    }
    assert!(ran > 0, "{name} has no case that the executor alone can run");
    assert!(faults.is_empty(), "{name}, {ran} cases:\n{}", faults.join("\n"));
}

#[test]
fn indexes() {
    run_file("idx.json");
}

#[test]
fn references() {
    run_file("refs.json");
}

#[test]
fn values() {
    run_file("val.json");
}

#[test]
fn operations() {
    run_file("ops.json");
}

#[test]
fn monitored_transactions() {
    run_file("mon.json");
}

/// A server that may only read refuses what writes, in the reference server's words, and answers the rest.
#[test]
fn read_only() {
    let schema = Arc::new(Schema::parse(read("lab.ovsschema").as_bytes()).expect("the schema is good"));
    let root = Root::<Ovsdb>::new(schema);
    for (operations, want) in [
        (
            r#"[{"op":"insert","table":"Plain","row":{}},{"op":"comment","comment":"x"}]"#,
            r#"[{"details":"insert operation not allowed when database server is in read only mode","error":"not allowed"},null]"#,
        ),
        (
            r#"[{"op":"delete","table":"Plain","where":[]}]"#,
            r#"[{"details":"delete operation not allowed when database server is in read only mode","error":"not allowed"}]"#,
        ),
        (r#"[{"op":"select","table":"Plain","where":[]}]"#, r#"[{"rows":[]}]"#),
    ] {
        let json = Json::parse(operations.as_bytes()).expect("JSON");
        let transaction = Transaction::parse(root.meta(), json.as_array().expect("an array"));
        let circumstances = Circumstances { owns_lock: &|_| false, read_only: true, waited_ms: 0 };
        let Execution::Done(outcome) = execute(&root, &transaction, &Everything, &circumstances) else {
            panic!("there is no wait in it");
        };
        let mut text = String::new();
        outcome.write(root.meta(), &mut text);
        let values = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(values(&text), values(want), "{operations}");
    }
}
