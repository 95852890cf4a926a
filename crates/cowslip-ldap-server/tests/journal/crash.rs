//! Power failures, full disks and failing devices under a journal.
//!
//! A script of batches and compactions runs on a simulated disk that stops or fails at one chosen step; this is done for
//! every step, and for several choices of what of the unsynced reached the disk. After each, the folder must hold a state
//! that the database was in, no older than the last one acknowledged as durable, and must go on from there.

use std::sync::Arc;

use cowslip_engine::sim::{Fault, SimDisk};
use cowslip_engine::{AppendError, Journal};
use cowslip_ldap_server::journal::{BinaryLog, Compacted, Compaction, OpenError};

use crate::toy::{Change, Content, Db, Toy, ToyCodec, put};

/// Choices of what survives, besides all and nothing.
const SEEDS: u64 = 5;

#[derive(Clone, Debug)]
pub enum Act {
    /// One batch of these commits.
    Append(Vec<Vec<Change>>),
    Sync,
    Meta(u32),
    BeginCompaction,
    RunCompaction,
    FinishCompaction,
    /// Ends and opens again.
    Restart,
}

fn script() -> Vec<Act> {
    use Act::{Append, BeginCompaction, FinishCompaction, Meta, Restart, RunCompaction, Sync};
    vec![
        Append(vec![vec![put(1, 10), put(2, 0)]]),
        Sync,
        Append(vec![vec![put(3, 100)], vec![(2, None)], vec![put(4, 300)]]),
        Append(vec![vec![put(5, 30)]]),
        Sync,
        // One that is split, and a batch over two files.
        Append(vec![vec![put(6, 1500)]]),
        Append(vec![vec![put(7, 500)], vec![put(1, 900)], vec![put(2, 20)], vec![put(8, 590)]]),
        Sync,
        Meta(7),
        Append(vec![vec![put(9, 9)]]),
        Restart,
        Append(vec![vec![put(9, 10)]]),
        BeginCompaction,
        Append(vec![vec![put(10, 500)], vec![put(11, 40)]]),
        Sync,
        RunCompaction,
        Append(vec![vec![(1, None)], vec![put(12, 70)]]),
        FinishCompaction,
        Append(vec![vec![put(13, 2500)], vec![put(14, 580), put(15, 580)]]),
        Sync,
        Append(vec![vec![put(16, 3000)]]),
        Restart,
        Append(vec![vec![put(3, 33)], vec![put(4, 44)]]),
        Sync,
        Append(vec![vec![put(5, 1200)]]),
        BeginCompaction,
        RunCompaction,
        FinishCompaction,
        Append(vec![vec![put(6, 66)]]),
        Sync,
        Append(vec![vec![put(17, 4000)]]),
        Append(vec![vec![put(18, 1)]]),
    ]
}

/// The states a run went through, and how far it was acknowledged as durable.
pub struct Run {
    /// Each with the number of its last commit.
    states: Vec<(u64, Content)>,
    durable: usize,
    created: bool,
    disk: SimDisk,
}

enum Running {
    No,
    Begun(Compaction<Toy, ToyCodec>),
    Ran(Compacted),
}

impl Run {
    pub fn new(disk: &SimDisk) -> Self {
        let empty = Content { meta: 1, ..Content::default() };
        Self { states: vec![(0, empty)], durable: 0, created: false, disk: disk.clone() }
    }

    /// Runs the script until the machine stops or the database is read-only.
    pub fn play(&mut self, script: &[Act]) {
        if Db::create(&self.disk).is_err() {
            return;
        }
        self.created = true;
        let Ok(mut db) = Db::open(&self.disk) else { return };
        let mut running = Running::No;
        for act in script {
            let done = match act {
                Act::Restart => {
                    drop((db, std::mem::replace(&mut running, Running::No)));
                    let Ok(opened) = Db::open(&self.disk) else { return };
                    db = opened;
                    let state = (db.root.generation(), db.content());
                    self.durable =
                        self.states.iter().rposition(|known| *known == state).expect("a known state");
                    Ok(())
                }
                _ => self.act(&mut db, act, &mut running),
            };
            match done {
                _ if self.disk.is_stopped() => return,
                Ok(()) | Err(AppendError::NotWritten { .. }) => {}
                Err(_) => {
                    let refused = db.journal.append(&[]);
                    assert!(matches!(refused, Err(AppendError::Unknown { .. })), "read-only from here on");
                    return;
                }
            }
        }
    }

