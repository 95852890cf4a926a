//! Stays connected to the leader of a cluster, and says what becomes of the connection.
//!
//! ```text
//! cargo run --example leader_only -- OVN_Southbound tcp:192.0.2.1:6642 tcp:192.0.2.2:6642 tcp:192.0.2.3:6642
//! ```

use cowslip_ovsdb_client::{Client, Monitor, State};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let database = arguments.next().ok_or("usage: leader_only DATABASE ENDPOINT…")?;
    let mut builder = Client::builder(&database).monitor(Monitor::everything()).with(|options| {
        options.leader_only = true;
        options.shuffle = true;
        options.ready_within = None;
    });
    for endpoint in arguments {
        builder = builder.endpoint(&endpoint);
    }
    let client = builder.start()?;
    let mut states = client.states();
    loop {
        let state = states.borrow_and_update().clone();
        match state {
            State::Live { endpoint, missing } => {
                let snapshot = client.snapshot();
                let rows: usize =
                    snapshot.schema().tables.iter().map(|table| snapshot.len(&table.name)).sum();
                println!("live on {endpoint}: {rows} rows, {} things missing", missing.len());
            }
            State::Waiting { reason, pause_ms } => println!("waiting for {pause_ms} ms: {reason}"),
            State::Closed => return Ok(()),
            other => println!("{other:?}"),
        }
        states.changed().await?;
    }
}
