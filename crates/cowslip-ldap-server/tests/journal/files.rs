//! The files of a folder over time: made ahead, used again, removed.

use std::path::Path;
use std::sync::Arc;

use cowslip_engine::sim::{Fault, SimDisk};
use cowslip_engine::storage::Storage;
use cowslip_engine::{AppendError, Journal};
use cowslip_ldap_server::journal::{self, BinaryLog, SPARE_FILES_MAX};

use crate::toy::{Db, FOLDER, Toy, ToyCodec, options, put};

fn names(disk: &SimDisk) -> Vec<String> {
    let paths = disk.list(Path::new(FOLDER)).expect("the disk works");
    paths.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
}

fn journals(disk: &SimDisk) -> usize {
    names(disk).iter().filter(|name| name.starts_with("journal-")).count()
}

#[test]
fn files_are_used_again_and_there_are_not_more_and_more() {
    let (disk, mut db) = Db::new();
    let mut compactions = 0;
    for round in 0..400 {
        db.commit_durably(vec![put(round % 5, 500)]).expect("the disk works");
        if db.journal.wants_compaction() {
            db.compact().expect("the disk works");
            compactions += 1;
            // One in use, those that are kept, one that is ready.
            assert!(journals(&disk) <= SPARE_FILES_MAX + 2, "{:?}", names(&disk));
            assert_eq!(names(&disk).iter().filter(|name| name.starts_with("snapshot-")).count(), 1);
        }
    }
    assert!(compactions > 10, "{compactions}");
    let content = db.content();
    drop(db);
    let db = Db::open(&disk.crash(|| false)).expect("it is whole");
    assert_eq!(db.content(), content);
    assert!(db.report.replayed_bytes < 3 * options().compaction_bytes_min, "{:?}", db.report);
}

/// One write and one sync for a batch, once its file is there.
#[test]
fn a_batch_costs_one_write_and_one_sync() {
    let (disk, mut db) = Db::new();
    db.commit_durably(vec![put(1, 10)]).expect("the disk works");
    for id in 2..6 {
        let (steps, syncs) = (disk.steps(), disk.syncs());
        let (commits, root) = db.prepare(&[vec![put(id, 30)], vec![put(id, 40)]]);
        db.append(&commits, root).expect("the disk works");
        db.sync().expect("the disk works");
        assert_eq!((disk.steps() - steps, disk.syncs() - syncs), (2, 1));
        db.sync().expect("the disk works");
        assert_eq!(disk.syncs() - syncs, 1, "what is durable is not synced again");
    }
}

#[test]
fn restarts_use_no_new_files() {
    let (disk, mut db) = Db::new();
    for id in 0..20 {
        db.commit(vec![put(id, 30)]).expect("the disk works");
        drop(db);
        db = Db::open(&disk).expect("it is whole");
        assert_eq!(db.report.replayed_commits, u64::from(id) + 1);
    }
    // The one in use and the one that is ready.
    assert_eq!(journals(&disk), 2, "{:?}", names(&disk));
}

#[test]
fn a_disk_without_room_for_another_file_refuses_commits_and_goes_on_later() {
    let (disk, mut db) = Db::new();
    let refuse = |db: &mut Db, id| {
        let content = db.content();
        disk.inject(disk.steps(), Fault::Full);
        let refused = db.commit(vec![put(id, 590)]);
        assert!(matches!(refused, Err(AppendError::NotWritten { .. })), "{refused:?}");
        assert_eq!(db.content(), content);
    };
    let mut made_when_needed = 0;
    for id in 0..40 {
        refuse(&mut db, id);
        // If the commit moves on to another file, this hits the one that is made ahead, which then has to be made when it
        // is needed; and if it is needed now, this hits the making.
        disk.inject(disk.steps() + 1, Fault::Full);
        if db.commit(vec![put(id, 590)]).is_err() {
            made_when_needed += 1;
            db.commit(vec![put(id, 590)]).expect("there is room again");
        }
    }
    assert!(made_when_needed > 0);
    refuse(&mut db, 40);
    db.sync().expect("there is room again");
    let content = db.content();
    drop(db);
    assert_eq!(Db::open(&disk.crash(|| false)).expect("it is whole").content(), content);
    assert_eq!(content.values.len(), 40);
}

#[test]
fn another_size_of_files_is_taken_up() {
    let (disk, mut db) = Db::new();
    db.commit_durably(vec![put(1, 500)]).expect("the disk works");
    drop(db);
    let mut options = options();
    for file_bytes in [8192, 2048, 100] {
        options.file_bytes = file_bytes;
        let opened = journal::open::<Toy, _>(Arc::new(disk.clone()), Path::new(FOLDER), ToyCodec, &options);
        let opened = opened.expect("it is whole");
        let mut db = Db { journal: opened.journal, root: opened.root, report: opened.report };
        let id = file_bytes as u32;
        db.commit_durably(vec![put(id, 3000)]).expect("the disk works");
        db.compact().expect("the disk works");
        db.commit_durably(vec![put(id, 3000)]).expect("the disk works");
    }
    assert_eq!(Db::open(&disk).expect("it is whole").content().values.len(), 4);
}

#[test]
fn a_compaction_that_comes_to_nothing_leaves_the_journal_as_it_was() {
    let (disk, mut db) = Db::new();
    db.commit_durably(vec![put(1, 500)]).expect("the disk works");
    let begin = |db: &mut Db| db.journal.begin_compaction(Arc::new(db.root.clone()));
    let first = begin(&mut db).expect("the disk works");
    assert!(begin(&mut db).is_err(), "one runs already");
    Journal::<Toy>::abandon_compaction(&mut db.journal);
    let abandoned = BinaryLog::<Toy, ToyCodec>::run_compaction(first);
    assert!(db.journal.finish_compaction(abandoned).is_err());
    assert!(!names(&disk).iter().any(|name| name.ends_with(".tmp")), "{:?}", names(&disk));
    let second = begin(&mut db).expect("the disk works");
    disk.inject(disk.steps() + 2, Fault::Full);
    let compacted = BinaryLog::<Toy, ToyCodec>::run_compaction(second);
    assert!(db.journal.finish_compaction(compacted).is_err());
    db.commit_durably(vec![put(2, 500)]).expect("the disk works");
    db.compact().expect("the disk works");
    db.commit_durably(vec![put(3, 500)]).expect("the disk works");
    let content = db.content();
    drop(db);
    assert_eq!(Db::open(&disk.crash(|| false)).expect("it is whole").content(), content);
}
