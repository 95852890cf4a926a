//! The server killed and restarted under load: after each restart the cache equals the server's content, and what was
//! reported as applied is there, what was reported as failed is not.

use crate::support::{Kind, Peer, SCHEMA, text};
use cowslip_ovsdb_client::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::RwLock;

/// What is known of a transaction, or of what it inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Applied,
    Failed,
    Unknown,
}

/// The fates of a writer's transactions, by their numbers.
type Fates = Mutex<BTreeMap<usize, Fate>>;

const WRITERS: usize = 4;

/// Each transaction inserts the row of its number and deletes the one of the number that is so much smaller.
const KEPT: usize = 50;

const ROUNDS: usize = 200;

// Two tests, because each waits more than it works.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_equals_our_server_after_each_restart() {
    rounds(Kind::Ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_equals_the_real_server_after_each_restart() {
    rounds(Kind::Real).await;
}

async fn rounds(kind: Kind) {
    let mut peer = Peer::start(kind, SCHEMA).await;
    let client =
        peer.builder().monitor(Monitor::everything()).validation(Validation::All).connect().await.unwrap();
    let fates: Arc<[Fates; WRITERS]> = Arc::default();
    // Who writes holds it for reading, so that whoever holds it for writing sees nothing in flight.
    let gate = Arc::new(RwLock::new(()));
    let writers: Vec<_> =
        (0..WRITERS).map(|n| tokio::spawn(write(client.clone(), n, fates.clone(), gate.clone()))).collect();
    let mut unknown = 0;
    for round in 0..ROUNDS {
        tokio::time::sleep(Duration::from_millis(5)).await;
        peer.restart().await;
        client.states().wait_for(State::is_live).await.unwrap();
        let _closed = gate.write().await;
        unknown += check(kind, round, &client, &fates).await;
    }
    for writer in writers {
        writer.abort();
        let _ = writer.await;
    }
    let applied = |fates: &Fates| fates.lock().unwrap().values().filter(|f| **f == Fate::Applied).count();
    let applied: usize = fates.iter().map(applied).sum();
    assert!(applied > ROUNDS, "{kind:?}: {applied} applied");
    assert!(client.counts().connections > ROUNDS as u64, "{kind:?}: {:?}", client.counts());
    assert_eq!(client.counts().resyncs, 0);
    println!("{kind:?}: {applied} applied, {unknown} unknown when the link broke");
}

/// Compares the cache with what the server has, and that with what writers were told. What was unknown is known then.
async fn check(kind: Kind, round: usize, client: &Client, fates: &[Fates; WRITERS]) -> usize {
    // The link that was live a moment ago may have been the one that breaks.
    let selected = loop {
        client.ready().await.unwrap();
        let mut tx = client.transaction();
        let at = tx.select("Plain", &Filter::all(), &["_uuid", "name"]);
        match client.transact(tx).await {
            Ok(results) => break results.rows(at).unwrap().to_vec(),
            Err(
                TransactError::Disconnected | TransactError::OutcomeUnknown | TransactError::NotSynchronised,
            ) => {}
            Err(other) => panic!("{kind:?} {round}: {other}"),
        }
    };
    let uuid = |datum: &Datum| *datum.as_one().unwrap().as_uuid().unwrap();
    let server: BTreeMap<String, Uuid> =
        selected.iter().map(|row| (String::from_datum(&row["name"]).unwrap(), uuid(&row["_uuid"]))).collect();
    let snapshot = client.snapshot();
    let cache: BTreeMap<String, Uuid> =
        snapshot.rows("Plain").unwrap().map(|row| (row.value("name").unwrap(), row.uuid())).collect();
    assert_eq!(cache, server, "{kind:?} {round}");
    assert_eq!(selected.len(), server.len(), "{kind:?} {round}: no name twice");
    let mut unknown = 0;
    for (writer, fates) in fates.iter().enumerate() {
        let mut fates = fates.lock().unwrap();
        let is_there = |n: usize| server.contains_key(&name(writer, n));
        for (n, fate) in fates.iter_mut().filter(|(_, fate)| **fate == Fate::Unknown) {
            unknown += 1;
            *fate = if is_there(*n) { Fate::Applied } else { Fate::Failed };
        }
        for (n, fate) in fates.iter() {
            let is_deleted = fates.get(&(n + KEPT)) == Some(&Fate::Applied);
            let wanted = *fate == Fate::Applied && !is_deleted;
            assert_eq!(is_there(*n), wanted, "{kind:?} {round}: {} was {fate:?}", name(writer, *n));
        }
    }
    unknown
}

fn name(writer: usize, n: usize) -> String {
    format!("w{writer}-{n}")
}

/// Writes until it is aborted. Without `durable` the server may lose what it has acknowledged only in a crash of the
/// machine, not of the process.
async fn write(client: Client, writer: usize, fates: Arc<[Fates; WRITERS]>, gate: Arc<RwLock<()>>) {
    for n in 0.. {
        let open = gate.read().await;
        let mut tx = client.transaction();
        tx.insert("Plain", [("name", text(&name(writer, n)))]);
        if let Some(old) = n.checked_sub(KEPT) {
            tx.delete("Plain", &Filter::all().equal("name", name(writer, old).as_str()));
        }
        // Being aborted while the transaction is on its way leaves its outcome unknown.
        fates[writer].lock().unwrap().insert(n, Fate::Unknown);
        let fate = match client.transact(tx).await {
            Ok(results) => {
                let OperationResult::Inserted(uuid) = results.operations()[0] else { panic!() };
                assert!(client.snapshot().row("Plain", uuid).is_some(), "own writes are in the cache");
                Fate::Applied
            }
            Err(TransactError::OutcomeUnknown) => Fate::Unknown,
            Err(TransactError::Disconnected | TransactError::NotSynchronised) => Fate::Failed,
            Err(other) => panic!("{other}"),
        };
        fates[writer].lock().unwrap().insert(n, fate);
        drop(open);
        if fate != Fate::Applied {
            let _ = client.ready().await;
        }
    }
}
