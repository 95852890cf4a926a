//! A controller that keeps one logical switch port for each pod, found by the key `pod` in `external_ids`: a second port
//! for a pod is refused before it is sent, and a race with another controller is caught by a guard.
//!
//! ```text
//! cargo run --example port_controller -- tcp:127.0.0.1:6641 switch-name pod-a pod-b
//! ```

use cowslip_ovsdb_client::{Client, Filter, Index, IntoDatum, Monitor, Mutator, TransactError};
use std::collections::BTreeMap;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(endpoint), Some(switch)) = (arguments.next(), arguments.next()) else {
        return Err("usage: port_controller ENDPOINT SWITCH POD…".into());
    };
    let client = Client::builder("OVN_Northbound")
        .endpoint(&endpoint)
        .monitor(
            Monitor::nothing()
                .columns("Logical_Switch", ["name", "ports"])
                .columns("Logical_Switch_Port", ["name", "external_ids"]),
        )
        .index(Index::primary("Logical_Switch_Port", "by_pod").map_key("external_ids", "pod").guarded())
        .index(Index::secondary("Logical_Switch", "by_name").column("name"))
        .connect()
        .await?;
    for pod in arguments {
        match ensure(&client, &switch, &pod).await {
            Ok(()) => println!("{pod}: there"),
            Err(TransactError::Duplicate(duplicate)) => {
                println!("{pod}: another controller was faster ({duplicate})")
            }
            Err(error) => println!("{pod}: {error}"),
        }
    }
    Ok(())
}

/// Sees to it that a pod has a port on a switch.
async fn ensure(client: &Client, switch: &str, pod: &str) -> Result<(), TransactError> {
    let key = [pod.to_datum()];
    if client.snapshot().find("Logical_Switch_Port", "by_pod", &key)?.next().is_some() {
        return Ok(());
    }
    let mut tx = client.transaction();
    if tx.snapshot().find("Logical_Switch", "by_name", &[switch.to_datum()])?.next().is_none() {
        tx.insert("Logical_Switch", [("name", switch.to_datum())]);
    }
    let ids = BTreeMap::from([("pod".to_string(), pod.to_string())]);
    let port = tx.insert("Logical_Switch_Port", [("name", pod.to_datum()), ("external_ids", ids.to_datum())]);
    // Found by index in the cache, the switch is named to the server by its UUID: that is what servers find at once.
    let by_name = Filter::all().equal("name", switch);
    tx.mutate("Logical_Switch", &by_name, [("ports", Mutator::Insert, port.to_datum())]);
    client.transact(tx).await.map(drop)
}
