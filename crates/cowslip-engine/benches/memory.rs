//! What a record costs in memory, read off the process: a counting allocator would need `unsafe`.
//!
//! `cargo bench -p cowslip-engine --bench memory`
#![allow(missing_docs)]

#[path = "../tests/toy/mod.rs"]
mod toy;

use std::sync::Arc;

use cowslip_engine::{Draft, RecordNumber, Root};
use toy::{Id, Item, TABLES, Toy, ToyId, put};

const RECORDS: u32 = 1_000_000;

fn main() {
    println!("{RECORDS} records of {} bytes, each with one primary key:", size_of::<Item>());
    // All are kept to the end: freed memory would be used again without showing.
    let spread = |number: u32| {
        Id::from_u128(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    };
    let random = [report("random ids", spread, bare), report("and one secondary key", spread, grouped)];
    let dense = [
        report("dense ids", RecordNumber, bare),
        report("and one secondary key", RecordNumber, grouped),
        report("and one posting", RecordNumber, tagged),
    ];
    assert!(random.iter().all(|root| root.len(TABLES[0]) == RECORDS as usize));
    assert!(dense.iter().all(|root| root.len(TABLES[0]) == RECORDS as usize));
}

fn bare<I>(_: u32) -> Item<I> {
    Item::default()
}

fn grouped<I>(number: u32) -> Item<I> {
    Item { group: Some(number % 1000), ..Item::default() }
}

/// One set for each thousand, so that the sets themselves cost nothing.
fn tagged<I>(number: u32) -> Item<I> {
    thread_local!(static SETS: Vec<imbl::OrdSet<u32>> = (0..1000).map(imbl::OrdSet::unit).collect());
    let tags = SETS.with(|sets| sets.get(number as usize % 1000).cloned().unwrap_or_default());
    Item { tags, ..Item::default() }
}

fn report<I: ToyId>(what: &str, id: impl Fn(u32) -> I, item: impl Fn(u32) -> Item<I>) -> Root<Toy<I>> {
    let before = resident_bytes();
    let mut root = Root::<Toy<I>>::new(Arc::new(0));
    for chunk in (0..RECORDS).step_by(1_000) {
        let base = root.clone();
        let mut draft = Draft::new(&base);
        for number in chunk..chunk + 1_000 {
            put(&mut draft, TABLES[0], id(number), Item { name: number, ..item(number) });
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
