//! What a session may rely on: the order of messages, monitors' ids, history, probes, and independence of slow readers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::compare::sorted_text;
use crate::support::rpc::{Event, Outcome, REPLY_LIMIT, Session};
use crate::support::server::{Peer, Server, Setup};
use crate::support::{case_folder, report, scratch};

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

fn lab(peer: Peer) -> (tempfile::TempDir, Server, Setup) {
    let dir = scratch();
    let (server, setup) = Server::fresh(peer, dir.path(), &[&case_folder().join("lab.ovsschema")]);
    (dir, server, setup)
}

fn insert(name: &str, v: usize) -> Value {
    json!({"op": "insert", "table": "Plain", "row": {"name": name, "v": v}})
}

fn result(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Result(value) => value,
        other => panic!("wanted a result: {other:?}"),
    }
}

/// A session sees its own change before the reply to it, whichever version of updates it asked for.
fn own_update_precedes_the_reply(peer: Peer) {
    let (_dir, server, _) = lab(peer);
    for (method, update) in
        [("monitor", "update"), ("monitor_cond", "update2"), ("monitor_cond_since", "update3")]
    {
        let mut session = server.connect();
        let mut params = vec![json!("Lab"), json!(["m", method]), json!({"Plain": [{"columns": ["name"]}]})];
        if method == "monitor_cond_since" {
            params.push(json!(ZERO));
        }
        result(session.call(method, &Value::Array(params)));
        for n in 0..100 {
            let id = json!(["t", n]);
            session.send("transact", &json!(["Lab", insert("x", n)]), &id);
            let Event::Message(first) = session.event(REPLY_LIMIT) else { panic!("no message") };
            assert_eq!(
                (&first["method"], &first["params"][0]),
                (&json!(update), &json!(["m", method])),
                "{first}"
            );
            let Event::Message(second) = session.event(REPLY_LIMIT) else { panic!("no message") };
            assert_eq!(second["id"], id, "{second}");
        }
    }
}

/// Requests sent in one burst see each other's effects: a dump after an insert holds it, and the update of a later
/// insert comes between the dump and that insert's reply. Transactions are answered in order.
fn a_burst_keeps_its_order(peer: Peer) {
    let (_dir, server, _) = lab(peer);
    let mut failures = Vec::new();
    for round in 0..50 {
        let mut session = server.connect();
        let (before, after) = (format!("before {round}."), format!("after {round}."));
        let select = json!({"op": "select", "table": "Plain", "where": [], "columns": ["name"]});
        session.send("transact", &json!(["Lab", insert(&before, 1)]), &json!("a"));
        session.send("monitor_cond", &json!(["Lab", "m", {"Plain": [{"columns": ["name"]}]}]), &json!("b"));
        session.send("transact", &json!(["Lab", insert(&after, 2)]), &json!("c"));
        session.send("transact", &json!(["Lab", select]), &json!("d"));
        let mut order = Vec::new();
        while !order.contains(&"d".to_owned()) {
            let Event::Message(message) = session.event(REPLY_LIMIT) else { panic!("only {order:?}") };
            let name = message["method"].as_str().or(message["id"].as_str()).unwrap_or_default();
            let text = message.to_string();
            let (has_before, has_after) = (text.contains(&before), text.contains(&after));
            order.push(name.to_owned());
            let right = match name {
                "b" => has_before && !has_after,
                "update2" => !has_before && has_after,
                "d" => has_before && has_after,
                _ => true,
            };
            if !right {
                failures.push(format!(
                    "round {round}: {name} at {order:?}: before {has_before}, after {has_after}"
                ));
            }
        }
        let at = |name: &str| order.iter().position(|one| one == name);
        if [at("b"), at("update2"), at("c"), at("d")].is_sorted() && at("a") < at("c") && at("b").is_some() {
            continue;
        }
        failures.push(format!("round {round}: {order:?}"));
    }
    report("bursts", 50, &failures);
}

/// Any JSON value names a monitor; names are shared by all kinds; a cancelled one is silent and free again.
fn ids_of_monitors(peer: Peer) {
    let (_dir, server, _) = lab(peer);
    let mut session = server.connect();
    let requests = json!({"Plain": {"columns": ["name"]}});
    for id in [json!(null), json!(1), json!("m"), json!(["a", {"b": null}]), json!({}), json!(true)] {
        assert_eq!(result(session.call("monitor", &json!(["Lab", id, requests]))), json!({}), "{id}");
        let twice = session.call("monitor_cond", &json!(["Lab", id, requests]));
        assert!(matches!(&twice, Outcome::Error(e) if e["error"] == "syntax error"), "{id}: {twice:?}");
    }
    assert_eq!(result(session.call("monitor_cancel", &json!(["m"]))), json!({}));
    assert_eq!(session.call("monitor_cancel", &json!(["m"])), Outcome::Error(json!("unknown monitor")));
    session.must("Lab", &[insert("x", 1)]);
    assert_eq!(session.notes.len(), 5, "one update for each living monitor: {:?}", session.notes);
    session.notes.clear();
    let mut other = server.connect();
    assert_eq!(
        other.call("monitor_cancel", &json!([1])),
        Outcome::Error(json!("unknown monitor")),
        "ids are a session's own"
    );
    assert!(result(session.call("monitor_cond", &json!(["Lab", "m", requests])))["Plain"].is_object());
}

