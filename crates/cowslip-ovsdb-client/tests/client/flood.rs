//! Slow consumers of events: they hold up neither transactions, nor answers to the server, nor the cache (CLI-08, CLI-10).

use crate::script::{Link, Script};
use crate::support::{BOTH, Peer, SCHEMA, text};
use cowslip_ovsdb_client::*;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// How often a client looks for its own write.
const REPEATS: usize = 10_000;

/// Has every batch wait for a millisecond, until the flag is set.
fn slow_handler(client: &Client) -> Arc<AtomicBool> {
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = is_over.clone();
    let handler = move |_| {
        if !flag.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    client.on_change(handler).unwrap();
    is_over
}

fn seen(client: &Client, uuid: Uuid) -> Option<i64> {
    Some(client.snapshot().row("Plain", uuid)?.value("v").unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_08_own_writes_are_seen_however_slow_handlers_are() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let blind = peer.builder().monitor(Monitor::nothing().table("Bridge")).connect().await.unwrap();
        let is_over = slow_handler(&client);
        let mut tx = client.transaction();
        let row = tx.insert("Plain", [("name", text("row"))]);
        let row = client.transact(tx).await.unwrap().uuid(row);
        for n in 1..=REPEATS as i64 {
            let mut tx = client.transaction();
            tx.update("Plain", &Filter::uuid(row), [("v", n.to_datum())]);
            client.transact(tx).await.unwrap();
            assert_eq!(seen(&client, row), Some(n), "{kind:?}");
        }
        // Who does not monitor the table gets the reply and can tell that the write is nowhere to be seen.
        let mut tx = blind.transaction();
        tx.insert("Plain", [("name", text("unseen"))]);
        blind.transact(tx).await.unwrap();
        assert!(!blind.snapshot().has_table("Plain") && blind.snapshot().is_empty("Plain"));
        is_over.store(true, Ordering::Relaxed);
    }
}

/// The same with the update and the reply in one write, so that they are there at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_08_the_update_counts_before_the_reply_that_comes_with_it() {
    let script = Script::new();
    let client = script.builder().monitor(Monitor::nothing().table("Plain")).start().unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    let row = Uuid::from_u128(1);
    let dump = json!({"Plain": {row.to_string(): {"initial": {"name": "row"}}}});
    link.reply(&request, json!([false, ZERO, dump])).await;
    client.ready().await.unwrap();
    let is_over = slow_handler(&client);
    let server = tokio::spawn(async move {
        for n in 1..=REPEATS {
            let (request, _) = link.expect("transact").await;
            let update = json!([1, ZERO, {"Plain": {row.to_string(): {"modify": {"v": n}}}}]);
            let update = json!({"id": null, "method": "update3", "params": update});
            let reply = json!({"id": request, "result": [{"count": 1}], "error": null});
            link.say_bytes(format!("{update}{reply}").as_bytes()).await;
        }
        link
    });
    for n in 1..=REPEATS as i64 {
        let mut tx = client.transaction();
        tx.update("Plain", &Filter::uuid(row), [("v", n.to_datum())]);
        client.transact(tx).await.unwrap();
        assert_eq!(seen(&client, row), Some(n));
    }
    is_over.store(true, Ordering::Relaxed);
    drop(server.await.unwrap());
}

const ROWS: u64 = 200_000;

/// After the dump, updates of so many rows each: every fourth deletes them, the others change them.
const UPDATES: u64 = 200;
const ROWS_OF_UPDATE: u64 = 200;
const CHANGED: u64 = UPDATES * ROWS_OF_UPDATE;

fn uuid(n: u64) -> Uuid {
    Uuid::from_u128(0xc000_0000_0000_4000_8000_0000_0000_0000 + u128::from(n))
}

fn rows_of_update(number: u64, change: impl Fn(u64) -> Value) -> Value {
    let rows = number * ROWS_OF_UPDATE..(number + 1) * ROWS_OF_UPDATE;
    let rows: serde_json::Map<_, _> = rows.map(|n| (uuid(n).to_string(), change(n))).collect();
    json!({ "Plain": rows })
}

/// What a handler makes of the events: a copy of the table.
#[derive(Default)]
struct Copy {
    rows: HashMap<Uuid, i64>,
    events: u64,
    lagged: u64,
}

