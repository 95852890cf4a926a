//! What an answer promises.
//!
//! Two kinds of evidence, because `kill -9` never loses what was written: system calls, traced, show that the answer to a
//! modification leaves after the sync that followed its write, and rounds of `kill -9` under load show that what was
//! acknowledged is there after a restart, that nothing is there which was not sent, and that no change is there by half.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::support::{Connection, SUFFIX, Server, program, scratch};
use crate::trace::{self, Marked};

/// Modifications in a traced run. Their numbers have three digits.
const TRACED: u32 = 1_000;
/// Of these so many are in flight at once, on one connection each.
const CONNECTIONS: u32 = 8;
/// Rounds of `kill -9`.
const ROUNDS: usize = 50;
/// Connections in each round.
const WRITERS: usize = 4;

/// The suffix and `count` entries.
fn population(count: u32) -> String {
    let mut ldif = format!("dn: {SUFFIX}\nobjectClass: domain\ndc: example\n");
    for n in 0..count {
        ldif += &format!("\ndn: {}\nobjectClass: person\ncn: p{n}\nsn: p\ndescription: 0\n", entry(n));
    }
    ldif
}

fn entry(n: u32) -> String {
    format!("cn=p{n},{SUFFIX}")
}

/// A message's number whose octets are the text `mNNN`, so that it can be read in a trace.
fn message_number(n: u32) -> u32 {
    let text = format!("m{n:03}");
    u32::from_be_bytes(text.as_bytes().try_into().expect("three digits"))
}

/// Marked modifications, several at once, on a traced server.
fn traced(more: &[&str]) -> Result<(), String> {
    program("strace");
    let dir = scratch();
    let (folder, file) = (dir.path().join("data"), dir.path().join("trace"));
    let server = Server::start(&folder);
    server.add(&population(CONNECTIONS));
    server.stop();
    let mut wrapper: Vec<String> = trace::STRACE.iter().map(|word| (*word).to_owned()).collect();
    wrapper.push(file.display().to_string());
    // So that it passes on the signal that asks it to end.
    wrapper.extend(["-I".to_owned(), "2".to_owned()]);
    let server = Server::start_with(&folder, more, &wrapper);
    let connect = |_| Connection::root(server.port).map_err(|e| e.to_string());
    let mut connections = (0..CONNECTIONS).map(connect).collect::<Result<Vec<_>, _>>()?;
    for first in (0..TRACED).step_by(CONNECTIONS as usize) {
        let batch = || (first..TRACED).zip(0..CONNECTIONS);
        for (n, which) in batch() {
            let value = format!("mark-{n:03}-end");
            let sent = connections[which as usize].send_replace(
                message_number(n),
                &entry(which),
                &[("description", &value)],
            );
            sent.map_err(|e| e.to_string())?;
        }
        for (_, which) in batch() {
            connections[which as usize].answer().map_err(|e| e.to_string())?;
        }
    }
    drop(connections);
    server.stop();
    let text = std::fs::read(&file).map_err(|e| e.to_string())?;
    // The number is an element of four octets, followed by the tag of a modification's answer, which is a `g`.
    let mark = |n| Marked { written: format!("mark-{n:03}-end"), replied: format!("\\2\\4m{n:03}g\\7") };
    let marks: Vec<Marked> = (0..TRACED).map(mark).collect();
    trace::check(&String::from_utf8_lossy(&text), &format!("{}/journal-", folder.display()), &marks)
}

#[test]
fn answers_to_modifications_leave_after_their_sync() {
    traced(&[]).unwrap_or_else(|e| panic!("{e}"));
}

/// The same check must fail on a server that answers before it syncs, or it would prove nothing.
#[test]
fn the_check_fails_when_answers_do_not_wait() {
    let found = traced(&["--sync-interval-ms", "200"]);
    assert!(found.as_ref().is_err_and(|e| e.contains("without a sync")), "{found:?}");
}

/// Numbers for the moments of killing, the same at each run.
struct Moments(u64);

impl Moments {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What a writer did: the last number that it sent, and the last that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    sent: u64,
    acknowledged: u64,
}

/// Replaces two values of the writer's own entry by the next number, again and again, until the server is gone.
fn write(port: u16, which: usize, mut state: Written) -> Written {
    let dn = entry(u32::try_from(which).expect("a few writers"));
    let Ok(mut connection) = Connection::root(port) else { return state };
    for message in 2.. {
        let number = (state.sent + 1).to_string();
        let values = [("description", &number[..]), ("telephoneNumber", &number[..])];
        // Part of it may have arrived even if the write fails.
        state.sent += 1;
        let is_done = connection.send_replace(message, &dn, &values).is_ok() && connection.answer().is_ok();
        if !is_done {
            break;
        }
        state.acknowledged = state.sent;
    }
    state
}

/// The number in each entry; both values must be the same.
fn found(server: &Server) -> BTreeMap<String, u64> {
    let ldif = server.search(&["-b", SUFFIX, "(objectClass=person)", "description", "telephoneNumber"]);
    let records = ldif.split("\n\n").filter(|record| !record.trim().is_empty());
    let number = |record: &str, name: &str| {
        let value =
            record.lines().find_map(|line| line.strip_prefix(name)).and_then(|v| v.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in {record}"))
    };
    let read = |record: &str| {
        let dn = record.lines().find_map(|line| line.strip_prefix("dn: ")).expect("a name").to_owned();
        let pair: [u64; 2] = ["description:", "telephoneNumber:"].map(|name| number(record, name));
        assert_eq!(pair[0], pair[1], "half of a change of {dn}");
        (dn, pair[0])
    };
    records.map(read).collect()
}

fn kill_rounds(folder: &Path) {
    let mut moments = Moments(0x5eed_0000_0000_0001);
    let server = Server::start(folder);
    let zeros = population(WRITERS as u32).replace("description: 0", "description: 0\ntelephoneNumber: 0");
    server.add(&zeros);
    server.stop();
    let mut states = [Written { sent: 0, acknowledged: 0 }; WRITERS];
    let mut total = 0;
    for round in 0..ROUNDS {
        let mut server = Server::start(folder);
        let port = server.port;
        let writers: Vec<_> = states
            .iter()
            .enumerate()
            .map(|(which, state)| {
                let state = *state;
                std::thread::spawn(move || write(port, which, state))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(5 + moments.below(150)));
        server.kill();
        for (state, writer) in states.iter_mut().zip(writers) {
            *state = writer.join().expect("a writer does not panic");
        }
        let server = Server::start(folder);
        let found = found(&server);
        assert_eq!(found.len(), WRITERS, "round {round}: {found:?}");
        for (which, state) in states.iter_mut().enumerate() {
            let number = found[&entry(u32::try_from(which).expect("a few writers"))];
            let may_be = state.acknowledged..=state.sent;
            assert!(may_be.contains(&number), "round {round}, writer {which}: {state:?}, found {number}");
            total += number - number.min(state.acknowledged);
            *state = Written { sent: number, acknowledged: number };
        }
        server.stop();
    }
    let acknowledged: u64 = states.iter().map(|state| state.acknowledged).sum();
    println!("{ROUNDS} rounds: {acknowledged} modifications, {total} found though not acknowledged");
    assert!(acknowledged > ROUNDS as u64, "the server was hardly under load");
}

#[test]
fn kill_9_loses_nothing_acknowledged() {
    let dir = scratch();
    kill_rounds(&dir.path().join("data"));
}
