//! A server's schema that differs from the models (CLI-15): what may be missing is reported and left out, what may not is
//! an error that lists every mismatch.

use crate::support::{BOTH, Peer};
use cowslip_ovsdb_client::*;

/// The schema of a newer and an older server in one: more than the models know, and less.
const SCHEMA: &str = r#"{"name":"T","tables":{
 "Port":{"isRoot":true,"columns":{
   "name":{"type":"string"},
   "mode":{"type":{"key":{"type":"string","enum":["set",["access","trunk","from_the_future"]]}}},
   "tag":{"type":{"key":"integer","min":0,"max":"unlimited"}},
   "ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
   "extra":{"type":"real"}}},
 "Extra":{"isRoot":true,"columns":{"name":{"type":"string"}}}}}"#;

#[derive(Clone, Debug, PartialEq, Scalar)]
enum Mode {
    #[ovsdb(value = "access")]
    Access,
    #[ovsdb(value = "trunk")]
    Trunk,
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

#[derive(Clone, Debug, Model)]
#[ovsdb(table = "Port")]
struct Port {
    uuid: Uuid,
    name: String,
    mode: Mode,
    #[ovsdb(optional)]
    later: Option<i64>,
}

#[derive(Clone, Debug, Model)]
#[ovsdb(table = "Queue", optional)]
struct Queue {
    uuid: Uuid,
    name: String,
}

/// Wants a column that is not there, and one whose type has changed from an optional to a set.
#[derive(Clone, Debug, Model)]
#[ovsdb(table = "Port")]
#[allow(dead_code, reason = "only the columns matter")]
struct OldPort {
    uuid: Uuid,
    name: String,
    tag: Option<i64>,
    ids: String,
    gone: i64,
    #[ovsdb(optional)]
    later: Option<i64>,
}

#[derive(Clone, Debug, Model)]
#[ovsdb(table = "Mirror")]
#[allow(dead_code, reason = "only the table matters")]
struct Mirror {
    uuid: Uuid,
    name: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_15_what_may_be_missing_is_left_out() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let monitor = Monitor::nothing().model::<Port>().model::<Queue>();
        let client = peer.builder().monitor(monitor).connect().await.unwrap();
        let State::Live { missing, .. } = client.state() else { panic!() };
        let (table, column) = ("Port".to_string(), "later".to_string());
        assert_eq!(
            missing,
            [Mismatch::Column { table, column }, Mismatch::Table { table: "Queue".to_string() }]
        );
        // A value that the enum does not know comes back as it was; what the server lacks is not written.
        let mode = Mode::Unrecognized("from_the_future".to_string());
        let port = Port { uuid: Uuid::nil(), name: "p".to_string(), mode: mode.clone(), later: Some(7) };
        let port = client.create(&port).await.unwrap();
        let read = client.snapshot().get(port).unwrap().unwrap();
        assert_eq!((read.mode, read.later), (mode, None), "{kind:?}");
        let snapshot = client.snapshot();
        let row = snapshot.row("Port", port.uuid()).unwrap();
        assert!(matches!(row.value::<i64>("later"), Err(ModelError::NotSupported { .. })));
        assert!(!snapshot.has_column("Port", "extra") && !snapshot.has_table("Extra"), "nobody asked for it");
        assert!(!snapshot.has_table("Queue") && snapshot.models::<Queue>().unwrap().is_empty());
        let mut tx = client.transaction();
        tx.create(&Queue { uuid: Uuid::nil(), name: "q".to_string() });
        let error = client.transact(tx).await.unwrap_err();
        assert!(matches!(error, TransactError::Build(BuildError::Table { .. })), "{kind:?}: {error}");
    }
}

/// The issue's text wins over the case, which would let a changed type be an error of that column alone: a client that
/// must not start without a column should not find out at the first row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_15_what_may_not_be_missing_is_listed_in_full() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let monitor =
            Monitor::nothing().model::<OldPort>().model::<Mirror>().model::<Port>().table("Nowhere");
        let error = peer.builder().monitor(monitor.clone()).connect().await.unwrap_err();
        let ClientError::Schema { mismatches } = &error else { panic!("{kind:?}: {error}") };
        let words: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        let wanted = [
            "Port.tag holds any number integer, not at most one integer",
            "Port.ids holds any number string to string, not one string",
            "no column Port.gone",
            "no column Port.later",
            "no table Mirror",
            "no table Nowhere",
        ];
        assert_eq!(words, wanted, "{kind:?}");
        for mismatch in words {
            assert!(error.to_string().contains(&mismatch), "{error}");
        }
        // Nothing of it hides behind a state that looks like a broken link.
        let client = peer.builder().monitor(monitor).start().unwrap();
        let mut states = client.states();
        states.wait_for(|state| matches!(state, State::Unfit { .. })).await.unwrap();
    }
}
