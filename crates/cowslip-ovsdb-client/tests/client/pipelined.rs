//! Validation while other transactions are in flight, message by message.

use crate::script::{Link, Script};
use crate::support::{SCHEMA, map};
use cowslip_ovsdb_client::*;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

fn id(n: u128) -> String {
    Uuid::from_u128(0xb000_0000_0000_4000_8000_0000_0000_0000 + n).to_string()
}

async fn start(script: &Script, dump: Value) -> (Client, Link) {
    let client = script
        .builder()
        .monitor(Monitor::everything())
        .index(Index::primary("Plain", "by_key").map_key("m", "key"))
        .validation(Validation::All)
        .start()
        .unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.reply(&request, json!([false, ZERO, dump])).await;
    client.ready().await.unwrap();
    (client, link)
}

type Outcome = Result<Results, TransactError>;

fn insert(client: &Client, key: &str) -> JoinHandle<Outcome> {
    let (client, key) = (client.clone(), key.to_string());
    tokio::spawn(async move {
        let mut tx = client.transaction();
        tx.insert("Plain", [("m", map(&[("key", &key)]))]);
        client.transact(tx).await
    })
}

fn row(key: &str) -> Value {
    json!({"insert": {"m": ["map", [["key", key]]]}})
}

async fn update(link: &mut Link, rows: Value) {
    link.notify("update3", json!([1, ZERO, {"Plain": rows}])).await;
}

#[tokio::test]
async fn an_own_update_before_its_reply_needs_no_matching() {
    let script = Script::new();
    let (client, mut link) = start(&script, json!({})).await;
    let first = insert(&client, "a");
    let (request, _) = link.expect("transact").await;
    // In each gap, an unrelated transaction goes out at once, and a duplicate waits.
    let mut duplicates = Vec::new();
    for (gap, rows) in
        [json!({}), json!({id(1): row("a")}), json!({id(2): row("other")})].into_iter().enumerate()
    {
        update(&mut link, rows).await;
        tokio::task::yield_now().await;
        let free = insert(&client, &format!("free{gap}"));
        let (request, _) = link.expect("transact").await;
        link.reply(&request, json!([{"uuid": ["uuid", id(10 + gap as u128)]}])).await;
        free.await.unwrap().unwrap();
        duplicates.push(insert(&client, "a"));
        link.expect_silence().await;
    }
    link.reply(&request, json!([{"uuid": ["uuid", id(1)]}])).await;
    first.await.unwrap().unwrap();
    for duplicate in duplicates {
        assert!(matches!(duplicate.await.unwrap(), Err(TransactError::Refused(_))));
    }
    link.expect_silence().await;
    assert_eq!(client.snapshot().len("Plain"), 2);
}

