//! Indexes that are built aside and switched in while commits go on.
#![allow(missing_docs)]

mod toy;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cowslip_engine::*;
use toy::{Item, Key, Plain, REST, TABLES, TAG, Toy, ToyId, WITH_REST, WITHOUT_TAG, assert_root_is, put};

type Dense = Toy<RecordNumber>;
type Built = Vec<IndexBuilder<Dense>>;

const WAIT: Duration = Duration::from_secs(20);

/// A journal whose syncs wait for the test's word: whether they succeed.
struct Held(NullJournal, Receiver<bool>);

impl Journal<Dense> for Held {
    type Compaction = ();
    type Compacted = ();

    fn append(&mut self, batch: &[Commit<Dense>]) -> Result<Vec<Uuid>, AppendError> {
        self.0.append(batch)
    }

    fn make_durable(&mut self) -> io::Result<()> {
        if self.1.recv() == Ok(false) { Err(io::Error::other("the test's word")) } else { Ok(()) }
    }

    fn position(&self) -> Uuid {
        Journal::<Dense>::position(&self.0)
    }

    fn begin_compaction(&mut self, _: Arc<Root<Dense>>) -> io::Result<()> {
        Ok(())
    }

    fn run_compaction((): ()) {}

    fn finish_compaction(&mut self, (): ()) -> Result<(), AppendError> {
        Ok(())
    }
}

struct Idle;

impl Host<Dense> for Idle {
    type Job = ();

    fn run(&mut self, (): (), _: &mut Batch<'_, Dense>) {}
}

struct World {
    pipeline: Pipeline<Dense, Idle>,
    /// Lets a sync end.
    syncs: Sender<bool>,
    answer: Sender<Outcome>,
    answered: Receiver<Outcome>,
}

impl World {
    fn new() -> Self {
        let (syncs, held) = channel();
        let root = Root::<Dense>::new(Arc::new(WITHOUT_TAG));
        let (feed, journal) = (Feed::new(1 << 20, 0, Uuid::nil()), Held(NullJournal::new(), held));
        let options = PipelineOptions::default();
        let pipeline = Pipeline::start(root, feed, journal, Idle, options).expect("threads");
        let (answer, answered) = channel();
        Self { pipeline, syncs, answer, answered }
    }

    /// Runs a function in the committer and gives what it gives.
    fn call<T: Send + 'static>(
        &self,
        function: impl FnOnce(&mut Batch<'_, Dense>, Sender<Outcome>) -> T + Send + 'static,
    ) -> T {
        let (result, results) = channel();
        let answer = self.answer.clone();
        self.pipeline.call(move |_, batch| drop(result.send(function(batch, answer)))).expect("running");
        results.recv_timeout(WAIT).expect("a result")
    }

    fn outcome(&self) -> Outcome {
        self.answered.recv_timeout(WAIT).expect("an answer")
    }

    fn commit(&self, numbers: std::ops::Range<u32>, durable: bool) {
        self.call(move |batch, answer| insert(batch, numbers, durable, answer));
    }

