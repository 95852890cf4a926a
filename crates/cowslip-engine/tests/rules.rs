//! What pipeline, publication, feed and reclaimer promise, one test per promise.
#![allow(missing_docs)]

mod toy;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cowslip_engine::sim::{Fault, SimDisk};
use cowslip_engine::storage::{FileSystem, LockError, OpenMode, Storage};
use cowslip_engine::*;
use toy::journal::{Opened, ToyJournal, open};
use toy::{Id, Item, TABLES, Toy, put};

const WAIT: Duration = Duration::from_secs(20);

/// Runs functions only; counts what else it is asked.
#[derive(Default)]
struct Counting {
    resets: usize,
    ticks: usize,
    deadline: Option<Instant>,
}

impl Host<Toy> for Counting {
    type Job = Id;

    /// Inserts an item of this id whose name is the id.
    fn run(&mut self, id: Id, batch: &mut Batch<'_, Toy>) {
        insert(batch, id.as_u128(), true, |_| {});
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn tick(&mut self, now: Instant, _: &mut Batch<'_, Toy>) {
        assert!(self.deadline.is_some_and(|deadline| deadline <= now));
        self.deadline = None;
        self.ticks += 1;
    }

    fn reset(&mut self) {
        self.resets += 1;
    }
}

type Toys = Pipeline<Toy, Counting>;

fn insert(
    batch: &mut Batch<'_, Toy>,
    id: u128,
    durable: bool,
    answer: impl FnOnce(Outcome) + Send + 'static,
) {
    let mut draft = Draft::new(batch.root());
    let name = u32::try_from(id).expect("small");
    put(&mut draft, TABLES[0], Id::from_u128(id), Item { name, ..Item::default() });
    let changes = draft.finish().expect("each test uses a name once");
    batch.commit(changes, String::new(), durable, answer);
}

fn on_disk(disk: &SimDisk) -> Toys {
    let opened = open(Arc::new(disk.clone())).expect("a disk without faults");
    let feed = opened.feed(1 << 20);
    let Opened { root, journal, .. } = opened;
    let options = PipelineOptions::default();
    Pipeline::start::<ToyJournal>(root, feed, journal, Counting::default(), options).expect("threads")
}

fn in_memory() -> Toys {
    let root = Root::new(Arc::new(0));
    let feed = Feed::new(1 << 20, 0, Uuid::nil());
    Pipeline::start(root, feed, NullJournal::new(), Counting::default(), PipelineOptions::default())
        .expect("threads")
}

/// Commits one item and gives the receiver of the outcome.
fn commit(pipeline: &Toys, id: u128, durable: bool) -> Receiver<Outcome> {
    let (answer, answered) = channel();
    pipeline
        .call(move |_, batch| insert(batch, id, durable, move |outcome| drop(answer.send(outcome))))
        .expect("running");
    answered
}

fn outcome(answered: &Receiver<Outcome>) -> Outcome {
    answered.recv_timeout(WAIT).expect("an answer")
}

/// Has the committer wait until the result is dropped, so that everything sent meanwhile forms one batch.
fn closed_gate(pipeline: &Toys) -> std::sync::mpsc::Sender<()> {
    let (gate, waiting) = channel::<()>();
    let (reached, here) = channel::<()>();
    let hold = move |_: &mut Counting, _: &mut Batch<'_, Toy>| {
        drop(reached);
        let _ = waiting.recv();
    };
    // Whoever submits to an idle committer runs it, so another thread does.
    let pipeline = pipeline.clone();
    std::thread::spawn(move || pipeline.call(hold).expect("running"));
    let _ = here.recv_timeout(WAIT);
    gate
}

fn host<T: Send + 'static>(pipeline: &Toys, look: impl FnOnce(&mut Counting) -> T + Send + 'static) -> T {
    let (answer, answered) = channel();
    pipeline.call(move |host, _| drop(answer.send(look(host)))).expect("running");
    answered.recv_timeout(WAIT).expect("an answer")
}