/// The rows that describe the databases are the same as on the real server.
fn the_server_database(peer: Peer) -> Value {
    let (_dir, server, _) = lab(peer);
    let mut session = server.connect();
    let columns = json!(["name", "model", "connected", "leader", "cid", "index"]);
    let requests = json!({"Database": [{"columns": columns}]});
    let mut rows = result(session.call("monitor_cond", &json!(["_Server", ["monid", "_Server"], requests])));
    let mut rows: Vec<Value> =
        rows["Database"].as_object_mut().into_iter().flatten().map(|(_, row)| row.take()).collect();
    rows.sort_by_cached_key(sorted_text);
    let select =
        json!({"op": "select", "table": "Database", "where": [["name", "==", "Lab"]], "columns": ["schema"]});
    let text = session.must("_Server", &[select]);
    let text = text[0]["rows"][0]["schema"].as_str().expect("the schema is a text");
    let shown: Value = serde_json::from_str(text).expect("the schema is JSON");
    assert_eq!(sorted_text(&shown), sorted_text(&result(session.call("get_schema", &json!(["Lab"])))));
    let write = json!({"op": "insert", "table": "Database", "row": {"name": "x"}});
    let refused = session.transact("_Server", &[write]);
    let schema = result(session.call("get_schema", &json!(["_Server"])));
    json!({"rows": rows, "write": result(refused)[0]["error"], "tables": schema["tables"]})
}

#[test]
fn the_server_database_is_the_real_one() {
    let [real, ours] = [Peer::Real, Peer::under_test()].map(the_server_database);
    assert_eq!(sorted_text(&real), sorted_text(&ours));
}

/// A session that does not read gets what it missed, merged or not, and slows nobody down.
fn slow_reader(peer: Peer) {
    let (_dir, server, _) = lab(peer);
    let mut slow = server.connect();
    result(slow.call("monitor_cond", &json!(["Lab", "m", {"Plain": [{"columns": ["name", "v"]}]}])));
    let mut writer = server.connect();
    writer.must("Lab", &[insert("row", 0)]);
    let padding = "x".repeat(20_000);
    let begin = Instant::now();
    for n in 1..=1000 {
        let row = json!({"name": format!("{padding}{n}"), "v": n});
        writer.must("Lab", &[json!({"op": "update", "table": "Plain", "where": [], "row": row})]);
    }
    let taken = begin.elapsed();
    let (mut last, mut updates) = (0, 0);
    while last < 1000 {
        let (method, params) = slow.note(REPLY_LIMIT).unwrap_or_else(|| panic!("only up to {last}"));
        assert_eq!(method, "update2");
        let row = params[1]["Plain"].as_object().and_then(|rows| rows.values().next()).expect("a row");
        let change = row.get("modify").or(row.get("insert")).expect("a change");
        let v = change["v"].as_u64().unwrap_or(0);
        assert!(v >= last && (v > 0 || last == 0), "{v} after {last}");
        assert!(
            change["name"].as_str().is_some_and(|name| v == 0 || name.ends_with(&format!("x{v}"))),
            "one version of the row"
        );
        last = v;
        updates += 1;
    }
    eprintln!("{peer:?}: 1000 commits in {taken:?} while nobody read, {updates} updates");
    assert_eq!(slow.call("echo", &json!([])), Outcome::Result(json!([])));
}

/// A large dump to one session and commits of others go on side by side.
fn dump_and_commits(peer: Peer) {
    let (_dir, server, _) = lab(peer);
    let mut writer = server.connect();
    for first in (0..20_000).step_by(2000) {
        let rows: Vec<Value> = (first..first + 2000).map(|n| insert(&format!("row {n}"), n)).collect();
        writer.must("Lab", &rows);
    }
    let mut readers: Vec<Session> = (0..8).map(|_| server.connect()).collect();
    for reader in &mut readers {
        reader.send(
            "monitor_cond",
            &json!(["Lab", "m", {"Plain": [{"columns": ["name", "v"]}]}]),
            &json!("dump"),
        );
    }
    for n in 0..50 {
        writer.must("Lab", &[insert("late", n)]);
    }
    for reader in &mut readers {
        let dump = result(reader.reply(&json!("dump"), Duration::from_secs(60)));
        let mut rows = dump["Plain"].as_object().map_or(0, serde_json::Map::len);
        while rows < 20_050 {
            let (_, params) = reader.note(REPLY_LIMIT).unwrap_or_else(|| panic!("only {rows} rows"));
            rows += params[1]["Plain"].as_object().map_or(0, serde_json::Map::len);
        }
        assert_eq!(rows, 20_050);
    }
}

