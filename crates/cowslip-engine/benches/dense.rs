//! What records with dense ids cost: replacing them, loading a million with ten indexes, computing with postings.
//!
//! `cargo bench -p cowslip-engine --bench dense`
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use cowslip_engine::{
    Draft, IndexBuilder, IndexIx, IndexKind, KeyBytes, KeyChanges, Model, Posting, RecordNumber,
    ReferenceChanges, Root, Step, TableIx, TableLayout,
};
use divan::{Bencher, black_box};

const ENTRIES: TableIx = TableIx(0);
const INDEXES: u16 = 10;
const SIZES: [u32; 2] = [10_000, 1_000_000];

fn main() {
    divan::main();
}

/// What keys may be made of.
trait Bytes: Ord + Clone + Send + Sync + 'static + for<'a> From<&'a [u8]> {}

impl Bytes for KeyBytes {}
impl Bytes for Arc<[u8]> {}

/// An entry of a directory, as far as its indexes go.
struct Directory<K = KeyBytes>(PhantomData<K>);

impl<K: Bytes> Model for Directory<K> {
    type Id = RecordNumber;
    type Value = u32;
    type Key = K;
    type Delta = ();
    /// How many of the indexes there are.
    type Meta = u16;
    type Note = ();

    fn layout(indexes: &u16) -> Vec<TableLayout> {
        vec![TableLayout { indexes: (0..*indexes).map(|_| IndexKind::Postings).collect() }]
    }

    fn keys(_: &u16, _: TableIx, index: IndexIx, step: &Step<'_, Self>, out: &mut KeyChanges<K>) {
        out.removed.extend(step.old.map(|value| key(index, *value)));
        out.added.extend(step.new.map(|value| key(index, *value)));
    }

    fn references(_: &u16, _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<RecordNumber>) {}
    fn merge(_: &mut (), (): ()) {}
}

/// Half of the indexes have a key for each entry; the others fewer and fewer.
fn key<K: Bytes>(index: IndexIx, value: u32) -> K {
    let spread = value.wrapping_mul(0x9e37_79b9);
    let kept = if index.0 < 5 { spread } else { spread % 10_u32.pow(u32::from(10 - index.0)) };
    let mut bytes = *b"0-0000000000";
    bytes[0] += u8::try_from(index.0).expect("few indexes");
    let mut left = kept;
    for digit in bytes[2..].iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    K::from(&bytes)
}

fn records(size: u32) -> impl Iterator<Item = (TableIx, RecordNumber, Arc<u32>)> {
    (0..size).map(|number| (ENTRIES, RecordNumber(number), Arc::new(number)))
}

fn database(size: u32, indexes: u16) -> Root<Directory> {
    static MADE: Mutex<BTreeMap<(u32, u16), Root<Directory>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().expect("unbroken");
    let make = || Root::load(Arc::new(indexes), 0, records(size)).expect("no primary index");
    made.entry((size, indexes)).or_insert_with(make).clone()
}

#[divan::bench(args = SIZES, types = [KeyBytes, Arc<[u8]>], sample_count = 3, sample_size = 1)]
fn load_with_10_indexes<K: Bytes>(bencher: Bencher, size: u32) {
    bencher.counter(divan::counter::ItemsCount::new(size)).bench_local(|| {
        Root::<Directory<K>>::load(Arc::new(INDEXES), 0, records(size)).expect("no primary index")
    });
}

#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn build_one_index_aside(bencher: Bencher, size: u32) {
    let root = database(size, 0);
    bencher.bench_local(|| IndexBuilder::build(&root, Arc::new(1), ENTRIES, IndexIx(0)));
}

