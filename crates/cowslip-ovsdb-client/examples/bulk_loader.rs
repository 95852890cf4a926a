//! Loads many address sets, several transactions in flight at once, with a progress bar.
//!
//! ```text
//! cargo run --release --example bulk_loader -- tcp:127.0.0.1:6641 1000 100
//! ```

use cowslip_ovsdb_client::{Client, IntoDatum, Monitor, TransactError};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// How many transactions wait for their replies at once.
const IN_FLIGHT: usize = 8;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().ok_or("usage: bulk_loader ENDPOINT [SETS [ADDRESSES]]")?;
    let sets: usize = arguments.next().map_or(Ok(1000), |n| n.parse())?;
    let addresses: usize = arguments.next().map_or(Ok(100), |n| n.parse())?;
    let client = Client::builder("OVN_Northbound")
        .endpoint(&endpoint)
        .monitor(Monitor::nothing().columns("Address_Set", ["name"]))
        .connect()
        .await?;
    let (next, done, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Instant::now());
    let workers: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (client, next, done) = (client.clone(), next.clone(), done.clone());
            tokio::spawn(async move {
                loop {
                    let set = next.fetch_add(1, Ordering::Relaxed);
                    if set >= sets {
                        return Ok::<(), TransactError>(());
                    }
                    load(&client, set, addresses).await?;
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, sets);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    println!("\n{sets} sets of {addresses} addresses in {:.1?}", begun.elapsed());
    Ok(())
}

async fn load(client: &Client, set: usize, addresses: usize) -> Result<(), TransactError> {
    let members: Vec<String> =
        (0..addresses).map(|n| format!("10.{}.{}.{}", set % 256, n / 256 % 256, n % 256)).collect();
    let mut tx = client.transaction();
    tx.insert(
        "Address_Set",
        [("name", format!("loaded_{set}").to_datum()), ("addresses", members.to_datum())],
    );
    client.transact(tx).await.map(drop)
}

fn progress(done: usize, all: usize) {
    const WIDTH: usize = 50;
    let filled = done * WIDTH / all.max(1);
    print!("\r[{}{}] {done}/{all}", "#".repeat(filled), " ".repeat(WIDTH - filled));
    // A bar that cannot be drawn is no reason to stop loading.
    let _ = std::io::stdout().flush();
}