/// Nothing comes from an idle unix socket, but on TCP a probe does, and who does not answer it is disconnected.
fn probes(peer: Peer) {
    let dir = scratch();
    let file = dir.path().join("lab.db");
    peer.create(dir.path(), &file, &case_folder().join("lab.ovsschema")).success("ovsdb-tool create");
    let mut setup = Setup::new(peer, dir.path(), std::slice::from_ref(&file));
    setup.flags.push("--remote=ptcp:0:127.0.0.1".to_owned());
    let server = setup.start();
    let log = server.log_tail();
    let port = log.split("listening on port ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let port: u16 = port.and_then(|p| p.parse().ok()).unwrap_or_else(|| panic!("no port in {log}"));
    let mut quiet = server.connect();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(8))).expect("a time-out can be set");
    let mut read = || {
        let mut chunk = [0; 4096];
        let n = stream.read(&mut chunk).unwrap_or_else(|e| panic!("{peer:?}: nothing in 8 s: {e}"));
        (serde_json::from_slice::<Value>(&chunk[..n]).ok(), n)
    };
    let probe = json!({"id": "echo", "method": "echo", "params": []});
    let begin = Instant::now();
    assert_eq!(read().0.map(|v| sorted_text(&v)), Some(sorted_text(&probe)));
    assert!(begin.elapsed() > Duration::from_secs(4), "the probe came after {:?}", begin.elapsed());
    assert_eq!(read().1, 0, "who does not answer is disconnected");
    assert_eq!(quiet.event(Duration::from_millis(100)), Event::Silent, "a unix session is not probed");
    let mut another = TcpStream::connect(("127.0.0.1", port)).expect("the server still listens");
    another.write_all(br#"{"id":1,"method":"list_dbs","params":[]}"#).expect("a request can be sent");
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

on_both! {
    own_update_precedes_the_reply a_burst_keeps_its_order ids_of_monitors slow_reader dump_and_commits probes
}

fn since(session: &mut Session, last: &Value) -> Value {
    let requests = json!({"Plain": [{"columns": ["name", "v"]}]});
    result(session.call("monitor_cond_since", &json!(["Lab", "m", requests, last])))
}

/// Ours keeps history on standalone databases, across a restart too: who comes back gets what it missed and no more.
#[test]
fn history_survives_reconnection_and_restart() {
    if Peer::under_test() == Peer::Real {
        return;
    }
    let (_dir, mut server, setup) = lab(Peer::Cowslip);
    let mut writer = server.connect();
    writer.must("Lab", &[insert("a", 1), insert("b", 2)]);
    let mut session = server.connect();
    let first = since(&mut session, &json!(ZERO));
    assert_eq!(
        (&first[0], first[2]["Plain"].as_object().map(serde_json::Map::len)),
        (&json!(false), Some(2))
    );
    writer.must("Lab", &[insert("c", 3)]);
    let (method, params) = session.note(REPLY_LIMIT).expect("an update");
    assert_eq!((method.as_str(), &params[0]), ("update3", &json!("m")));
    let last = params[1].clone();
    assert_ne!(last, first[1]);
    drop(session);

    let delete = |name: &str| json!({"op": "delete", "table": "Plain", "where": [["name", "==", name]]});
    let update = json!({"op": "update", "table": "Plain", "where": [["name", "==", "a"]], "row": {"v": 9}});
    writer.must("Lab", &[update]);
    writer.must("Lab", &[delete("b"), insert("d", 4)]);
    writer.must("Lab", &[insert("e", 5)]);
    writer.must("Lab", &[delete("e")]);
    let mut seen = None;
    for round in ["reconnected", "restarted"] {
        let mut back = server.connect();
        let missed = since(&mut back, &last);
        assert_eq!(missed[0], json!(true), "{round}: {missed}");
        let mut changes: Vec<Value> =
            missed[2]["Plain"].as_object().into_iter().flatten().map(|(_, c)| c.clone()).collect();
        changes.sort_by_cached_key(sorted_text);
        let want = json!([{"delete": null}, {"insert": {"name": "d", "v": 4}}, {"modify": {"v": 9}}]);
        assert_eq!(sorted_text(&Value::Array(changes)), sorted_text(&want), "{round}");
        assert_eq!(
            seen.get_or_insert(missed[1].clone()),
            &missed[1],
            "{round}: the id of the last transaction"
        );
        let now = since(&mut server.connect(), &missed[1]);
        assert_eq!(now, json!([true, missed[1], {}]), "{round}: nothing was missed");
        let unknown = since(&mut server.connect(), &json!("a0000000-0000-4000-8000-00000000dead"));
        assert_eq!(unknown[0], json!(false), "{round}");
        server.stop();
        server = setup.start();
    }
}
