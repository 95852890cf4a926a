//! `validate_transaction/{1,10,100}_{update,mutate}_ops/{off,serialized,pipelined}`: allocations (and times) of whole
//! transactions against our server.
//!
//! The client that is measured runs on the bench's own thread, so that all it allocates is counted: for building the
//! request, validating, sending, applying the update and taking the reply. The server and six more clients that see
//! everything run on other threads, whose allocations are not. A real change each time. For times compare modes with the
//! bench `transact`, where they take turns.

mod support;

use cowslip_ovsdb_client::{Client, Uuid, Validation};
use cowslip_ovsdb_server::Server;
use divan::{AllocProfiler, Bencher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{CHANGES_APART, Mode, Operation, ROWS, Recipe, Shape};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// Distinct changes for each run.
static CHANGES: AtomicU64 = AtomicU64::new(0);

const OTHER_CLIENTS: usize = 6;

struct World {
    /// Of the server and the other clients.
    _threads: Runtime,
    _server: Server,
    _directory: tempfile::TempDir,
    _others: Vec<Client>,
    /// Of the client that is measured.
    runtime: Runtime,
    client: Client,
    ids: Vec<Uuid>,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let threads = Runtime::new().expect("threads");
        let directory = tempfile::tempdir().expect("a directory");
        let endpoint = format!("unix:{}", directory.path().join("ours").display());
        let (server, others) = threads.block_on(async {
            let server = support::ours(directory.path(), Shape::Plain).await;
            let mut others = Vec::new();
            for _ in 0..OTHER_CLIENTS {
                others.push(support::client(&endpoint, Validation::Off).await);
            }
            support::fill(&others[0], ROWS, Shape::Plain).await;
            (server, others)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(support::client(&endpoint, Validation::All));
        let ids = support::ids(&client);
        World {
            _threads: threads,
            _server: server,
            _directory: directory,
            _others: others,
            runtime,
            client,
            ids,
        }
    })
}

fn main() {
    divan::main();
}

fn transact(bencher: Bencher<'_, '_>, operation: Operation, count: usize, mode: Mode) {
    let World { runtime, client, ids, .. } = world();
    let recipe = Recipe { shape: Shape::Plain, operation, count, repeated: false };
    let mut change = CHANGES.fetch_add(CHANGES_APART, Ordering::Relaxed);
    let (before, mut sent) = (client.counts(), 0);
    bencher
        .with_inputs(|| {
            change += 1;
            mode.prepare(recipe.transaction(client, ids, change - 1))
        })
        .bench_local_values(|tx| {
            sent += 1;
            runtime.block_on(client.transact(tx)).expect("the transaction is good")
        });
    let counts = client.counts();
    assert_eq!(counts.sent - before.sent, sent);
    assert_eq!(counts.validated - before.validated, if mode == Mode::Off { 0 } else { sent });
    runtime.block_on(mode.check(client, ids));
}

#[divan::bench(name = "1_update_ops", args = Mode::ALL, sample_count = 200, sample_size = 1)]
fn one_update(bencher: Bencher<'_, '_>, mode: &Mode) {
    transact(bencher, Operation::Update, 1, *mode);
}

#[divan::bench(name = "10_update_ops", args = Mode::ALL, sample_count = 200, sample_size = 1)]
fn ten_updates(bencher: Bencher<'_, '_>, mode: &Mode) {
    transact(bencher, Operation::Update, 10, *mode);
}

#[divan::bench(name = "100_update_ops", args = Mode::ALL, sample_count = 200, sample_size = 1)]
fn hundred_updates(bencher: Bencher<'_, '_>, mode: &Mode) {
    transact(bencher, Operation::Update, 100, *mode);
}

#[divan::bench(name = "1_mutate_ops", args = Mode::ALL, sample_count = 200, sample_size = 1)]
fn one_mutation(bencher: Bencher<'_, '_>, mode: &Mode) {
    transact(bencher, Operation::Mutate, 1, *mode);
}

#[divan::bench(name = "10_mutate_ops", args = Mode::ALL, sample_count = 200, sample_size = 1)]
fn ten_mutations(bencher: Bencher<'_, '_>, mode: &Mode) {
    transact(bencher, Operation::Mutate, 10, *mode);
}

#[divan::bench(name = "100_mutate_ops", args = Mode::ALL, sample_count = 200, sample_size = 1)]
fn hundred_mutations(bencher: Bencher<'_, '_>, mode: &Mode) {
    transact(bencher, Operation::Mutate, 100, *mode);
}
