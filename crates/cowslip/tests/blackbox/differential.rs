//! Random transactions on the real server and on ours side by side: results, content and updates must be equal.
//!
//! Each history is a list of steps that a seed determines. After every step the results of both servers are compared
//! with the texts of errors, then the updates of three monitors, then all rows; and on each side a client that only
//! applied updates must see what a select shows. A history that differs is made smaller before it is reported.
//!
//! UUIDs that a server chose are compared by the insert that made them. Known defects of the real server are
//! stepped around by the generator, or, for weak references that it leaves behind (REF-15), end the history.
//! `COWSLIP_DIFFERENTIAL_SECONDS` runs longer, `COWSLIP_DIFFERENTIAL_SEED` starts elsewhere, and
//! `COWSLIP_DIFFERENTIAL_FAILURES` is how many differing histories are looked for before the test stops (1).

mod generate;
mod model;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::compare::sorted_text;
use crate::support::rpc::{Outcome, Session};
use crate::support::scratch;
use crate::support::server::{Peer, Server, Setup};
use generate::{Generator, Step, Table, tables};
use model::View;

/// Every kind of column, constraint, index and reference.
const SCHEMA: &str = r#"{"name":"D","version":"1.0.0","tables":{
 "Root":{"columns":{"name":{"type":"string"},
   "kids":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":"unlimited"}},
   "one":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":1}},
   "byname":{"type":{"key":"string","value":{"type":"uuid","refTable":"Kid","refType":"weak"},"min":0,"max":"unlimited"}},
   "friends":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":3}},
   "owned":{"type":{"key":{"type":"uuid","refTable":"Kid"},"value":"integer","min":0,"max":"unlimited"}},
   "peer":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":1}}},
  "indexes":[["name"]],"isRoot":true},
 "Kid":{"columns":{"name":{"type":"string"},"n":{"type":"integer"},
   "next":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":1}}},
  "indexes":[["name","n"]]},
 "Must":{"columns":{"tag":{"type":"string"},
   "w":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":1,"max":"unlimited"}}},
  "isRoot":true,"maxRows":4},
 "Num":{"columns":{"n":{"type":"integer"},"t":{"type":"string"}},"indexes":[["n"],["t","n"]],"isRoot":true},
 "Two":{"columns":{"x":{"type":{"key":"string","min":0,"max":1}},"y":{"type":{"key":"string","min":0,"max":1}}},
  "indexes":[["x","y"]],"isRoot":true},
 "Sets":{"columns":{"s":{"type":{"key":"integer","min":0,"max":"unlimited"}},
   "m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}},"indexes":[["s"],["m"]],"isRoot":true},
 "V":{"columns":{"i":{"type":"integer"},"oi":{"type":{"key":"integer","min":0,"max":1}},
   "r":{"type":"real"},"or":{"type":{"key":"real","min":0,"max":1}},"b":{"type":"boolean"},"s":{"type":"string"},
   "os":{"type":{"key":"string","min":0,"max":1}},"ob":{"type":{"key":"boolean","min":0,"max":1}},
   "si":{"type":{"key":"integer","min":0,"max":"unlimited"}},"sr":{"type":{"key":"real","min":0,"max":4}},
   "s12":{"type":{"key":"integer","min":1,"max":2}},"s3":{"type":{"key":"integer","min":0,"max":3}},
   "ss":{"type":{"key":"string","min":0,"max":"unlimited"}},"u":{"type":"uuid"},
   "su":{"type":{"key":"uuid","min":0,"max":"unlimited"}},
   "m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
   "mr":{"type":{"key":"boolean","value":"real","min":0,"max":"unlimited"}},
   "m1":{"type":{"key":"integer","value":"string","min":1,"max":2}},
   "mi":{"type":{"key":"integer","value":"integer","min":0,"max":2}}},"isRoot":true},
 "C":{"columns":{"rng":{"type":{"key":{"type":"integer","minInteger":1,"maxInteger":5}}},
   "low":{"type":{"key":{"type":"integer","minInteger":-1},"min":0,"max":3}},
   "e":{"type":{"key":{"type":"string","enum":["set",["tcp","udp"]]}}},
   "ei":{"type":{"key":{"type":"integer","enum":["set",[0,3,5]]}}},
   "oe":{"type":{"key":{"type":"string","enum":["set",["a","b"]]},"min":0,"max":1}},
   "me":{"type":{"key":{"type":"string","enum":["set",["a","b"]]},"value":{"type":"integer","maxInteger":3},"min":0,"max":"unlimited"}},
   "len":{"type":{"key":{"type":"string","minLength":2,"maxLength":4}}},
   "rr":{"type":{"key":{"type":"real","minReal":-1.5,"maxReal":1.5}}}},"isRoot":true},
 "Imm":{"columns":{"a":{"type":"string","mutable":false},"b":{"type":"string"},
   "im":{"type":{"key":"integer","min":0,"max":"unlimited"},"mutable":false}},"isRoot":true},
 "Eph":{"columns":{"k":{"type":"string"},"st":{"type":"string","ephemeral":true}},"isRoot":true},
 "Cap":{"columns":{"n":{"type":"integer"}},"maxRows":1,"isRoot":true}
}}"#;

/// The database's name.
const DATABASE: &str = "D";
/// The steps of a history.
const STEPS: usize = 40;
/// How many histories are compared where no time is given.
const HISTORIES: u64 = 100;
/// The plain monitor, the conditional one, and one with flags whose updates make no whole view.
const MONITORS: [&str; 3] = ["plain", "conditional", "flags"];

/// Parts of error texts around which the real server names one of several rows that are at fault, whichever it finds first.
const ANY_ORDER: [&str; 10] = [
    "cannot delete",
    "references nonexistent row",
    "Cannot update immutable column",
    "is not in the valid range",
    "than minimum allowed",
    "than maximum allowed",
    "is not one of the allowed values",
    "Attempted to store",
    "Transaction causes multiple rows",
    "weak reference",
];

/// How a history ended that did not end well.
enum Stop {
    /// The servers differ.
    Differ(String),
    /// The real server has kept weak references to rows that are gone, or has died of the step.
    Dangling,
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Stop::Differ(text)
    }
}

/// One server, and what the client knows of it.
struct Side {
    server: Server,
    _dir: tempfile::TempDir,
    session: Session,
    /// UUIDs that the server chose, by label.
    labels: BTreeMap<u64, String>,
    views: [View; 2],
}

/// What one step led to on one side, with UUIDs that a server chose written as labels.
struct Effect {
    outcome: Value,
    notes: Value,
    content: BTreeMap<String, Vec<Value>>,
}

impl Side {
    fn start(peer: Peer) -> Side {
        let dir = scratch();
        let schema = dir.path().join("D.ovsschema");
        std::fs::write(&schema, SCHEMA).expect("a file can be written in the scratch directory");
        let (server, _setup): (Server, Setup) = Server::fresh(peer, dir.path(), &[&schema]);
        let session = server.connect();
        Side { server, _dir: dir, session, labels: BTreeMap::new(), views: Default::default() }
    }

    /// Empties the database and monitors it anew. The first replies are empty.
    fn begin(&mut self, tables: &[Table], monitors: &[Value]) -> Result<(), String> {
        let deletes: Vec<Value> =
            tables.iter().map(|t| json!({"op": "delete", "table": t.name, "where": []})).collect();
        self.session = self.server.connect();
        self.session.must(DATABASE, &deletes);
        self.labels.clear();
        self.views = [View::new(&monitors[0]), View::new(&monitors[1])];
        for (name, requests) in MONITORS.iter().zip(monitors) {
            let method = if *name == "plain" { "monitor" } else { "monitor_cond" };
            let requests = self.resolve(requests);
            let first = self.session.call(method, &json!([DATABASE, name, requests]));
            if first != Outcome::Result(json!({})) {
                return Err(format!("{method} {requests} on an empty database: {first:?}"));
            }
        }
        Ok(())
    }

    fn step(&mut self, tables: &[Table], step: &Step) -> Result<Effect, String> {
        let outcome = match step {
            Step::Transact(operations) => self.transact(operations),
            Step::Conditions(conditions) => {
                let conditions = self.resolve(conditions);
                self.session.call("monitor_cond_change", &json!(["conditional", "conditional", conditions]))
            }
        };
        let outcome = match outcome {
            Outcome::Result(result) => result,
            other => json!(format!("{other:?}")),
        };
        let content = self.content(tables)?;
        let mut notes = Vec::new();
        for (method, params) in std::mem::take(&mut self.session.notes) {
            let shown = MONITORS.iter().position(|m| params[0] == *m).ok_or("a note of no monitor")?;
            if let Some(view) = self.views.get_mut(shown) {
                view.take(tables, &params[1]).map_err(|e| format!("{method} {params}: {e}"))?;
            }
            if let Some(updates) = meaningful(&self.label(&params[1])) {
                notes.push(json!([method, params[0], updates]));
            }
        }
        // The real server serves its monitors in the order of a hash.
        notes.sort_by_cached_key(|note| note[1].to_string());
        for (table, rows) in &content {
            self.views[0].compare(table, rows)?;
        }
        let content =
            content.into_iter().map(|(table, rows)| (table, rows.iter().map(|r| self.label(r)).collect()));
        Ok(Effect { outcome: self.label(&outcome), notes: Value::Array(notes), content: content.collect() })
    }

    fn transact(&mut self, operations: &[Value]) -> Outcome {
        let mut sent = Vec::new();
        for operation in operations {
            let mut operation = self.resolve(operation);
            if let Some(members) = operation.as_object_mut() {
                members.remove("label");
            }
            sent.push(operation);
        }
        let outcome = self.session.transact(DATABASE, &sent);
        if let Outcome::Result(Value::Array(results)) = &outcome {
            for (operation, result) in operations.iter().zip(results) {
                if let (Some(label), Some(id)) = (operation["label"].as_u64(), result["uuid"][1].as_str()) {
                    self.labels.insert(label, id.to_owned());
                }
            }
        }
        outcome
    }

    fn content(&mut self, tables: &[Table]) -> Result<BTreeMap<String, Vec<Value>>, String> {
        let select = |table: &Table| {
            let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).chain(["_uuid"]).collect();
            json!({"op": "select", "table": table.name, "where": [], "columns": columns})
        };
        let operations: Vec<Value> = tables.iter().map(select).collect();
        let Outcome::Result(results) = self.session.transact(DATABASE, &operations) else {
            return Err("the content cannot be read".to_owned());
        };
        let mut all = BTreeMap::new();
        for (table, result) in tables.iter().zip(results.as_array().into_iter().flatten()) {
            let rows = result["rows"].as_array().ok_or(format!("the content of {}: {result}", table.name))?;
            all.insert(table.name.clone(), rows.clone());
        }
        Ok(all)
    }

    /// Puts this server's UUIDs in the place of labels; a label without a row becomes a UUID that no row has.
    fn resolve(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix('@').and_then(|n| n.parse().ok()) {
                Some(label) => {
                    let absent = "a0000000-0000-4000-8000-00000000dead".to_owned();
                    Value::String(self.labels.get(&label).cloned().unwrap_or(absent))
                }
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.resolve(item)).collect(),
            Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), self.resolve(v))).collect(),
            other => other.clone(),
        }
    }

    fn label_text(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(first) = rest.chars().next() {
            let id = rest.get(..36).filter(|id| uuid_like(id));
            out.push_str(&match id {
                None => first.to_string(),
                Some(id) if id.starts_with("a0000000-") || id.starts_with("00000000-") => id.to_owned(),
                Some(id) => match self.labels.iter().find(|(_, known)| *known == id) {
                    Some((label, _)) => format!("@{label}"),
                    None => "@?".to_owned(),
                },
            });
            rest = &rest[id.map_or(first.len_utf8(), str::len)..];
        }
        out
    }

    /// A value with labels for UUIDs, rows and sets of UUIDs in one order, and reals to the digits that both print.
    fn label(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.label_text(text)),
            // The real server makes a negative zero by arithmetic, which turns into 0 when it is read back.
            Value::Number(number) if number.as_f64() == Some(0.0) => json!(0),
            Value::Number(number) if number.is_f64() => {
                json!(format!("{:.11e}", number.as_f64().unwrap_or_default()))
            }
            Value::Array(items) => {
                let mut items: Vec<Value> = items.iter().map(|item| self.label(item)).collect();
                let has_labels = |item: &Value| item.to_string().contains("[\"uuid\"");
                if let [Value::String(kind), Value::Array(members)] = items.as_mut_slice()
                    && (kind == "set" || kind == "map")
                    && members.iter().any(has_labels)
                {
                    members.sort_by_cached_key(Value::to_string);
                }
                Value::Array(items)
            }
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| {
                    let mut value = self.label(value);
                    if let (true, Some(rows)) = (name == "rows", value.as_array_mut()) {
                        rows.sort_by_cached_key(sorted_text);
                    }
                    (self.label_text(name), value)
                })
                .collect(),
            other => other.clone(),
        }
    }
}