    fn act(&mut self, db: &mut Db, act: &Act, running: &mut Running) -> Result<(), AppendError> {
        match act {
            Act::Append(batch) => {
                let (commits, root) = db.prepare(batch);
                // A crash may leave any number of a batch's commits.
                let between = (1..commits.len()).map(|some| {
                    let root = db.prepare(&batch[..some]).1;
                    (root.generation(), Content::of(&root))
                });
                let mut attempts: Vec<_> = between.collect();
                attempts.push((root.generation(), Content::of(&root)));
                let outcome = db.append(&commits, root);
                self.note(attempts, outcome)
            }
            Act::Meta(meta) => {
                let (commit, root) = db.prepare_meta(*meta);
                let attempt = (root.generation(), Content::of(&root));
                let outcome = db.append(&[commit], root);
                self.note(vec![attempt], outcome)
            }
            Act::Sync => {
                db.sync()?;
                if !self.disk.is_stopped() {
                    self.durable = self.states.len() - 1;
                }
                Ok(())
            }
            Act::BeginCompaction => {
                let begun = db.journal.begin_compaction(Arc::new(db.root.clone()));
                *running = begun.map_or(Running::No, Running::Begun);
                Ok(())
            }
            Act::RunCompaction => {
                *running = match std::mem::replace(running, Running::No) {
                    Running::Begun(begun) => Running::Ran(BinaryLog::<Toy, ToyCodec>::run_compaction(begun)),
                    other => other,
                };
                Ok(())
            }
            Act::FinishCompaction => match std::mem::replace(running, Running::No) {
                Running::Ran(compacted) => db.journal.finish_compaction(compacted),
                _ => Ok(()),
            },
            Act::Restart => Ok(()),
        }
    }

    /// The states that were attempted are possible, unless the journal says that nothing was written, which means nothing
    /// if the machine stopped meanwhile.
    fn note(
        &mut self,
        attempts: Vec<(u64, Content)>,
        outcome: Result<(), AppendError>,
    ) -> Result<(), AppendError> {
        if self.disk.is_stopped() || !matches!(outcome, Err(AppendError::NotWritten { .. })) {
            self.states.extend(attempts);
        }
        outcome
    }

    /// What is on the disk is a state, recent enough, and can be worked with.
    pub fn check(&self, disk: &SimDisk, label: &str) {
        let mut db = match Db::open(disk) {
            Ok(db) => db,
            Err(OpenError::Missing { .. }) => {
                assert!(!self.created, "{label}: the directory is gone");
                return;
            }
            Err(error) => panic!("{label}: {error}"),
        };
        let found = (db.root.generation(), db.content());
        let place = self.states.iter().rposition(|state| *state == found);
        let place = place.unwrap_or_else(|| panic!("{label}: not a state the database was in: {found:?}"));
        assert!(place >= self.durable, "{label}: state {place} is older than the durable {}", self.durable);
        // What was opened stays, and so does what comes next.
        let after = Db::open(&disk.crash_copy(|| false)).expect(label);
        assert_eq!(after.content(), found.1, "{label}: what was opened is durable");
        db.commit_durably(vec![put(200, 20)]).expect(label);
        db.commit(vec![put(201, 800)]).expect(label);
        let (written, durable) = (db.content(), db.root.generation() - 1);
        drop(db);
        for seed in 0..2 {
            let reopened = Db::open(&disk.crash_copy(splitmix(seed))).expect(label);
            assert!(reopened.root.generation() >= durable, "{label}");
        }
        let mut reopened = Db::open(&disk.crash(|| true)).expect(label);
        assert_eq!(reopened.content(), written, "{label}");
        reopened.compact().expect(label);
    }

