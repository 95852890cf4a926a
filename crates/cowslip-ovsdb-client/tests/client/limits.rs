//! Time limits against a server that plays a script: each ends what it is for and nothing else.

use crate::script::{Link, Script};
use crate::support::{SCHEMA, text};
use cowslip_ovsdb_client::*;
use serde_json::{Value, json};
use std::time::Duration;

const ZERO: &str = "00000000-0000-0000-0000-000000000000";
const SHORT: Duration = Duration::from_millis(50);

async fn connect(change: impl FnOnce(&mut Options)) -> (Client, Script, Link) {
    let script = Script::new();
    let client = script.builder().monitor(Monitor::everything()).with(change).start().unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.reply(&request, json!([false, ZERO, {}])).await;
    client.ready().await.unwrap();
    (client, script, link)
}

async fn insert(client: &Client) -> Result<Results, TransactError> {
    let mut tx = client.transaction();
    tx.insert("Plain", [("name", text("a"))]);
    client.transact(tx).await
}

fn inserted() -> Value {
    json!([{"uuid": ["uuid", Uuid::from_u128(1).to_string()]}])
}

#[tokio::test]
async fn a_transaction_without_a_reply_times_out_and_its_connection_lives() {
    let (client, _script, mut link) = connect(|o| {
        o.request_timeout = Some(SHORT);
        o.in_flight_max = 1;
    })
    .await;
    match insert(&client).await {
        Err(TransactError::TimedOut { waited, is_sent: true }) => assert_eq!(waited, SHORT),
        other => panic!("{other:?}"),
    }
    let (first, _) = link.expect("transact").await;
    // The server still has it, so there is no room for another one.
    assert!(matches!(insert(&client).await, Err(TransactError::TimedOut { is_sent: false, .. })));
    link.expect_silence().await;
    link.reply(&first, inserted()).await;

    let sender = client.clone();
    let second = tokio::spawn(async move { insert(&sender).await });
    let (id, _) = link.expect("transact").await;
    assert_ne!(id, first);
    link.reply(&id, inserted()).await;
    second.await.unwrap().unwrap();
    assert_eq!((client.counts().connections, client.counts().sent), (1, 2));
}

#[tokio::test]
async fn no_time_limit_cuts_a_dump_that_arrives_bit_by_bit() {
    let script = Script::new();
    let client = script
        .builder()
        .monitor(Monitor::everything())
        .with(|o| {
            // All of them are less than the dump takes.
            (o.connect_timeout, o.probe_interval, o.request_timeout) = (10 * SHORT, SHORT, Some(SHORT));
        })
        .start()
        .unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    let row = json!({"Plain": {Uuid::from_u128(7).to_string(): {"initial": {"name": "x".repeat(1000)}}}});
    let reply = json!({"id": request, "result": [false, ZERO, row], "error": null}).to_string();
    for piece in reply.as_bytes().chunks(reply.len() / 14) {
        tokio::time::sleep(SHORT).await;
        link.say_bytes(piece).await;
    }
    client.ready().await.unwrap();
    assert_eq!((client.snapshot().len("Plain"), client.counts().connections), (1, 1));
}
