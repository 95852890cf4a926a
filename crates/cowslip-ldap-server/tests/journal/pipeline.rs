//! The journal under a pipeline, on real files, with all its threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cowslip_engine::storage::FileSystem;
use cowslip_engine::{
    Batch, Draft, Feed, Host, Journal, Outcome, Pipeline, PipelineOptions, RecordNumber, Root,
};
use cowslip_ldap_server::journal::{self, JournalOptions, Opened};

use crate::toy::{Content, TABLE, Toy, ToyCodec};

const THREADS: u32 = 4;
const COMMITS: u32 = 300;

struct Writer {
    durable: bool,
}

struct Job {
    id: u32,
    value: Vec<u8>,
    answer: Box<dyn FnOnce(Outcome) + Send>,
}

impl Host<Toy> for Writer {
    type Job = Job;

    fn run(&mut self, job: Job, batch: &mut Batch<'_, Toy>) {
        let mut draft = Draft::new(batch.root());
        draft.put(TABLE, RecordNumber(job.id), Arc::new(job.value), ());
        let changes = draft.into_changes();
        batch.commit(changes, (), self.durable, job.answer);
    }
}

fn small() -> JournalOptions {
    let mut options = JournalOptions::default();
    options.file_bytes = 64 << 10;
    options.compaction_bytes_min = 100 << 10;
    options
}

fn open(folder: &Path, options: &JournalOptions) -> Opened<Toy, ToyCodec> {
    journal::open(Arc::new(FileSystem::new()), folder, ToyCodec, options).expect("the folder is good")
}

fn start(folder: &Path, options: &JournalOptions, durable: bool) -> Pipeline<Toy, Writer> {
    let Opened { root, position, journal, .. } = open(folder, options);
    let feed = Feed::new(1 << 20, root.generation(), position);
    Pipeline::start(root, feed, journal, Writer { durable }, PipelineOptions::default())
        .expect("threads can be had")
}

/// Each thread writes its own records, one after the other; gives what must be there at the end.
fn write(pipeline: &Pipeline<Toy, Writer>) -> Content {
    thread::scope(|scope| {
        for writer in 0..THREADS {
            scope.spawn(move || {
                let (answers, answered) = channel();
                for number in 0..COMMITS {
                    let answers = answers.clone();
                    let answer = Box::new(move |outcome| drop(answers.send(outcome)));
                    let id = writer * 10 + number % 10;
                    pipeline.submit(Job { id, value: value(number), answer }).expect("it runs");
                    assert!(matches!(answered.recv(), Ok(Outcome::Committed { .. })));
                }
            });
        }
    });
    let last = (COMMITS - 10..COMMITS)
        .flat_map(|number| (0..THREADS).map(move |writer| (writer * 10 + number % 10, value(number))));
    Content { meta: 1, values: last.collect() }
}

fn value(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(50)
}

#[test]
fn commits_and_compactions_survive_restarts() {
    let parent = tempfile::tempdir().expect("there is room for a folder");
    let folder = parent.path().join("directory");
    journal::create(&FileSystem::new(), &folder, &ToyCodec, &Root::<Toy>::new(Arc::new(1)))
        .expect("there is room");
    for _ in 0..2 {
        let pipeline = start(&folder, &small(), true);
        let expected = write(&pipeline);
        let (done, finished) = channel();
        pipeline.compact(move |outcome| drop(done.send(outcome))).expect("it runs");
        assert_eq!(finished.recv(), Ok(cowslip_engine::CompactionOutcome::Done));
        pipeline.shutdown().expect("the disk works");
        drop(pipeline);
        let opened = open(&folder, &small());
        assert_eq!(Content::of(&opened.root), expected);
        assert_eq!(opened.report.replayed_commits, 0);
    }
    let report = journal::verify(&FileSystem::new(), &folder, &mut |_| {}).expect("the folder is good");
    assert_eq!((report.commits, report.damage, report.torn), (u64::from(2 * THREADS * COMMITS), None, None));
}

#[test]
fn an_interval_makes_durable_what_nobody_waits_for() {
    let parent = tempfile::tempdir().expect("there is room for a folder");
    let folder = parent.path().join("directory");
    journal::create(&FileSystem::new(), &folder, &ToyCodec, &Root::<Toy>::new(Arc::new(1)))
        .expect("there is room");
    let mut options = small();
    options.sync_interval = Some(Duration::from_millis(2));
    let pipeline = start(&folder, &options, false);
    let expected = write(&pipeline);
    pipeline.shutdown().expect("the disk works");
    drop(pipeline);
    let opened = open(&folder, &options);
    assert_eq!(Content::of(&opened.root), expected);
    assert_eq!(opened.journal.position(), opened.position);
}
