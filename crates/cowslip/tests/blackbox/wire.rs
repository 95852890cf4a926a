//! Framing, ids and schemas: `wire.json` and `gen.json` beside the cases, and messages too large to be data.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::compare::Names;
use crate::support::rpc::{Event, Outcome, REPLY_LIMIT, Session};
use crate::support::server::{Peer, Server, Setup};
use crate::support::{case_folder, json_file, report, scratch};

/// Time between two parts of a message, long enough that they arrive as two.
const PAUSE: Duration = Duration::from_millis(10);

fn lab(peer: Peer, dir: &tempfile::TempDir) -> Server {
    Server::fresh(peer, dir.path(), &[&case_folder().join("lab.ovsschema")]).0
}

fn framing(peer: Peer) {
    let dir = scratch();
    let server = lab(peer, &dir);
    let data = json_file(&case_folder().join("wire.json"));
    let (mut ran, mut failures) = (0, Vec::new());
    for case in data["cases"].as_array().into_iter().flatten() {
        ran += 1;
        let mut session = server.connect();
        for chunk in case["chunks"].as_array().into_iter().flatten() {
            session.send_raw(chunk.as_str().unwrap_or_default().as_bytes());
            std::thread::sleep(PAUSE);
        }
        if let Err(e) = replies(&mut session, &case["replies"]) {
            failures.push(format!("{} {}: {e}", case["id"], case["title"]));
        }
    }
    report("wire.json", ran, &failures);
}

fn replies(session: &mut Session, wanted: &Value) -> Result<(), String> {
    let Some(wanted) = wanted.as_array() else {
        let event = session.event(REPLY_LIMIT);
        return if event == Event::Closed { Ok(()) } else { Err(format!("want closed, got {event:?}")) };
    };
    for one in wanted {
        match session.event(REPLY_LIMIT) {
            // A reply with an error has no member `result` on the real server and `null` there in the RFC.
            Event::Message(mut got) => {
                if got["result"].is_null() && one.get("result").is_none() {
                    got.as_object_mut().and_then(|members| members.shift_remove("result"));
                }
                Names::default().compare(one, &got)?;
            }
            other => return Err(format!("want {one}, got {other:?}")),
        }
    }
    Ok(())
}

