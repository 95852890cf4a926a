//! Validation alone, without I/O: time and allocations per transaction, and how little the number of rows matters; beside
//! it the same operations as a server executes them; and look-ups.
//!
//! A validation is the server's executor with a client's incomplete knowledge and a client's index more, so that the
//! goal is the time of `server_*`, which neither parses the operations nor applies the result.

#![allow(unreachable_pub, reason = "a bench is one program")]

mod support;

use cowslip_engine::Root;
use cowslip_ovsdb::executor::{Circumstances, Everything, Execution, execute};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation;
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_client::{Client, Filter, IntoDatum, TransactError, Transaction, Uuid, Validation};
use cowslip_ovsdb_server::Server;
use divan::{AllocProfiler, Bencher};
use std::sync::{Arc, OnceLock};
use support::{Operation, Recipe, Shape};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

struct World {
    _runtime: Runtime,
    _server: Server,
    _directory: tempfile::TempDir,
    client: Client,
    ids: Vec<Uuid>,
    /// The rows as a server has them, without the client's index.
    root: Root<Ovsdb>,
    shape: Shape,
}

fn world(rows: usize, shape: Shape) -> World {
    let runtime = Runtime::new().expect("threads");
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = format!("unix:{}", directory.path().join("ours").display());
    let (server, client) = runtime.block_on(async {
        let server = support::ours(directory.path(), shape).await;
        let client = support::client(&endpoint, Validation::All).await;
        support::fill(&client, rows, shape).await;
        (server, client)
    });
    let ids = support::ids(&client);
    assert_eq!(ids.len(), rows);
    let refused = client.validate(&support::duplicate(&client, &ids));
    assert!(matches!(refused, Err(TransactError::Refused(_))), "a planted duplicate is refused");
    let schema = Schema::parse(shape.schema().as_bytes()).expect("the schema is good");
    let root = client.snapshot().root().rebuilt(Arc::new(schema));
    World { _runtime: runtime, _server: server, _directory: directory, client, ids, root, shape }
}

fn of(rows: &str) -> &'static World {
    static THOUSAND: OnceLock<World> = OnceLock::new();
    static LARGE: OnceLock<World> = OnceLock::new();
    static PORTS: OnceLock<World> = OnceLock::new();
    static TEN_THOUSAND: OnceLock<World> = OnceLock::new();
    static MILLION: OnceLock<World> = OnceLock::new();
    match rows {
        "1000" => THOUSAND.get_or_init(|| world(1000, Shape::Plain)),
        "1000 with 4096 integers" => LARGE.get_or_init(|| world(1000, Shape::Large)),
        "1000 with Port rows" => PORTS.get_or_init(|| world(1000, Shape::Ports)),
        "10000" => TEN_THOUSAND.get_or_init(|| world(10_000, Shape::Plain)),
        _ => MILLION.get_or_init(|| world(1_000_000, Shape::Plain)),
    }
}

const TABLES: [&str; 4] = ["1000", "1000 with 4096 integers", "1000 with Port rows", "1000000"];

fn main() {
    divan::main();
}

fn validate(bencher: Bencher<'_, '_>, rows: &str, operation: Operation, count: usize) {
    let world = of(rows);
    let recipe = Recipe { shape: world.shape, operation, count, repeated: false };
    // As many as visit no row twice, of which the second visit would take back what the first had added.
    let transactions: Vec<Transaction> =
        (0..10).map(|change| recipe.transaction(&world.client, &world.ids, change)).collect();
    let mut at = 0;
    bencher.counter(divan::counter::ItemsCount::new(count)).bench_local(|| {
        at = (at + 1) % transactions.len();
        world.client.validate(divan::black_box(&transactions[at])).expect("it is accepted");
    });
}

/// The server's own execution of the same operations.
fn execution(bencher: Bencher<'_, '_>, operation: Operation, count: usize) {
    let World { root, ids, .. } = of("1000");
    let text = support::text(ids, operation, count);
    let json = Json::parse(text.as_bytes()).expect("it is JSON");
    let transaction = operation::Transaction::parse(root.meta(), json.as_array().expect("an array"));
    let circumstances = Circumstances { owns_lock: &|_| true, read_only: false, waited_ms: 0 };
    bencher.counter(divan::counter::ItemsCount::new(count)).bench_local(|| {
        match execute(root, divan::black_box(&transaction), &Everything, &circumstances) {
            Execution::Done(outcome) => assert!(outcome.error.is_none() && outcome.changes.len() == count),
            Execution::Waiting { .. } => panic!("it waits for nothing"),
        }
    });
}

#[divan::bench(consts = [1, 10, 100])]
fn server_update_ops<const N: usize>(bencher: Bencher<'_, '_>) {
    execution(bencher, Operation::Update, N);
}

#[divan::bench(consts = [1, 10, 100])]
fn server_mutate_ops<const N: usize>(bencher: Bencher<'_, '_>) {
    execution(bencher, Operation::Mutate, N);
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
fn row_by_uuid_of_10000(bencher: Bencher<'_, '_>) {
    let World { client, ids, .. } = of("10000");
    let snapshot = client.snapshot();
    bencher.counter(divan::counter::ItemsCount::new(ids.len())).bench_local(|| {
        for n in 0..ids.len() {
            assert!(snapshot.row("Bridge", ids[n * 7919 % ids.len()]).is_some());
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
