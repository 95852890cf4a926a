//! Power failures, full disks and failing devices under a database file.
//!
//! A script of commits, compactions and a conversion runs on a simulated disk that stops or fails at one chosen step;
//! this is done for every step, and for several choices of what of the unsynced reached the disk. After each, the file
//! must hold a state that the database was in, no older than the last one acknowledged as durable.

use crate::support::{Change, Content, Db, PATH, content};
use cowslip_engine::sim::{Fault, SimDisk};
use cowslip_engine::{AppendError, Journal};
use cowslip_ovsdb_server::file::{FileJournal, OpenError};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Choices of what survives, besides all and nothing.
const SEEDS: u64 = 6;

enum Act {
    Commit(Vec<Change>),
    Durable(Vec<Change>),
    BeginCompaction,
    FinishCompaction,
    Convert,
}

fn tags(range: std::ops::Range<u16>) -> Vec<u16> {
    range.collect()
}

fn script() -> Vec<Act> {
    use Act::{BeginCompaction, Commit, Convert, Durable, FinishCompaction};
    let tag = |cow, tags, present| Change::Tag { cow, tags, present };
    vec![
        Commit(vec![Change::Insert { cow: 1 }, Change::Fence { meadow: 1, size: Some(4) }]),
        Durable(vec![Change::Insert { cow: 2 }, Change::Graze { cow: 2, meadow: 1, present: true }]),
        Commit(vec![tag(1, tags(0..200), true)]),
        Commit(vec![tag(1, tags(3..4), false), Change::Weigh { cow: 1, weight: 0.1 + 0.2 }]),
        Durable(vec![Change::Pair { cow: 1, pair: vec![0, 5] }]),
        Commit(vec![Change::Mood { cow: 1, mood: 1 }]),
        BeginCompaction,
        Commit(vec![tag(1, tags(300..301), true)]),
        Durable(vec![Change::Note { cow: 2, key: 1, value: Some(1) }]),
        FinishCompaction,
        Commit(vec![Change::Note { cow: 2, key: 1, value: Some(2) }]),
        Commit(vec![Change::Plough { meadow: 1 }]),
        Durable(vec![Change::Delete { cow: 1 }]),
        Commit(vec![Change::Insert { cow: 3 }, tag(3, tags(0..100), true)]),
        BeginCompaction,
        Commit(vec![Change::Insert { cow: 4 }]),
        Convert,
        FinishCompaction,
        Commit(vec![tag(3, tags(0..50), false)]),
        Durable(vec![Change::Rename { cow: 4, name: 9 }]),
        Commit(vec![Change::Insert { cow: 5 }]),
    ]
}

/// The states a run went through, and how far it was acknowledged as durable.
#[derive(Default)]
struct Run {
    states: Vec<Content>,
    durable: usize,
    created: bool,
    disk: SimDisk,
}

impl Run {
    fn new(disk: &SimDisk) -> Self {
        Self { states: vec![Content::new()], disk: disk.clone(), ..Self::default() }
    }

    /// Runs the script until the machine stops or the database is read-only. A commit that is refused is left out.
    fn play(&mut self, script: &[Act]) {
        if Db::create(&self.disk).is_err() {
            return;
        }
        self.created = true;
        let Ok(mut db) = Db::open(&self.disk) else { return };
        let mut compaction = None;
        for act in script {
            let done = match act {
                Act::Commit(changes) => self.commit(&mut db, changes),
                Act::Durable(changes) => {
                    self.commit(&mut db, changes).and_then(|()| match db.journal.make_durable() {
                        Ok(()) => {
                            self.durable = self.states.len() - 1;
                            Ok(())
                        }
                        Err(source) => Err(AppendError::Unknown { source }),
                    })
                }
                Act::BeginCompaction => {
                    compaction = db.journal.begin_compaction(Arc::new(db.root.clone())).ok();
                    Ok(())
                }
                Act::FinishCompaction => match compaction.take() {
                    Some(compaction) => db.journal.finish_compaction(FileJournal::run_compaction(compaction)),
                    None => Ok(()),
                },
                Act::Convert => {
                    let attempt = content(&db.converted());
                    self.note(attempt, db.convert())
                }
            };
            match done {
                Ok(()) | Err(AppendError::NotWritten { .. }) => {}
                Err(_) => {
                    let refused = db.journal.append(&[]);
                    assert!(matches!(refused, Err(AppendError::Unknown { .. })), "read-only from here on");
                    return;
                }
            }
        }
    }

