//! How OVN-Kubernetes uses the northbound database: load balancers found by a key of `external_ids`, address sets of
//! 10,000 addresses, ports added in bulk.

use crate::support::{BOTH, Peer, map, text};
use cowslip_ovsdb_client::*;

const SCHEMA: &str = "/usr/share/ovn/ovn-nb.ovsschema";
const ADDRESSES: usize = 10_000;
const PORTS: usize = 1_000;
const SERVICES: usize = 200;

fn service(n: usize) -> String {
    format!("default/service-{n}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_built_changed_and_taken_down() {
    let schema = std::fs::read_to_string(SCHEMA);
    let schema = schema.expect("OVN's schema is missing: run `cargo xtask peers`");
    for kind in BOTH {
        let peer = Peer::start(kind, &schema).await;
        let client = peer
            .builder_of("OVN_Northbound")
            .monitor(
                Monitor::nothing()
                    .columns("Logical_Switch", ["name", "ports", "load_balancer"])
                    .columns("Logical_Switch_Port", ["name", "addresses", "external_ids"])
                    .columns("Load_Balancer", ["name", "vips", "external_ids"])
                    .columns("Address_Set", ["name", "addresses"]),
            )
            .index(Index::primary("Load_Balancer", "by_owner").map_key("external_ids", "owner").guarded())
            .validation(Validation::All)
            .connect()
            .await
            .unwrap();
        services(&client).await;
        address_set(&client).await;
        ports(&client).await;
        let mut tx = client.transaction();
        tx.delete("Logical_Switch", &Filter::all());
        tx.delete("Load_Balancer", &Filter::all());
        client.transact(tx).await.unwrap();
        let snapshot = client.snapshot();
        assert!(snapshot.is_empty("Logical_Switch_Port"), "{kind:?}: ports go with their switch");
        assert!(snapshot.is_empty("Load_Balancer"));
        assert_eq!(client.counts().resyncs, 0);
    }
}

async fn services(client: &Client) {
    let tasks: Vec<_> = (0..SERVICES)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut tx = client.transaction();
                let row = [
                    ("name", text(&format!("lb-{n}"))),
                    ("vips", map(&[("10.96.0.1:80", "10.244.0.2:8080")])),
                    ("external_ids", map(&[("owner", &service(n)), ("kind", "Service")])),
                ];
                tx.insert("Load_Balancer", row);
                client.transact(tx).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    for n in 0..SERVICES {
        let snapshot = client.snapshot();
        let found: Vec<_> =
            snapshot.find("Load_Balancer", "by_owner", &[text(&service(n))]).unwrap().collect();
        let [balancer] = found.as_slice() else { panic!("one balancer for each service") };
        let mut tx = client.transaction();
        let filter = Filter::all().includes("external_ids", &map(&[("owner", &service(n))]));
        tx.upsert("Load_Balancer", &filter, "vips", &"10.96.0.1:80".to_string(), &format!("10.244.0.{n}:1"));
        let results = client.transact(tx).await.unwrap();
        assert_eq!(results.count(0), Some(1));
        let now = client.snapshot();
        let vips = now.row("Load_Balancer", balancer.uuid()).unwrap().datum("vips").unwrap().clone();
        assert_eq!(vips, map(&[("10.96.0.1:80", &format!("10.244.0.{n}:1"))]));
    }
    let mut tx = client.transaction();
    tx.insert("Load_Balancer", [("external_ids", map(&[("owner", &service(3))]))]);
    assert!(matches!(client.transact(tx).await, Err(TransactError::Refused(_))));
}

async fn address_set(client: &Client) {
    let address = |n: usize| format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255);
    let all: Vec<String> = (0..ADDRESSES).map(address).collect();
    let mut tx = client.transaction();
    let set = tx.insert("Address_Set", [("name", text("pods")), ("addresses", all.to_datum())]);
    let set = client.transact(tx).await.unwrap().uuid(set);
    for n in 0..100 {
        let mut tx = client.transaction();
        tx.mutate(
            "Address_Set",
            &Filter::all().equal("name", "pods"),
            [
                ("addresses", Mutator::Insert, address(ADDRESSES + n).to_datum()),
                ("addresses", Mutator::Delete, address(n).to_datum()),
            ],
        );
        client.transact(tx).await.unwrap();
    }
    let snapshot = client.snapshot();
    let addresses = snapshot.row("Address_Set", set).unwrap().datum("addresses").unwrap();
    assert_eq!(addresses.len(), ADDRESSES);
    assert!(addresses.contains(&Atom::string(address(ADDRESSES + 99).as_str())));
    assert!(!addresses.contains(&Atom::string(address(99).as_str())));
}

async fn ports(client: &Client) {
    let mut tx = client.transaction();
    tx.insert("Logical_Switch", [("name", text("node-1"))]);
    client.transact(tx).await.unwrap();
    let by_name = Filter::all().equal("name", "node-1");
    for first in (0..PORTS).step_by(100) {
        let mut tx = client.transaction();
        let ports: Vec<Uuid> = (first..first + 100)
            .map(|n| tx.insert("Logical_Switch_Port", [("name", text(&format!("default_pod-{n}")))]))
            .collect();
        tx.mutate("Logical_Switch", &by_name, [("ports", Mutator::Insert, ports.to_datum())]);
        client.transact(tx).await.unwrap();
    }
    assert_eq!(client.snapshot().len("Logical_Switch_Port"), PORTS);
    // The schema's own index on a port's name is checked before anything is sent.
    let mut tx = client.transaction();
    let port = tx.insert("Logical_Switch_Port", [("name", text("default_pod-7"))]);
    tx.mutate("Logical_Switch", &by_name, [("ports", Mutator::Insert, port.to_datum())]);
    match client.transact(tx).await {
        Err(TransactError::Refused(refusal)) => assert_eq!(refusal.duplicate.unwrap().index, "name"),
        other => panic!("{other:?}"),
    }
}
