//! Replies that are not what the protocol says, and errors of servers: each becomes the error that says so, and the client
//! goes on.

use crate::script::Script;
use crate::support::{SCHEMA, text};
use cowslip_ovsdb_client::*;
use serde_json::{Value, json};

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// What the error is, in words: its variant, and the operation and kind of a failure.
fn words(outcome: Result<Results, TransactError>) -> String {
    match outcome {
        Ok(results) => format!("ok {}", results.operations().len()),
        Err(TransactError::Reply { .. }) => "malformed".to_string(),
        Err(TransactError::Failed(failure)) => format!("{:?} {}", failure.operation, failure.kind),
        Err(other) => format!("{other:?}"),
    }
}

#[tokio::test]
async fn each_reply_becomes_the_outcome_that_it_is() {
    let (uuid, count) = (json!({"uuid": ["uuid", Uuid::from_u128(7).to_string()]}), json!({"count": 1}));
    let rows = json!({"rows": [{"name": "a", "v": 1}]});
    let error = json!({"error": "constraint violation", "details": "no"});
    // To an insert, an update and a select.
    let cases: [(Value, &str); 19] = [
        (json!([uuid, count, rows]), "ok 3"),
        (json!([uuid, count, rows, error]), "None constraint violation"),
        (json!([error, null, null]), "Some(0) constraint violation"),
        (json!([uuid, error, null]), "Some(1) constraint violation"),
        (json!([uuid, count, error]), "Some(2) constraint violation"),
        (json!([uuid, count]), "malformed"),
        (json!([uuid, count, rows, {}]), "malformed"),
        (json!([null, count, rows]), "malformed"),
        (json!([{}, count, rows]), "malformed"),
        (json!([{"uuid": "x"}, count, rows]), "malformed"),
        (json!([{"uuid": ["uuid", "x"]}, count, rows]), "malformed"),
        (json!([uuid, {"count": "1"}, rows]), "malformed"),
        (json!([uuid, rows, rows]), "malformed"),
        (json!([uuid, count, {"rows": {}}]), "malformed"),
        (json!([uuid, count, {"rows": [1]}]), "malformed"),
        (json!([uuid, count, {"rows": [{"nothing": 1}]}]), "malformed"),
        (json!([uuid, count, {"rows": [{"v": "x"}]}]), "malformed"),
        (json!({}), "malformed"),
        (json!("text"), "malformed"),
    ];
    let script = Script::new();
    let client = script.builder().monitor(Monitor::everything()).start().unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.reply(&request, json!([false, ZERO, {}])).await;
    client.ready().await.unwrap();
    let send = || {
        let mut tx = client.transaction();
        tx.insert("Plain", [("name", text("a"))]);
        tx.update("Plain", &Filter::all().equal("name", "b"), [("v", 1_i64.to_datum())]);
        tx.select("Plain", &Filter::all(), &["name", "v"]);
        client.transact(tx)
    };
    for (reply, wanted) in cases {
        let server = async {
            let (request, _) = link.expect("transact").await;
            link.reply(&request, reply.clone()).await;
        };
        let (outcome, ()) = tokio::join!(send(), server);
        assert_eq!(words(outcome), wanted, "{reply}");
    }
    // An error of the whole request, as an object or as a word.
    for (error, wanted) in [
        (json!({"error": "syntax error", "details": "no"}), "None syntax error"),
        (json!("canceled"), "None canceled"),
        (json!(7), "None ovsdb error"),
    ] {
        let server = async {
            let (request, _) = link.expect("transact").await;
            link.say(json!({"id": request, "result": null, "error": error})).await;
        };
        let (outcome, ()) = tokio::join!(send(), server);
        assert_eq!(words(outcome), wanted, "{error}");
    }
    assert_eq!((client.counts().connections, client.counts().resyncs), (1, 0));
}