    fn commit(&mut self, db: &mut Db, changes: &[Change]) -> Result<(), AppendError> {
        let mut root = db.root.clone();
        root.apply(&db.draft(changes).expect("the script's changes are acceptable"));
        self.note(content(&root), db.commit(changes).map(|_| ()))
    }

    /// The state that was attempted is a possible one, unless the journal says that it wasn't written, which means
    /// nothing if the machine stopped meanwhile.
    fn note(&mut self, attempt: Content, outcome: Result<(), AppendError>) -> Result<(), AppendError> {
        if self.disk.is_stopped() || !matches!(outcome, Err(AppendError::NotWritten { .. })) {
            self.states.push(attempt);
        }
        outcome
    }

    /// What is on the disk is a state, recent enough, and can be worked with.
    fn check(&self, disk: &SimDisk, label: &str) {
        let mut db = match Db::open(disk) {
            Ok(db) => db,
            Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                assert!(!self.created, "{label}: the file is gone");
                return;
            }
            Err(error) => panic!("{label}: {error}"),
        };
        let found = content(&db.root);
        let place = self.states.iter().rposition(|state| *state == found);
        let place = place.unwrap_or_else(|| panic!("{label}: not a state the database was in: {found:#?}"));
        assert!(place >= self.durable, "{label}: state {place} is older than the durable {}", self.durable);
        // Going on from there, with whatever damage there is.
        assert!(db.commit(&[Change::Insert { cow: 200 }]).expect(label), "{label}");
        db.journal.make_durable().expect(label);
        let written = content(&db.root);
        drop(db);
        let reopened = Db::open(&disk.crash(|| false)).expect(label);
        assert_eq!(content(&reopened.root), written, "{label}");
        assert!(reopened.report.damage.is_none(), "{label}: {:?}", reopened.report.damage);
    }

    fn check_all_crashes(&self, label: &str) {
        let disk = &self.disk;
        self.check(&disk.crash(|| true), &format!("{label}, all kept"));
        self.check(&disk.crash(|| false), &format!("{label}, nothing kept"));
        for seed in 0..SEEDS {
            self.check(&disk.crash_by(seed), &format!("{label}, seed {seed}"));
        }
    }
}

/// The number of steps of a run without faults.
fn steps() -> u64 {
    let disk = SimDisk::new();
    let mut run = Run::new(&disk);
    run.play(&script());
    assert_eq!(run.durable, run.states.len() - 2, "all but the last commit are durable");
    disk.steps()
}

#[test]
fn a_power_failure_at_any_step_loses_nothing_durable() {
    let steps = steps();
    assert!(steps > 40, "{steps}");
    for step in 0..steps {
        let disk = SimDisk::new();
        disk.inject(step, Fault::Stop);
        let mut run = Run::new(&disk);
        run.play(&script());
        run.check_all_crashes(&format!("stopped at step {step}"));
    }
}

#[test]
fn a_failure_at_any_step_leaves_a_database_that_goes_on_or_is_read_only() {
    for fault in [Fault::Full, Fault::Failed] {
        for step in 0..steps() {
            let disk = SimDisk::new();
            disk.inject(step, fault);
            let mut run = Run::new(&disk);
            run.play(&script());
            run.check_all_crashes(&format!("{fault:?} at step {step}"));
        }
    }
}

#[test]
fn a_power_failure_after_a_failure_loses_nothing_durable() {
    let steps = steps();
    for first in (0..steps).step_by(3) {
        for second in [first + 1, first + 2, first + 5] {
            let disk = SimDisk::new();
            disk.inject(first, Fault::Full);
            disk.inject(second, Fault::Stop);
            let mut run = Run::new(&disk);
            run.play(&script());
            run.check_all_crashes(&format!("full at {first}, stopped at {second}"));
        }
    }
}

#[test]
fn a_full_disk_refuses_the_commit_and_takes_the_next() {
    let disk = SimDisk::new();
    Db::create(&disk).expect("the disk works");
    let mut db = Db::open(&disk).expect("the file is good");
    assert!(db.commit(&[Change::Insert { cow: 1 }]).expect("the disk works"));
    let before = content(&db.root);
    disk.inject(disk.steps(), Fault::Full);
    let refused = db.commit(&[Change::Insert { cow: 2 }]);
    assert!(matches!(refused, Err(AppendError::NotWritten { .. })));
    assert_eq!(content(&db.root), before);
    assert!(db.commit(&[Change::Insert { cow: 3 }]).expect("there is room again"));
    let after = content(&db.root);
    drop(db);
    assert_eq!(content(&Db::open(&disk).expect("the file is good").root), after);
}

