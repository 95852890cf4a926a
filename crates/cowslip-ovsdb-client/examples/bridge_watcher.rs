//! Prints every change of the bridges of an Open vSwitch host.
//!
//! ```text
//! cargo run --example bridge_watcher -- unix:/run/openvswitch/db.sock
//! ```

use cowslip_ovsdb_client::{Client, EventsError, Monitor};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let endpoint = std::env::args().nth(1).unwrap_or_else(|| "unix:/run/openvswitch/db.sock".to_string());
    let columns = ["name", "ports", "fail_mode", "external_ids"];
    let client = Client::builder("Open_vSwitch")
        .endpoint(&endpoint)
        .monitor(Monitor::nothing().columns("Bridge", columns))
        .connect()
        .await?;
    let (snapshot, mut events) = client.snapshot_and_events();
    for bridge in snapshot.rows("Bridge")? {
        println!("  {} with {} ports", bridge.value::<String>("name")?, ports(bridge.datum("ports")));
    }
    loop {
        match events.next().await {
            Ok(batch) => {
                for row in batch.rows_of("Bridge") {
                    let sign = match (row.old, row.new) {
                        (None, _) => '+',
                        (_, None) => '-',
                        _ => '~',
                    };
                    let name = row.new_value("name").or(row.old_value("name")).and_then(|name| name.as_one());
                    let name = name.map(ToString::to_string).unwrap_or_default();
                    let changed: Vec<&str> =
                        columns.into_iter().filter(|column| row.differs(column)).collect();
                    println!("{sign} {name}: {}", changed.join(", "));
                }
            }
            Err(EventsError::Lagged { .. }) => {
                println!("! behind: {} bridges now", events.resync().len("Bridge"));
            }
            Err(closed) => return Err(closed.into()),
        }
    }
}

fn ports(ports: Option<&cowslip_ovsdb_client::Datum>) -> usize {
    ports.map_or(0, cowslip_ovsdb_client::Datum::len)
}
