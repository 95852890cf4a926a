//! What the client tells the process's metrics: each name with its value, against the client's own counts.

use crate::script::Script;
use crate::support::{SCHEMA, map};
use cowslip_ovsdb_client::*;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// Keeps the values by name. A gauge is kept as its bits.
#[derive(Default)]
struct Values(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Values {
    fn place(&self, key: &Key) -> Arc<AtomicU64> {
        assert_eq!(key.labels().count(), 0, "nothing is labelled: {key}");
        self.0.lock().unwrap().entry(key.name().to_string()).or_default().clone()
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let values = self.0.lock().unwrap();
        let counters = values.iter().filter(|(name, _)| name.ends_with("_total"));
        counters.map(|(name, value)| (name.clone(), value.load(Ordering::SeqCst))).collect()
    }

    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.0.lock().unwrap()[name].load(Ordering::SeqCst))
    }
}

impl Recorder for Values {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.place(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.place(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("the client has no histograms: {key}");
    }
}

fn insert(client: &Client, key: &str) -> Transaction {
    let mut tx = client.transaction();
    tx.insert("Plain", [("m", map(&[("key", key)]))]);
    tx
}

// One thread, so that the driver finds the recorder where the test has put it.
#[tokio::test(flavor = "current_thread")]
async fn each_metric_has_the_value_that_it_should() {
    let values = Values::default();
    let _recorder = set_default_local_recorder(&values);
    let script = Script::new();
    let client = script
        .builder()
        .monitor(Monitor::everything())
        .index(Index::primary("Plain", "by_key").map_key("m", "key"))
        .validation(Validation::All)
        .start()
        .unwrap();
    let (mut link, request, _) = script.accept_monitor(SCHEMA).await;
    let held = json!({"m": ["map", [["key", "a"]]]});
    let dump = json!({"Plain": {Uuid::from_u128(1).to_string(): {"initial": held}}});
    link.reply(&request, json!([false, ZERO, dump])).await;
    client.ready().await.unwrap();
    // Refused at once; sent and applied; waited for the one before and refused.
    assert!(client.transact(insert(&client, "a")).await.is_err());
    let (first, second) = (insert(&client, "b"), insert(&client, "b"));
    let server = async {
        let (request, _) = link.expect("transact").await;
        link.expect_silence().await;
        let rows = json!({Uuid::from_u128(2).to_string(): {"insert": {"m": ["map", [["key", "b"]]]}}});
        link.notify("update3", json!([1, ZERO, {"Plain": rows}])).await;
        link.reply(&request, json!([{"uuid": ["uuid", Uuid::from_u128(2).to_string()]}])).await;
    };
    let (first, second, ()) = tokio::join!(client.transact(first), client.transact(second), server);
    assert!(first.is_ok() && second.is_err());
    // Another client takes a key that is held; then comes an update that cannot be.
    let mut duplicates = client.duplicates();
    let rows = json!({Uuid::from_u128(3).to_string(): {"insert": held}});
    link.notify("update3", json!([1, ZERO, {"Plain": rows}])).await;
    duplicates.recv().await.unwrap();
    link.notify("update3", json!([1, ZERO, {"Plain": {Uuid::from_u128(9).to_string(): {"delete": null}}}]))
        .await;
    link.expect("monitor_cancel").await;

    let counts = client.counts();
    let wanted = [
        ("connections", 1, counts.connections),
        ("duplicate_keys", 1, 1),
        ("refused", 2, counts.refused),
        ("resyncs", 1, counts.resyncs),
        ("transactions", 1, counts.sent),
        ("updates", 3, counts.updates),
        ("validations", 4, counts.validated),
        ("verdicts_waiting", 1, counts.waited),
    ];
    let name = |short: &str| format!("cowslip_ovsdb_client_{short}_total");
    let counters: BTreeMap<_, _> = wanted.iter().map(|(short, value, _)| (name(short), *value)).collect();
    assert_eq!(values.counters(), counters);
    for (short, value, counted) in wanted {
        assert_eq!(counted, value, "{short}: the client's own count");
    }
    let generation = client.snapshot().generation();
    assert_eq!(values.gauge("cowslip_ovsdb_client_generation"), generation as f64);
}