/// Replaces random records, with a clone taken every three changes, as a publication does.
#[divan::bench(args = SIZES, consts = [0, 1, 10], sample_size = 300, sample_count = 50)]
fn replace_with_indexes<const COUNT: u16>(bencher: Bencher, size: u32) {
    let mut root = database(size, COUNT);
    let (mut held, mut step) = (root.clone(), 0_u32);
    bencher.bench_local(|| {
        step += 1;
        if step.is_multiple_of(3) {
            held = root.clone();
        }
        replace(&mut root, step, size);
    });
    drop(held);
}

#[divan::bench(args = SIZES, sample_size = 1000)]
fn record_by_number(bencher: Bencher, size: u32) {
    let root = database(size, 0);
    let mut step = 0_u32;
    bencher.bench_local(|| {
        step += 1;
        root.record(ENTRIES, &RecordNumber(step.wrapping_mul(0x9e37_79b9) % size)).map(|value| **value)
    });
}

#[divan::bench(args = SIZES)]
fn scan(bencher: Bencher, size: u32) {
    let root = database(size, 0);
    bencher.bench_local(|| root.scan(ENTRIES).map(|(id, _)| u64::from(id.0)).sum::<u64>());
}

/// Every so-many-th of a million numbers.
fn every(step: u32) -> Posting {
    (0..1_000_000).step_by(step as usize).map(RecordNumber).collect()
}

#[divan::bench(args = [2, 100, 10_000])]
fn and_with_every_third(bencher: Bencher, step: u32) {
    let (left, right) = (every(3), every(step));
    bencher.bench_local(|| black_box(&left).and(black_box(&right)));
}

#[divan::bench(args = [2, 100, 10_000])]
fn or_with_every_third(bencher: Bencher, step: u32) {
    let (left, right) = (every(3), every(step));
    bencher.bench_local(|| black_box(&left).or(black_box(&right)));
}

/// One number in and one out, with a clone taken every three changes.
#[divan::bench(args = [1, 100, 10_000], sample_size = 300)]
fn change_posting(bencher: Bencher, step: u32) {
    let mut posting = every(step);
    let (mut held, mut at) = (posting.clone(), 0_u32);
    bencher.bench_local(|| {
        at += 1;
        if at.is_multiple_of(3) {
            held = posting.clone();
        }
        let number = RecordNumber(at.wrapping_mul(0x9e37_79b9) % 1_000_000);
        if !posting.remove(number) {
            posting.insert(number);
        }
    });
    drop(held);
}

/// The same with one index and keys on the heap.
#[divan::bench(args = SIZES, sample_size = 300, sample_count = 50)]
fn replace_with_shared_keys(bencher: Bencher, size: u32) {
    let mut root =
        Root::<Directory<Arc<[u8]>>>::load(Arc::new(1), 0, records(size)).expect("no primary index");
    let (mut held, mut step) = (root.clone(), 0_u32);
    bencher.bench_local(|| {
        step += 1;
        if step.is_multiple_of(3) {
            held = root.clone();
        }
        replace(&mut root, step, size);
    });
    drop(held);
}

fn replace<K: Bytes>(root: &mut Root<Directory<K>>, step: u32, size: u32) {
    let mut draft = Draft::new(root);
    let number = step.wrapping_mul(0x9e37_79b9) % size;
    draft.put(ENTRIES, RecordNumber(number), Arc::new(size + step), ());
    let changes = draft.into_changes();
    root.apply(&changes);
}

/// What an `imbl` map of the same numbers costs, to compare with [`replace_with_indexes`].
#[divan::bench(args = SIZES, sample_size = 300, sample_count = 50)]
fn replace_in_an_ordered_map(bencher: Bencher, size: u32) {
    let mut map: imbl::OrdMap<u32, Arc<u32>> = (0..size).map(|number| (number, Arc::new(number))).collect();
    let (mut held, mut step) = (map.clone(), 0_u32);
    bencher.bench_local(|| {
        step += 1;
        if step.is_multiple_of(3) {
            held = map.clone();
        }
        map.insert(step.wrapping_mul(0x9e37_79b9) % size, Arc::new(step))
    });
    drop(held);
}