#[test]
fn commits_that_wait_together_share_one_sync_and_one_publication() {
    let disk = SimDisk::new();
    let pipeline = on_disk(&disk);
    let published = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&published);
    pipeline.feed().on_publish(Box::new(move |generation| log.lock().expect("unbroken").push(generation)));
    let gate = closed_gate(&pipeline);
    let answers: Vec<_> = (1..=50).map(|id| commit(&pipeline, id, id % 10 == 0)).collect();
    let syncs = disk.syncs();
    drop(gate);
    for (generation, answer) in (1..).zip(&answers) {
        assert_eq!(outcome(answer), Outcome::Committed { generation });
    }
    assert_eq!(disk.syncs(), syncs + 1);
    pipeline.shutdown().expect("a good disk");
    assert_eq!(*published.lock().expect("unbroken"), [50]);
}

#[test]
fn a_full_disk_fails_the_batch_and_nothing_else() {
    let disk = SimDisk::new();
    let pipeline = on_disk(&disk);
    assert_eq!(outcome(&commit(&pipeline, 1, true)), Outcome::Committed { generation: 1 });
    disk.inject(disk.steps(), Fault::Full);
    let gate = closed_gate(&pipeline);
    let failing = [commit(&pipeline, 2, true), commit(&pipeline, 3, false)];
    drop(gate);
    for answer in &failing {
        assert!(matches!(outcome(answer), Outcome::Failed { .. }));
    }
    assert_eq!(pipeline.publication().current().len(TABLES[0]), 1);
    assert_eq!(host(&pipeline, |host| host.resets), 1);
    assert_eq!(outcome(&commit(&pipeline, 4, true)), Outcome::Committed { generation: 2 });
    let reopened = open(Arc::new(disk.crash(|| false))).expect("a good disk");
    assert_eq!(reopened.root.len(TABLES[0]), 2);
}

#[test]
fn a_failed_sync_makes_the_database_read_only() {
    let disk = SimDisk::new();
    let pipeline = on_disk(&disk);
    disk.inject(disk.steps() + 1, Fault::Failed);
    assert!(matches!(outcome(&commit(&pipeline, 1, true)), Outcome::Unknown { .. }));
    assert_eq!(outcome(&commit(&pipeline, 2, false)), Outcome::ReadOnly);
    assert_eq!(pipeline.publication().generation(), 0);
    assert_eq!(host(&pipeline, |host| host.resets), 1);
    let (answer, answered) = channel();
    pipeline.compact(move |outcome| drop(answer.send(outcome))).expect("running");
    let refused = answered.recv_timeout(WAIT).expect("an answer");
    assert!(matches!(refused, CompactionOutcome::Failed { .. }));
}

#[test]
fn an_answer_waits_for_what_it_may_have_read() {
    let pipeline = in_memory();
    let (answer, answered) = channel();
    let publication = Arc::clone(pipeline.publication());
    let early = answer.clone();
    pipeline
        .call(move |_, batch| {
            let before = Arc::clone(&publication);
            batch.answer(move |outcome| drop(early.send((outcome, before.generation()))));
            insert(batch, 1, false, |_| {});
            batch.answer(move |outcome| drop(answer.send((outcome, publication.generation()))));
        })
        .expect("running");
    let next = || answered.recv_timeout(WAIT).expect("an answer");
    assert_eq!(next(), (Outcome::Committed { generation: 0 }, 0));
    assert_eq!(next(), (Outcome::Committed { generation: 1 }, 1));
}

#[test]
fn a_new_meta_comes_through_the_feed_and_a_replacement_restarts_it() {
    let pipeline = in_memory();
    outcome(&commit(&pipeline, 1, false));
    let (answer, answered) = channel();
    pipeline
        .call(move |_, batch| {
            batch.set_meta(Arc::new(5), String::new(), false, move |outcome| drop(answer.send(outcome)));
        })
        .expect("running");
    assert_eq!(outcome(&answered), Outcome::Committed { generation: 2 });
    let root = pipeline.publication().current();
    assert_eq!((**root.meta(), root.len(TABLES[0])), (5, 1));
    let entries = pipeline.feed().since(0).expect("all history");
    let metas: Vec<_> = entries.iter().map(|entry| entry.meta.as_deref().copied()).collect();
    assert_eq!(metas, [None, Some(5)]);

    let (answer, answered) = channel();
    pipeline
        .call(move |_, batch| {
            insert(batch, 2, false, |_| {});
            let fresh = Root::new(Arc::new(6));
            batch.replace(fresh, String::new(), false, |_| {});
            insert(batch, 3, false, move |outcome| drop(answer.send(outcome)));
        })
        .expect("running");
    assert_eq!(outcome(&answered), Outcome::Committed { generation: 5 });
    assert_eq!(pipeline.publication().current().len(TABLES[0]), 1);
    assert_eq!(pipeline.feed().since(3).err(), Some(Behind { floor: 4 }));
    assert_eq!(pipeline.feed().since(4).expect("kept").len(), 1);
}