#[tokio::test]
async fn a_failed_transaction_pulls_no_other_with_it() {
    let script = Script::new();
    let (client, mut link) = start(&script, json!({"Plain": {id(1): {"initial": row("a")["insert"]}}})).await;
    // The first frees a key that the second wants.
    let freeing = client.clone();
    let first = tokio::spawn(async move {
        let mut tx = freeing.transaction();
        tx.delete("Plain", &Filter::uuid(id(1).parse().unwrap()));
        freeing.transact(tx).await
    });
    let (request, _) = link.expect("transact").await;
    let second = insert(&client, "a");
    let third = insert(&client, "b");
    let (of_third, _) = link.expect("transact").await;
    link.expect_silence().await;
    link.reply(&request, json!([null, {"error": "constraint violation", "details": "no"}])).await;
    assert!(matches!(first.await.unwrap(), Err(TransactError::Failed(_))));
    let refusal = second.await.unwrap();
    assert!(matches!(refusal, Err(TransactError::Refused(_))), "{refusal:?}");
    link.reply(&of_third, json!([{"uuid": ["uuid", id(3)]}])).await;
    third.await.unwrap().unwrap();

    // The first takes a key; it fails, and the second may have the key.
    let first = insert(&client, "c");
    let (request, _) = link.expect("transact").await;
    let second = insert(&client, "c");
    link.expect_silence().await;
    link.reply(&request, json!([null, {"error": "constraint violation", "details": "no"}])).await;
    assert!(first.await.unwrap().is_err());
    let (request, _) = link.expect("transact").await;
    link.reply(&request, json!([{"uuid": ["uuid", id(4)]}])).await;
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn serialized_transactions_go_one_at_a_time() {
    let script = Script::new();
    let (client, mut link) = start(&script, json!({})).await;
    let one = |key: &str| {
        let (client, key) = (client.clone(), key.to_string());
        tokio::spawn(async move {
            let mut tx = client.transaction().serialized(true);
            tx.insert("Plain", [("m", map(&[("key", &key)]))]);
            client.transact(tx).await
        })
    };
    let tasks = [one("a"), one("b"), one("c")];
    for n in 0..3 {
        let (request, _) = link.expect("transact").await;
        link.expect_silence().await;
        link.reply(&request, json!([{"uuid": ["uuid", id(n)]}])).await;
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_gives_up_waiting_stands_in_nobodys_way() {
    let script = Script::new();
    let (client, mut link) = start(&script, json!({})).await;
    let _first = insert(&client, "a");
    let (request, _) = link.expect("transact").await;
    let second = insert(&client, "a");
    link.expect_silence().await;
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    let third = insert(&client, "a");
    link.expect_silence().await;
    link.reply(&request, json!([null, {"error": "constraint violation", "details": "no"}])).await;
    let (request, _) = link.expect("transact").await;
    link.reply(&request, json!([{"uuid": ["uuid", id(3)]}])).await;
    third.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_value_with_a_bound_in_flight_is_waited_for() {
    let script = Script::new();
    let (client, mut link) =
        start(&script, json!({"Plain": {id(1): {"initial": {"two": ["set", [1]]}}}})).await;
    let add = |n: i64| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut tx = client.transaction();
            let row = Filter::uuid(id(1).parse().unwrap());
            tx.mutate("Plain", &row, [("two", Mutator::Insert, n.to_datum())]);
            client.transact(tx).await
        })
    };
    let first = add(2);
    let (request, _) = link.expect("transact").await;
    let second = add(3);
    link.expect_silence().await;
    update(&mut link, json!({id(1): {"modify": {"two": ["set", [2]]}}})).await;
    link.reply(&request, json!([{"count": 1}])).await;
    first.await.unwrap().unwrap();
    let refused = second.await.unwrap();
    assert!(matches!(refused, Err(TransactError::Refused(_))), "{refused:?}");
}

/// The count of a verdict that waits, with a server that answers when it is told to.
#[tokio::test]
async fn the_second_of_two_in_flight_waits_once_and_is_never_sent() {
    let script = Script::new();
    let (client, mut link) = start(&script, json!({})).await;
    for round in 0..3_u64 {
        let key = format!("k{round}");
        let first = insert(&client, &key);
        let (request, _) = link.expect("transact").await;
        let second = insert(&client, &key);
        link.expect_silence().await;
        let counts = client.counts();
        assert_eq!((counts.sent, counts.waited, counts.refused), (round + 1, round + 1, round));
        let inserted = id(u128::from(round));
        update(&mut link, json!({inserted.as_str(): row(&key)})).await;
        link.reply(&request, json!([{"uuid": ["uuid", inserted]}])).await;
        first.await.unwrap().unwrap();
        assert!(matches!(second.await.unwrap(), Err(TransactError::Refused(_))));
        link.expect_silence().await;
        let counts = client.counts();
        assert_eq!((counts.sent, counts.waited, counts.refused), (round + 1, round + 1, round + 1));
        // One verdict for the first, two for the second.
        assert_eq!(counts.validated, 3 * (round + 1));
    }
}
