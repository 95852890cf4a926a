//! What a reply promises.
//!
//! Two kinds of evidence, because `kill -9` never loses what was written: system calls, traced, show that a reply to a
//! durable transaction leaves after the sync that followed its write, and rounds of `kill -9` show that what was
//! acknowledged is there after a restart, that nothing is there which was not sent, and that no transaction is there by half.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::rpc::{Event, REPLY_LIMIT, Session};
use crate::support::server::{Peer, Server, Setup};
use crate::support::{case_folder, scratch};
use crate::trace::{self, Marked};

/// Switches syncing off in our server; only this test sets it, to show that it can fail.
const UNSAFE_SWITCH: (&str, &str) = ("COWSLIP_UNSAFE_NO_SYNC", "1");
/// Durable transactions in a traced run.
const TRACED: usize = 200;
/// Of these so many are in flight at once.
const IN_FLIGHT: usize = 8;
/// Rounds of `kill -9`.
const ROUNDS: usize = 20;
/// Transactions in one round, unless the kill comes first.
const LOAD: usize = 10_000;

fn marked(n: usize, durable: bool) -> String {
    let operations = json!(["Lab",
        {"op": "insert", "table": "Plain", "row": {"name": format!("mark-{n:05}"), "v": n}},
        {"op": "commit", "durable": durable}]);
    json!({"method": "transact", "params": operations, "id": format!("reply-{n:05}")}).to_string()
}

/// Runs marked transactions, several at once on two sessions, on a traced server; the trace and the database's path.
fn traced(peer: Peer, durable: bool, environment: &[(&str, &str)]) -> Result<(), String> {
    let dir = scratch();
    let file = dir.path().join("lab.db");
    peer.create(dir.path(), &file, &case_folder().join("lab.ovsschema")).success("ovsdb-tool create");
    let traced = dir.path().join("trace");
    let mut setup = Setup::new(peer, dir.path(), std::slice::from_ref(&file));
    setup.environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    setup.wrapper =
        trace::STRACE.iter().map(|w| (*w).to_owned()).chain([traced.display().to_string()]).collect();
    let mut server = setup.start();
    let mut sessions = [server.connect(), server.connect()];
    for first in (0..TRACED).step_by(IN_FLIGHT) {
        let batch = first..(first + IN_FLIGHT).min(TRACED);
        for n in batch.clone() {
            sessions[n % 2].send_raw(marked(n, durable).as_bytes());
        }
        for n in batch {
            let id = json!(format!("reply-{n:05}"));
            let outcome = sessions[n % 2].reply(&id, REPLY_LIMIT);
            if !matches!(&outcome, crate::support::rpc::Outcome::Result(r) if r[1] == json!({})) {
                return Err(format!("transaction {n}: {outcome:?}"));
            }
        }
    }
    server.stop();
    let text = std::fs::read(&traced).map_err(|e| e.to_string())?;
    let mark = |n| Marked { written: format!("mark-{n:05}"), replied: format!("reply-{n:05}") };
    let marks: Vec<Marked> = (0..TRACED).map(mark).collect();
    trace::check(&String::from_utf8_lossy(&text), &format!("{}>", file.display()), &marks)
}

