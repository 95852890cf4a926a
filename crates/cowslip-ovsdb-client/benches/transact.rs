//! Whole transactions against the real server and ours: 1,000 rows, 7 clients that see everything, one of them sending
//! 1, 10 or 100 updates or mutations at a time without validation, serialized or pipelined; and 16 transactions in
//! flight at once.
//!
//! The modes take turns, transaction by transaction, so that whatever else the machine does falls on all of them. The
//! last column is what validating adds to a transaction: the median of the differences within a round, as a part of the
//! time without validation.
//!
//! After each run the bench checks that every transaction was validated, that none was skipped, and that a planted
//! duplicate is refused in that very configuration. A number on the command line is the seconds that each run and mode
//! may take, a word the only server.

mod support;

use cowslip_ovsdb_client::{Client, Uuid, Validation};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{CHANGES_APART, Mode, Operation, ROWS, Recipe, Shape};

const CLIENTS: usize = 7;
const IN_FLIGHT: usize = 16;
/// How often the modes take turns with many transactions in flight.
const SLICES: u32 = 8;

/// Distinct changes for each run.
static CHANGES: AtomicU64 = AtomicU64::new(0);

struct Real(Child);

impl Drop for Real {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn real(directory: &Path, shape: Shape) -> Real {
    let missing = "ovsdb-server and ovsdb-tool are missing: run `cargo xtask peers`";
    std::fs::write(directory.join("schema"), shape.schema()).expect("a file");
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
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let seconds = arguments.iter().find_map(|arg| arg.parse::<f64>().ok()).unwrap_or(0.5);
    let only = arguments.iter().find(|arg| arg.parse::<f64>().is_err());
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    let limit = Duration::from_secs_f64(seconds);
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        println!("| server | rows | transaction | form | off | serialized | pipelined | validation adds |");
        println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
        for shape in Shape::ALL {
            let directory = tempfile::tempdir().expect("a directory");
            if is_wanted("real") {
                let _real = real(directory.path(), shape);
                run("real", &directory.path().join("real"), shape, limit).await;
            }
            if is_wanted("ours") {
                let server = support::ours(directory.path(), shape).await;
                run("ours", &directory.path().join("ours"), shape, limit).await;
                server.stop().await.expect("it stops");
            }
        }
    });
}

/// All configurations against one server.
async fn run(name: &str, socket: &Path, shape: Shape, limit: Duration) {
    let endpoint = format!("unix:{}", socket.display());
    let loader = support::client(&endpoint, Validation::Off).await;
    support::fill(&loader, ROWS, shape).await;
    let mut clients = Vec::new();
    for _ in 1..CLIENTS {
        clients.push(support::client(&endpoint, Validation::All).await);
    }
    let client = &clients[0];
    let ids = support::ids(client);
    let rows = shape.name();
    for operation in [Operation::Update, Operation::Mutate] {
        for count in [1, 10, 100] {
            for repeated in [true, false] {
                let recipe = Recipe { shape, operation, count, repeated };
                let times = one_by_one(client, &ids, recipe, limit).await;
                let added = added(&times);
                let cells = times.map(|each| format!("{:.0} us", micros(median(each))));
                let form = if repeated { "same again" } else { "a change each" };
                let (op, cells) = (format!("{operation:?}").to_lowercase(), cells.join(" | "));
                println!("| {name} | {rows} | {count} {op} | {form} | {cells} | {:.1} % |", added * 100.0);
            }
        }
    }
    let mut rates = [0.0; Mode::ALL.len()];
    for _ in 0..SLICES {
        for (mode, rate) in Mode::ALL.into_iter().zip(&mut rates) {
            *rate += in_flight(client, &ids, shape, mode, limit).await / f64::from(SLICES);
        }
    }
    let part = rates[2] / rates[0] * 100.0;
    let cells = rates.map(|rate| format!("{rate:.0}/s")).join(" | ");
    println!(
        "| {name} | {rows} | 1 update, {IN_FLIGHT} in flight | a change each | {cells} | {part:.0} % of the rate |"
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// What pipelined validation adds to a transaction, as a part of its time without.
fn added(times: &[Vec<Duration>; Mode::ALL.len()]) -> f64 {
    let mut differences: Vec<f64> =
        times[0].iter().zip(&times[2]).map(|(off, on)| micros(*on) - micros(*off)).collect();
    differences.sort_by(f64::total_cmp);
    differences[differences.len() / 2] / micros(median(times[0].clone()))
}

/// The times of transactions one after the other, by mode.
async fn one_by_one(
    client: &Client,
    ids: &[Uuid],
    recipe: Recipe,
    limit: Duration,
) -> [Vec<Duration>; Mode::ALL.len()] {
    let (before, start) = (client.counts(), Instant::now());
    let mut times = Mode::ALL.map(|_| Vec::new());
    let mut change = CHANGES.fetch_add(CHANGES_APART, Ordering::Relaxed);
    while start.elapsed() < limit * Mode::ALL.len() as u32 || times[0].len() < 10 {
        for (mode, each) in Mode::ALL.into_iter().zip(&mut times) {
            let tx = mode.prepare(recipe.transaction(client, ids, change));
            change += u64::from(!recipe.repeated);
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
    for mode in Mode::ALL {
        mode.check(client, ids).await;
    }
    times
}

/// Transactions per second with several in flight.
async fn in_flight(client: &Client, ids: &[Uuid], shape: Shape, mode: Mode, limit: Duration) -> f64 {
    let (before, start) = (client.counts(), Instant::now());
    let recipe = Recipe { shape, operation: Operation::Update, count: 1, repeated: false };
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (client, ids) = (client.clone(), ids.to_vec());
            let first = CHANGES.fetch_add(CHANGES_APART, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut done = 0;
                while start.elapsed() < limit {
                    let tx = recipe.transaction(&client, &ids, first + done);
                    client.transact(mode.prepare(tx)).await.expect("the transaction is good");
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
    mode.check(client, ids).await;
    rate
}