#[test]
fn the_host_is_woken_at_its_deadline() {
    let pipeline = in_memory();
    host(&pipeline, |host| host.deadline = Some(Instant::now() + Duration::from_millis(5)));
    let begun = Instant::now();
    while host(&pipeline, |host| host.ticks) == 0 {
        assert!(begun.elapsed() < WAIT);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(begun.elapsed() >= Duration::from_millis(4));
}

#[test]
fn shutting_down_runs_what_was_submitted_and_refuses_the_rest() {
    let disk = SimDisk::new();
    let pipeline = on_disk(&disk);
    for id in 1..=200 {
        pipeline.submit(Id::from_u128(id)).expect("running");
    }
    pipeline.shutdown().expect("a good disk");
    assert_eq!(pipeline.publication().current().len(TABLES[0]), 200);
    assert_eq!(pipeline.submit(Id::from_u128(201)), Err(Closed));
    let reopened = open(Arc::new(disk.crash(|| false))).expect("a good disk");
    assert_eq!(reopened.root.len(TABLES[0]), 200);
}

#[test]
fn readers_see_a_commit_as_soon_as_it_is_answered() {
    let pipeline = in_memory();
    let stop = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (reader, stop) = (pipeline.reader(), Arc::clone(&stop));
            scope.spawn(move || {
                let mut seen = 0;
                while stop.load(Ordering::Relaxed) == 0 {
                    let root = reader.root();
                    assert!(root.generation() >= seen);
                    seen = root.generation();
                    assert_eq!(root.len(TABLES[0]) as u64, seen);
                }
                reader.release();
            });
        }
        let reader = pipeline.reader();
        for id in 1..=500 {
            let Outcome::Committed { generation } = outcome(&commit(&pipeline, id, id % 3 == 0)) else {
                panic!("nothing fails here");
            };
            assert!(reader.root().generation() >= generation);
        }
        stop.store(1, Ordering::Relaxed);
    });
}

/// A value that notes which thread freed it.
struct Noisy(Arc<Mutex<Vec<String>>>);

impl Drop for Noisy {
    fn drop(&mut self) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        self.0.lock().expect("unbroken").push(thread);
    }
}

struct Noise<const BYTES: usize>;

impl<const BYTES: usize> Model for Noise<BYTES> {
    type Id = Id;
    type Value = Noisy;
    type Key = u8;
    type Delta = ();
    type Meta = ();
    type Note = ();

    fn layout(_: &()) -> Vec<TableLayout> {
        vec![TableLayout::default()]
    }
    fn keys(_: &(), _: TableIx, _: IndexIx, _: &Step<'_, Self>, _: &mut KeyChanges<u8>) {}
    fn references(_: &(), _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<Id>) {}
    fn merge(_: &mut (), (): ()) {}
    fn weight(_: &Noisy) -> usize {
        BYTES
    }
}

struct Replacing(Arc<Mutex<Vec<String>>>);

impl<const BYTES: usize> Host<Noise<BYTES>> for Replacing {
    type Job = ();

