//! The server killed and restarted under load: the cache equals the server's content each time, and what was reported
//! as applied is there.

use crate::support::{Kind, Peer, SCHEMA, text};
use cowslip_ovsdb_client::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Applied,
    Failed,
    Unknown,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_equals_the_server_after_each_restart() {
    // Ours is stopped in good order, which takes longer; it then tells only what changed.
    rounds(Kind::Real, 200).await;
    rounds(Kind::Ours, 40).await;
}

async fn rounds(kind: Kind, rounds: usize) {
    let mut peer = Peer::start(kind, SCHEMA).await;
    let client =
        peer.builder().monitor(Monitor::everything()).validation(Validation::All).connect().await.unwrap();
    let fates: Arc<Mutex<BTreeMap<String, Fate>>> = Arc::default();
    let writers: Vec<_> = (0..4).map(|n| tokio::spawn(write(client.clone(), n, fates.clone()))).collect();
    for _ in 0..rounds {
        tokio::time::sleep(Duration::from_millis(8)).await;
        peer.restart().await;
        client.states().wait_for(State::is_live).await.unwrap();
    }
    for writer in writers {
        writer.abort();
        let _ = writer.await;
    }
    client.ready().await.unwrap();
    let fresh = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
    for _ in 0..100 {
        if content(&client) == content(&fresh) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let content = content(&fresh);
    assert_eq!(self::content(&client), content);
    let fates = fates.lock().unwrap();
    for (name, fate) in fates.iter() {
        match fate {
            Fate::Applied => assert!(content.contains_key(name), "{name} was reported as applied"),
            Fate::Failed => assert!(!content.contains_key(name), "{name} was reported as not applied"),
            Fate::Unknown => {}
        }
    }
    let count = |wanted| fates.values().filter(|fate| **fate == wanted).count();
    assert!(count(Fate::Applied) > rounds, "{} applied", count(Fate::Applied));
    assert!(client.counts().connections > rounds as u64 / 2);
}

/// Inserts rows until it is aborted. Without `durable` the server may lose what it has acknowledged only in a crash of
/// the machine, not of the process.
async fn write(client: Client, writer: usize, fates: Arc<Mutex<BTreeMap<String, Fate>>>) {
    for n in 0.. {
        let name = format!("w{writer}-{n}");
        let mut tx = client.transaction();
        tx.insert("Plain", [("name", text(&name))]);
        // Being aborted while the transaction is on its way leaves its outcome unknown.
        fates.lock().unwrap().insert(name.clone(), Fate::Unknown);
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
        fates.lock().unwrap().insert(name, fate);
        if fate != Fate::Applied {
            let _ = client.ready().await;
        }
    }
}

fn content(client: &Client) -> BTreeMap<String, Uuid> {
    let snapshot = client.snapshot();
    let rows = snapshot.rows("Plain").unwrap();
    rows.map(|row| (row.value("name").unwrap(), row.uuid())).collect()
}
