//! Malformed messages kept as data: per message the same class of outcome as the real server, and nobody else notices.
//!
//! `data/malformed.json`: `send` is the text of a message, or a list of parts that are texts, `{"hex": …}` for bytes
//! that are no text, or `{"repeat": …, "times": n}`. An `echo` follows each message on the same session, so that the
//! `outcome` is one of: `reply`, `reply: CODE` where a transaction's operation failed, `error: CODE`, `closed`,
//! `silent` (only the echo was answered), `waiting` (the server takes what follows for the rest of the message), or
//! some of them one after the other. A list allows each of several. `real` is what the real server does where that is
//! not wanted, and `why`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::rpc::{Event, Outcome, Session};
use crate::support::server::{Peer, Server, Setup};
use crate::support::{case_folder, data_folder, json_file, report, scratch};

/// How long a session may be mute before the message counts as incomplete.
const MUTE: Duration = Duration::from_secs(2);
/// How long a reply may come after that to the echo sent behind it.
const LATE: Duration = Duration::from_millis(100);
/// The id of that echo.
const PROBE: &str = "probe";

fn bytes(send: &Value) -> Vec<u8> {
    match send {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Array(parts) => parts.iter().flat_map(bytes).collect(),
        part => match part["repeat"].as_str() {
            Some(text) => text.repeat(part["times"].as_u64().unwrap_or(1) as usize).into_bytes(),
            None => unhex(part["hex"].as_str().unwrap_or_default()),
        },
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn words(message: &Value) -> String {
    if let Some(error) = message.get("error").filter(|e| !e.is_null()) {
        return format!("error: {}", error.as_str().or(error["error"].as_str()).unwrap_or("?"));
    }
    let results = message["result"].as_array();
    match results.and_then(|r| r.iter().find_map(|one| one["error"].as_str())) {
        Some(code) => format!("reply: {code}"),
        None => "reply".to_owned(),
    }
}

/// What became of one message.
fn outcome_of(server: &Server, message: &[u8]) -> String {
    let mut session = server.connect();
    session.send_raw(message);
    session.send("echo", &json!([]), &json!(PROBE));
    let (mut seen, mut probed) = (Vec::new(), false);
    let mut end = Instant::now() + MUTE;
    while !probed || seen.is_empty() {
        match session.event(end.saturating_duration_since(Instant::now())) {
            Event::Message(reply) if reply["id"] == PROBE => {
                probed = true;
                end = Instant::now() + LATE;
            }
            Event::Message(reply) if reply["method"].is_string() => {}
            Event::Message(reply) => seen.push(words(&reply)),
            // Deeper than the reader of these tests goes, or not UTF-8: a reply all the same.
            Event::Unreadable(text) => seen.push(unreadable_words(&text)),
            Event::Closed => {
                seen.push("closed".to_owned());
                break;
            }
            Event::Silent => break,
        }
    }
    match (seen.is_empty(), probed) {
        (true, true) => "silent".to_owned(),
        (true, false) => "waiting".to_owned(),
        _ => seen.join(", "),
    }
}

fn unreadable_words(text: &str) -> String {
    match serde_json::from_str(text) {
        Ok(message) => words(&message),
        Err(_) if text.contains(r#""error":null"#) => "reply".to_owned(),
        Err(_) => "error: ?".to_owned(),
    }
}

fn prepare(peer: Peer, dir: &tempfile::TempDir) -> (Server, Setup) {
    let (server, setup) = Server::fresh(peer, dir.path(), &[&case_folder().join("lab.ovsschema")]);
    let row = |table: &str, row: Value| json!({"op": "insert", "table": table, "row": row});
    let rows = [row("V", json!({"s12": 1})), row("Plain", json!({"name": "a", "v": 1}))];
    server.connect().must("Lab", &rows);
    (server, setup)
}

fn fits(wanted: &Value, got: &str) -> bool {
    match wanted {
        Value::Array(choices) => choices.iter().any(|one| one == got),
        one => one == got,
    }
}

fn run(peer: Peer) {
    let dir = scratch();
    let (mut server, setup) = prepare(peer, &dir);
    let mut bystander = server.connect();
    let data = json_file(&data_folder().join("malformed.json"));
    let (mut ran, mut failures) = (0, Vec::new());
    for message in data["messages"].as_array().into_iter().flatten() {
        ran += 1;
        let title = &message["title"];
        let mut got = outcome_of(&server, &bytes(&message["send"]));
        if !alive(&mut server, &mut bystander, ran) {
            got = "crash".to_owned();
            server = setup.start();
            bystander = server.connect();
        }
        let real = message.get("real").filter(|_| peer == Peer::Real);
        let wanted = real.unwrap_or(&message["outcome"]);
        if !fits(wanted, &got) {
            failures.push(format!("{title}: want {wanted}, got {got:?}"));
        }
    }
    assert!(ran >= 200, "only {ran} messages are left");
    report("malformed.json", ran, &failures);
}

/// Whether the session that sends nothing bad is still served, and its server still there.
fn alive(server: &mut Server, bystander: &mut Session, n: usize) -> bool {
    let outcome = bystander.call("echo", &json!([n]));
    if outcome == Outcome::Result(json!([n])) {
        return true;
    }
    assert!(outcome == Outcome::Closed, "the bystander got {outcome:?} at message {n}");
    let end = Instant::now() + MUTE;
    while server.is_running() {
        assert!(Instant::now() < end, "the bystander was disconnected at message {n} by a living server");
        std::thread::sleep(LATE / 10);
    }
    false
}

#[test]
fn real_server_is_as_recorded() {
    run(Peer::Real);
}

#[test]
fn ours_is_as_the_real_one() {
    run(Peer::under_test());
}
