//! Validation alone, without I/O: time and allocations per transaction, and how little the number of rows matters.

#![allow(unreachable_pub, reason = "a bench is one program")]

mod support;

use cowslip_ovsdb_client::{Client, Filter, IntoDatum, TransactError, Transaction, Uuid, Validation};
use cowslip_ovsdb_server::Server;
use divan::{AllocProfiler, Bencher};
use std::sync::OnceLock;
use support::Operation;
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

struct World {
    _runtime: Runtime,
    _server: Server,
    _directory: tempfile::TempDir,
    client: Client,
    ids: Vec<Uuid>,
}

fn world(rows: usize, large: bool) -> World {
    let runtime = Runtime::new().expect("threads");
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = format!("unix:{}", directory.path().join("ours").display());
    let (server, client) = runtime.block_on(async {
        let server = support::ours(directory.path()).await;
        let client = support::client(&endpoint, Validation::All).await;
        support::fill(&client, rows, large).await;
        (server, client)
    });
    let ids = support::ids(&client);
    assert_eq!(ids.len(), rows);
    let refused = client.validate(&support::duplicate(&client, &ids));
    assert!(matches!(refused, Err(TransactError::Refused(_))), "a planted duplicate is refused");
    World { _runtime: runtime, _server: server, _directory: directory, client, ids }
}

fn of(rows: &str) -> &'static World {
    static THOUSAND: OnceLock<World> = OnceLock::new();
    static LARGE: OnceLock<World> = OnceLock::new();
    static TEN_THOUSAND: OnceLock<World> = OnceLock::new();
    static MILLION: OnceLock<World> = OnceLock::new();
    match rows {
        "1000" => THOUSAND.get_or_init(|| world(1000, false)),
        "1000 with 4096 integers" => LARGE.get_or_init(|| world(1000, true)),
        "10000" => TEN_THOUSAND.get_or_init(|| world(10_000, false)),
        _ => MILLION.get_or_init(|| world(1_000_000, false)),
    }
}

const TABLES: [&str; 3] = ["1000", "1000 with 4096 integers", "1000000"];

fn main() {
    divan::main();
}

fn validate(bencher: Bencher<'_, '_>, rows: &str, operation: Operation, count: usize) {
    let world = of(rows);
    let transactions: Vec<Transaction> = (0..16)
        .map(|change| support::transaction(&world.client, &world.ids, operation, count, change))
        .collect();
    let mut at = 0;
    bencher.counter(divan::counter::ItemsCount::new(count)).bench_local(|| {
        at = (at + 1) % transactions.len();
        world.client.validate(divan::black_box(&transactions[at])).expect("it is accepted");
    });
}

#[divan::bench(args = TABLES, consts = [1, 10, 100])]
fn update_ops<const N: usize>(bencher: Bencher<'_, '_>, rows: &str) {
    validate(bencher, rows, Operation::Update, N);
}

#[divan::bench(args = TABLES, consts = [1, 10, 100])]
fn mutate_ops<const N: usize>(bencher: Bencher<'_, '_>, rows: &str) {
    validate(bencher, rows, Operation::Mutate, N);
}

#[divan::bench]
fn row_by_index_of_10000(bencher: Bencher<'_, '_>) {
    let snapshot = of("10000").client.snapshot();
    let keys: Vec<_> = (0..10_000).map(|n| [format!("owner-{n}").to_datum()]).collect();
    bencher.counter(divan::counter::ItemsCount::new(keys.len())).bench_local(|| {
        for n in 0..keys.len() {
            let key = &keys[n * 7919 % keys.len()];
            assert!(snapshot.find("Bridge", "by_owner", key).expect("the index is there").next().is_some());
        }
    });
}

#[divan::bench]
fn scan_of_10000_rows(bencher: Bencher<'_, '_>) {
    let snapshot = of("10000").client.snapshot();
    let filter = Filter::all().not_equal("datapath_version", "DatapathVersion-7");
    bencher.bench_local(|| {
        let found = snapshot.list("Bridge", &filter).expect("the filter is good").len();
        assert_eq!(found, 9_999);
    });
}
