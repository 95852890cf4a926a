//! Database files: each server opens what the other wrote, the tools respect a running server, and a damaged file costs
//! what is damaged and no more.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::{VSWITCH_SCHEMA, schema};
use crate::support::compare::Names;
use crate::support::content::content;
use crate::support::process::{self, Finished};
use crate::support::rpc::{Outcome, Session};
use crate::support::server::{Peer, Server, Setup};
use crate::support::{case_folder, json_file, report, scratch};

const TOOL_LIMIT: Duration = Duration::from_secs(30);

fn lab_schema() -> PathBuf {
    case_folder().join("lab.ovsschema")
}

fn insert(table: &str, row: Value) -> Value {
    json!({"op": "insert", "table": table, "row": row})
}

/// Changes of every kind that a file can record: sets and maps by difference, defaults, deletions, pruned references.
fn work(session: &mut Session, round: usize) {
    let name = |text: &str| format!("{text}{round}");
    session.must("Lab", &[
        json!({"op": "comment", "comment": name("round ")}),
        json!({"op": "insert", "table": "Kid", "uuid-name": "k", "row": {"name": name("k")}}),
        json!({"op": "insert", "table": "Root", "uuid-name": "r", "row": {"name": name("r"), "kids": ["named-uuid", "k"]}}),
        insert("Root", json!({"name": name("t"), "kids": ["named-uuid", "k"]})),
        insert("Root", json!({"name": name("s"), "peer": ["named-uuid", "r"], "byname": ["map", [["x", ["named-uuid", "k"]]]]})),
        insert("V", json!({"s12": 1, "si": ["set", [1, 2, 3]], "m": ["map", [["a", "1"], ["b", "2"]]], "s": name("v"), "r": 0.5})),
        insert("V", json!({"s12": ["set", [1, 2]], "s": name("w"), "ss": ["set", ["é", "😀", "\"\\/\n\u{7f}"]]})),
        insert("Eph", json!({"k": name("e"), "st": "gone"})),
    ]);
    let v = json!([["s", "==", name("v")]]);
    session.must("Lab", &[
        json!({"op": "mutate", "table": "V", "where": v, "mutations": [["si", "delete", ["set", [1, 2]]], ["si", "insert", 9]]}),
        json!({"op": "mutate", "table": "V", "where": v, "mutations": [["m", "delete", ["set", ["a"]]], ["m", "insert", ["map", [["c", "3"]]]]]}),
        json!({"op": "update", "table": "V", "where": v, "row": {"oi": 4, "os": "o", "i": -1, "b": true}}),
    ]);
    session.must("Lab", &[
        json!({"op": "update", "table": "V", "where": v, "row": {"oi": ["set", []], "i": 0, "mi": ["map", [[1, 1], [2, 2]]]}}),
        json!({"op": "update", "table": "V", "where": v, "row": {"m": ["map", []], "s12": ["set", [1, 4]]}}),
        json!({"op": "mutate", "table": "V", "where": v, "mutations": [["mi", "delete", ["set", [1]]]]}),
    ]);
    session.must("Lab", &[json!({"op": "delete", "table": "Root", "where": [["name", "==", name("r")]]})]);
    session.must("Lab", &[json!({"op": "delete", "table": "V", "where": [["s", "==", name("w")]]})]);
    session.must("Lab", &[json!({"op": "update", "table": "Eph", "where": [], "row": {"st": "not stored"}})]);
}

fn vsctl(server: &Server, dir: &Path, round: usize) {
    let line = format!(
        "--no-wait init -- --may-exist add-br br0 -- set bridge br0 other_config:n={round} -- \
         add-port br0 p{round} tag={round} -- set port p{round} trunks=1,2,3 external_ids:a=b -- \
         add-br gone{round} -- --id=@p get port p{round} -- --id=@m create mirror name=m{round} output-port=@p -- add bridge br0 mirrors @m"
    );
    let remote = format!("--db={}", server.remote());
    let mut first =
        process::command("ovs-vsctl", dir, [remote.as_str()].into_iter().chain(line.split_whitespace()));
    process::run(&mut first, TOOL_LIMIT).success("ovs-vsctl");
    let line = format!(
        "--no-wait del-br gone{round} -- remove port p{round} trunks 2 -- clear port p{round} external_ids"
    );
    let mut second =
        process::command("ovs-vsctl", dir, [remote.as_str()].into_iter().chain(line.split_whitespace()));
    process::run(&mut second, TOOL_LIMIT).success("ovs-vsctl");
}

