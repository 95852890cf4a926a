//! What a record costs in memory, read off the process: a counting allocator would need `unsafe`.
//!
//! `cargo bench -p cowslip-engine --bench memory`
#![allow(missing_docs)]

#[path = "../tests/toy/mod.rs"]
mod toy;

use std::sync::Arc;

use cowslip_engine::{Draft, Root};
use toy::{Id, Item, TABLES, Toy, put};

const RECORDS: u32 = 1_000_000;

fn main() {
    let bare = |_| Item::default();
    let grouped = |number| Item { group: Some(number % 1000), ..Item::default() };
    println!("{RECORDS} records of {} bytes, each with one primary key:", size_of::<Item>());
    // Both are kept to the end: freed memory would be used again without showing.
    let roots = [report("no other index", bare), report("and one secondary key", grouped)];
    assert!(roots.iter().all(|root| root.len(TABLES[0]) == RECORDS as usize));
}

fn report(what: &str, item: impl Fn(u32) -> Item) -> Root<Toy> {
    let before = resident_bytes();
    let mut root = Root::<Toy>::new(Arc::new(0));
    for chunk in (0..RECORDS).step_by(1_000) {
        let base = root.clone();
        let mut draft = Draft::new(&base);
        for number in chunk..chunk + 1_000 {
            let id =
                Id::from_u128(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            put(&mut draft, TABLES[0], id, Item { name: number, ..item(number) });
        }
        let changes = draft.finish().expect("names differ");
        drop(base);
        root.apply(&changes);
    }
    let bytes = resident_bytes().saturating_sub(before);
    println!("  {what}: {} bytes per record", bytes / u64::from(RECORDS));
    root
}

/// The resident set as the kernel counts it; 0 where it doesn't say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
