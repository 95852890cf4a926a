//! The pipeline on a disk that stops, fails and forgets, against plain maps.
#![allow(missing_docs)]

mod toy;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use cowslip_engine::sim::{Fault, SimDisk};
use cowslip_engine::{
    Batch, ChangeSet, CompactionOutcome, Draft, Host, Model, Outcome, Pipeline, PipelineOptions, TableIx,
    merge,
};
use proptest::prelude::*;
use toy::journal::{Opened, ToyJournal, open};
use toy::{Id, Item, Plain, TABLES, TagDelta, Toy, assert_root_is, put};

const HISTORY_BYTES: usize = 4000;

#[derive(Clone, Debug)]
struct Transaction {
    changes: Vec<(TableIx, Id, Option<Item>)>,
    durable: bool,
    abort: bool,
}

#[derive(Clone, Debug)]
enum Event {
    /// Transactions that the committer finds waiting all at once, or that come one by one.
    Submit(Vec<Transaction>, bool),
    /// A fault at the so-many-th step from now.
    Inject(u64, Fault),
    Compact,
    Follow,
    /// An orderly end and another start.
    Restart,
    /// The machine stops and starts; the seed chooses what is left of what was not synced.
    Crash(u64),
}

fn any_transaction() -> impl Strategy<Value = Transaction> {
    let id = (0_u128..6).prop_map(Id::from_u128);
    let item = (0_u32..30, prop::option::of(0_u32..4), prop::collection::btree_set(0_u32..10, 0..3));
    let item = item.prop_map(|(name, group, tags)| Item {
        name,
        group,
        tags: tags.into_iter().collect(),
        links: Vec::new(),
    });
    let change = (prop::sample::select(TABLES.to_vec()), id, prop::option::weighted(0.8, item));
    let changes = prop::collection::vec(change, 0..4);
    (changes, any::<bool>(), prop::bool::weighted(0.1)).prop_map(|(changes, durable, abort)| Transaction {
        changes,
        durable,
        abort,
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    let fault = prop::sample::select(vec![Fault::Stop, Fault::Full, Fault::Failed]);
    prop_oneof![
        8 => (prop::collection::vec(any_transaction(), 1..8), any::<bool>())
            .prop_map(|(transactions, together)| Event::Submit(transactions, together)),
        2 => (0_u64..8, fault).prop_map(|(steps, fault)| Event::Inject(steps, fault)),
        2 => Just(Event::Compact),
        3 => Just(Event::Follow),
        1 => Just(Event::Restart),
        3 => any::<u64>().prop_map(Event::Crash),
    ]
}

/// What a transaction came to, and the state it led to.
struct Answer {
    outcome: Outcome,
    durable: bool,
    changed: bool,
    state: Plain,
}

struct ToyHost {
    resets: usize,
}

impl Host<Toy> for ToyHost {
    type Job = (Transaction, Sender<Answer>);

    fn run(&mut self, (transaction, answers): Self::Job, batch: &mut Batch<'_, Toy>) {
        let mut draft = Draft::new(batch.root());
        for (table, id, item) in transaction.changes {
            match item {
                Some(item) => put(&mut draft, table, id, item),
                None => {
                    draft.remove(table, &id);
                }
            }
        }
        let finished = if transaction.abort { None } else { draft.finish().ok() };
        match finished {
            Some(changes) if !changes.is_empty() && !batch.is_read_only() => {
                let mut after = batch.root().clone();
                after.apply(&changes);
                let state = Plain::of(&after);
                let durable = transaction.durable;
                batch.commit(changes, "note".to_owned(), durable, move |outcome| {
                    let _ = answers.send(Answer { outcome, durable, changed: true, state });
                });
            }
            Some(changes) => {
                let (unchanged, state) = (changes.is_empty(), Plain::of(batch.root()));
                batch.commit(changes, String::new(), transaction.durable, move |outcome| {
                    assert!(unchanged || outcome == Outcome::ReadOnly);
                    let _ = answers.send(Answer { outcome, durable: false, changed: false, state });
                });
            }
            None => {
                let state = Plain::of(batch.root());
                batch.answer(move |outcome| {
                    let _ = answers.send(Answer { outcome, durable: false, changed: false, state });
                });
            }
        }
    }

    fn reset(&mut self) {
        self.resets += 1;
    }
}

/// The database under test and what is known about it.
struct World {
    disk: SimDisk,
    pipeline: Pipeline<Toy, ToyHost>,
    /// States that a crash may lead to, in order.
    possible: Vec<Plain>,
    /// The first of them that may come out: all before are surely overtaken.
    durable: usize,
    published: Plain,
    cursor: u64,
    followed: Plain,
    compactions: Vec<Receiver<CompactionOutcome>>,
}

fn ids() -> Vec<Id> {
    (0..6).map(Id::from_u128).collect()
}

fn start(disk: &SimDisk) -> (Pipeline<Toy, ToyHost>, Plain) {
    let opened = open(Arc::new(disk.clone())).expect("a disk without faults");
    let plain = Plain::of(&opened.root);
    assert_root_is(&opened.root, &plain, &ids());
    let feed = opened.feed(HISTORY_BYTES);
    let Opened { root, journal, .. } = opened;
    let options = PipelineOptions { jobs_per_batch_max: 5, ..PipelineOptions::default() };
    let pipeline = Pipeline::start::<ToyJournal>(root, feed, journal, ToyHost { resets: 0 }, options);
    (pipeline.expect("threads"), plain)
}

/// All at once leads to the same state as one after the other.
fn assert_merged<'a>(sets: impl Iterator<Item = &'a ChangeSet<Toy>>, mut before: Plain, after: &Plain) {
    for (table, records) in merge(sets) {
        for (id, change) in records {
            let place = (table, id);
            assert_eq!(before.0.get(&place), change.old.map(|item| &**item));
            if let (Some(old), Some(new), Some(deltas)) = (change.old, change.new, change.deltas) {
                let mut whole = TagDelta::default();
                for delta in deltas {
                    <Toy>::merge(&mut whole, delta.clone());
                }
                assert_eq!(whole, TagDelta::between(old, new));
            }
            match change.new {
                Some(item) => before.0.insert(place, Item::clone(item)),
                None => before.0.remove(&place),
            };
        }
    }
    assert_eq!(&before, after);
}

impl World {
    fn new() -> Self {
        Self::on(SimDisk::new())
    }

    fn on(disk: SimDisk) -> Self {
        let (pipeline, plain) = start(&disk);
        Self {
            disk,
            cursor: pipeline.publication().generation(),
            pipeline,
            possible: vec![plain.clone()],
            durable: 0,
            published: plain.clone(),
            followed: plain,
            compactions: Vec::new(),
        }
    }

    fn submit(&mut self, transactions: Vec<Transaction>, together: bool) {
        let (answers, received) = channel();
        let (open_gate, gate) = channel::<()>();
        // The committer is a role: whoever submits to an idle one runs it, so it is kept busy from another thread.
        let busy = together.then(|| {
            let (pipeline, (entered, begun)) = (self.pipeline.clone(), channel());
            let hold = move |_: &mut ToyHost, _: &mut Batch<'_, Toy>| {
                let _ = entered.send(());
                let _ = gate.recv();
            };
            let busy = std::thread::spawn(move || pipeline.call(hold).expect("running"));
            begun.recv().expect("the committer is busy");
            busy
        });
        let count = transactions.len();
        for transaction in transactions {
            self.pipeline.submit((transaction, answers.clone())).expect("running");
        }
        drop((open_gate, answers));
        let answers = self.answers(&received);
        if let Some(busy) = busy {
            busy.join().expect("the thread that kept the committer busy");
        }
        assert_eq!(answers, count, "everyone got an answer");
        let root = self.pipeline.publication().current();
        assert_root_is(&root, &self.published, &ids());
    }

    fn answers(&mut self, received: &Receiver<Answer>) -> usize {
        let mut newest = 0;
        let mut count = 0;
        for answer in received {
            count += 1;
            match answer.outcome {
                Outcome::Committed { generation } => {
                    assert!(generation >= newest, "answers come in commit order");
                    assert!(!answer.changed || generation > newest);
                    newest = generation;
                    assert!(self.pipeline.publication().generation() >= generation);
                    if answer.changed {
                        self.possible.push(answer.state.clone());
                        self.published = answer.state;
                    } else {
                        assert_eq!(
                            answer.state, self.published,
                            "a reader sees what was committed before it"
                        );
                    }
                    if answer.durable {
                        self.durable = self.possible.len() - 1;
                    }
                }
                Outcome::Unknown { .. } if answer.changed => self.possible.push(answer.state),
                Outcome::Unknown { .. } | Outcome::Failed { .. } => {}
                Outcome::ReadOnly => assert!(!answer.changed),
                other => panic!("an outcome nobody knows: {other:?}"),
            }
        }
        count
    }

    /// Begins a compaction, which what comes next will overlap.
    fn compact(&mut self) {
        let (answer, answered) = channel();
        self.pipeline.compact(move |outcome| drop(answer.send(outcome))).expect("running");
        self.compactions.push(answered);
    }

    fn await_compactions(&mut self) {
        for answered in self.compactions.drain(..) {
            match answered.recv().expect("an answer") {
                CompactionOutcome::Done | CompactionOutcome::Failed { .. } => {}
                other => panic!("an outcome nobody knows: {other:?}"),
            }
        }
    }

    fn follow(&mut self) {
        self.await_compactions();
        match self.pipeline.feed().since(self.cursor) {
            Ok(entries) => {
                assert_merged(
                    entries.iter().map(|entry| &*entry.changes),
                    self.followed.clone(),
                    &self.published,
                );
                for entry in entries {
                    assert!(entry.generation > self.cursor);
                    self.cursor = entry.generation;
                    for table in entry.changes.tables() {
                        for change in &table.records {
                            let place = (table.table, change.id);
                            let old = match &change.new {
                                Some(item) => self.followed.0.insert(place, Item::clone(item)),
                                None => self.followed.0.remove(&place),
                            };
                            assert_eq!(old.as_ref(), change.old.as_deref());
                        }
                    }
                    assert_eq!(self.pipeline.feed().cursor_at(&entry.position), Some(entry.generation));
                }
            }
            Err(behind) => {
                assert!(self.cursor < behind.floor);
                let root = self.pipeline.publication().current();
                self.cursor = root.generation();
                self.followed = Plain::of(&root);
            }
        }
        assert_eq!(self.followed, self.published);
    }

    fn restart(&mut self) {
        let ended = self.pipeline.shutdown();
        self.await_compactions();
        let read_only = self.possible.last() != Some(&self.published);
        if ended.is_ok() && !self.disk.is_stopped() && !read_only {
            self.durable = self.possible.len() - 1;
        }
        // An orderly end of a database whose disk did not stop; what was written is there, synced or not.
        let again = self.disk.crash(|| true);
        self.reopen(again);
    }

    fn crash(&mut self, seed: u64) {
        let again = self.disk.crash_by(seed);
        let _ = self.pipeline.shutdown();
        self.await_compactions();
        self.reopen(again);
    }

    fn reopen(&mut self, disk: SimDisk) {
        let world = Self::on(disk);
        let allowed = &self.possible[self.durable..];
        assert!(
            allowed.contains(&world.published),
            "restarted as {:?}\ninstead of one of {allowed:#?}",
            world.published
        );
        *self = world;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, max_shrink_time: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_acknowledged_is_lost(events in prop::collection::vec(any_event(), 1..30)) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Submit(transactions, together) => world.submit(transactions, together),
                Event::Inject(steps, fault) => world.disk.inject(world.disk.steps() + steps, fault),
                Event::Compact => world.compact(),
                Event::Follow => world.follow(),
                Event::Restart => world.restart(),
                Event::Crash(seed) => world.crash(seed),
            }
        }
        world.crash(0);
    }
}