    pub fn check_all_crashes(&self, label: &str) {
        let disk = &self.disk;
        self.check(&disk.crash_copy(|| true), &format!("{label}, all kept"));
        self.check(&disk.crash_copy(|| false), &format!("{label}, nothing kept"));
        for seed in 0..SEEDS {
            self.check(&disk.crash_copy(splitmix(seed)), &format!("{label}, seed {seed}"));
        }
    }
}

/// Bits that depend on a seed only.
pub fn splitmix(seed: u64) -> impl FnMut() -> bool {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) & 1 == 1
    }
}

/// The number of steps of a run without faults.
fn steps() -> u64 {
    let disk = SimDisk::new();
    let mut run = Run::new(&disk);
    run.play(&script());
    let commits = script().into_iter().map(|act| match act {
        Act::Append(batch) => batch.len() as u64,
        act => u64::from(matches!(act, Act::Meta(_))),
    });
    assert_eq!(run.states.last().map(|state| state.0), Some(commits.sum()), "every commit was made");
    disk.steps()
}

#[test]
fn a_power_failure_at_any_step_loses_nothing_durable() {
    let steps = steps();
    assert!(steps > 80, "{steps}");
    for step in 0..steps {
        let disk = SimDisk::new();
        disk.inject(step, Fault::Stop);
        let mut run = Run::new(&disk);
        run.play(&script());
        assert!(disk.is_stopped());
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
            // Only the process ends: the next one reads what the failed device has perhaps not taken.
            run.check(&disk, &format!("{fault:?} at step {step}, restarted"));
        }
    }
}

#[test]
fn a_power_failure_after_a_failure_loses_nothing_durable() {
    let steps = steps();
    for fault in [Fault::Full, Fault::Failed] {
        for first in (0..steps).step_by(2) {
            for second in [first + 1, first + 2, first + 5, first + 11] {
                let disk = SimDisk::new();
                disk.inject(first, fault);
                disk.inject(second, Fault::Stop);
                let mut run = Run::new(&disk);
                run.play(&script());
                run.check_all_crashes(&format!("{fault:?} at {first}, stopped at {second}"));
            }
        }
    }
}

/// A later batch, as long as the first of the refused ones, must not lead on to the second.
#[test]
fn what_was_refused_stays_refused_whatever_survives_a_crash() {
    for seed in 0..64 {
        let (disk, mut db) = Db::new();
        let batch: Vec<_> = (10..14).map(|id| vec![put(id, 560)]).collect();
        let (commits, root) = db.prepare(&batch);
        disk.inject(disk.steps(), Fault::Full);
        assert!(matches!(db.append(&commits, root), Err(AppendError::NotWritten { .. })));
        db.commit(vec![put(20, 560)]).expect("there is room again");
        let values = Db::open(&disk.crash_by(seed)).expect("nothing durable was lost").content().values;
        assert!(values.keys().all(|id| *id == 20), "seed {seed}: {:?}", values.keys());
    }
}

/// A batch that was lost must not come back when another one takes its place, of whatever length.
#[test]
fn what_was_cut_off_never_comes_back() {
    for seed in 0..200 {
        let (disk, mut db) = Db::new();
        for id in 1..9 {
            db.commit(vec![put(id, 560)]).expect("the disk works");
        }
        let disk = disk.crash_by(seed);
        let mut db = Db::open(&disk).expect("nothing durable was lost");
        let before = db.content();
        db.commit_durably(vec![put(20, 560)]).expect("the disk works");
        let after = Db::open(&disk.crash_by(seed)).expect("nothing durable was lost").content();
        assert_eq!(after.values.len(), before.values.len() + 1, "seed {seed}");
        assert!(after.values.contains_key(&20));
    }
}

#[test]
fn what_cannot_be_encoded_is_not_written() {
    let (disk, mut db) = Db::new();
    let bad = (5, Some(crate::toy::UNWRITABLE.to_vec()));
    let (commits, root) = db.prepare(&[vec![put(1, 10)], vec![bad]]);
    assert!(matches!(db.append(&commits, root), Err(AppendError::NotWritten { .. })));
    db.commit_durably(vec![put(2, 10)]).expect("the disk works");
    let content = db.content();
    drop(db);
    assert_eq!(Db::open(&disk).expect("it is whole").content(), content);
    assert_eq!(content.values.len(), 1);
}
