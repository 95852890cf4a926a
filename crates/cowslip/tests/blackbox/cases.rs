//! The cases kept as data in the OVSDB crate, run over the wire.
//!
//! `README.md` beside the data describes its form. Each case gets its own server and database. After a case on
//! our server the whole content is read, the server restarted and the content read again: it must be equal, but for
//! ephemeral columns, whatever the case did.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::compare::{Names, expand, expand_json_text};
use crate::support::content::content;
use crate::support::rpc::{Outcome, REPLY_LIMIT, Session};
use crate::support::server::{Peer, Server, Setup};
use crate::support::{case_folder, json_file, report, scratch};

/// The database of all cases.
const DATABASE: &str = "Lab";
/// How long nothing must come before a session counts as silent.
const SILENCE: Duration = Duration::from_millis(200);
/// How long a notification may take.
const NOTE_LIMIT: Duration = Duration::from_secs(10);

type Check = Result<(), String>;

/// One case on one server.
struct Run {
    server: Server,
    setup: Setup,
    sessions: BTreeMap<String, Session>,
    names: Names,
    monitored: bool,
    barriers: usize,
}

impl Run {
    fn session(&mut self, step: &Value, otherwise: &str) -> &mut Session {
        let name = step["session"].as_str().unwrap_or(otherwise).to_owned();
        let server = &self.server;
        self.sessions.entry(name).or_insert_with(|| server.connect())
    }

    /// The wanted value of a step under `key`, or what the real server is known to do instead.
    fn wanted<'s>(&self, step: &'s Value, key: &str, real: &str) -> Option<&'s Value> {
        let deviation = step.get(real).filter(|_| self.server.peer == Peer::Real);
        deviation.or_else(|| step.get(key))
    }

    fn step(&mut self, step: &Value) -> Check {
        if let Some(operations) = step.get("setup") {
            let operations = expand(operations);
            let operations = operations.as_array().ok_or("setup is not an array")?;
            self.session(step, "main").must(DATABASE, operations);
            return Ok(());
        }
        if let Some(name) = step.get("end").and_then(Value::as_str) {
            self.sessions.remove(name);
            // Nothing tells another session that the server has noticed.
            std::thread::sleep(SILENCE);
            return Ok(());
        }
        if step.get("restart").is_some() {
            self.restart();
            return Ok(());
        }
        if let Some(id) = step.get("send") {
            let params = operations_of(step);
            self.session(step, "main").send("transact", &params, id);
            return Ok(());
        }
        if let Some(method) = step.get("notify").and_then(Value::as_str) {
            self.session(step, "main").send(method, &step["params"], &Value::Null);
            return Ok(());
        }
        if let Some(wanted) = step.get("expect") {
            return self.expect(step, wanted);
        }
        if step.get("monitor").is_some() {
            return self.monitor(step);
        }
        self.request(step)
    }

    fn restart(&mut self) {
        self.sessions.clear();
        self.server.stop();
        self.server = self.setup.start();
    }

    fn monitor(&mut self, step: &Value) -> Check {
        let method = step["monitor"].as_str().ok_or("monitor names no method")?;
        let mut params = vec![json!(DATABASE), json!("m"), step["requests"].clone()];
        if method == "monitor_cond_since" {
            params.push(json!("00000000-0000-0000-0000-000000000000"));
        }
        self.monitored = true;
        let outcome = self.session(step, "watch").call(method, &Value::Array(params));
        let wanted = self.wanted(step, "initial", "real_initial").map_or(Value::Null, expand);
        check(&mut self.names, &wanted, &outcome)
    }

    /// A request with its reply, and the notifications that the watching session must get because of it.
    fn request(&mut self, step: &Value) -> Check {
        let outcome = if let Some(id) = step.get("receive") {
            let silence = self.wanted(step, "result", "real").is_some_and(|w| w == "silent");
            let limit = if silence { SILENCE } else { REPLY_LIMIT };
            self.session(step, "main").reply(id, limit)
        } else if let Some(method) = step.get("call").and_then(Value::as_str) {
            let params = expand(&step["params"]);
            self.session(step, "watch").call(method, &params)
        } else if let Some(text) = step.get("text").and_then(Value::as_str) {
            let text = expand_json_text(text);
            self.session(step, "main").call_text(DATABASE, &text)
        } else {
            let params = operations_of(step);
            self.session(step, "main").call("transact", &params)
        };
        if outcome == Outcome::Closed {
            let name = step["session"].as_str().unwrap_or("main");
            self.sessions.remove(name);
        }
        let wanted = match self.wanted(step, "result", "real") {
            Some(result) => expand(result),
            None => json!({"error": step["error"]}),
        };
        check(&mut self.names, &wanted, &outcome)?;
        self.updates(step)
    }

    fn expect(&mut self, step: &Value, wanted: &Value) -> Check {
        let mut got = Vec::new();
        for _ in wanted.as_array().into_iter().flatten() {
            let note = self.session(step, "watch").note(NOTE_LIMIT);
            let (method, params) = note.ok_or(format!("no notification came, want {wanted}"))?;
            got.push(json!({method: params}));
        }
        self.names.compare(&expand(wanted), &Value::Array(got))
    }

    /// Collects what the watching session got up to now. Its own commit is the barrier: the reply to it leaves
    /// after the updates of every commit before it.
    fn updates(&mut self, step: &Value) -> Check {
        if !self.monitored {
            return Ok(());
        }
        let Some(watch) = self.sessions.get_mut("watch") else { return Ok(()) };
        self.barriers += 1;
        let mark = format!("barrier {}", self.barriers);
        watch.must(DATABASE, &[json!({"op": "insert", "table": "Imm", "row": {"b": mark}})]);
        let got = watch.notes.drain(..).map(|(method, params)| json!({method: params})).collect();
        let wanted = self.wanted(step, "updates", "real_updates").map_or(json!([]), expand);
        self.names.compare(&wanted, &Value::Array(got)).map_err(|e| format!("notifications: {e}"))
    }

    fn content(&mut self, schema: &Value) -> Value {
        content(self.session(&Value::Null, "main"), schema)
    }

    fn restart_equals_memory(&mut self, schema: &Value) -> Check {
        let before = self.content(schema);
        self.restart();
        let after = self.content(schema);
        self.names.compare(&before, &after).map_err(|e| format!("after a restart: {e}"))
    }
}

