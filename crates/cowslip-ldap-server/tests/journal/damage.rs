//! Damaged folders: what stops a start, what is only a torn end, what looking through tells, and what can be saved.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cowslip_engine::Journal;
use cowslip_engine::sim::{Fault, SimDisk};
use cowslip_engine::storage::{OpenMode, Storage};
use cowslip_ldap_server::journal::{self, LogItem, OpenError, Opened, Salvaged};

use crate::toy::{Content, Db, FOLDER, Toy, ToyCodec, put};

/// Where a batch is.
#[derive(Clone, Debug)]
struct Found {
    path: PathBuf,
    offset: u64,
    bytes: u64,
    first_commit: u64,
}

/// A folder with twenty durable commits over several files, its batches, and the content after each commit.
fn folder() -> (SimDisk, Vec<Found>, Vec<Content>) {
    let (disk, mut db) = Db::new();
    let mut states = vec![db.content()];
    for id in 1..=20 {
        let length = if id == 7 { 2000 } else { 400 };
        db.commit_durably(vec![put(id, length)]).expect("the disk works");
        states.push(db.content());
    }
    drop(db);
    let batches = batches(&disk);
    assert!(batches.last().map(|batch| &batch.path) > batches.first().map(|batch| &batch.path));
    (disk, batches, states)
}

fn batches(disk: &SimDisk) -> Vec<Found> {
    let mut batches = Vec::new();
    let report = journal::verify(disk, Path::new(FOLDER), &mut |item| {
        if let LogItem::Batch { path, offset, first_commit, payload_bytes, .. } = item {
            let bytes = u64::from(payload_bytes);
            batches.push(Found { path: path.to_owned(), offset, bytes, first_commit });
        }
    });
    assert_eq!(report.expect("a snapshot is whole").damage, None);
    batches
}

fn flip(disk: &SimDisk, path: &Path, offset: u64) {
    let file = disk.open(path, OpenMode::Write).expect("the disk works");
    let mut byte = [0];
    file.read_at(offset, &mut byte).expect("the disk works");
    file.write_at(offset, &[byte[0] ^ 0x40]).expect("the disk works");
}

fn salvage(disk: &SimDisk) -> Salvaged {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    journal::salvage(&storage, Path::new(FOLDER)).expect("the snapshot is whole")
}

/// The start is refused for this place; looking says the same and changes nothing; saving keeps all before it.
fn assert_damaged(disk: &SimDisk, path: &Path, offset: u64, kept: u64, states: &[Content], label: &str) {
    match Db::open(disk).map(|db| db.content()) {
        Err(error @ OpenError::Damaged { .. }) => {
            let text = error.to_string();
            assert!(text.contains("cowslip ldap verify --salvage /db"), "{text}");
            assert!(
                text.contains(&format!("{}: damaged at offset {offset}", path.display())),
                "{label}: {text}"
            );
        }
        other => panic!("{label}: {other:?}"),
    }
    let steps = disk.steps();
    let report = journal::verify(disk, Path::new(FOLDER), &mut |_| {}).expect(label);
    let damage = report.damage.expect(label);
    assert_eq!((damage.path.as_path(), damage.offset), (path, offset), "{label}");
    assert_eq!(disk.steps(), steps, "looking changes nothing");
    let salvaged = salvage(disk);
    assert_eq!(salvaged.commits, kept, "{label}");
    assert!(!salvaged.aside.is_empty(), "{label}");
    let mut db = Db::open(disk).unwrap_or_else(|error| panic!("{label}: {error}"));
    assert_eq!(db.content(), states[kept as usize], "{label}");
    db.commit_durably(vec![put(99, 99)]).expect("the disk works");
    let content = db.content();
    drop(db);
    let after = Db::open(&disk.crash(|| false)).expect(label);
    assert_eq!(after.content(), content, "{label}");
    assert_eq!(after.root.generation(), kept + 1, "{label}");
}