/// The contents of both databases.
fn contents(server: &Server) -> Value {
    let mut session = server.connect();
    let paths = [lab_schema(), schema(VSWITCH_SCHEMA).to_owned()];
    paths.iter().map(|path| content(&mut session, &json_file(path))).collect()
}

/// Fails with the first place where two contents differ.
fn same(before: &Value, after: &Value, what: &str) {
    if let Err(e) = Names::default().compare(before, after) {
        panic!("{what}: {e}");
    }
}

/// Servers take turns on the same files; each finds what the one before it left.
fn hand_over(turns: &[Peer], flags: &[&str]) {
    let dir = scratch();
    let files = [dir.path().join("lab.db"), dir.path().join("vs.db")];
    let schemas = [lab_schema(), schema(VSWITCH_SCHEMA).to_owned()];
    for (file, schema) in files.iter().zip(&schemas) {
        turns[0].create(dir.path(), file, schema).success("ovsdb-tool create");
    }
    let mut before = None;
    for (round, peer) in turns.iter().enumerate() {
        let mut setup = Setup::new(*peer, dir.path(), &files);
        setup.flags = flags.iter().map(|f| (*f).to_owned()).collect();
        let mut server = setup.start();
        let found = contents(&server);
        if let Some(left) = before {
            same(&left, &found, &format!("left by {:?}, found by {peer:?}", turns[round - 1]));
        }
        work(&mut server.connect(), round);
        vsctl(&server, dir.path(), round);
        before = Some(contents(&server));
        server.stop();
    }
}

#[test]
fn ours_opens_what_the_real_one_wrote_and_back() {
    hand_over(
        &[Peer::Real, Peer::under_test(), Peer::Real, Peer::under_test(), Peer::under_test(), Peer::Real],
        &[],
    );
}

#[test]
fn the_real_one_opens_what_ours_made() {
    hand_over(&[Peer::under_test(), Peer::Real, Peer::under_test()], &[]);
}

#[test]
fn without_differences_in_the_file() {
    hand_over(&[Peer::Real, Peer::under_test(), Peer::Real], &["--disable-file-column-diff"]);
}

/// Changes that the real server writes as differences and then misreads (cases STO-01 and STO-02): a difference from a
/// default value, which is not in the file, and one with more members than the column may have.
#[test]
fn the_real_one_reads_from_ours_what_it_misreads_from_itself() {
    if Peer::under_test() == Peer::Real {
        return;
    }
    let dir = scratch();
    let (server, setup) = Server::fresh(Peer::Cowslip, dir.path(), &[&lab_schema()]);
    let mut session = server.connect();
    session.must("Lab", &[insert("V", json!({"s": "default"})), insert("V", json!({"s": "many", "s12": 1}))]);
    session.must("Lab", &[
        json!({"op": "mutate", "table": "V", "where": [["s", "==", "default"]], "mutations": [["s12", "insert", 5]]}),
        json!({"op": "update", "table": "V", "where": [["s", "==", "many"]], "row": {"s12": ["set", [3, 4]]}}),
    ]);
    session.must("Lab", &[insert("Plain", json!({"name": "last"}))]);
    let schema = json_file(&lab_schema());
    let before = content(&mut session, &schema);
    drop((session, server));
    same(&before, &reopened(Peer::Real, dir.path(), &setup.databases[0]), "opened");
    tool(Peer::Real, dir.path(), &["compact", "lab.db"]).success("ovsdb-tool compact");
    same(&before, &reopened(Peer::Real, dir.path(), &setup.databases[0]), "compacted");
}

/// A database of the laboratory that `peer` has written for a while, closed again.
fn written(peer: Peer, dir: &Path, rounds: usize) -> (PathBuf, Value) {
    let file = dir.join("lab.db");
    peer.create(dir, &file, &lab_schema()).success("ovsdb-tool create");
    let mut server = Setup::new(peer, dir, std::slice::from_ref(&file)).start();
    let mut session = server.connect();
    (0..rounds).for_each(|round| work(&mut session, round));
    let content = content(&mut session, &json_file(&lab_schema()));
    server.stop();
    (file, content)
}

fn reopened(peer: Peer, dir: &Path, file: &Path) -> Value {
    let server = Setup::new(peer, dir, &[file.to_owned()]).start();
    content(&mut server.connect(), &json_file(&lab_schema()))
}

fn tool(peer: Peer, dir: &Path, arguments: &[&str]) -> Finished {
    let mut command = peer.command("ovsdb-tool", dir);
    command.args(arguments);
    process::run(&mut command, TOOL_LIMIT)
}

