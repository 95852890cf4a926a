//! Cases of a client's life that need no whole file of their own: handlers that use the client, sending again, several
//! keys that change places in one message.

use crate::script::Script;
use crate::support::{BOTH, Peer, SCHEMA, map, text};
use cowslip_ovsdb_client::*;
use serde_json::json;

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// A handler does all that a client can be asked to, one thing at each batch, and is called again for what comes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_09_a_handler_may_do_anything() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = peer.builder().monitor(Monitor::nothing().table("Plain")).connect().await.unwrap();
        let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
        let (inner, runtime) = (client.clone(), tokio::runtime::Handle::current());
        let mut steps = 0;
        let handler = move |change: Result<Batch, Snapshot>| {
            steps += 1;
            let insert = |table: &str| {
                let mut tx = inner.transaction();
                tx.insert(table, [("name", text("by the handler"))]);
                runtime.block_on(inner.transact(tx)).unwrap();
            };
            match steps {
                1 => insert("Plain"),
                2 => {
                    assert_eq!(inner.snapshot().list("Plain", &Filter::all()).unwrap().len(), 2);
                    inner.resync();
                    inner.set_monitor(Monitor::nothing().table("Plain").table("Bridge"));
                    let mut states = inner.states();
                    runtime.block_on(states.wait_for(|_| inner.snapshot().has_all_rows("Bridge"))).unwrap();
                    insert("Bridge");
                }
                _ => {
                    let rows = change.map(|batch| batch.rows_of("Bridge").count());
                    assert_eq!(rows.map_err(|snapshot| snapshot.len("Bridge")), Ok(1));
                    let number = inner.set_filter("Plain", Some(Filter::none())).unwrap();
                    let mut acknowledged = inner.conditions_acknowledged();
                    runtime.block_on(acknowledged.wait_for(|n| *n >= number)).unwrap();
                    assert!(inner.snapshot().is_empty("Plain"));
                    inner.close();
                    done.send(steps).unwrap();
                }
            }
        };
        client.on_change(handler).unwrap();
        let mut tx = client.transaction();
        tx.insert("Plain", [("name", text("first"))]);
        client.transact(tx).await.unwrap();
        assert_eq!(finished.recv().await, Some(3), "{kind:?}");
        client.states().wait_for(|state| *state == State::Closed).await.unwrap();
    }
}

/// Sending again after an unknown outcome is safe with chosen UUIDs: what was applied is not applied twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cli_16_chosen_uuids_make_sending_again_safe() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let uuid = Uuid::new_v4();
        for is_first in [true, false, false] {
            let mut tx = client.transaction();
            tx.insert_with_uuid("Plain", uuid, [("name", text("once"))]);
            tx.insert("Plain", [("name", text("with it"))]);
            match client.transact(tx).await {
                Ok(results) => assert!(is_first && results.uuid(uuid) == uuid, "{kind:?}"),
                Err(TransactError::Failed(failure)) => {
                    assert!(!is_first && failure.kind == "duplicate uuid", "{kind:?}: {failure}");
                }
                Err(other) => panic!("{kind:?}: {other}"),
            }
        }
        assert_eq!(client.snapshot().len("Plain"), 2, "{kind:?}: nothing of it came twice");
        // A client that validates knows before it sends.
        let mut tx = client.transaction().validated(Validation::All);
        tx.insert_with_uuid("Plain", uuid, [("name", text("once"))]);
        assert!(matches!(client.transact(tx).await, Err(TransactError::Refused(_))), "{kind:?}");
    }
}

/// Three rows hand their keys on in one message, in every order of the rows in it, and once more the other way.
#[tokio::test]
async fn idx_13_keys_rotate_in_one_message() {
    let uuid = |n: usize| Uuid::from_u128(0xe000_0000_0000_4000_8000_0000_0000_0000 + n as u128);
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let script = Script::new();
        let client = script
            .builder()
            .monitor(Monitor::everything())
            .index(Index::primary("Plain", "by_key").map_key("m", "key"))
            .start()
            .unwrap();
        let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
        let names = ["a", "b", "c"];
        let text_of = |rows: &[usize], member: &str, value: &dyn Fn(usize) -> String| {
            // By hand, because the order of the members matters.
            let rows = rows.iter().map(|n| format!("\"{}\":{{\"{member}\":{}}}", uuid(*n), value(*n)));
            rows.collect::<Vec<_>>().join(",")
        };
        let named = |n: usize| {
            let name = names[n];
            json!({"name": name, "m": ["map", [["key", name]]]}).to_string()
        };
        let bridge = |n: usize| json!({"name": names[n]}).to_string();
        let dump = format!(
            r#"{{"id":{request},"error":null,"result":[false,"{ZERO}",{{"Plain":{{{}}},"Bridge":{{{}}}}}]}}"#,
            text_of(&[0, 1, 2], "initial", &named),
            text_of(&[0, 1, 2], "initial", &bridge)
        );
        link.say_bytes(dump.as_bytes()).await;
        client.ready().await.unwrap();
        let mut events = client.events();
        for step in [1, 2] {
            // Row n takes the key of row n + 1; the difference of a map has the new pair.
            let of = |n: usize| (n + step) % 3;
            let next = |n: usize| json!({"m": ["map", [["key", names[of(n)]]]]}).to_string();
            let next_name = |n: usize| json!({"name": names[of(n)]}).to_string();
            let update = format!(
                r#"{{"id":null,"method":"update2","params":[1,{{"Plain":{{{}}},"Bridge":{{{}}}}}]}}"#,
                text_of(&order, "modify", &next),
                text_of(&order, "modify", &next_name)
            );
            link.say_bytes(update.as_bytes()).await;
            assert_eq!(events.next().await.unwrap().rows().count(), 6);
            let snapshot = client.snapshot();
            for n in 0..3 {
                let key = [text(names[of(n)])];
                for (table, index) in [("Plain", "by_key"), ("Bridge", "name")] {
                    let found: Vec<Uuid> =
                        snapshot.find(table, index, &key).unwrap().map(|r| r.uuid()).collect();
                    assert_eq!(found, [uuid(n)], "{order:?} {step} {table}");
                }
                let row = snapshot.row("Plain", uuid(n)).unwrap();
                assert_eq!(row.datum("m"), Some(&map(&[("key", names[of(n)])])));
            }
        }
        assert_eq!(client.counts().resyncs, 0, "{order:?}");
        let mut duplicates = client.duplicates();
        assert!(duplicates.try_recv().is_err(), "{order:?}: no key was held twice");
    }
}