#[test]
fn damage_in_the_middle_stops_the_start_and_is_salvaged() {
    let (_, batches, _) = folder();
    for number in 0..batches.len() - 1 {
        // In the header, in the payload.
        for place in [0, 9, 20, 60] {
            let (disk, batches, states) = folder();
            let batch = &batches[number];
            flip(&disk, &batch.path, batch.offset + place.min(55 + batch.bytes));
            let label = format!("batch {number}, byte {place}");
            assert_damaged(&disk, &batch.path, batch.offset, batch.first_commit - 1, &states, &label);
        }
    }
}

#[test]
fn the_last_batch_alone_cannot_be_told_from_a_torn_one() {
    let (disk, batches, states) = folder();
    let last = batches.last().expect("there are batches");
    flip(&disk, &last.path, last.offset + 70);
    let mut db = Db::open(&disk).expect("it looks like a torn end");
    assert_eq!(db.content(), states[19]);
    assert_eq!(db.report.torn, Some((last.path.clone(), last.offset)));
    // It is left as it is, and what comes next is elsewhere.
    let before = disk.read(&last.path).expect("the disk works");
    db.commit_durably(vec![put(50, 50)]).expect("the disk works");
    assert_eq!(disk.read(&last.path).expect("the disk works"), before);
    let content = db.content();
    drop(db);
    assert_eq!(Db::open(&disk).expect("it is whole").content(), content);
}

#[test]
fn a_damaged_header_of_a_file_stops_the_start_and_is_salvaged() {
    let (_, batches, _) = folder();
    let mut paths: Vec<_> = batches.iter().map(|batch| batch.path.clone()).collect();
    paths.dedup();
    for path in paths {
        let (disk, batches, states) = folder();
        flip(&disk, &path, 40);
        let first = batches.iter().find(|batch| batch.path == path).expect("the file has batches");
        // A commit of which a part is in the file is lost as a whole.
        let kept = first.first_commit - 1;
        assert_damaged(&disk, &path, 0, kept, &states, &path.display().to_string());
    }
}

#[test]
fn a_lost_file_stops_the_start_and_is_salvaged() {
    let (disk, batches, states) = folder();
    let second = batches.iter().find(|batch| batch.path != batches[0].path).expect("there are two files");
    disk.remove(&second.path).expect("the disk works");
    let before = batches.iter().take_while(|batch| batch.path != second.path).last().expect("there is one");
    assert!(matches!(Db::open(&disk), Err(OpenError::Damaged { path, .. }) if path == before.path));
    salvage(&disk);
    let kept = second.first_commit - 1;
    assert_eq!(Db::open(&disk).expect("it was salvaged").content(), states[kept as usize]);
}

#[test]
fn a_file_of_another_database_is_not_read() {
    let (disk, batches, _) = folder();
    let (other, _, _) = folder();
    let path = &batches[0].path;
    let content = other.read(path).expect("the disk works");
    let file = disk.open(path, OpenMode::Write).expect("the disk works");
    file.write_at(0, &content).expect("the disk works");
    assert!(matches!(Db::open(&disk), Err(OpenError::Damaged { offset: 0, .. })));
}

fn snapshot_path(disk: &SimDisk) -> PathBuf {
    let names = disk.list(Path::new(FOLDER)).expect("the disk works");
    let newest = names.into_iter().rfind(|name| name.to_string_lossy().contains("snapshot-"));
    newest.expect("there is a snapshot")
}

#[test]
fn a_damaged_snapshot_stops_the_start() {
    let (disk, _, _) = folder();
    let path = snapshot_path(&disk);
    flip(&disk, &path, 80);
    let error = Db::open(&disk).map(|db| db.content()).expect_err("the only snapshot is damaged");
    assert!(
        matches!(&error, OpenError::Snapshot { path: named, offset: 64, .. } if *named == path),
        "{error}"
    );
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    assert!(matches!(journal::salvage(&storage, Path::new(FOLDER)), Err(OpenError::Snapshot { .. })));
    assert!(disk.exists(&path).expect("the disk works"));
}