    fn root(&self) -> Arc<Root<Dense>> {
        self.pipeline.publication().current()
    }
}

fn insert(
    batch: &mut Batch<'_, Dense>,
    numbers: std::ops::Range<u32>,
    durable: bool,
    answer: Sender<Outcome>,
) {
    let mut draft = Draft::new(batch.root());
    for number in numbers {
        let item = Item { name: number, tags: [number % 7].into_iter().collect(), ..Item::default() };
        put(&mut draft, TABLES[0], RecordNumber(number), item);
    }
    let changes = draft.finish().expect("names differ");
    batch.commit(changes, String::new(), durable, move |outcome| drop(answer.send(outcome)));
}

fn built(root: &Root<Dense>) -> Built {
    let meta = Arc::new(WITH_REST);
    let places = TABLES.into_iter().flat_map(|table| [TAG, REST].map(|index| (table, index)));
    places.map(|(table, index)| IndexBuilder::build(root, Arc::clone(&meta), table, index)).collect()
}

fn switch(
    batch: &mut Batch<'_, Dense>,
    indexes: Built,
    answer: Sender<Outcome>,
) -> Result<(), RefusedIndexes<Dense>> {
    let meta = Arc::new(WITH_REST);
    batch.set_meta_with(meta, indexes, String::new(), false, move |outcome| drop(answer.send(outcome)))
}

fn refusal(switched: Result<(), RefusedIndexes<Dense>>) -> Option<IndexRefusal> {
    switched.err().map(|refused| refused.reason)
}

#[test]
fn what_is_published_in_flight_and_prepared_is_made_up_for() {
    let world = World::new();
    world.commit(0..10, false);
    world.outcome();
    let mut indexes = built(&world.root());
    world.commit(10..20, false);
    world.outcome();
    for index in &mut indexes {
        let looked_at = if index.table() == TABLES[0] { 10 } else { 0 };
        assert_eq!(index.catch_up(world.pipeline.feed()).expect("in the history"), looked_at);
        assert_eq!(index.generation(), 2);
    }
    world.commit(20..30, false);
    world.outcome();
    // Its sync is held, so it is in flight until the end.
    world.commit(30..40, true);
    let switched = world.call(move |batch, answer| {
        insert(batch, 40..50, false, answer.clone());
        let switched = switch(batch, indexes, answer.clone());
        insert(batch, 50..60, false, answer);
        switched
    });
    assert_eq!(refusal(switched), None);
    assert_eq!(world.root().generation(), 3);
    world.syncs.send(true).expect("a sync waits");
    for generation in 4..=7 {
        assert_eq!(world.outcome(), Outcome::Committed { generation });
    }
    let root = world.root();
    assert_eq!(**root.meta(), WITH_REST);
    let ids: Vec<_> = (0..60).map(RecordNumber::toy).collect();
    assert_root_is(&root, &Plain::of(&root), &ids);
    assert_eq!(root.posting(TABLES[0], REST, &Key(1)).map(Posting::len), Some(15));
    // Followers learn of it like of any other meta.
    let entries = world.pipeline.feed().since(5).expect("in the history");
    let metas: Vec<_> = entries.iter().map(|entry| entry.meta.as_deref().copied()).collect();
    assert_eq!(metas, [Some(WITH_REST), None]);
    // Off again: nothing is left of it.
    let switched = world.call(|batch, answer| {
        let meta = Arc::new(WITH_REST | WITHOUT_TAG);
        batch.set_meta_with(meta, Vec::new(), String::new(), false, move |outcome| drop(answer.send(outcome)))
    });
    assert_eq!(refusal(switched), None);
    assert_eq!(world.outcome(), Outcome::Committed { generation: 8 });
    assert_root_is(&world.root(), &Plain::of(&root), &ids);
}

#[test]
fn a_switch_fails_with_the_batch_below_it() {
    let world = World::new();
    world.commit(0..10, false);
    world.outcome();
    let indexes = built(&world.root());
    world.commit(10..20, true);
    assert_eq!(refusal(world.call(move |batch, answer| switch(batch, indexes, answer))), None);
    world.syncs.send(false).expect("a sync waits");
    assert!(matches!(world.outcome(), Outcome::Unknown { .. }));
    assert!(matches!(world.outcome(), Outcome::Failed { .. }));
    assert_eq!((world.root().generation(), **world.root().meta()), (1, WITHOUT_TAG));
    assert_eq!(world.call(|batch, _| **batch.root().meta()), WITHOUT_TAG);
}

#[test]
fn an_index_too_far_behind_comes_back_and_may_catch_up() {
    let world = World::new();
    let indexes = built(&world.root());
    let many = u32::try_from(CATCH_UP_RECORDS_MAX).expect("small") / 2 + 1;
    world.commit(0..many, false);
    world.outcome();
    let refused = world.call(move |batch, answer| switch(batch, indexes, answer)).expect_err("far behind");
    assert_eq!(refused.reason, IndexRefusal::TooFar);
    let mut indexes = refused.indexes;
    for index in &mut indexes {
        index.catch_up(world.pipeline.feed()).expect("in the history");
    }
    assert_eq!(refusal(world.call(move |batch, answer| switch(batch, indexes, answer))), None);
    assert_eq!(world.outcome(), Outcome::Committed { generation: 2 });
    let posting = world.root().posting(TABLES[0], REST, &Key(0)).map(Posting::len);
    assert_eq!(posting, Some(many.div_ceil(4) as usize));
}

#[test]
fn an_index_of_replaced_records_is_refused() {
    let world = World::new();
    world.commit(0..10, false);
    world.outcome();
    let (indexes, later) = (built(&world.root()), built(&world.root()));
    let switched = world.call(move |batch, answer| {
        let fresh = Root::new(Arc::new(WITHOUT_TAG));
        batch.replace(fresh, String::new(), false, move |outcome| drop(answer.send(outcome)));
        switch(batch, indexes, channel().0)
    });
    assert_eq!(refusal(switched), Some(IndexRefusal::Stale));
    assert_eq!(world.outcome(), Outcome::Committed { generation: 2 });
    let switched = world.call(move |batch, answer| switch(batch, later, answer));
    assert_eq!(refusal(switched), Some(IndexRefusal::Stale));
    // What has no records needs no index built.
    assert_eq!(refusal(world.call(|batch, answer| switch(batch, Vec::new(), answer))), None);
}

#[test]
fn indexes_that_do_not_fit_the_layout_are_refused() {
    let world = World::new();
    world.commit(0..10, false);
    world.outcome();
    let with = |indexes: fn(&Root<Dense>) -> Built, meta: u32| {
        let indexes = indexes(&world.root());
        refusal(world.root().with_indexes(Arc::new(meta), indexes).map(drop))
    };
    let (table, index) = (TABLES[0], TAG);
    assert_eq!(with(|_| Vec::new(), WITH_REST), Some(IndexRefusal::Missing { table, index }));
    assert_eq!(with(built, WITHOUT_TAG | WITH_REST), Some(IndexRefusal::Unknown { table, index }));
    assert_eq!(with(built, WITH_REST), None);
    let grown = world.root().with_indexes(Arc::new(WITH_REST), built(&world.root())).expect("they fit");
    let refused = grown.with_indexes(Arc::new(0), Vec::new()).expect_err("a slot would go");
    assert_eq!(refused.reason, IndexRefusal::Shrunk);
}

/// A key that notes which thread freed the last of it.
#[derive(Clone)]
struct NoisyKey(Arc<Noise>);

struct Noise(u32, Arc<Mutex<Vec<String>>>);

impl Drop for Noise {
    fn drop(&mut self) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        self.1.lock().expect("unbroken").push(thread);
    }
}