/// A request that arrives byte by byte, through a character of four bytes too.
fn byte_by_byte(peer: Peer) {
    let dir = scratch();
    let server = lab(peer, &dir);
    let mut session = server.connect();
    let request = r#"{"id":1,"method":"echo","params":["é€😀",{"a":[]}]}"#;
    for byte in request.as_bytes() {
        session.send_raw(&[*byte]);
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(session.reply(&json!(1), REPLY_LIMIT), Outcome::Result(json!(["é€😀", {"a": []}])));
}

/// A message of 64 MiB: it comes back whole, and another session is served meanwhile.
fn large_message(peer: Peer) {
    let dir = scratch();
    let server = lab(peer, &dir);
    let mut session = server.connect();
    let text = "0123456789abcdef".repeat(4 << 20);
    let request = format!(r#"{{"id":1,"method":"echo","params":["{text}"]}}"#);
    let mut writer = session.writer();
    writer.set_write_timeout(Some(Duration::from_secs(60))).expect("a write time-out can be set");
    let sender = std::thread::spawn(move || writer.write_all(request.as_bytes()));
    let mut other = server.connect();
    assert_eq!(other.call("echo", &json!([1])), Outcome::Result(json!([1])));
    let Outcome::Result(got) = session.reply(&json!(1), Duration::from_secs(90)) else {
        panic!("no reply to the large message");
    };
    assert!(got[0] == text.as_str(), "the text changed on its way");
    assert!(sender.join().is_ok_and(|sent| sent.is_ok()), "the large message could not be sent");
    assert_eq!(other.call("echo", &json!([2])), Outcome::Result(json!([2])));
}

/// 100,000 small messages in a burst are all answered, in order.
fn many_messages(peer: Peer) {
    let dir = scratch();
    let server = lab(peer, &dir);
    let mut session = server.connect();
    let mut writer = session.writer();
    let sender = std::thread::spawn(move || {
        let requests: String =
            (0..100_000).map(|n| format!(r#"{{"id":{n},"method":"echo","params":[]}}"#)).collect();
        writer.write_all(requests.as_bytes())
    });
    for n in 0..100_000 {
        let Event::Message(reply) = session.event(REPLY_LIMIT) else { panic!("no reply {n}") };
        assert_eq!(reply["id"], json!(n));
    }
    assert!(sender.join().is_ok_and(|sent| sent.is_ok()), "the burst could not be sent");
}

/// The verdict on each schema, and the schema that the server then shows.
fn schemas(peer: Peer) {
    let data = json_file(&case_folder().join("gen.json"));
    let (mut ran, mut failures) = (0, Vec::new());
    let dir = scratch();
    let (mut accepted, mut files) = (Vec::new(), Vec::new());
    for case in data["schemas"].as_array().into_iter().flatten() {
        let mut schema = case["schema"].clone();
        if let Some(file) = schema.as_str() {
            schema = json_file(&case_folder().join(file));
        } else if case["verdict"] == "accepted" {
            // One server shows all of them, so each needs a name of its own.
            schema["name"] = json!(format!("S{ran}"));
        }
        let (source, file) =
            (dir.path().join(format!("{ran}.ovsschema")), dir.path().join(format!("{ran}.db")));
        std::fs::write(&source, schema.to_string()).expect("a schema file can be written");
        let made = peer.create(dir.path(), &file, &source);
        let verdict = if made.code == Some(0) { "accepted" } else { "refused" };
        if case["verdict"] != verdict {
            failures.push(format!("{} {}: {verdict}\n{}", case["id"], case["title"], made.stderr));
        } else if verdict == "accepted" {
            accepted.push((case["title"].clone(), schema));
            files.push(file);
        }
        ran += 1;
    }
    let server = Setup::new(peer, dir.path(), &files).start();
    let mut session = server.connect();
    for (title, schema) in accepted {
        let outcome = session.call("get_schema", &json!([schema["name"]]));
        let Outcome::Result(shown) = outcome else {
            failures.push(format!("{title}: get_schema: {outcome:?}"));
            continue;
        };
        if let Err(e) = Names::default().compare(&plain(&schema), &plain(&shown)) {
            failures.push(format!("{title}: shown as {shown}: {e}"));
        }
    }
    report("gen.json", ran, &failures);
}

/// A schema without spellings that mean the same: every type in its long form, defaults left out.
fn plain(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let tables = schema.get_mut("tables").and_then(Value::as_object_mut);
    for table in tables.into_iter().flat_map(|t| t.values_mut()) {
        if let Some(members) = table.as_object_mut() {
            members.retain(|name, value| !(name == "isRoot" || name == "indexes" && *value == json!([])));
        }
        let columns = table.get_mut("columns").and_then(Value::as_object_mut);
        for column in columns.into_iter().flat_map(|c| c.values_mut()) {
            column["type"] = plain_type(&column["type"]);
        }
    }
    schema
}

fn plain_type(kind: &Value) -> Value {
    let mut kind = if kind.is_string() { json!({"key": kind}) } else { kind.clone() };
    for side in ["key", "value"] {
        let Some(base) = kind.get_mut(side) else { continue };
        if base.is_string() {
            *base = json!({"type": base});
        }
        if let Some(values) = base.get_mut("enum").filter(|e| !e.is_array()) {
            *values = json!(["set", [values]]);
        }
        // A set of one is shown as the bare atom.
        if let Some(values) = base.get_mut("enum").filter(|e| e[1].as_array().is_some_and(|v| v.len() == 1)) {
            *values = values[1][0].clone();
        }
    }
    let (min, max) = (kind.get("min").cloned(), kind.get("max").cloned());
    kind["min"] = min.unwrap_or(json!(1));
    kind["max"] = max.unwrap_or(json!(1));
    kind
}

macro_rules! on_both {
    ($($name:ident)*) => {
        mod real {
            $(#[test] fn $name() { super::$name(super::Peer::Real); })*
        }
        mod ours {
            $(#[test] fn $name() { super::$name(super::Peer::under_test()); })*
        }
    };
}

on_both! { framing byte_by_byte large_message many_messages schemas }