/// A compaction whose last step failed leaves the old snapshot and everything behind it.
#[test]
fn an_older_snapshot_and_its_log_make_up_for_a_damaged_one() {
    // In the header nothing tells what the older one would have to reach.
    for (place, is_enough) in [(80, true), (20, false)] {
        let (disk, _, _) = folder();
        let mut db = Db::open(&disk).expect("it is whole");
        let begun = db.journal.begin_compaction(Arc::new(db.root.clone())).expect("the disk works");
        let compacted = journal::BinaryLog::<Toy, ToyCodec>::run_compaction(begun);
        disk.inject(disk.steps() + 1, Fault::Failed);
        db.journal.finish_compaction(compacted).expect_err("the folder was not synced");
        db.commit_durably(vec![put(30, 30)]).expect("the journal goes on");
        let content = db.content();
        drop(db);
        let path = snapshot_path(&disk);
        flip(&disk, &path, place);
        if !is_enough {
            assert!(matches!(Db::open(&disk), Err(OpenError::Snapshot { .. })));
            assert_eq!(salvage(&disk).aside.len(), 1);
            assert_eq!(Db::open(&disk).expect("the older one is read").content(), content);
            continue;
        }
        let mut db = Db::open(&disk).expect("the older one is read");
        assert_eq!(db.content(), content);
        assert_eq!(db.report.damaged_snapshots, [path]);
        assert!(db.journal.wants_compaction());
        db.compact().expect("the disk works");
        drop(db);
        assert!(Db::open(&disk).expect("it is whole").report.damaged_snapshots.is_empty());
    }
}

#[test]
fn a_record_that_means_nothing_stops_the_start() {
    let (disk, mut db) = Db::new();
    let (mut commits, root) = db.prepare(&[vec![put(1, 1)], vec![(1, None)]]);
    // Without the first, the second removes what is not there.
    commits.remove(0);
    db.append(&commits, root).expect("the journal does not look into commits");
    drop(db);
    let error = Db::open(&disk).map(|db| db.content()).expect_err("the record means nothing");
    assert_eq!(
        error.to_string(),
        "/db/journal-00000002: cannot make sense of the record at offset 64: it removes what is not there"
    );
}

#[test]
fn loading_needs_no_lock_and_changes_nothing() {
    let (disk, _, states) = folder();
    let Opened { journal: held, position, .. } =
        journal::open(Arc::new(disk.clone()), Path::new(FOLDER), ToyCodec, &crate::toy::options())
            .expect("it is whole");
    let steps = disk.steps();
    let loaded = journal::load(&disk, Path::new(FOLDER), &ToyCodec).expect("it is whole");
    assert_eq!((Content::of(&loaded.root), loaded.position), (states[20].clone(), position));
    assert_eq!((loaded.report.replayed_commits, disk.steps()), (20, steps));
    assert!(matches!(Db::open(&disk), Err(OpenError::Lock { .. })));
    drop(held);
    let mut records = 0;
    let report = journal::verify(&disk, Path::new(FOLDER), &mut |item| {
        records += u64::from(matches!(item, LogItem::Record { .. }));
    });
    let report = report.expect("it is whole");
    assert_eq!((report.commits, report.damage, records), (20, None, 20));
}

#[test]
fn a_directory_is_made_once_and_opened_where_there_is_one() {
    let disk = SimDisk::new();
    let none = Db::open(&disk).map(|db| db.content()).expect_err("there is none");
    assert!(matches!(none, OpenError::Missing { .. }), "{none}");
    assert!(disk.list(Path::new(FOLDER)).expect("the disk works").is_empty(), "not even a lock is left");
    Db::create(&disk).expect("the disk works");
    assert!(matches!(Db::create(&disk), Err(OpenError::Exists { .. })));
    let db = Db::open(&disk).expect("it is whole");
    assert!(matches!(Db::create(&disk), Err(OpenError::Lock { .. })));
    drop(db);
}