/// Updates without those that say nothing: the real server sends an empty `modify` when only a column changed that a
/// condition tests and the monitor does not show.
fn meaningful(updates: &Value) -> Option<Value> {
    let mut kept = serde_json::Map::new();
    for (table, rows) in updates.as_object()? {
        let says_something =
            |change: &Value| change["modify"].as_object().is_none_or(|columns| !columns.is_empty());
        let rows = rows.as_object()?.iter().filter(|(_, change)| says_something(change));
        let rows: serde_json::Map<String, Value> =
            rows.map(|(id, change)| (id.clone(), change.clone())).collect();
        if !rows.is_empty() {
            kept.insert(table.clone(), Value::Object(rows));
        }
    }
    (!kept.is_empty()).then_some(Value::Object(kept))
}

fn uuid_like(text: &str) -> bool {
    text.bytes()
        .enumerate()
        .all(|(at, b)| if [8, 13, 18, 23].contains(&at) { b == b'-' } else { b.is_ascii_hexdigit() })
}

/// Both servers.
struct Pair {
    tables: Vec<Table>,
    real: Side,
    ours: Side,
    /// Steps that changed something that is monitored.
    changes: u64,
}

impl Pair {
    fn start() -> Pair {
        let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        Pair {
            tables: tables(&schema),
            real: Side::start(Peer::Real),
            ours: Side::start(Peer::Cowslip),
            changes: 0,
        }
    }