#[test]
fn replies_to_durable_transactions_leave_after_their_sync() {
    traced(Peer::under_test(), true, &[]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn real_replies_to_durable_transactions_leave_after_their_sync() {
    traced(Peer::Real, true, &[]).unwrap_or_else(|e| panic!("{e}"));
}

/// The same check must fail on a server that does not sync, or it would prove nothing.
#[test]
fn the_check_fails_without_syncing() {
    let found = match Peer::under_test() {
        Peer::Cowslip => traced(Peer::Cowslip, true, &[UNSAFE_SWITCH]),
        // The real server has no such switch, but what is not asked to be durable is not synced either.
        Peer::Real => traced(Peer::Real, false, &[]),
    };
    assert!(found.as_ref().is_err_and(|e| e.contains("without a sync")), "{found:?}");
}

/// Numbers for the moments of killing, the same at each run.
struct Moments(u64);

impl Moments {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A transaction of two operations on two tables, so that half of it could be seen.
fn pair(n: usize, durable: bool) -> String {
    let mut operations = vec![
        json!("Lab"),
        json!({"op": "insert", "table": "Plain", "row": {"name": "pair", "v": n}}),
        json!({"op": "insert", "table": "Num", "row": {"n": n, "t": "pair"}}),
    ];
    if durable {
        operations.push(json!({"op": "commit", "durable": true}));
    }
    json!({"method": "transact", "params": operations, "id": n}).to_string()
}

/// Sends a load until the server is killed after so many replies; how many were sent and acknowledged.
fn load_and_kill(server: &mut Server, kill_after: usize, durable: bool) -> (usize, usize) {
    let mut session = server.connect();
    let mut writer = session.writer();
    let sender = std::thread::spawn(move || {
        let mut sent = 0;
        for first in (0..LOAD).step_by(50) {
            let text: String = (first..first + 50).map(|n| pair(n, durable)).collect();
            // Part of a chunk may have arrived even if the write fails.
            sent = first + 50;
            if writer.write_all(text.as_bytes()).is_err() {
                break;
            }
        }
        sent
    });
    let mut acknowledged = 0;
    let mut killed = false;
    loop {
        if acknowledged >= kill_after && !killed {
            server.kill();
            killed = true;
        }
        match session.event(REPLY_LIMIT) {
            Event::Message(reply) => {
                assert_eq!(reply["id"], json!(acknowledged), "replies come in order: {reply}");
                assert!(reply["error"].is_null() && reply["result"][0]["error"].is_null(), "{reply}");
                acknowledged += 1;
            }
            Event::Closed => break,
            other => panic!("after {acknowledged} replies: {other:?}"),
        }
    }
    (sender.join().expect("the sender does not panic"), acknowledged)
}

/// The numbers of the transactions that are there, by table.
fn found(session: &mut Session) -> [Vec<usize>; 2] {
    let results = session.must(
        "Lab",
        &[
            json!({"op": "select", "table": "Plain", "where": [["name", "==", "pair"]], "columns": ["v"]}),
            json!({"op": "select", "table": "Num", "where": [], "columns": ["n"]}),
        ],
    );
    [("v", 0), ("n", 1)].map(|(column, at)| {
        let rows = results[at]["rows"].as_array().into_iter().flatten();
        let mut numbers: Vec<usize> =
            rows.filter_map(|row| row[column].as_u64().and_then(|n| usize::try_from(n).ok())).collect();
        numbers.sort_unstable();
        numbers
    })
}

fn kill_rounds(peer: Peer, durable: bool, rounds: usize) {
    let mut moments = Moments(0x5eed_0000_0000_0001 + u64::from(durable));
    let limit = if durable { LOAD / 5 } else { LOAD };
    for round in 0..rounds {
        let kill_after = moments.below(limit);
        let dir = scratch();
        let (mut server, setup) = Server::fresh(peer, dir.path(), &[&case_folder().join("lab.ovsschema")]);
        let (sent, acknowledged) = load_and_kill(&mut server, kill_after, durable);
        let what =
            format!("round {round}, killed after {kill_after}: {sent} sent, {acknowledged} acknowledged");
        let server = setup.start();
        let [plain, num] = found(&mut server.connect());
        assert!(plain == num, "{what}: {} and {} halves found", plain.len(), num.len());
        assert!(plain.iter().enumerate().all(|(at, n)| at == *n), "{what}: what is there has gaps");
        assert!((acknowledged..=sent).contains(&plain.len()), "{what}: {} found", plain.len());
        let again: Value = server
            .connect()
            .must("Lab", &[json!({"op": "insert", "table": "Plain", "row": {"name": "after"}})]);
        assert!(again[0]["uuid"].is_array(), "{what}: {again}");
    }
}

#[test]
fn kill_9_loses_nothing_acknowledged() {
    kill_rounds(Peer::under_test(), false, ROUNDS / 2);
}

#[test]
fn kill_9_loses_nothing_durable() {
    kill_rounds(Peer::under_test(), true, ROUNDS / 2);
}

#[test]
fn kill_9_on_the_real_server() {
    kill_rounds(Peer::Real, false, 2);
    kill_rounds(Peer::Real, true, 1);
}