impl Copy {
    fn take(&mut self, change: Result<Batch, Snapshot>) {
        match change {
            Ok(batch) => {
                for row in batch.rows() {
                    self.events += 1;
                    match row.new_value("v").and_then(i64::from_datum) {
                        Some(value) => self.rows.insert(row.uuid, value),
                        None => self.rows.remove(&row.uuid),
                    };
                }
            }
            Err(snapshot) => {
                self.lagged += 1;
                let rows = snapshot.rows("Plain").unwrap();
                self.rows = rows.map(|row| (row.uuid(), row.value("v").unwrap())).collect();
            }
        }
    }
}

async fn expect_answer(link: &mut Link, id: &str) {
    link.say(json!({"id": id, "method": "echo", "params": [id]})).await;
    let answer = link.next().await.expect("the connection is open");
    assert_eq!((&answer["id"], &answer["result"]), (&json!(id), &json!([id])));
}

/// A handler that stands still while a dump and then a flood of updates come: gives its copy of the table at the end.
async fn flood(history_bytes_max: usize) -> (Copy, Client, Link) {
    let script = Script::new();
    let with = |o: &mut Options| o.history_bytes_max = history_bytes_max;
    let client = script.builder().monitor(Monitor::nothing().table("Plain")).with(with).start().unwrap();
    let copy: Arc<Mutex<Copy>> = Arc::default();
    let (go, gate) = mpsc::channel::<()>();
    let (done, mut handled) = tokio::sync::mpsc::unbounded_channel();
    let taken = copy.clone();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.reply(&request, json!([false, ZERO, {}])).await;
    client.ready().await.unwrap();
    client
        .on_change(move |change| {
            // Until the sender is dropped, at the first; afterwards it takes its millisecond.
            let _ = gate.recv_timeout(Duration::from_secs(600));
            std::thread::sleep(Duration::from_millis(1));
            let generation = match &change {
                Ok(batch) => batch.generation,
                Err(snapshot) => snapshot.generation(),
            };
            taken.lock().unwrap().take(change);
            let _ = done.send(generation);
        })
        .unwrap();
    let rows = (0..ROWS).map(|n| format!("\"{}\":{{\"initial\":{{\"v\":1}}}}", uuid(n)));
    let rows = rows.collect::<Vec<_>>().join(",");
    client.resync();
    link.expect("monitor_cancel").await;
    let (request, _) = link.expect("monitor_cond_since").await;
    let dump =
        format!("{{\"id\":{request},\"error\":null,\"result\":[false,\"{ZERO}\",{{\"Plain\":{{{rows}}}}}]}}");
    link.say_bytes(dump.as_bytes()).await;
    expect_answer(&mut link, "after the dump").await;
    for number in 0..UPDATES {
        let rows = match number % 4 {
            0 => rows_of_update(number, |_| json!({"delete": null})),
            _ => rows_of_update(number, |n| json!({"modify": {"v": n}})),
        };
        link.notify("update3", json!([2, ZERO, rows])).await;
    }
    expect_answer(&mut link, "after the flood").await;
    assert_eq!(copy.lock().unwrap().events, 0, "the handler has not seen anything yet");
    drop(go);
    let newest = client.snapshot().generation();
    while handled.recv().await.unwrap() < newest {}
    let copy = std::mem::take(&mut *copy.lock().unwrap());
    (copy, client, link)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_10_no_event_of_a_flood_is_lost() {
    let (copy, client, _link) = flood(usize::MAX).await;
    assert_eq!((copy.events, copy.lagged), (ROWS + CHANGED, 0));
    check(&copy, &client);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_10_who_falls_behind_a_bounded_history_is_told_so() {
    let (copy, client, _link) = flood(1_000_000).await;
    assert!(
        copy.lagged > 0 && copy.events < ROWS + CHANGED,
        "{} events, {} times behind",
        copy.events,
        copy.lagged
    );
    check(&copy, &client);
}

fn check(copy: &Copy, client: &Client) {
    let snapshot = client.snapshot();
    let rows = snapshot.rows("Plain").unwrap();
    let cache: HashMap<Uuid, i64> = rows.map(|row| (row.uuid(), row.value("v").unwrap())).collect();
    assert_eq!(cache.len() as u64, ROWS - CHANGED / 4);
    assert!(copy.rows == cache, "the copy differs from the cache");
    assert_eq!(client.counts().resyncs, 0);
}