    fn run(&mut self, monitors: &[Value], steps: &[Step]) -> Result<(), Stop> {
        self.real.begin(&self.tables, monitors).map_err(|e| format!("real: {e}"))?;
        self.ours.begin(&self.tables, monitors).map_err(|e| format!("ours: {e}"))?;
        for (at, step) in steps.iter().enumerate() {
            let real = self.real.step(&self.tables, step).map_err(|e| format!("step {at}, real: {e}"));
            let ours = self.ours.step(&self.tables, step).map_err(|e| format!("step {at}, ours: {e}"));
            if real.is_err() && !self.real.server.is_running() {
                eprintln!("the real server died of {step}\n{}", self.real.server.log_tail());
                self.real = Side::start(Peer::Real);
                return Err(Stop::Dangling);
            }
            if real.as_ref().is_ok_and(|r| self.dangles(&r.content)) {
                return Err(Stop::Dangling);
            }
            let (real, ours) = (real?, ours?);
            self.changes += u64::from(real.notes != json!([]));
            compare(step, &real, &ours).map_err(|e| format!("step {at}: {e}"))?;
        }
        Ok(())
    }

    /// Whether a weak reference leads nowhere: the real server's known defect.
    fn dangles(&self, content: &BTreeMap<String, Vec<Value>>) -> bool {
        let ids = |table: &str| -> Vec<&Value> {
            content.get(table).into_iter().flatten().map(|row| &row["_uuid"][1]).collect()
        };
        let (roots, kids) = (ids("Root"), ids("Kid"));
        let leads_nowhere = |rows: &[&Value], text: &str| {
            text.split("[\"uuid\",\"").skip(1).any(|id| {
                let id = id.split('"').next().unwrap_or_default();
                !rows.iter().any(|known| *known == id)
            })
        };
        let weak = [
            ("Root", "byname", &kids),
            ("Root", "friends", &roots),
            ("Root", "peer", &roots),
            ("Must", "w", &roots),
        ];
        weak.iter().any(|(table, column, rows)| {
            content.get(*table).into_iter().flatten().any(|row| leads_nowhere(rows, &row[column].to_string()))
        })
    }

