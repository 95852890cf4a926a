//! What drafts, look-ups, applying and publishing cost over databases of a thousand to a million records.
//!
//! `cargo bench -p cowslip-engine --bench engine`
#![allow(missing_docs)]

#[path = "../tests/toy/mod.rs"]
mod toy;

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use cowslip_engine::{
    Batch, Draft, Feed, Host, NullJournal, Outcome, Pipeline, PipelineOptions, Publication, Root, Strength,
    Uuid,
};
use divan::{Bencher, black_box};
use toy::{Id, Item, Key, NAME, TABLES, TagDelta, Toy, put};

const SIZES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];

fn main() {
    divan::main();
}

/// Ids spread as random ones are.
fn id(number: u32) -> Id {
    Id::from_u128(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn item(number: u32) -> Item {
    let link = (TABLES[1], id(number % 100), Strength::Weak);
    Item { name: number, group: Some(number % 1000), tags: imbl::OrdSet::new(), links: vec![link] }
}

fn database(size: u32) -> Root<Toy> {
    static MADE: Mutex<BTreeMap<u32, Root<Toy>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().expect("unbroken");
    made.entry(size).or_insert_with(|| made_database(size)).clone()
}

fn made_database(size: u32) -> Root<Toy> {
    let mut root = Root::new(Arc::new(0));
    for chunk in (0..size).step_by(10_000) {
        let base = root.clone();
        let mut draft = Draft::new(&base);
        for number in chunk..size.min(chunk + 10_000) {
            put(&mut draft, TABLES[0], id(number), item(number));
        }
        root.apply(&draft.finish().expect("names differ"));
    }
    root
}

/// Replaces `count` items, changing the group and the name of each.
fn drafted(root: &Root<Toy>, count: u32, size: u32) -> cowslip_engine::ChangeSet<Toy> {
    let mut draft = Draft::new(root);
    for step in 0..count {
        let number = step.wrapping_mul(7919) % size;
        let changed = Item { group: Some(number % 7), name: size + number, ..item(number) };
        draft.put(TABLES[0], id(number), Arc::new(changed), TagDelta::default());
    }
    draft.finish().expect("names differ")
}

#[divan::bench(args = SIZES, consts = [1, 10, 100])]
fn draft_and_finish<const COUNT: u32>(bencher: Bencher, size: u32) {
    let root = database(size);
    bencher.bench_local(|| drafted(&root, black_box(COUNT), size));
}

#[divan::bench(args = SIZES, sample_size = 100)]
fn draft_finish_apply_in_place(bencher: Bencher, size: u32) {
    let mut root = database(size);
    let mut number = 0_u32;
    bencher.bench_local(|| {
        number = (number + 7919) % size;
        let mut draft = Draft::new(&root);
        let changed = Item { group: Some(number % 7), ..item(number) };
        draft.put(TABLES[0], id(number), Arc::new(changed), TagDelta::default());
        let changes = draft.finish().expect("names differ");
        root.apply(&changes);
    });
}

#[divan::bench(args = SIZES, sample_size = 100)]
fn draft_finish_apply_publish(bencher: Bencher, size: u32) {
    let mut root = database(size);
    let publication = Publication::new(Arc::new(root.clone()));
    let mut number = 0_u32;
    bencher.bench_local(|| {
        number = (number + 7919) % size;
        let mut draft = Draft::new(&root);
        let changed = Item { group: Some(number % 7), ..item(number) };
        draft.put(TABLES[0], id(number), Arc::new(changed), TagDelta::default());
        let changes = draft.finish().expect("names differ");
        root.apply(&changes);
        root.set_generation(root.generation() + 1);
        publication.publish(Arc::new(root.clone()))
    });
}

#[divan::bench(args = SIZES, sample_size = 1000)]
fn record_by_id(bencher: Bencher, size: u32) {
    let root = database(size);
    let mut number = 0_u32;
    bencher.bench_local(|| {
        number = (number + 7919) % size;
        root.record(TABLES[0], &id(number)).map(|item| item.name)
    });
}

#[divan::bench(args = SIZES, sample_size = 1000)]
fn record_by_primary_key(bencher: Bencher, size: u32) {
    let root = database(size);
    let mut number = 0_u32;
    bencher.bench_local(|| {
        number = (number + 7919) % size;
        root.lookup(TABLES[0], NAME, &Key(number)).next()
    });
}

/// One member more in a set of this size, from the draft to the applied root.
#[divan::bench(args = [10, 1_000, 100_000], sample_size = 100)]
fn insert_into_set(bencher: Bencher, members: u32) {
    let mut root = made_database(1_000);
    let mut draft = Draft::new(&root);
    let large = Item { tags: (0..members).map(|member| member * 2).collect(), ..item(1) };
    put(&mut draft, TABLES[0], id(1), large);
    let changes = draft.finish().expect("names differ");
    root.apply(&changes);
    let mut step = 0_u32;
    bencher.bench_local(|| {
        // In, then out again, so that the set keeps its size.
        let member = (step / 2).wrapping_mul(7919) % members * 2 + 1;
        let mut tags = root.record(TABLES[0], &id(1)).expect("put above").tags.clone();
        let mut delta = TagDelta::default();
        if step.is_multiple_of(2) {
            tags.insert(member);
            delta.added.insert(member);
        } else {
            tags.remove(&member);
            delta.removed.insert(member);
        }
        step += 1;
        let mut draft = Draft::new(&root);
        draft.put(TABLES[0], id(1), Arc::new(Item { tags, ..item(1) }), delta);
        let changes = draft.finish().expect("names differ");
        root.apply(&changes);
    });
}

#[divan::bench]
fn newest_root_by_reader(bencher: Bencher) {
    let publication = Arc::new(Publication::new(Arc::new(database(1_000))));
    let reader = publication.reader();
    bencher.bench_local(|| reader.root().generation());
}

/// Two snapshots that share nothing: what the reclaiming thread spares the others.
#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn drop_replaced_snapshot(bencher: Bencher, size: u32) {
    bencher.with_inputs(|| made_database(size)).bench_local_values(drop);
}

struct Inserting;

impl Host<Toy> for Inserting {
    type Job = (u32, Option<std::sync::mpsc::Sender<Outcome>>);

    fn run(&mut self, (number, answer): Self::Job, batch: &mut Batch<'_, Toy>) {
        let mut draft = Draft::new(batch.root());
        put(&mut draft, TABLES[0], id(number), item(number));
        let changes = draft.finish().expect("names differ");
        batch.commit(changes, String::new(), false, move |outcome| {
            if let Some(answer) = answer {
                let _ = answer.send(outcome);
            }
        });
    }
}

/// Ten thousand commits through the pipeline of a database in memory.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn pipeline_of_10_000_commits(bencher: Bencher) {
    bencher.counter(divan::counter::ItemsCount::new(10_000_u32)).bench_local(|| {
        let feed = Feed::new(1 << 20, 0, Uuid::nil());
        let root = Root::new(Arc::new(0));
        let options = PipelineOptions::default();
        let pipeline = Pipeline::start(root, feed, NullJournal::new(), Inserting, options).expect("threads");
        let (answer, answered) = channel();
        for number in 0..10_000 {
            let answer = (number == 9_999).then(|| answer.clone());
            pipeline.submit((number, answer)).expect("running");
        }
        answered.recv().expect("an answer")
    });
}

/// One commit, and its answer, at a time.
#[divan::bench(sample_count = 20, sample_size = 100)]
fn pipeline_round_trip(bencher: Bencher) {
    let feed = Feed::new(1 << 20, 0, Uuid::nil());
    let root = Root::new(Arc::new(0));
    let options = PipelineOptions::default();
    let pipeline = Pipeline::start(root, feed, NullJournal::new(), Inserting, options).expect("threads");
    let (answer, answered) = channel();
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        pipeline.submit((number, Some(answer.clone()))).expect("running");
        answered.recv().expect("an answer")
    });
}