fn operations_of(step: &Value) -> Value {
    let mut params = vec![json!(DATABASE)];
    params.extend(expand(&step["transact"]).as_array().into_iter().flatten().cloned());
    Value::Array(params)
}

/// Compares an outcome with a wanted one: an array or object of results, `{"error": …}` for an error of the whole
/// request, `{"any": […]}`, or one of the words `closed`, `silent`, `unreadable`, `malformed` (closed or refused).
fn check(names: &mut Names, wanted: &Value, outcome: &Outcome) -> Check {
    if let Some(choices) = wanted.get("any").and_then(Value::as_array) {
        let all: Vec<String> = choices.iter().filter_map(|one| check(names, one, outcome).err()).collect();
        return if all.len() < choices.len() { Ok(()) } else { Err(all.join("\n  or ")) };
    }
    let fits = match (wanted.as_str(), outcome) {
        (Some("closed"), Outcome::Closed)
        | (Some("silent"), Outcome::Silent)
        | (Some("unreadable"), Outcome::Unreadable)
        | (Some("malformed"), Outcome::Closed | Outcome::Error(_)) => true,
        (Some("malformed"), Outcome::Result(results)) => {
            results.as_array().and_then(|r| r.first()).is_some_and(|first| first.get("error").is_some())
        }
        (None, Outcome::Result(results)) if wanted.get("error").is_none() => {
            return names.compare(wanted, results).map_err(|e| format!("{e}\n  in {results}"));
        }
        (None, Outcome::Error(error)) => match wanted.get("error") {
            Some(code) => *code == error["error"] || code == error,
            None => false,
        },
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("want {wanted}, got {outcome:?}")) }
}

fn run_case(peer: Peer, case: &Value, schema: &Value) -> Check {
    let dir = scratch();
    let (server, setup) = Server::fresh(peer, dir.path(), &[&case_folder().join("lab.ovsschema")]);
    let (sessions, names) = (BTreeMap::new(), Names::default());
    let mut run = Run { server, setup, sessions, names, monitored: false, barriers: 0 };
    for (at, step) in case["steps"].as_array().ok_or("a case without steps")?.iter().enumerate() {
        run.step(step).map_err(|e| format!("step {at} {step}\n  {e}"))?;
        if !run.server.is_running() {
            return Err(format!("the server died at step {at}\n{}", run.server.log_tail()));
        }
    }
    if peer == Peer::Real { Ok(()) } else { run.restart_equals_memory(schema) }
}

fn run_file(peer: Peer, file: &str) {
    let data = json_file(&case_folder().join(file));
    let schema = json_file(&case_folder().join("lab.ovsschema"));
    let only = std::env::var("COWSLIP_TEST_CASE").ok();
    let (mut ran, mut failures) = (0, Vec::new());
    for case in data["cases"].as_array().into_iter().flatten() {
        let id = case["id"].as_str().unwrap_or_default();
        if only.as_deref().is_some_and(|wanted| wanted != id) {
            continue;
        }
        ran += 1;
        if let Err(e) = run_case(peer, case, &schema) {
            failures.push(format!("{id} ({}): {e}", case["title"]));
        }
    }
    if only.is_none() || ran > 0 {
        report(file, ran, &failures);
    }
}

macro_rules! case_files {
    ($($name:ident)*) => {
        mod real {
            $(#[test] fn $name() {
                super::run_file(super::Peer::Real, concat!(stringify!($name), ".json"));
            })*
        }
        mod ours {
            $(#[test] fn $name() {
                super::run_file(super::Peer::under_test(), concat!(stringify!($name), ".json"));
            })*
        }
    };
}

case_files! { idx refs val ops mon sto }