    /// The same difference with fewer steps and operations.
    fn shrink(&mut self, monitors: &[Value], steps: Vec<Step>) -> Vec<Step> {
        let mut best = steps;
        let fails =
            |pair: &mut Pair, steps: &[Step]| matches!(pair.run(monitors, steps), Err(Stop::Differ(_)));
        let mut at = best.len();
        while at > 0 {
            at -= 1;
            let mut fewer = best.clone();
            fewer.remove(at);
            if fails(self, &fewer) {
                best = fewer;
                continue;
            }
            let Step::Transact(operations) = &best[at] else { continue };
            let mut operations = operations.clone();
            let mut op = operations.len();
            while op > 0 {
                op -= 1;
                let removed = operations.remove(op);
                let mut fewer = best.clone();
                fewer[at] = Step::Transact(operations.clone());
                if fails(self, &fewer) { best = fewer } else { operations.insert(op, removed) }
            }
        }
        best
    }
}

/// Results without those words of errors that depend on the order in which the real server's hash tables hold rows: which
/// of several dangling references it names, for example.
fn plain_details(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    for result in outcome.as_array_mut().into_iter().flatten() {
        let details = result["details"].as_str().unwrap_or_default();
        if ANY_ORDER.iter().any(|text| details.contains(*text)) {
            result["details"] = json!("one of several");
        }
    }
    outcome
}

