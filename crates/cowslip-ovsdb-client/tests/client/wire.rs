//! Refused transactions send nothing: seen on the wire, not only in the client's own counts.

use crate::support::{BOTH, Kind, Peer, SCHEMA, map, text};
use crate::tap::Tap;
use cowslip_ovsdb_client::*;
use serde_json::json;

fn key(value: &str) -> Datum {
    map(&[("key", value)])
}

async fn client(tap: &Tap) -> Client {
    tap.builder()
        .monitor(Monitor::everything())
        .index(Index::primary("Plain", "by_key").map_key("m", "key"))
        .validation(Validation::All)
        .connect()
        .await
        .unwrap()
}

/// What comes over the wire for one transaction, and a comment after it that marks the end.
async fn sent(
    client: &Client,
    tap: &Tap,
    name: &str,
    tx: Transaction,
) -> (Result<Results, TransactError>, usize) {
    let before = tap.transactions().len();
    let outcome = client.transact(tx).await;
    let mut mark = client.transaction();
    mark.comment(name);
    client.transact(mark).await.unwrap();
    let transactions = tap.transactions();
    let last = transactions.last().unwrap();
    assert_eq!(
        *last,
        [json!({"op": "comment", "comment": name})],
        "the mark is on the wire, and it is the last"
    );
    (outcome, transactions.len() - before - 1)
}

/// Makes a transaction; the client's rows `a` and `b` hold the keys of these names, and `v` is 1 in both.
type Make = fn(&mut Transaction, Uuid, Uuid);

/// What makes a key twice, and what is like it and does not.
const CASES: [(&str, bool, Make); 12] = [
    ("insert", false, |tx, _, _| {
        tx.insert("Plain", [("m", key("a"))]);
    }),
    ("two inserts", false, |tx, _, _| {
        tx.insert("Plain", [("m", key("new"))]);
        tx.insert("Plain", [("m", key("new"))]);
    }),
    ("mutate: the pair goes and comes", false, |tx, _, b| {
        let change = [("m", Mutator::Delete, text("key")), ("m", Mutator::Insert, key("a"))];
        tx.mutate("Plain", &Filter::uuid(b), change);
    }),
    ("mutate of many rows", false, |tx, _, _| {
        let change = [("m", Mutator::Delete, text("key")), ("m", Mutator::Insert, key("many"))];
        tx.mutate("Plain", &Filter::all().equal("v", &1_i64), change);
    }),
    ("mutate of a new row", false, |tx, _, _| {
        let new = tx.insert("Plain", [("v", 1_i64.to_datum())]);
        tx.mutate("Plain", &Filter::uuid(new), [("m", Mutator::Insert, key("b"))]);
    }),
    ("update of many rows", false, |tx, _, _| {
        tx.update("Plain", &Filter::all().equal("v", &1_i64), [("m", key("many"))]);
    }),
    ("update of one row", false, |tx, a, _| {
        tx.update("Plain", &Filter::uuid(a), [("m", key("b"))]);
    }),
    ("upsert", false, |tx, a, _| {
        tx.upsert("Plain", &Filter::uuid(a), "m", &"key", &"b");
    }),
    ("insert after the holder moved away and back", false, |tx, a, _| {
        tx.update("Plain", &Filter::uuid(a), [("m", key("elsewhere"))]);
        tx.insert("Plain", [("m", key("a"))]);
        tx.update("Plain", &Filter::uuid(a), [("m", key("a"))]);
    }),
    ("mutate that inserts a pair whose key is there does nothing", true, |tx, _, b| {
        tx.mutate("Plain", &Filter::uuid(b), [("m", Mutator::Insert, key("a"))]);
    }),
    ("update of many rows that leaves one with the key", true, |tx, a, b| {
        tx.update("Plain", &Filter::all().equal("v", &1_i64), [("m", key("many"))]);
        tx.update("Plain", &Filter::uuid(a), [("m", key("a"))]);
        tx.update("Plain", &Filter::uuid(b), [("m", key("b"))]);
    }),
    ("a swap by mutations", true, |tx, a, b| {
        for (row, value) in [(a, "b"), (b, "a"), (a, "a"), (b, "b")] {
            tx.upsert("Plain", &Filter::uuid(row), "m", &"key", &value);
        }
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_held_twice_never_reaches_the_wire() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let tap = Tap::new(&peer);
        let client = client(&tap).await;
        let mut tx = client.transaction();
        let rows = ["a", "b"].map(|k| tx.insert("Plain", [("m", key(k)), ("v", 1_i64.to_datum())]));
        let results = client.transact(tx).await.unwrap();
        let [a, b] = rows.map(|row| results.uuid(row));
        for (name, is_right, make) in CASES {
            let mut tx = client.transaction();
            make(&mut tx, a, b);
            let (outcome, count) = sent(&client, &tap, name, tx).await;
            match outcome {
                Ok(_) => assert!(is_right && count == 1, "{kind:?} {name}: {count} sent"),
                Err(TransactError::Refused(refusal)) => {
                    assert!(!is_right && count == 0, "{kind:?} {name}: {count} sent");
                    let duplicate = refusal.duplicate.expect("a key is the reason");
                    assert_eq!((duplicate.table.as_str(), duplicate.index.as_str()), ("Plain", "by_key"));
                    assert_eq!(duplicate.rows.len(), 2, "{name}");
                }
                Err(other) => panic!("{kind:?} {name}: {other}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_in_flight_with_one_key_one_reaches_the_wire() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let tap = Tap::new(&peer);
        let client = client(&tap).await;
        for round in 0..200 {
            let make = || {
                let mut tx = client.transaction();
                tx.insert("Plain", [("m", key(&round.to_string()))]);
                client.transact(tx)
            };
            let (first, second) = tokio::join!(make(), make());
            assert!(first.is_ok());
            assert!(matches!(second, Err(TransactError::Refused(_))), "{kind:?}: {second:?}");
            assert_eq!(tap.transactions().len(), round + 1, "{kind:?}");
        }
        assert_eq!(client.counts().sent, 200);
    }
}

/// What the option asks for is on the wire: the guard in front, and nothing else but the operation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_is_one_wait_in_front() {
    let peer = Peer::start(Kind::Real, SCHEMA).await;
    let tap = Tap::new(&peer);
    let client = client(&tap).await;
    let mut tx = client.transaction().guarded(true);
    tx.insert("Plain", [("m", key("a"))]);
    client.transact(tx).await.unwrap();
    let transactions = tap.transactions();
    let [operations] = transactions.as_slice() else { panic!("one was sent: {transactions:?}") };
    let [guard, insert] = operations.as_slice() else { panic!("two operations: {operations:?}") };
    let wanted = json!({"op": "wait", "table": "Plain", "timeout": 0, "columns": ["_uuid"], "until": "==", "rows": [],
        "where": [["m", "includes", ["map", [["key", "a"]]]]]});
    assert_eq!((guard, &insert["op"]), (&wanted, &json!("insert")));
}
