//! Two databases over one connection to a server that plays a script: whose messages are whose, and a database that is led
//! elsewhere for a while.

use crate::process::PATIENCE;
use crate::script::{Link, Script};
use crate::support::{SCHEMA, text};
use cowslip_ovsdb_client::*;
use serde_json::{Value, json};

const ZERO: &str = "00000000-0000-0000-0000-000000000000";
const SERVER_ROW: &str = "00000000-0000-4000-8000-000000000002";

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn row(number: u128, name: &str) -> Value {
    json!({"Plain": {Uuid::from_u128(number).to_string(): {"insert": {"name": name}}}})
}

async fn tell_leader(link: &mut Link, is_leader: bool) {
    let row = json!({"Database": {SERVER_ROW: {"modify": {"leader": is_leader}}}});
    link.notify("update2", json!(["1/server", row])).await;
}

async fn wait_until(client: &Client, what: impl Fn(&State) -> bool) {
    let mut states = client.states();
    let found = tokio::time::timeout(PATIENCE, states.wait_for(what)).await;
    assert!(found.is_ok(), "{:?}", client.state());
}

fn waits_for_the_leader(state: &State) -> bool {
    matches!(state, State::Waiting { reason, .. } if reason.contains("leader"))
}

async fn insert(client: Client) -> Result<Results, TransactError> {
    let mut tx = client.transaction();
    tx.insert("Plain", [("name", text("a"))]);
    client.transact(tx).await
}

/// The client of `T`, and one of `U` that wants a leader, over the script's connection.
async fn both(script: &Script) -> (Client, Client, Link) {
    let first = script.builder().monitor(Monitor::everything()).start().unwrap();
    let (mut link, request, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!(params[1], json!(1), "a client alone has plain identifiers");
    link.reply(&request, json!([false, ZERO, {}])).await;
    first.ready().await.unwrap();
    let second = first.database("U").monitor(Monitor::everything()).with(|o| o.leader_only = true).start();
    let (request, _) = link.expect("set_db_change_aware").await;
    link.reply(&request, json!({})).await;
    let (request, params) = link.expect("monitor_cond").await;
    assert_eq!((&params[0], &params[1]), (&json!("_Server"), &json!("1/server")));
    let server_row = json!({"name": "U", "model": "clustered", "connected": true, "leader": false});
    link.reply(&request, json!({"Database": {SERVER_ROW: {"initial": server_row}}})).await;
    (first, second.unwrap(), link)
}

/// Answers up to the content of `U`, and gives the monitor's identifier.
async fn serve(link: &mut Link) -> Value {
    let (request, params) = link.expect("get_schema").await;
    assert_eq!(params, json!(["U"]));
    link.reply(&request, schema()).await;
    let (request, params) = link.expect("monitor_cond_since").await;
    link.reply(&request, json!([false, ZERO, {}])).await;
    params[1].clone()
}

#[tokio::test]
async fn a_database_that_is_led_elsewhere_waits_for_the_news() {
    let script = Script::new();
    let (first, second, mut link) = both(&script).await;
    wait_until(&second, waits_for_the_leader).await;
    // It does not ask again and again.
    link.expect_silence().await;

    tell_leader(&mut link, true).await;
    let monitor = serve(&mut link).await;
    wait_until(&second, State::is_live).await;
    let generation = first.snapshot().generation();
    link.notify("update3", json!([monitor, ZERO, row(1, "second's")])).await;
    link.notify("update3", json!([1, ZERO, row(2, "first's")])).await;
    first.generation(generation + 1).await.unwrap();
    let len = |client: &Client| client.snapshot().len("Plain");
    assert_eq!((len(&first), len(&second)), (1, 1));
    assert!(second.snapshot().row("Plain", Uuid::from_u128(1)).is_some());

    // Transactions of both with one number are told apart.
    let tasks = (tokio::spawn(insert(first.clone())), tokio::spawn(insert(second.clone())));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (id, params) = link.expect("transact").await;
        let uuid = if params[0] == "T" { Uuid::from_u128(10) } else { Uuid::from_u128(20) };
        link.reply(&id, json!([{"uuid": ["uuid", uuid.to_string()]}])).await;
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
    let inserted = |results: Results| results.operations()[0].clone();
    let (of_first, of_second) = (tasks.0.await.unwrap().unwrap(), tasks.1.await.unwrap().unwrap());
    assert_eq!(inserted(of_first), OperationResult::Inserted(Uuid::from_u128(10)));
    assert_eq!(inserted(of_second), OperationResult::Inserted(Uuid::from_u128(20)));

    // The leader steps down with a transaction in flight; the other client does not notice.
    let lost = tokio::spawn(insert(second.clone()));
    link.expect("transact").await;
    tell_leader(&mut link, false).await;
    let (_, params) = link.expect("monitor_cancel").await;
    assert_eq!(params, json!([monitor]));
    assert!(matches!(lost.await.unwrap(), Err(TransactError::OutcomeUnknown)));
    wait_until(&second, waits_for_the_leader).await;
    link.notify("update3", json!([monitor, ZERO, row(3, "of a monitor that was given up")])).await;
    tell_leader(&mut link, true).await;
    let again = serve(&mut link).await;
    assert_ne!(again, monitor);
    wait_until(&second, State::is_live).await;
    assert!(second.snapshot().row("Plain", Uuid::from_u128(3)).is_none());
    assert_eq!((first.state().is_live(), first.counts().connections), (true, 1));
}

#[tokio::test]
async fn the_next_server_is_tried_when_no_client_can_use_this_one() {
    let script = Script::new();
    let (first, second, mut link) = both(&script).await;
    wait_until(&second, waits_for_the_leader).await;
    // The first one's database goes away, too.
    let row = "00000000-0000-4000-8000-000000000001";
    link.notify("update2", json!(["server", {"Database": {row: {"delete": null}}}])).await;
    assert!(link.next().await.is_none(), "the client leaves");
    // There is one server only, so it is asked again.
    let _again = script.accept().await;
    assert!(!first.state().is_live());
}