/// Our results, where an insert that is wrong in its row and in its UUID gets the real server's error: that one looks at the
/// UUID first, ours at the row.
fn one_fault(real: &Value, ours: &Value) -> Value {
    let mut ours = plain_details(ours);
    let faults = real.as_array().into_iter().flatten().zip(ours.as_array_mut().into_iter().flatten());
    for (real, ours) in
        faults.filter(|(real, ours)| real["error"] == "duplicate uuid" && ours["error"].is_string())
    {
        *ours = real.clone();
    }
    ours
}

fn texts(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join("\n")
}

fn compare(step: &Step, real: &Effect, ours: &Effect) -> Result<(), String> {
    let same = |what: &str, real: &Value, ours: &Value| {
        let (a, b) = (sorted_text(real), sorted_text(ours));
        if a == b { Ok(()) } else { Err(format!("{what} of {step}\n  real {a}\n  ours {b}")) }
    };
    same("the results", &plain_details(&real.outcome), &one_fault(&real.outcome, &ours.outcome))?;
    same("the updates", &real.notes, &ours.notes)?;
    for (table, rows) in &real.content {
        let sorted = |rows: &[Value]| {
            let mut rows: Vec<Value> = rows.to_vec();
            rows.sort_by_cached_key(sorted_text);
            Value::Array(rows)
        };
        let other = ours.content.get(table).map_or(&[][..], Vec::as_slice);
        same(&format!("the rows in {table} after"), &sorted(rows), &sorted(other))?;
    }
    Ok(())
}

/// What the three monitors of a history ask for.
fn monitors(generator: &mut Generator<'_>, tables: &[Table]) -> Vec<Value> {
    let mut requests = vec![json!({}), json!({}), json!({})];
    for table in tables {
        let all: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        let some: Vec<&str> = all.iter().copied().filter(|_| generator.random.percent(60)).collect();
        requests[0][&table.name] = json!([{ "columns": all }]);
        let condition = generator.monitor_condition(table);
        requests[1][&table.name] = json!([{ "columns": some, "where": condition }]);
        let mut flag = || generator.random.percent(60);
        let select = json!({"initial": flag(), "insert": flag(), "delete": flag(), "modify": flag()});
        requests[2][&table.name] = json!([{ "columns": some, "select": select }]);
    }
    requests
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
        Err(_) => otherwise,
    }
}

#[test]
fn random_histories_are_the_same_on_both_servers() {
    // By default so many histories, always the same ones; a time, if one is given.
    let seconds = number("COWSLIP_DIFFERENTIAL_SECONDS", 0);
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = number("COWSLIP_DIFFERENTIAL_SEED", 1);
    let keep_going = number("COWSLIP_DIFFERENTIAL_FAILURES", 1);
    let mut pair = Pair::start();
    let (mut whole, mut cut, mut failures) = (0, 0, Vec::new());
    for seed in first.. {
        let is_over = if seconds > 0 { Instant::now() > end } else { seed >= first + HISTORIES };
        if is_over || failures.len() as u64 >= keep_going {
            break;
        }
        let tables = std::mem::take(&mut pair.tables);
        let mut generator = Generator::new(seed, &tables);
        let monitors = monitors(&mut generator, &tables);
        let steps: Vec<Step> = (0..STEPS).map(|_| generator.step()).collect();
        pair.tables = tables;
        match pair.run(&monitors, &steps) {
            Ok(()) => whole += 1,
            Err(Stop::Dangling) => cut += 1,
            Err(Stop::Differ(first)) => {
                eprintln!("seed {seed}: {first}\n");
                let steps = pair.shrink(&monitors, steps);
                let last = match pair.run(&monitors, &steps) {
                    Err(Stop::Differ(text)) => text,
                    _ => first,
                };
                failures.push(format!(
                    "seed {seed}: {last}\n  in\n{}\n  monitored by {}",
                    texts(&steps),
                    json!(monitors)
                ));
            }
        }
    }
    eprintln!(
        "{whole} whole histories, {cut} cut short by defects of the real server, {} changes",
        pair.changes
    );
    crate::support::report("differential", whole + cut + failures.len(), &failures);
}