#[test]
fn compacted_by_either_tool() {
    for (writer, compactor, reader) in [
        (Peer::Real, Peer::Real, Peer::under_test()),
        (Peer::Real, Peer::under_test(), Peer::Real),
        (Peer::under_test(), Peer::Real, Peer::under_test()),
        (Peer::under_test(), Peer::under_test(), Peer::Real),
    ] {
        let dir = scratch();
        let (file, before) = written(writer, dir.path(), 3);
        let size = || std::fs::metadata(&file).map_or(0, |m| m.len());
        let grown = size();
        tool(compactor, dir.path(), &["compact", "lab.db"]).success("ovsdb-tool compact");
        assert!(size() < grown, "{compactor:?} made {} bytes of {grown}", size());
        let after = reopened(reader, dir.path(), &file);
        same(
            &before,
            &after,
            &format!("written by {writer:?}, compacted by {compactor:?}, read by {reader:?}"),
        );
    }
}

/// The tool's answers about a file are the real tool's.
#[test]
fn tools_say_the_same() {
    let dir = scratch();
    written(Peer::under_test(), dir.path(), 1);
    let schema = lab_schema().display().to_string();
    let select = r#"["Lab",{"op":"select","table":"V","where":[],"columns":["si","m"]}]"#;
    let insert = r#"["Lab",{"op":"insert","table":"Plain","row":{"name":"t"},"uuid":"a0000000-0000-4000-8000-000000000001"}]"#;
    let none = r#"["Lab",{"op":"select","table":"Plain","where":[["name","==","t"]],"columns":["name"]}]"#;
    let mut failures = Vec::new();
    for arguments in [
        &["db-name", "lab.db"][..],
        &["db-version", "lab.db"],
        &["db-cksum", "lab.db"],
        &["schema-name", &schema],
        &["schema-version", &schema],
        &["schema-cksum", &schema],
        &["query", "lab.db", select],
        &["query", "lab.db", none],
        &["query", "lab.db", "[]"],
        &["query", "nosuch.db", select],
        &["db-name", "nosuch.db"],
        &["create", "lab.db", &schema],
        &["nosuch"],
    ] {
        let [want, got] = [Peer::Real, Peer::under_test()].map(|peer| tool(peer, dir.path(), arguments));
        if want.code != got.code || want.stdout.trim() != got.stdout.trim() {
            failures.push(format!("{arguments:?}\nreal: {want:?}\nours: {got:?}"));
        }
    }
    report("ovsdb-tool", 13, &failures);
    let text = tool(Peer::under_test(), dir.path(), &["transact", "lab.db", insert]).success("transact");
    assert!(text.contains("a0000000-0000-4000-8000-000000000001"), "{text}");
    let found = tool(Peer::Real, dir.path(), &["query", "lab.db", none]).success("query");
    assert_eq!(found.trim(), r#"[{"rows":[{"name":"t"}]}]"#);
    let real = tool(Peer::Real, dir.path(), &["show-log", "lab.db"]).success("show-log");
    let ours = tool(Peer::under_test(), dir.path(), &["show-log", "lab.db"]).success("show-log");
    let records = |text: &str| text.lines().filter(|line| line.starts_with("record ")).count();
    assert_eq!(records(&real), records(&ours), "{real}\n{ours}");
    assert!(ours.contains("round 0"), "comments are shown: {ours}");
}

/// While a server has a file open, no tool writes to it and no second server opens it; reading is allowed.
#[test]
fn the_lock_is_respected_both_ways() {
    for (holder, other) in [
        (Peer::under_test(), Peer::Real),
        (Peer::Real, Peer::under_test()),
        (Peer::under_test(), Peer::under_test()),
    ] {
        let dir = scratch();
        let (server, _) = Server::fresh(holder, dir.path(), &[&lab_schema()]);
        server.connect().must("Lab", &[insert("Plain", json!({"name": "a"}))]);
        let write = tool(
            other,
            dir.path(),
            &["transact", "lab.db", r#"["Lab",{"op":"insert","table":"Plain","row":{}}]"#],
        );
        assert!(write.code == Some(1), "{other:?} wrote to a file that {holder:?} has open: {write:?}");
        assert!(write.stderr.contains("lab.db"), "the message names the file: {write:?}");
        let compact = tool(other, dir.path(), &["compact", "lab.db"]);
        assert!(compact.code == Some(1), "{other:?} compacted a file that {holder:?} has open: {compact:?}");
        let read = tool(other, dir.path(), &["db-name", "lab.db"]);
        assert!(read.code == Some(0) && read.stdout.trim() == "Lab", "{read:?}");
        let second = scratch();
        let mut command: Command = other.command("ovsdb-server", second.path());
        command
            .args(["--no-chdir", "--unixctl=none"])
            .arg(format!("--remote=punix:{}", second.path().join("s").display()));
        command.arg(dir.path().join("lab.db"));
        let done = process::run(&mut command, Duration::from_secs(5));
        assert!(done.code == Some(1), "{other:?} opened a file that {holder:?} has open: {done:?}");
        assert_eq!(server.connect().call("echo", &json!([])), Outcome::Result(json!([])));
    }
}

/// Where each record of a file begins.
fn records(bytes: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        starts.push(at);
        let line = bytes[at..].iter().position(|b| *b == b'\n').expect("a header ends with a line end");
        let header = std::str::from_utf8(&bytes[at..at + line]).expect("a header is text");
        let size =
            header.split(' ').nth(2).and_then(|n| n.parse::<usize>().ok()).expect("a header has a length");
        at += line + 1 + size;
    }
    starts
}

/// STO-04: a file that ends within its last record opens without that record, wherever it was cut, and goes on.
fn torn_tail(peer: Peer) {
    let dir = scratch();
    let (file, whole) = written(peer, dir.path(), 1);
    let bytes = std::fs::read(&file).expect("the file can be read");
    let last = *records(&bytes).last().expect("there are records");
    std::fs::write(&file, &bytes[..last]).expect("the file can be written");
    let without = reopened(peer, dir.path(), &file);
    assert_ne!(whole, without);
    let step = (bytes.len() - last).div_ceil(16);
    for cut in (last + 1..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
        std::fs::write(&file, &bytes[..cut]).expect("the file can be written");
        let mut server = Setup::new(peer, dir.path(), std::slice::from_ref(&file)).start();
        let mut session = server.connect();
        let found = content(&mut session, &json_file(&lab_schema()));
        same(&without, &found, &format!("cut at {cut} of {}", bytes.len()));
        session.must("Lab", &[insert("Plain", json!({"name": "after"}))]);
        let next = content(&mut session, &json_file(&lab_schema()));
        server.stop();
        same(
            &next,
            &reopened(peer, dir.path(), &file),
            &format!("cut at {cut}, after a write and a restart"),
        );
    }
}

/// STO-04: a record that changed on the disk ends what is loaded. Ours keeps the rest beside the file.
fn damage_in_the_middle(peer: Peer) {
    let dir = scratch();
    let (file, _) = written(peer, dir.path(), 2);
    let mut bytes = std::fs::read(&file).expect("the file can be read");
    let starts = records(&bytes);
    let damaged = starts[starts.len() / 2];
    std::fs::write(&file, &bytes[..damaged]).expect("the file can be written");
    let prefix = reopened(peer, dir.path(), &file);
    let at = damaged + 80;
    bytes[at] ^= 1;
    std::fs::write(&file, &bytes).expect("the file can be written");
    let mut server = Setup::new(peer, dir.path(), std::slice::from_ref(&file)).start();
    let mut session = server.connect();
    same(&prefix, &content(&mut session, &json_file(&lab_schema())), "what comes before the damage");
    assert!(
        std::fs::read(&file).is_ok_and(|now| now == bytes),
        "the file was changed before anything was written"
    );
    session.must("Lab", &[insert("Plain", json!({"name": "after"}))]);
    server.stop();
    if peer == Peer::Cowslip {
        let mut names = std::fs::read_dir(dir.path()).expect("the folder can be read").flatten();
        let kept = names.find(|entry| entry.file_name().to_string_lossy().starts_with("lab.db.damaged-"));
        let kept = std::fs::read(kept.expect("the rest is kept beside the file").path());
        assert!(kept.is_ok_and(|rest| rest == bytes[damaged..]), "the rest is kept byte for byte");
    }
}

/// Only a schema that cannot be read stops the start, and the message names the file.
fn damaged_schema(peer: Peer) {
    let dir = scratch();
    let (file, _) = written(peer, dir.path(), 1);
    let mut bytes = std::fs::read(&file).expect("the file can be read");
    bytes[100] ^= 1;
    std::fs::write(&file, &bytes).expect("the file can be written");
    let mut command = Setup::new(peer, dir.path(), std::slice::from_ref(&file)).command();
    let done = process::run(&mut command, Duration::from_secs(10));
    assert!(done.code == Some(1), "{done:?}");
    assert!(done.stderr.contains("lab.db"), "{done:?}");
    assert!(std::fs::read(&file).is_ok_and(|now| now == bytes), "the file was changed");
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

on_both! { torn_tail damage_in_the_middle damaged_schema }