    fn run(&mut self, (): (), batch: &mut Batch<'_, Noise<BYTES>>) {
        let mut draft = Draft::new(batch.root());
        draft.put(TableIx(0), Id::nil(), Arc::new(Noisy(Arc::clone(&self.0))), ());
        let changes = draft.finish().expect("no primary index");
        batch.commit(changes, (), false, |_| {});
    }
}

#[test]
fn the_feed_names_the_states_that_it_goes_back_to() {
    let feed = Feed::<Toy>::new(0, 5, Uuid::from_u128(5));
    let entry = |generation: u64| Entry {
        generation,
        changes: Arc::new(ChangeSet::empty()),
        note: Arc::default(),
        meta: None,
        position: Uuid::from_u128(generation.into()),
    };
    assert_eq!(feed.position_at(5), Some(Uuid::from_u128(5)));
    assert_eq!(feed.position_at(6), None, "not there yet");
    feed.push([entry(6), entry(7)]);
    // Room for one: what is older than the floor is forgotten.
    assert_eq!(feed.floor(), 6);
    assert_eq!(feed.position_at(5), None);
    assert_eq!(feed.position_at(6), Some(Uuid::from_u128(6)));
    assert_eq!(feed.position_at(7), Some(Uuid::from_u128(7)));
    assert_eq!(feed.position_at(8), None);
}

#[test]
fn a_hold_keeps_history_while_it_is_there() {
    let feed = Feed::<Noise<1>>::new(0, 5, Uuid::from_u128(5));
    let push = |generations: std::ops::RangeInclusive<u64>| {
        let entries = generations.map(|generation| Entry::<Noise<1>> {
            generation,
            changes: Arc::new(ChangeSet::empty()),
            note: Arc::new(()),
            meta: None,
            position: Uuid::from_u128(generation.into()),
        });
        feed.push(entries).len()
    };
    assert_eq!(push(6..=7), 1);
    let (short, long) = (feed.hold(1), feed.hold(1 << 20));
    assert_eq!(push(8..=20), 0);
    assert_eq!(feed.since(6).expect("held").len(), 14);
    drop(short);
    assert_eq!(push(21..=21), 0);
    drop(long);
    assert_eq!(feed.floor(), 20, "what nobody holds goes at once");
    assert_eq!(push(22..=22), 1);
}

#[test]
fn each_thread_has_a_reader() {
    let publication = Arc::new(Publication::new(Arc::new(Root::<Noise<1>>::new(Arc::new(())))));
    let readers = Arc::new(publication.readers());
    let here = readers.root();
    // Another thread reads while this one does, and sees what was published since.
    let mut next = Root::<Noise<1>>::new(Arc::new(()));
    next.set_generation(1);
    publication.publish(Arc::new(next));
    let there = {
        let readers = Arc::clone(&readers);
        std::thread::spawn(move || readers.root().generation()).join()
    };
    assert_eq!((here.generation(), there.expect("no panic")), (0, 1));
    drop(here);
    assert_eq!(readers.root().generation(), 1);
}

/// Replaces a value of so many bytes again and again; gives the names of the threads that freed it.
fn freeing_threads<const BYTES: usize>() -> Vec<String> {
    let freed = Arc::new(Mutex::new(Vec::new()));
    let feed = Feed::new(5 * BYTES, 0, Uuid::nil());
    let (root, host) = (Root::<Noise<BYTES>>::new(Arc::new(())), Replacing(Arc::clone(&freed)));
    let options = PipelineOptions { name: "noise".to_owned(), ..PipelineOptions::default() };
    let pipeline = Pipeline::start(root, feed, NullJournal::new(), host, options).expect("threads");
    for _ in 0..300 {
        pipeline.submit(()).expect("running");
    }
    let begun = Instant::now();
    while freed.lock().expect("unbroken").len() < 250 {
        assert!(begun.elapsed() < WAIT);
        std::thread::sleep(Duration::from_millis(1));
    }
    let freed = freed.lock().expect("unbroken");
    freed.clone()
}

#[test]
fn superseded_values_are_freed_by_the_reclaimer_unless_they_are_small() {
    assert!(freeing_threads::<100_000>().iter().all(|thread| thread == "noise-reclaim"));
    let own = std::thread::current().name().unwrap_or_default().to_owned();
    assert!(freeing_threads::<1000>().iter().filter(|thread| **thread == own).count() > 200);
}

#[test]
fn the_file_system_keeps_its_promises() {
    let dir = tempfile::tempdir().expect("a folder");
    let storage = FileSystem::new();
    let (path, moved) = (dir.path().join("a"), dir.path().join("b"));
    assert!(storage.open(&path, OpenMode::Write).is_err());
    let file = storage.open(&path, OpenMode::CreateNew).expect("a new file");
    assert!(storage.open(&path, OpenMode::CreateNew).is_err());
    assert_eq!(file.append(b"one").expect("room"), 0);
    assert_eq!(file.append(b"two").expect("room"), 3);
    file.write_at(0, b"O").expect("room");
    file.truncate(5).expect("a cut");
    file.sync_data().expect("a sync");
    storage.rename(&path, &moved).expect("a new name");
    storage.sync_dir(dir.path()).expect("a sync");
    assert_eq!(storage.read(&moved).expect("readable"), b"Onetw");
    assert!(!storage.exists(&path).expect("known"));
    assert_eq!(storage.list(dir.path()).expect("readable"), std::slice::from_ref(&moved));
    storage.remove(&moved).expect("gone");

    let lock = storage.lock(Path::new(&path)).expect("nobody has it");
    assert!(matches!(storage.lock(&path), Err(LockError::HeldHere)));
    drop(lock);
    drop(storage.lock(&path).expect("given back"));
}

#[test]
fn what_a_failed_sync_covered_may_be_lost_although_the_next_succeeds() {
    let disk = SimDisk::new();
    let file = disk.open(Path::new("/a"), OpenMode::CreateNew).expect("a new file");
    disk.sync_dir(Path::new("/")).expect("a sync");
    file.append(b"one").expect("room");
    disk.inject(disk.steps(), Fault::Failed);
    assert!(file.sync_data().is_err());
    file.sync_data().expect("the fault was for once");
    assert_eq!(disk.crash(|| false).read(Path::new("/a")).expect("readable"), b"");
}

#[test]
fn a_name_that_was_not_synced_may_be_lost() {
    let disk = SimDisk::new();
    let (old, new) = (Path::new("/d/old"), Path::new("/d/new"));
    let file = disk.open(old, OpenMode::CreateNew).expect("a new file");
    file.append(b"one").expect("room");
    file.sync_data().expect("a sync");
    assert!(!disk.crash_copy(|| false).exists(old).expect("known"));
    disk.sync_dir(Path::new("/d")).expect("a sync");
    disk.rename(old, new).expect("a new name");
    let kept = disk.crash_copy(|| true);
    assert!(kept.exists(new).expect("known") && !kept.exists(old).expect("known"));
    let lost = disk.crash(|| false);
    assert!(lost.exists(old).expect("known") && !lost.exists(new).expect("known"));
    assert!(file.append(b"two").is_err(), "the machine has stopped");
}

#[test]
fn a_write_may_survive_in_part() {
    let disk = SimDisk::new();
    let file = disk.open(Path::new("/a"), OpenMode::CreateNew).expect("a new file");
    disk.sync_dir(Path::new("/")).expect("a sync");
    file.append(&[7; 1200]).expect("room");
    let mut asked = 0;
    // The length and the third block stay.
    let torn = disk.crash(|| {
        asked += 1;
        asked == 1 || asked == 4
    });
    let content = torn.read(Path::new("/a")).expect("readable");
    assert_eq!(content.len(), 1200);
    assert_eq!(content.iter().position(|byte| *byte == 7), Some(1024));
}

/// A host that panics at its first job.
struct Fragile;

impl Host<Toy> for Fragile {
    type Job = ();

    fn run(&mut self, (): (), _batch: &mut Batch<'_, Toy>) {
        panic!("on purpose");
    }
}

#[test]
fn a_panic_in_the_protocols_part_closes_the_pipeline_whoever_runs_it() {
    for on_its_own_thread in [false, true] {
        let feed = Feed::new(1 << 20, 0, Uuid::nil());
        let options = PipelineOptions::default();
        let root = Root::<Toy>::new(Arc::new(0));
        let pipeline = Pipeline::start(root, feed, NullJournal::new(), Fragile, options).expect("threads");
        for _ in 0..20 {
            // Closed at some point, which is what is waited for below.
            let _ = if on_its_own_thread { pipeline.enqueue(()) } else { pipeline.submit(()) };
        }
        assert!(pipeline.shutdown().is_err());
        assert_eq!(pipeline.submit(()), Err(Closed));
    }
}
