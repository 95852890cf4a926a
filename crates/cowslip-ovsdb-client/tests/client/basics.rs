//! The client against our server and the real one: cache, look-ups, transactions, events, locks, conditions.

use crate::support::{BOTH, Kind, Peer, SCHEMA, map, text};
use cowslip_ovsdb_client::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_writes_are_in_the_cache() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let mut tx = client.transaction();
        let port = tx.insert("Port", [("name", text("p"))]);
        let bridge = tx.insert("Bridge", [("name", text("br")), ("ports", port.to_datum())]);
        let results = client.transact(tx).await.unwrap();
        let snapshot = client.snapshot();
        let row = snapshot.row("Bridge", results.uuid(bridge)).expect("the row is in the cache");
        assert_eq!(row.value::<String>("name").unwrap(), "br");
        assert_eq!(row.value::<Vec<Uuid>>("ports").unwrap(), [results.uuid(port)]);
        let found: Vec<_> = snapshot.find("Bridge", "name", &[text("br")]).unwrap().collect();
        assert_eq!(found.len(), 1, "{kind:?}");

        for n in 0..200_i64 {
            let mut tx = client.transaction();
            tx.update("Bridge", &Filter::all().equal("name", "br"), [("n", n.to_datum())]);
            let results = client.transact(tx).await.unwrap();
            assert_eq!(results.count(0), Some(1));
            let snapshot = client.snapshot();
            let row = snapshot.find("Bridge", "name", &[text("br")]).unwrap().next().unwrap();
            assert_eq!(row.value::<i64>("n").unwrap(), n);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_have_typed_results_and_errors() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let mut tx = client.transaction();
        tx.insert("Bridge", [("name", text("br"))]);
        client.transact(tx).await.unwrap();

        let by_name = Filter::all().equal("name", "br");
        let mut tx = client.transaction();
        tx.upsert("Bridge", &by_name, "external_ids", &"k".to_string(), &"1".to_string());
        tx.upsert("Bridge", &by_name, "external_ids", &"k".to_string(), &"2".to_string());
        let read = tx.increment("Bridge", &by_name, "n", 5);
        let results = client.transact(tx).await.unwrap();
        assert_eq!(results.rows(read).unwrap()[0]["n"], 5_i64.to_datum());
        let snapshot = client.snapshot();
        let row = snapshot.find("Bridge", "name", &[text("br")]).unwrap().next().unwrap();
        assert_eq!(row.datum("external_ids"), Some(&map(&[("k", "2")])));

        // A duplicate that the server finds, because nothing is validated.
        let mut tx = client.transaction();
        tx.comment("twice");
        tx.insert("Bridge", [("name", text("br"))]);
        match client.transact(tx).await {
            Err(TransactError::Failed(failure)) => {
                assert_eq!(failure.kind, "constraint violation");
                assert_eq!(failure.operation, None);
                assert_eq!(failure.table.as_deref(), Some("Bridge"));
                assert_eq!(failure.column.as_deref(), Some("name"));
                assert_eq!(failure.rows.len(), 2);
                assert!(failure.rows.contains(&row.uuid()));
            }
            other => panic!("{kind:?}: {other:?}"),
        }
        // Optimistic concurrency: the snapshot is old when the transaction arrives.
        let mut old = client.transaction();
        old.verify("Bridge", row.uuid(), &["n"]);
        old.update("Bridge", &Filter::uuid(row.uuid()), [("n", 100_i64.to_datum())]);
        let mut tx = client.transaction();
        tx.update("Bridge", &Filter::uuid(row.uuid()), [("n", 6_i64.to_datum())]);
        client.transact(tx).await.unwrap();
        match client.transact(old).await {
            Err(TransactError::Failed(failure)) => {
                assert_eq!((failure.kind.as_str(), failure.operation), ("timed out", Some(0)));
            }
            other => panic!("{kind:?}: {other:?}"),
        }
        // What the caller got wrong is told before anything is sent.
        let mut tx = client.transaction();
        tx.insert("Bridge", [("nome", text("br"))]);
        assert!(matches!(client.transact(tx).await, Err(TransactError::Build(BuildError::Column { .. }))));
        let mut tx = client.transaction();
        tx.insert("Bridge", [("flood", 5000_i64.to_datum())]);
        assert!(matches!(client.transact(tx).await, Err(TransactError::Build(BuildError::Value { .. }))));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_by_transaction_and_in_order() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let writer = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let reader = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let mut events = reader.events();
        let mut tx = writer.transaction();
        let a = tx.insert("Plain", [("name", text("a"))]);
        tx.insert("Plain", [("name", text("b"))]);
        let a = writer.transact(tx).await.unwrap().uuid(a);
        let batch = events.next().await.unwrap();
        assert_eq!(batch.rows_of("Plain").count(), 2, "{kind:?}");
        assert!(batch.rows().all(|row| row.old.is_none() && row.new.is_some()));

        let mut tx = writer.transaction();
        tx.update("Plain", &Filter::uuid(a), [("v", 7_i64.to_datum())]);
        writer.transact(tx).await.unwrap();
        let batch = events.next().await.unwrap();
        let row = batch.rows().next().unwrap();
        assert_eq!(
            (row.old_value("v"), row.new_value("v")),
            (Some(&0_i64.to_datum()), Some(&7_i64.to_datum()))
        );
        assert!(row.differs("v") && !row.differs("name"));

        let mut tx = writer.transaction();
        tx.delete("Plain", &Filter::all());
        writer.transact(tx).await.unwrap();
        let batch = events.next().await.unwrap();
        assert_eq!(batch.rows().filter(|row| row.new.is_none()).count(), 2);
        assert!(reader.snapshot().is_empty("Plain"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_may_use_the_client() {
    let peer = Peer::start(Kind::Ours, SCHEMA).await;
    let client = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
    let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
    let (inner, runtime) = (client.clone(), tokio::runtime::Handle::current());
    client
        .on_change(move |batch| {
            let count = batch.unwrap().rows().count();
            let left = inner.snapshot().len("Plain");
            if left < 5 {
                let mut tx = inner.transaction();
                tx.insert("Plain", [("name", text("again"))]);
                runtime.block_on(inner.transact(tx)).unwrap();
            }
            done.send((count, left)).unwrap();
        })
        .unwrap();
    let mut tx = client.transaction();
    tx.insert("Plain", [("name", text("first"))]);
    client.transact(tx).await.unwrap();
    for n in 1..=5 {
        assert_eq!(finished.recv().await, Some((1, n)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_change_at_run_time() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let filter = Filter::all().equal("v", &1_i64);
        let monitor = Monitor::nothing().table("Plain").rows("Plain", filter);
        let client = peer.builder().monitor(monitor).connect().await.unwrap();
        let mut tx = client.transaction();
        for v in 0..4_i64 {
            tx.insert("Plain", [("name", text("x")), ("v", v.to_datum())]);
        }
        client.transact(tx).await.unwrap();
        assert_eq!(client.snapshot().len("Plain"), 1, "{kind:?}");
        assert!(!client.snapshot().has_all_rows("Plain"));
        assert!(!client.snapshot().has_table("Bridge"));

        let mut acknowledged = client.conditions_acknowledged();
        let wanted = client
            .set_filter("Plain", Some(Filter::all().equal("v", &2_i64).or(Filter::all().equal("v", &3_i64))))
            .unwrap();
        acknowledged.wait_for(|n| *n >= wanted).await.unwrap();
        assert_eq!(client.snapshot().len("Plain"), 2);
        let wanted = client.set_filter("Plain", None).unwrap();
        acknowledged.wait_for(|n| *n >= wanted).await.unwrap();
        assert_eq!(client.snapshot().len("Plain"), 4);
        assert!(client.snapshot().has_all_rows("Plain"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_have_one_owner() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let first = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let second = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let mut owned = first.lock("l");
        owned.wait_for(|owned| *owned).await.unwrap();
        let mut other = second.lock("l");
        let mut tx = second.transaction();
        tx.assert_lock("l");
        tx.insert("Plain", [("name", text("x"))]);
        match second.transact(tx).await {
            Err(TransactError::Failed(failure)) => assert_eq!(failure.kind, "not owner", "{kind:?}"),
            other => panic!("{other:?}"),
        }
        first.unlock("l");
        other.wait_for(|owned| *owned).await.unwrap();
        let mut again = first.steal_lock("l");
        again.wait_for(|owned| *owned).await.unwrap();
        other.wait_for(|owned| !*owned).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_indexes_answer_and_explain() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = peer
            .builder()
            .monitor(Monitor::everything())
            .index(Index::secondary("Plain", "k").map_key("m", "k"))
            .index(Index::secondary("Plain", "o").column("o"))
            .index(Index::secondary("Plain", "v,name").column("v").column("name"))
            .connect()
            .await
            .unwrap();
        let rows = [map(&[("k", "x")]), map(&[("k", "x"), ("o", "1")]), map(&[("k", "")]), map(&[])];
        let mut tx = client.transaction();
        let ids: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(i, m)| tx.insert("Plain", [("m", m.clone()), ("v", (i as i64).to_datum())]))
            .collect();
        let results = client.transact(tx).await.unwrap();
        let ids: Vec<Uuid> = ids.into_iter().map(|id| results.uuid(id)).collect();
        let holders = |value: &str| {
            let snapshot = client.snapshot();
            let mut rows: Vec<Uuid> =
                snapshot.find("Plain", "k", &[text(value)]).unwrap().map(|row| row.uuid()).collect();
            rows.sort_by_key(|row| ids.iter().position(|id| id == row));
            rows
        };
        assert_eq!((holders("x"), holders("")), (vec![ids[0], ids[1]], vec![ids[2]]), "{kind:?}");
        let mut tx = client.transaction();
        tx.mutate("Plain", &Filter::uuid(ids[0]), [("m", Mutator::Delete, text("k"))]);
        tx.mutate("Plain", &Filter::uuid(ids[3]), [("m", Mutator::Insert, map(&[("k", "x")]))]);
        tx.mutate("Plain", &Filter::uuid(ids[1]), [("m", Mutator::Insert, map(&[("z", "1")]))]);
        client.transact(tx).await.unwrap();
        assert_eq!((holders("x"), holders("")), (vec![ids[1], ids[3]], vec![ids[2]]));

        let snapshot = client.snapshot();
        assert_eq!(snapshot.find("Plain", "o", &[Datum::EMPTY]).unwrap().count(), 4);
        let range = snapshot.find_range(
            "Plain",
            "v,name",
            (
                std::ops::Bound::Included(&[1_i64.to_datum()][..]),
                std::ops::Bound::Excluded(&[3_i64.to_datum()][..]),
            ),
        );
        let found: Vec<i64> = range.unwrap().iter().map(|row| row.value("v").unwrap()).collect();
        assert_eq!(found, [1, 2]);
        let by_k = Filter::all().includes("m", &map(&[("k", "x")]));
        assert_eq!(
            snapshot.explain("Plain", &by_k).unwrap(),
            Explanation::ByIndex { index: "k".to_string() }
        );
        assert_eq!(snapshot.list("Plain", &by_k).unwrap().len(), 2);
        let scan = Filter::all().not_equal("v", &1_i64);
        assert_eq!(snapshot.explain("Plain", &scan).unwrap(), Explanation::Scan { rows: 4 });
        assert_eq!(snapshot.list("Plain", &scan).unwrap().len(), 3);
        let by_name = Filter::all().equal("name", "br");
        let explained = snapshot.explain("Bridge", &by_name).unwrap();
        assert_eq!(explained, Explanation::ByIndex { index: "name".to_string() });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_consumer_is_told_and_goes_on_from_a_snapshot() {
    let peer = Peer::start(Kind::Ours, SCHEMA).await;
    let small = |o: &mut Options| o.history_bytes_max = 10_000;
    let client = peer.builder().monitor(Monitor::everything()).with(small).connect().await.unwrap();
    let mut events = client.events();
    for n in 0..500_i64 {
        let mut tx = client.transaction();
        tx.insert("Plain", [("name", text("x")), ("v", n.to_datum())]);
        client.transact(tx).await.unwrap();
    }
    assert!(matches!(events.next().await, Err(EventsError::Lagged { .. })));
    assert_eq!(events.resync().len("Plain"), 500);
    let mut tx = client.transaction();
    tx.delete("Plain", &Filter::all());
    client.transact(tx).await.unwrap();
    assert_eq!(events.next().await.unwrap().rows().count(), 500);
    client.close();
    assert!(matches!(events.next().await, Err(EventsError::Closed)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monitor_can_grow_and_shrink() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = peer.builder().monitor(Monitor::nothing().table("Plain")).connect().await.unwrap();
        let mut tx = client.transaction();
        tx.insert("Plain", [("name", text("x"))]);
        tx.insert("Bridge", [("name", text("b"))]);
        client.transact(tx).await.unwrap();
        assert_eq!((client.snapshot().len("Plain"), client.snapshot().len("Bridge")), (1, 0));
        client.set_monitor(Monitor::nothing().table("Plain").table("Bridge"));
        until(&client, |snapshot| snapshot.len("Bridge") == 1 && snapshot.has_all_rows("Bridge")).await;
        client.set_monitor(Monitor::nothing().table("Bridge"));
        until(&client, |snapshot| snapshot.is_empty("Plain") && !snapshot.has_table("Plain")).await;
        assert_eq!(client.snapshot().len("Bridge"), 1, "{kind:?}");
        client.set_monitor(Monitor::nothing().columns("Bridge", ["n"]));
        until(&client, |snapshot| !snapshot.has_column("Bridge", "name") && snapshot.len("Bridge") == 1)
            .await;
    }
}

async fn until(client: &Client, mut holds: impl FnMut(&Snapshot) -> bool) {
    for _ in 0..2000 {
        if holds(&client.snapshot()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("it does not come to pass: {:?} {:?}", client.state(), client.counts());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_the_cache_should_have_leads_to_a_resync() {
    use crate::script::Script;
    use serde_json::json;
    const ZERO: &str = "00000000-0000-0000-0000-000000000000";
    let script = Script::new();
    let client = script.builder().monitor(Monitor::everything()).start().unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    link.reply(&request, json!([false, ZERO, {}])).await;
    client.ready().await.unwrap();
    let sender = client.clone();
    let task = tokio::spawn(async move {
        let mut tx = sender.transaction();
        tx.insert("Bridge", [("name", text("a"))]);
        sender.transact(tx).await
    });
    let (request, _) = link.expect("transact").await;
    let details = format!(
        "Transaction causes multiple rows in \"Bridge\" table to have identical values (a) for index on column \"name\".  \
         First row, with UUID {}, existed in the database before this transaction and was not modified by the \
         transaction.  Second row, with UUID {}, was inserted by this transaction.",
        Uuid::from_u128(1),
        Uuid::from_u128(2)
    );
    link.reply(&request, json!([{"uuid": ["uuid", Uuid::from_u128(2).to_string()]}, {"error": "constraint violation", "details": details}])).await;
    assert!(matches!(task.await.unwrap(), Err(TransactError::Failed(_))));
    link.expect("monitor_cancel").await;
    link.expect("monitor_cond_since").await;
}