/// A later record, as long as the first refused one, must not lead on to the second.
#[test]
fn what_was_refused_stays_refused_whatever_survives_a_crash() {
    const REFUSED: u8 = 6;
    for seed in 0..64 {
        let disk = SimDisk::new();
        Db::create(&disk).expect("the disk works");
        let mut db = Db::open(&disk).expect("the file is good");
        let batch: Vec<_> = (10..10 + REFUSED).map(|cow| db.prepare(&[Change::Insert { cow }])).collect();
        disk.inject(disk.steps(), Fault::Full);
        let refused = db.journal.append(&batch);
        assert!(matches!(refused, Err(AppendError::NotWritten { .. })));
        assert!(db.commit(&[Change::Insert { cow: 20 }]).expect("there is room again"));
        let rows = content(&Db::open(&disk.crash_by(seed)).expect("the file is good").root).len();
        assert!(rows <= 1, "seed {seed}: {rows} rows");
    }
}

#[test]
fn a_torn_tail_is_put_aside_before_the_first_write() {
    use cowslip_engine::storage::{OpenMode, Storage};
    let disk = SimDisk::new();
    Db::create(&disk).expect("the disk works");
    let mut db = Db::open(&disk).expect("the file is good");
    let mut ends = vec![db.journal.file_bytes()];
    let mut states = vec![content(&db.root)];
    for cow in 1..4 {
        assert!(db.commit(&[Change::Insert { cow }]).expect("the disk works"));
        ends.push(db.journal.file_bytes());
        states.push(content(&db.root));
    }
    drop(db);
    let whole = disk.read(Path::new(PATH)).expect("the disk works");
    for cut in ends[0] as usize..whole.len() {
        let disk = SimDisk::new();
        let file = disk.open(Path::new(PATH), OpenMode::CreateNew).expect("the disk works");
        file.append(&whole[..cut]).expect("the disk works");
        let mut db = Db::open(&disk).expect("only a bad schema stops the start");
        let good = ends.iter().rposition(|end| *end <= cut as u64).expect("the schema is whole");
        assert_eq!(content(&db.root), states[good], "cut at {cut}");
        let damaged = cut as u64 - ends[good];
        assert_eq!(db.report.damage.as_ref().map_or(0, |damage| damage.bytes), damaged);
        assert_eq!(
            disk.read(Path::new(PATH)).expect("the disk works"),
            &whole[..cut],
            "opening writes nothing"
        );
        assert!(db.commit(&[Change::Insert { cow: 9 }]).expect("the disk works"));
        let names = disk.list(Path::new("/db")).expect("the disk works");
        let aside: Vec<_> =
            names.iter().filter(|name| name.to_string_lossy().contains(".damaged-")).collect();
        if damaged == 0 {
            assert!(aside.is_empty());
        } else {
            assert_eq!(disk.read(aside[0]).expect("the disk works"), &whole[ends[good] as usize..cut]);
        }
    }
}

#[test]
fn records_after_a_bad_one_are_kept_aside_and_counted() {
    use cowslip_engine::storage::{OpenMode, Storage};
    let disk = SimDisk::new();
    Db::create(&disk).expect("the disk works");
    let mut db = Db::open(&disk).expect("the file is good");
    let end = db.journal.file_bytes();
    for cow in 1..5 {
        assert!(db.commit(&[Change::Insert { cow }]).expect("the disk works"));
    }
    drop(db);
    let file = disk.open(Path::new(PATH), OpenMode::Write).expect("the disk works");
    file.write_at(end + 80, b"~").expect("the disk works");
    let db = Db::open(&disk).expect("only a bad schema stops the start");
    assert!(content(&db.root).is_empty());
    let damage = db.report.damage.expect("the first record is bad");
    assert_eq!((damage.offset, damage.intact_records), (end, 3));
}

#[test]
fn a_file_is_opened_once() {
    let disk = SimDisk::new();
    Db::create(&disk).expect("the disk works");
    let db = Db::open(&disk).expect("the file is good");
    assert!(matches!(Db::open(&disk), Err(OpenError::Lock { .. })));
    assert!(matches!(Db::create(&disk), Err(OpenError::Lock { .. })));
    drop(db);
    assert!(matches!(Db::create(&disk), Err(OpenError::Exists { .. })));
    assert!(Db::open(&disk).is_ok());
}
