//! The life of a client against servers that play a script: the CLI cases of the project's list.

use crate::script::{Link, Script};
use crate::support::{SCHEMA, map, text};
use cowslip_ovsdb_client::*;
use serde_json::{Value, json};
use std::time::Duration;

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

fn id(n: u128) -> String {
    Uuid::from_u128(0xa000_0000_0000_4000_8000_0000_0000_0000 + n).to_string()
}

fn uuid(n: u128) -> Uuid {
    id(n).parse().unwrap()
}

fn rows(numbers: impl IntoIterator<Item = u128>) -> Value {
    let rows =
        numbers.into_iter().map(|n| (id(n), json!({"initial": {"name": format!("r{n}"), "v": n as u64}})));
    json!({"Plain": rows.collect::<serde_json::Map<_, _>>()})
}

async fn start(script: &Script, dump: Value, last: &str) -> (Client, Link) {
    let client = script.builder().monitor(Monitor::nothing().table("Plain").table("Bridge")).start().unwrap();
    let (mut link, request, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!(params[3], ZERO);
    link.reply(&request, json!([false, last, dump])).await;
    client.ready().await.unwrap();
    (client, link)
}

#[tokio::test]
async fn cli_02_a_new_dump_becomes_differences() {
    let script = Script::new();
    let (client, link) = start(&script, rows([1, 2, 3]), ZERO).await;
    let mut events = client.events();
    let reader = client.clone();
    drop(link);
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    assert_eq!(reader.snapshot().len("Plain"), 3, "the old content stays until the new one is there");
    let mut dump = rows([1, 3]);
    dump["Plain"][id(3)]["initial"]["v"] = json!(33);
    link.reply(&request, json!([false, ZERO, dump])).await;
    let batch = events.next().await.unwrap();
    let changed: Vec<_> = batch.rows().map(|row| (row.uuid, row.new.is_some())).collect();
    assert_eq!(changed, [(uuid(2), false), (uuid(3), true)]);
    assert_eq!(client.snapshot().row("Plain", uuid(3)).unwrap().value::<i64>("v").unwrap(), 33);
}

#[tokio::test]
async fn cli_01_and_03_the_last_transaction_is_named_with_its_content() {
    let script = Script::new();
    let (client, mut link) = start(&script, rows([1]), &id(91)).await;
    let mut events = client.events();
    link.notify("update3", json!([1, id(92), {"Plain": {id(2): {"insert": {"name": "r2"}}}}])).await;
    events.next().await.unwrap();
    drop(link);
    let (mut link, request, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!(params[3], json!(id(92)));
    // Found: only what changed comes, and the other rows stay.
    link.reply(&request, json!([true, id(94), {"Plain": {id(3): {"insert": {"name": "r3"}}}}])).await;
    assert_eq!(events.next().await.unwrap().rows().count(), 1);
    assert_eq!(client.snapshot().len("Plain"), 3);
    drop(link);
    let (mut link, request, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!(params[3], json!(id(94)), "the id of the reply counts, too");
    link.reply(&request, json!([true, id(94), {}])).await;
    // An update whose rows cannot be right takes its id with it.
    link.notify("update3", json!([1, id(95), {"Plain": {id(9): {"modify": {"name": "x"}}}}])).await;
    link.expect("monitor_cancel").await;
    drop(link);
    let (_link, _, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!(params[3], ZERO);
}

#[tokio::test]
async fn cli_04_a_condition_in_flight_forgets_the_last_transaction() {
    let script = Script::new();
    let (client, mut link) = start(&script, rows([1]), &id(91)).await;
    let wanted = client.set_filter("Plain", Some(Filter::all().equal("v", &10_i64))).unwrap();
    let (_, params) = link.expect("monitor_cond_change").await;
    assert_eq!(params[2]["Plain"][0]["where"], json!([["v", "==", 10]]));
    // What comes before the reply names a state whose rows are not known to be all.
    let mut events = client.events();
    link.notify("update3", json!([1, id(92), {"Plain": {id(10): {"insert": {"v": 10}}}}])).await;
    events.next().await.unwrap();
    drop(link);
    let (mut link, request, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!(params[3], ZERO);
    assert_eq!(params[2]["Plain"][0]["where"], json!([["v", "==", 10]]));
    assert!(*client.conditions_acknowledged().borrow() < wanted);
    link.reply(&request, json!([false, ZERO, rows([10])])).await;
    client.conditions_acknowledged().wait_for(|n| *n == wanted).await.unwrap();
    assert!(client.snapshot().row("Plain", uuid(10)).is_some());
    assert_eq!(client.snapshot().len("Plain"), 1);
    // One that is changed while there is no connection is in the next request for the content.
    drop(link);
    client.states().wait_for(|state| !state.is_live()).await.unwrap();
    let wanted = client.set_filter("Plain", Some(Filter::all().equal("v", &11_i64))).unwrap();
    let (mut link, request, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!((&params[2]["Plain"][0]["where"], &params[3]), (&json!([["v", "==", 11]]), &json!(ZERO)));
    assert!(*client.conditions_acknowledged().borrow() < wanted);
    link.reply(&request, json!([false, ZERO, rows([11])])).await;
    client.conditions_acknowledged().wait_for(|n| *n == wanted).await.unwrap();
    link.expect_silence().await;
}

#[tokio::test]
async fn cli_06_impossible_updates_change_nothing_and_lead_to_one_resync() {
    let two = |n: u64| json!(["set", [n, n + 1, n + 2]]);
    let bad = [
        json!({"Plain": {id(9): {"modify": {"v": 1}}}}),
        json!({"Plain": {id(9): {"delete": null}}}),
        json!({"Plain": {id(1): {"insert": {"v": 1}}}}),
        json!({"Plain": {id(1): {"modify": {"two": two(1)}}}}),
        json!({"Nowhere": {id(1): {"insert": {}}}}),
        json!({"Plain": {id(1): {"modify": {"nothing": 1}}}}),
        json!({"Plain": {id(1): {"strange": {}}}}),
        json!({"Plain": {"no-uuid": {"delete": null}}}),
        json!([]),
    ];
    for (n, bad) in bad.into_iter().enumerate() {
        let is_third = n % 2 == 0;
        let script = Script::new();
        let (client, mut link) = start(&script, rows([1]), ZERO).await;
        let generation = client.snapshot().generation();
        let mut good = bad.clone();
        if good.is_object() {
            good["Bridge"] = json!({id(5): {"insert": {"name": "half"}}});
        }
        if is_third {
            link.notify("update3", json!([1, id(99), good])).await;
        } else {
            link.notify("update2", json!([1, good])).await;
        }
        let (_, params) = link.expect("monitor_cancel").await;
        assert_eq!(params, json!([1]));
        assert_eq!(client.snapshot().generation(), generation, "case {n}: nothing is applied");
        let (request, params) = link.expect("monitor_cond_since").await;
        assert_eq!((&params[1], &params[3]), (&json!(2), &json!(ZERO)));
        // What the old monitor still says is not for the new one.
        link.notify("update2", json!([1, {"Plain": {id(7): {"insert": {}}}}])).await;
        link.reply(&request, json!([false, ZERO, rows([1, 2])])).await;
        client.generation(generation + 1).await.unwrap();
        assert_eq!((client.snapshot().len("Plain"), client.snapshot().len("Bridge")), (2, 0));
        assert_eq!(client.counts().resyncs, 1);
        link.expect_silence().await;
    }
}

#[tokio::test]
async fn updates_before_the_dump_wait_for_it() {
    let script = Script::new();
    let client = script.builder().monitor(Monitor::nothing().table("Plain")).start().unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.notify("update3", json!([1, id(92), {"Plain": {id(1): {"modify": {"v": 5}}}}])).await;
    link.reply(&request, json!([false, id(91), rows([1])])).await;
    client.ready().await.unwrap();
    assert_eq!(client.snapshot().row("Plain", uuid(1)).unwrap().value::<i64>("v").unwrap(), 5);
}

#[tokio::test]
async fn old_servers_are_asked_in_older_ways() {
    let script = Script::new();
    let client = script.builder().monitor(Monitor::nothing().table("Plain")).start().unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.say(json!({"id": request, "error": "unknown method", "result": null})).await;
    let (request, _) = link.expect("monitor_cond").await;
    link.say(json!({"id": request, "error": "unknown method", "result": null})).await;
    let (request, params) = link.expect("monitor").await;
    link.reply(&request, json!({"Plain": {id(1): {"new": {"name": "a", "v": 1}}}})).await;
    client.ready().await.unwrap();
    let mut events = client.events();
    let monitor = &params[1];
    link.notify(
        "update",
        json!([monitor, {"Plain": {id(1): {"old": {"v": 1}, "new": {"name": "a", "v": 2}}}}]),
    )
    .await;
    assert_eq!(events.next().await.unwrap().rows().next().unwrap().new_value("v"), Some(&2_i64.to_datum()));
    link.notify("update", json!([monitor, {"Plain": {id(1): {"old": {"name": "a", "v": 2}}}}])).await;
    events.next().await.unwrap();
    assert!(client.snapshot().is_empty("Plain"));
}

#[tokio::test]
async fn a_canceled_monitor_begins_with_the_schema() {
    let script = Script::new();
    let (client, mut link) = start(&script, rows([1]), &id(91)).await;
    let mut events = client.events();
    link.notify("monitor_canceled", json!([1])).await;
    let (request, _) = link.expect("get_schema").await;
    let other =
        SCHEMA.replace("\"version\":\"1.0.0\"", "\"version\":\"2.0.0\"").replace("\"tag\"", "\"label\"");
    link.reply(&request, serde_json::from_str(&other).unwrap()).await;
    let (request, params) = link.expect("monitor_cond_since").await;
    assert_eq!(params[3], ZERO, "no old id");
    let begun_before = client.transaction();
    link.reply(&request, json!([false, ZERO, rows([4])])).await;
    let mut states = client.states();
    states.wait_for(State::is_live).await.unwrap();
    assert!(
        client.snapshot().has_column("Bridge", "label") && !client.snapshot().has_column("Bridge", "tag")
    );
    assert!(client.snapshot().row("Plain", uuid(4)).is_some());
    assert!(matches!(events.next().await, Err(EventsError::Lagged { .. })));
    drop(begun_before);
}

#[tokio::test]
async fn cli_12_and_14_servers_that_will_not_do_are_passed_over() {
    let silent = Script::new();
    let scripts: Vec<_> = (0..5).map(|_| Script::new()).collect();
    let cluster = Uuid::from_u128(7).to_string();
    let rows = [
        json!({"model": "clustered", "connected": false, "leader": true, "cid": ["uuid", cluster], "index": 30}),
        json!({"model": "clustered", "connected": true, "leader": false, "cid": ["uuid", cluster], "index": 30}),
        json!({"model": "clustered", "connected": true, "leader": true, "cid": ["uuid", cluster], "index": 10}),
        json!({"model": "clustered", "connected": true, "leader": true, "cid": ["uuid", ZERO], "index": 30}),
        json!({"model": "clustered", "connected": true, "leader": true, "cid": ["uuid", cluster], "index": 30}),
    ];
    let mut builder = silent.builder().monitor(Monitor::nothing().table("Plain")).with(|o| {
        o.connect_timeout = Duration::from_millis(100);
        o.leader_only = true;
        o.min_index = Some(20);
        o.cluster = Some(Uuid::from_u128(7));
    });
    for script in &scripts {
        builder = builder.endpoint(&script.endpoint());
    }
    let client = builder.start().unwrap();
    let _never_answered = silent.accept().await;
    for (script, row) in scripts.iter().zip(&rows).take(4) {
        let mut link = script.accept().await;
        let (request, _) = link.expect("set_db_change_aware").await;
        link.reply(&request, json!({})).await;
        let (request, _) = link.expect("monitor_cond").await;
        let mut row = row.clone();
        row["name"] = json!("T");
        link.reply(&request, json!({"Database": {id(1): {"initial": row}}})).await;
        assert!(link.next().await.is_none(), "the client leaves");
    }
    let mut link = scripts[4].accept().await;
    link.begin(SCHEMA, rows[4].clone()).await;
    let (request, _) = link.expect("monitor_cond_since").await;
    link.reply(&request, json!([false, ZERO, {}])).await;
    client.ready().await.unwrap();
    // The leader steps down, and the search goes on.
    let server_row = "00000000-0000-4000-8000-000000000001";
    link.notify("update2", json!(["server", {"Database": {server_row: {"modify": {"leader": false}}}}]))
        .await;
    assert!(link.next().await.is_none());
    let _again = silent.accept().await;
}

#[tokio::test]
async fn cli_13_a_slow_dump_is_not_cut_and_a_silent_one_is() {
    let script = Script::new();
    let client = script
        .builder()
        .monitor(Monitor::nothing().table("Plain"))
        .with(|o| o.dump_silence = Duration::from_millis(150))
        .start()
        .unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    let reply = json!({"id": request, "result": [false, ZERO, rows(1..100)], "error": null}).to_string();
    for piece in reply.as_bytes().chunks(reply.len().div_ceil(10)) {
        tokio::time::sleep(Duration::from_millis(60)).await;
        link.say_bytes(piece).await;
    }
    client.ready().await.unwrap();
    assert_eq!(client.snapshot().len("Plain"), 99);
    client.resync();
    link.expect("monitor_cancel").await;
    link.expect("monitor_cond_since").await;
    assert!(link.next().await.is_none(), "silence ends the connection");
}

#[tokio::test]
async fn a_silent_server_is_asked_and_then_left() {
    let script = Script::new();
    let client = script
        .builder()
        .monitor(Monitor::nothing().table("Plain"))
        .with(|o| o.probe_interval = Duration::from_millis(80))
        .start()
        .unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.reply(&request, json!([false, ZERO, {}])).await;
    client.ready().await.unwrap();
    let (request, _) = link.expect("echo").await;
    link.reply(&request, json!([])).await;
    link.expect("echo").await;
    assert!(link.next().await.is_none());
    let _again = script.accept().await;
}

#[tokio::test]
async fn cli_15_what_the_server_lacks_is_reported_and_left_out() {
    let script = Script::new();
    let monitor = Monitor::nothing().columns("Plain", ["name", "from_the_future"]).table("Table_To_Come");
    let client = script.builder().monitor(monitor).start().unwrap();
    let (mut link, request, params) = script.accept_monitor(SCHEMA).await;
    assert_eq!(params[2], json!({"Plain": [{"columns": ["name"]}]}));
    link.reply(&request, json!([false, ZERO, {"Plain": {id(1): {"initial": {"name": "a"}}}}])).await;
    client.ready().await.unwrap();
    let State::Live { missing, .. } = client.state() else { panic!() };
    assert!(missing.contains(&Mismatch::Table { table: "Table_To_Come".to_string() }));
    let column = Mismatch::Column { table: "Plain".to_string(), column: "from_the_future".to_string() };
    assert!(missing.contains(&column));
    let snapshot = client.snapshot();
    let row = snapshot.row("Plain", uuid(1)).unwrap();
    assert!(!row.has_column("from_the_future") && !row.has_column("v"));
    let unsupported = row.value::<String>("from_the_future");
    assert!(matches!(unsupported, Err(ModelError::NotSupported { .. })));
}

#[tokio::test]
async fn cli_16_the_outcome_of_what_was_sent_is_unknown_when_the_link_breaks() {
    let script = Script::new();
    let (client, mut link) = start(&script, rows([1]), ZERO).await;
    let sender = client.clone();
    let task = tokio::spawn(async move {
        let mut tx = sender.transaction();
        tx.insert("Plain", [("m", map(&[("k", "v")]))]);
        sender.transact(tx).await
    });
    link.expect("transact").await;
    drop(link);
    assert!(matches!(task.await.unwrap(), Err(TransactError::OutcomeUnknown)));
    let mut tx = client.transaction();
    tx.insert("Plain", [("name", text("x"))]);
    assert!(matches!(client.transact(tx).await, Err(TransactError::Disconnected)));
}

#[tokio::test]
async fn validation_before_the_first_dump_is_refused() {
    let script = Script::new();
    let client = script
        .builder()
        .monitor(Monitor::nothing().table("Plain"))
        .validation(Validation::All)
        .start()
        .unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    let mut tx = client.transaction();
    tx.insert("Plain", [("name", text("x"))]);
    assert!(matches!(client.transact(tx).await, Err(TransactError::NotSynchronised)));
    link.reply(&request, json!([false, ZERO, {}])).await;
    client.ready().await.unwrap();
}

#[tokio::test]
async fn malformed_messages_end_the_connection_and_nothing_else() {
    for bad in
        ["{]", "\"x\" ", "{\"id\":1}{\"id\":2", "[1]", "{\"method\":\"update2\",\"params\":{},\"id\":null}"]
    {
        let script = Script::new();
        let (client, mut link) = start(&script, rows([1]), ZERO).await;
        link.say_bytes(bad.as_bytes()).await;
        if bad.ends_with('2') {
            drop(link);
        } else {
            assert!(link.next().await.is_none(), "{bad}");
        }
        let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
        link.reply(&request, json!([false, ZERO, rows([1, 2])])).await;
        client.ready().await.unwrap();
        client.generation(2).await.unwrap();
    }
}

#[tokio::test]
async fn endpoints_that_cannot_be_used_are_named() {
    for (endpoint, wanted) in [("ssl:a:1", "TLS"), ("ptcp:1", "connects"), ("xyz", "form")] {
        let error = Client::builder("T").endpoint(endpoint).start().unwrap_err().to_string();
        assert!(error.contains(endpoint) && error.contains(wanted), "{error}");
    }
    assert!(matches!(Client::builder("T").start(), Err(ClientError::NoEndpoint)));
}
