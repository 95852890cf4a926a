//! Two thousand commits, and a crash after every single step of the disk.
//!
//! Instead of running the script again for each step, the disk is looked at while it runs: after each step a crash is
//! imagined, and what it leaves is opened and compared.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use cowslip_engine::sim::SimDisk;

use crate::crash::splitmix;
use crate::toy::{Change, Content, Db, put};
use crate::watched::{Looking, Watched};

const COMMITS: u64 = 2_000;

/// What may and must be found after a crash.
#[derive(Default)]
struct Book {
    /// The hash of the content after each commit that was attempted.
    states: HashMap<u64, u64>,
    durable: u64,
    crashes: u64,
    steps: u64,
}

impl Looking for Book {
    fn check(&mut self, disk: &SimDisk) {
        if self.steps == disk.steps() {
            return;
        }
        self.steps = disk.steps();
        for kind in 0..3 {
            let mut bits = splitmix(self.steps);
            let after = disk.crash_copy(|| match kind {
                0 => true,
                1 => false,
                _ => bits(),
            });
            let label = format!("step {}, kind {kind}", self.steps);
            let db = Db::open(&after).expect(&label);
            let commit = db.root.generation();
            assert!(commit >= self.durable, "{label}: {commit} is before the durable {}", self.durable);
            assert_eq!(Some(&digest(&db.content())), self.states.get(&commit), "{label}: commit {commit}");
            self.crashes += 1;
        }
    }
}

fn digest(content: &Content) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// The commits of one batch.
fn batch(random: &mut impl FnMut(u64) -> u64) -> Vec<Vec<Change>> {
    let change = |random: &mut dyn FnMut(u64) -> u64| {
        let id = random(24) as u32;
        match random(20) {
            0..3 => (id, None),
            3 => put(id, random(1500) as usize),
            _ => put(id, random(90) as usize),
        }
    };
    (0..1 + random(4)).map(|_| (0..1 + random(2)).map(|_| change(random)).collect()).collect()
}

#[test]
fn two_thousand_commits_survive_a_crash_after_any_step() {
    let disk = SimDisk::new();
    Db::create(&disk).expect("the disk works");
    let book = Arc::new(Mutex::new(Book::default()));
    let watched = Watched { disk: disk.clone(), book: Arc::clone(&book) };
    let noted = |change: &dyn Fn(&mut Book)| change(&mut book.lock().unwrap_or_else(PoisonError::into_inner));
    let empty = digest(&Content { meta: 1, ..Content::default() });
    noted(&|book| {
        book.states.insert(0, empty);
    });
    let open = || Db::open_on(Arc::new(watched.clone())).expect("the disk works");
    let mut db = open();
    let mut bits = splitmix(4598);
    let mut random = |below: u64| (0..16).fold(0, |number, _| number << 1 | u64::from(bits())) % below;
    let mut compactions = 0;
    while db.root.generation() < COMMITS {
        let batch = batch(&mut random);
        for some in 1..=batch.len() {
            let root = db.prepare(&batch[..some]).1;
            let state = (root.generation(), digest(&Content::of(&root)));
            noted(&|book| {
                book.states.insert(state.0, state.1);
            });
        }
        let (commits, root) = db.prepare(&batch);
        db.append(&commits, root).expect("the disk works");
        if random(3) > 0 {
            db.sync().expect("the disk works");
            noted(&|book| book.durable = db.root.generation());
        }
        if cowslip_engine::Journal::<crate::toy::Toy>::wants_compaction(&db.journal) {
            db.compact().expect("the disk works");
            noted(&|book| book.durable = db.root.generation());
            compactions += 1;
        }
        if random(100) == 0 {
            drop(db);
            db = open();
        }
    }
    let book = book.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(compactions > 5 && book.crashes > 3 * COMMITS, "{compactions} {}", book.crashes);
}
