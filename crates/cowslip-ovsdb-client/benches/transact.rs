//! `validate_transaction/{1,10,100}_{update,mutate}_ops/{off,serialized,pipelined}`: whole transactions against the real
//! server and ours, 1,000 rows, 7 clients that see everything; and 16 transactions in flight at once.
//!
//! After each run the bench checks that every transaction was validated, that none was skipped, and that a planted
//! duplicate is refused in that very configuration. Numbers on the command line limit the seconds of each run.

mod support;

use cowslip_ovsdb_client::{Client, TransactError, Transaction, Uuid, Validation};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Operation;

const ROWS: usize = 1000;
const CLIENTS: usize = 7;
const IN_FLIGHT: usize = 16;
/// How often the modes take turns with many transactions in flight.
const SLICES: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Off,
    Serialized,
    Pipelined,
}

const MODES: [Mode; 3] = [Mode::Off, Mode::Serialized, Mode::Pipelined];

struct Real(Child);

impl Drop for Real {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn real(directory: &Path) -> Real {
    let missing = "ovsdb-server and ovsdb-tool are missing: run `cargo xtask peers`";
    std::fs::write(directory.join("schema"), support::SCHEMA).expect("a file");
    let create = Command::new("ovsdb-tool")
        .arg("create")
        .args([directory.join("db"), directory.join("schema")])
        .status();
    assert!(create.expect(missing).success());
    let child = Command::new("ovsdb-server")
        .arg(directory.join("db"))
        .arg(format!("--remote=punix:{}", directory.join("real").display()))
        .arg(format!("--unixctl={}", directory.join("ctl").display()))
        .args(["--no-chdir", "--log-file=/dev/null"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect(missing);
    while !directory.join("real").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    Real(child)
}

fn main() {
    let seconds = std::env::args().filter_map(|arg| arg.parse::<f64>().ok()).next().unwrap_or(0.5);
    let limit = Duration::from_secs_f64(seconds);
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        println!("| server | column of 4,096 | transaction | form | off | serialized | pipelined |");
        println!("| --- | --- | --- | --- | --- | --- | --- |");
        for large in [false, true] {
            let directory = tempfile::tempdir().expect("a directory");
            let _real = real(directory.path());
            run("real", &directory.path().join("real"), large, limit).await;
            let _ours = support::ours(directory.path()).await;
            run("ours", &directory.path().join("ours"), large, limit).await;
        }
    });
}

/// All configurations against one server.
async fn run(name: &str, socket: &Path, large: bool, limit: Duration) {
    let endpoint = format!("unix:{}", socket.display());
    let loader = support::client(&endpoint, Validation::Off).await;
    support::fill(&loader, ROWS, large).await;
    let mut clients = Vec::new();
    for _ in 1..CLIENTS {
        clients.push(support::client(&endpoint, Validation::All).await);
    }
    let client = &clients[0];
    let ids = support::ids(client);
    let large = if large { "yes" } else { "no" };
    for operation in [Operation::Update, Operation::Mutate] {
        for count in [1, 10, 100] {
            for repeated in [true, false] {
                let times = one_by_one(client, &ids, operation, count, repeated, limit).await;
                let cells = times.map(|mut each| {
                    each.sort();
                    format!("{:.0} us", each[each.len() / 2].as_secs_f64() * 1e6)
                });
                let form = if repeated { "same again" } else { "a change each" };
                let (op, cells) = (format!("{operation:?}").to_lowercase(), cells.join(" | "));
                println!("| {name} | {large} | {count} {op} | {form} | {cells} |");
            }
        }
    }
    let mut rates = [0.0; MODES.len()];
    for _ in 0..SLICES {
        for (mode, rate) in MODES.into_iter().zip(&mut rates) {
            *rate += in_flight(client, &ids, mode, limit).await / f64::from(SLICES);
        }
    }
    let rates = rates.map(|rate| format!("{rate:.0}/s"));
    println!(
        "| {name} | {large} | 1 update, {IN_FLIGHT} in flight | a change each | {} |",
        rates.join(" | ")
    );
}

fn prepared(tx: Transaction, mode: Mode) -> Transaction {
    let validation = if mode == Mode::Off { Validation::Off } else { Validation::All };
    tx.validated(validation).serialized(mode == Mode::Serialized)
}

/// The times of transactions one after the other, by mode. The modes take turns, so that whatever else the machine does
/// falls on all of them.
async fn one_by_one(
    client: &Client,
    ids: &[Uuid],
    operation: Operation,
    count: usize,
    repeated: bool,
    limit: Duration,
) -> [Vec<Duration>; MODES.len()] {
    let (before, start) = (client.counts(), Instant::now());
    let mut times = MODES.map(|_| Vec::new());
    let mut change = START.fetch_add(1 << 20, std::sync::atomic::Ordering::Relaxed);
    while start.elapsed() < limit * MODES.len() as u32 || times[0].len() < 10 {
        for (mode, each) in MODES.into_iter().zip(&mut times) {
            let tx = prepared(support::transaction(client, ids, operation, count, change), mode);
            change += u64::from(!repeated);
            let begun = Instant::now();
            client.transact(tx).await.expect("the transaction is good");
            each.push(begun.elapsed());
        }
    }
    let (after, rounds) = (client.counts(), times[0].len() as u64);
    assert_eq!(after.sent - before.sent, 3 * rounds);
    assert_eq!(
        after.validated - before.validated,
        2 * rounds,
        "each is validated once, unless it is not to be"
    );
    for mode in MODES {
        refuses(client, ids, mode).await;
    }
    times
}

/// Distinct changes for each run.
static START: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

/// Transactions per second with several in flight.
async fn in_flight(client: &Client, ids: &[Uuid], mode: Mode, limit: Duration) -> f64 {
    let (before, start) = (client.counts(), Instant::now());
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (client, ids) = (client.clone(), ids.to_vec());
            let first = START.fetch_add(1 << 20, std::sync::atomic::Ordering::Relaxed);
            tokio::spawn(async move {
                let mut done = 0;
                while start.elapsed() < limit {
                    let tx = support::transaction(&client, &ids, Operation::Update, 1, first + done);
                    client.transact(prepared(tx, mode)).await.expect("the transaction is good");
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.expect("no panic");
    }
    let rate = done as f64 / start.elapsed().as_secs_f64();
    let counts = client.counts();
    assert_eq!(counts.sent - before.sent, done);
    let validations = counts.validated - before.validated;
    assert!(
        if mode == Mode::Off { validations == 0 } else { validations >= done },
        "{mode:?}: {validations}"
    );
    refuses(client, ids, mode).await;
    rate
}

/// A planted duplicate is refused in every mode that validates.
async fn refuses(client: &Client, ids: &[Uuid], mode: Mode) {
    if mode != Mode::Off {
        let planted = client.transact(prepared(support::duplicate(client, ids), mode)).await;
        assert!(matches!(planted, Err(TransactError::Refused(_))), "{mode:?}: {planted:?}");
    }
}
