//! The names of states, and the newest changes that a restart brings back.

use crate::support::{Change, Db, PATH, content, schema};
use cowslip_engine::sim::SimDisk;
use cowslip_engine::{Journal, Root, Uuid};
use cowslip_ovsdb_server::file::{self, FileJournal, OpenOptions, Opened};
use std::path::Path;
use std::sync::Arc;

fn reopen(disk: &SimDisk, history_bytes_max: usize) -> Opened {
    let mut options = OpenOptions::default();
    options.history_bytes_max = history_bytes_max;
    file::open(Arc::new(disk.clone()), Path::new(PATH), &options).expect("the file is good")
}

/// A file with a few commits, and the name of each state from the empty one on.
fn farm() -> (SimDisk, Vec<Uuid>) {
    let disk = SimDisk::new();
    Db::create(&disk).expect("the disk works");
    let mut db = Db::open(&disk).expect("the file is good");
    let mut positions = vec![db.journal.position()];
    for cow in 1..6 {
        db.commit(&[Change::Insert { cow }]).expect("the disk works");
        positions.push(db.journal.position());
    }
    (disk, positions)
}

#[test]
fn a_restart_knows_the_names_of_states() {
    let (disk, positions) = farm();
    let Opened { journal, root, history, .. } = reopen(&disk, usize::MAX);
    assert_eq!(journal.position(), positions[5]);
    assert_eq!((history.floor, history.floor_position), (0, positions[0]));
    let found: Vec<_> = history.entries.iter().map(|entry| entry.position).collect();
    assert_eq!(found, positions[1..]);
    // Replaying the history on the empty database gives the newest state.
    let mut replayed = Root::new(Arc::new(schema()));
    history.entries.iter().for_each(|entry| replayed.apply(&entry.changes));
    assert_eq!(content(&replayed), content(&root));
    assert_eq!(root.generation(), history.entries[4].generation);
}

#[test]
fn history_is_bounded_by_bytes() {
    let (disk, positions) = farm();
    let whole = reopen(&disk, usize::MAX).history;
    let bytes: usize = whole.entries.iter().map(|entry| entry.changes.bytes()).sum();
    let history = reopen(&disk, bytes / 2).history;
    let dropped = 5 - history.entries.len();
    assert!((1..5).contains(&dropped));
    assert_eq!((history.floor, history.floor_position), (dropped as u64, positions[dropped]));
    let history = reopen(&disk, 0).history;
    assert_eq!((history.entries.len(), history.floor_position), (0, positions[5]));
}

#[test]
fn a_commit_without_a_record_has_a_name_of_its_own_and_leaves_no_trace() {
    let (disk, positions) = farm();
    let mut db = Db::open(&disk).expect("the file is good");
    let bytes = db.journal.file_bytes();
    db.commit(&[Change::Mood { cow: 1, mood: 2 }]).expect("the disk works");
    assert_eq!(db.journal.file_bytes(), bytes);
    assert!(!positions.contains(&db.journal.position()));
    db.commit(&[Change::Insert { cow: 9 }]).expect("the disk works");
    let last = db.journal.position();
    drop(db);
    assert_eq!(reopen(&disk, usize::MAX).journal.position(), last);
}

#[test]
fn names_from_before_a_compaction_are_not_known_after_a_restart() {
    let (disk, positions) = farm();
    let mut db = Db::open(&disk).expect("the file is good");
    let compaction = db.journal.begin_compaction(Arc::new(db.root.clone())).expect("none is running");
    assert!(db.journal.begin_compaction(Arc::new(db.root.clone())).is_err(), "one at a time");
    db.journal.finish_compaction(FileJournal::run_compaction(compaction)).expect("the disk works");
    assert_eq!(db.journal.position(), positions[5], "this process's clients go on");
    drop(db);
    let Opened { history, .. } = reopen(&disk, usize::MAX);
    assert!(history.entries.iter().all(|entry| !positions.contains(&entry.position)));
}