impl PartialEq for NoisyKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.0 == other.0.0
    }
}

impl Eq for NoisyKey {}

impl PartialOrd for NoisyKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NoisyKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.0.cmp(&other.0.0)
    }
}

struct Noisy;

impl Model for Noisy {
    type Id = RecordNumber;
    type Value = ();
    type Key = NoisyKey;
    type Delta = ();
    type Meta = (bool, Arc<Mutex<Vec<String>>>);
    type Note = ();

    fn layout((has_index, _): &Self::Meta) -> Vec<TableLayout> {
        let kind = if *has_index { IndexKind::Postings } else { IndexKind::Absent };
        vec![TableLayout { indexes: vec![kind] }]
    }

    /// Of inserting and removing alike.
    fn keys(
        (_, freed): &Self::Meta,
        _: TableIx,
        _: IndexIx,
        step: &Step<'_, Self>,
        out: &mut KeyChanges<NoisyKey>,
    ) {
        let key = || NoisyKey(Arc::new(Noise(7, Arc::clone(freed))));
        out.removed.extend(step.old.map(|()| key()));
        out.added.extend(step.new.map(|()| key()));
    }

    fn references(_: &Self::Meta, _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<RecordNumber>) {}
    fn merge(_: &mut (), (): ()) {}
}

struct NoisyHost;

impl Host<Noisy> for NoisyHost {
    type Job = ();

    fn run(&mut self, (): (), _: &mut Batch<'_, Noisy>) {}
}

#[test]
fn a_dropped_index_is_freed_by_the_reclaimer() {
    let freed = Arc::new(Mutex::new(Vec::new()));
    let records = [(TABLES[0], RecordNumber(1), Arc::new(()))];
    let meta = |has_index| Arc::new((has_index, Arc::clone(&freed)));
    let root = Root::<Noisy>::load(meta(true), 0, records).expect("no primary index");
    assert!(freed.lock().expect("unbroken").is_empty());
    let options = PipelineOptions { name: "noise".to_owned(), ..PipelineOptions::default() };
    let feed = Feed::new(1 << 20, 0, Uuid::nil());
    let pipeline = Pipeline::start(root, feed, NullJournal::new(), NoisyHost, options).expect("threads");
    let without = meta(false);
    pipeline
        .call(move |_, batch| drop(batch.set_meta_with(without, Vec::new(), (), false, |_| {})))
        .expect("running");
    let begun = std::time::Instant::now();
    while freed.lock().expect("unbroken").is_empty() {
        assert!(begun.elapsed() < WAIT);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(*freed.lock().expect("unbroken"), ["noise-reclaim"]);
}
