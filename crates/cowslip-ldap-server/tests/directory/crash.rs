//! Two thousand operations on a directory, and a power failure after every single step of the disk.
//!
//! The script runs once on a directory in memory, which gives the state after each operation. Then it runs on a simulated
//! disk that is looked at after each write, cut, rename and sync: a crash is imagined that keeps all, nothing or any of
//! the blocks that were not synced, and what it leaves is opened. That must be the state after one of the operations, no
//! earlier than the last one that was answered. Operations are queued in groups, as many clients would.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cowslip_engine::Root;
use cowslip_engine::sim::SimDisk;
use cowslip_engine::storage::{OpenMode, Storage};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::journal;
use cowslip_ldap_server::meta::ENTRIES;
use cowslip_ldap_server::model::Directory as Model;
use cowslip_ldap_server::service::{Service, ServiceOptions, codec};
use cowslip_ldap_server::tree::Tree;

use crate::random::{self, Random, SUFFIX, Write};
use crate::support::{Directory, assert_indexes, code, values_of};
use crate::watched::{Looking, Watched};

const OPERATIONS: usize = 2_000;

/// As many operations are queued before anybody waits.
const GROUP: usize = 100;

/// Each so many different states of the disk all indexes of what is found are compared with its entries.
const INDEXES_EVERY: usize = 32;

/// After so long an answer is not slow but lost.
const LOST: Duration = Duration::from_secs(300);

const FOLDER: &str = "/directory";

fn options() -> ServiceOptions {
    let mut options = ServiceOptions::new([SUFFIX]);
    options.journal.file_bytes = 64 << 10;
    options.journal.compaction_bytes_min = 96 << 10;
    options.journal.in_background = false;
    options
}

/// What every run of the script brings about alike: all but times and identities.
fn digest(root: &Root<Model>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (number, entry) in root.scan(ENTRIES) {
        (number.0, root.dn(number), &entry.creator, &entry.modifier).hash(&mut hasher);
        let mut attributes: Vec<_> = entry
            .descriptions()
            .map(|(kind, options)| (kind.0, options, values_of(root, entry, kind, options)))
            .collect();
        attributes.sort();
        attributes.hash(&mut hasher);
    }
    hasher.finish()
}

/// The script, the code that each operation is answered with, and the state after it; the first state is that before.
struct Script {
    writes: Vec<Write>,
    codes: Vec<ResultCode>,
    states: HashMap<u64, Vec<usize>>,
}

/// Whether a write changes by what rules others are planned.
fn changes_rules(write: &Write) -> bool {
    match write {
        Write::Add { dn, .. } | Write::Delete { dn } | Write::Modify { dn, .. } => {
            dn.ends_with("cn=config") || dn.ends_with("cn=schema")
        }
        Write::Rename { .. } => false,
    }
}

/// A write on the schema or on the configuration.
fn rule(random: &mut Random) -> Write {
    let number = 1 + random.below(4);
    let definition = format!("( 1.3.6.1.4.1.32473.{number} NAME 'extra{number}' SUP name )");
    let index = |name: &str| format!("cn={name},cn=index,cn=config");
    let name = *random.pick(&["title", "description", "telephoneNumber", "mail"]);
    let unique = "cn=mail,cn=uniqueness,cn=config".to_owned();
    match random.below(8) {
        0 | 1 => {
            Write::Modify { dn: "cn=schema".into(), changes: format!("add\nattributeTypes: {definition}") }
        }
        2 => {
            Write::Modify { dn: "cn=schema".into(), changes: format!("delete\nattributeTypes: {definition}") }
        }
        3 | 4 => Write::Add {
            dn: index(name),
            attributes: "objectClass: cowslipIndex\nindexForm: eq\nindexForm: sub".into(),
        },
        5 => Write::Delete { dn: index(name) },
        6 => Write::Add {
            dn: unique,
            attributes: format!(
                "objectClass: cowslipUniqueRule\nuniqueAttribute: uid\nuniqueBelow: ou=People,{SUFFIX}\n\
                 uniqueClass: organizationalUnit"
            ),
        },
        _ => Write::Delete { dn: unique },
    }
}

fn script() -> Script {
    let directory = Directory::new();
    let mut random = Random::new(4598);
    let mut script = Script { writes: Vec::new(), codes: Vec::new(), states: HashMap::new() };
    script.states.insert(digest(&directory.root()), vec![0]);
    for done in 1..=OPERATIONS {
        let root = directory.root();
        let write = match random.below(80) {
            0 => rule(&mut random),
            1 => {
                let attribute = format!("add\nextra{}: x", 1 + random.below(4));
                Write::Modify { dn: random.name(&random::names(&root)), changes: attribute }
            }
            _ => random::write(&mut random, &random::names(&root)),
        };
        drop(root);
        script.codes.push(code(write.on(&directory)));
        script.writes.push(write);
        script.states.entry(digest(&directory.root())).or_default().push(done);
    }
    directory.service.shutdown().expect("a clean end");
    script
}

/// What may and must be found after a crash.
struct Book {
    states: HashMap<u64, Vec<usize>>,
    /// All operations up to this one were answered.
    answered: usize,
    /// Answered ones beyond that.
    ahead: Vec<usize>,
    queued: usize,
    steps: u64,
    crashes: u64,
    /// What was found on disks with these bytes.
    known: HashMap<u64, Vec<usize>>,
}

/// A hash of all files.
fn fingerprint(disk: &SimDisk) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in disk.list(Path::new(FOLDER)).expect("a folder") {
        let file = disk.open(&path, OpenMode::Read).expect("a file");
        let mut bytes = vec![0; usize::try_from(file.len().expect("a length")).expect("it fits")];
        let count = file.read_at(0, &mut bytes).expect("its bytes");
        (path, &bytes[..count]).hash(&mut hasher);
    }
    hasher.finish()
}

impl Looking for Book {
    fn check(&mut self, disk: &SimDisk) {
        if self.steps == disk.steps() {
            return;
        }
        self.steps = disk.steps();
        let mut unsynced = 0;
        let mut all = Some(disk.crash_copy(|| {
            unsynced += 1;
            true
        }));
        // Where all is synced, all crashes leave the same.
        for kind in 0..=2.min(unsynced) {
            let mut random = Random::new(self.steps);
            let copy = || disk.crash_copy(|| kind == 2 && random.chance(50));
            let after = all.take().unwrap_or_else(copy);
            self.crashes += 1;
            let label = format!("step {}, kind {kind}", self.steps);
            let found = self.found(after, &label);
            assert!(
                found.iter().any(|state| (self.answered..=self.queued).contains(state)),
                "{label}: the state after {found:?}, and {} were answered, {} queued",
                self.answered,
                self.queued
            );
        }
    }
}

impl Book {
    /// After which operations the directory was in the state that a disk holds.
    fn found(&mut self, disk: SimDisk, label: &str) -> Vec<usize> {
        // The same bytes give the same directory, and what was not synced is often the same for several steps.
        let bytes = fingerprint(&disk);
        if let Some(known) = self.known.get(&bytes) {
            return known.clone();
        }
        let options = options();
        let opened = journal::open(Arc::new(disk), Path::new(FOLDER), codec(&options), &options.journal);
        let root = opened.expect(label).root;
        let found = self.states.get(&digest(&root)).cloned();
        let found = found.unwrap_or_else(|| panic!("{label}: no state that the directory was in"));
        self.known.insert(bytes, found.clone());
        if self.known.len().is_multiple_of(INDEXES_EVERY) {
            assert_indexes(&root);
        }
        found
    }

    fn answer(&mut self, operation: usize) {
        self.ahead.push(operation);
        while let Some(place) = self.ahead.iter().position(|ahead| *ahead == self.answered + 1) {
            self.ahead.swap_remove(place);
            self.answered += 1;
        }
    }
}

type Noted = Arc<Mutex<Book>>;

fn noted<T>(book: &Noted, change: impl FnOnce(&mut Book) -> T) -> T {
    change(&mut book.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn a_power_failure_at_any_step_loses_nothing_that_was_answered() {
    let Script { writes, codes, states } = script();
    assert!(codes.iter().filter(|code| code.is_success()).count() > OPERATIONS / 3);
    let disk = SimDisk::new();
    let options = options();
    Service::create(&disk, Path::new(FOLDER), &options).expect("a folder");
    let open = |storage: Arc<dyn Storage>| {
        let (service, _) = Service::open(storage, Path::new(FOLDER), &options).expect("a directory");
        Directory { service }
    };
    let directory = open(Arc::new(disk.clone()));
    directory.fill();
    directory.service.shutdown().expect("a clean end");
    let steps = disk.steps();
    let book =
        Book { states, answered: 0, ahead: Vec::new(), queued: 0, steps, crashes: 0, known: HashMap::new() };
    let watched = Watched { disk: disk.clone(), book: Arc::new(Mutex::new(book)) };
    let mut directory = open(Arc::new(watched.clone()));
    let mut next = 0;
    let mut group = 0;
    while next < writes.len() {
        // What changes the rules goes alone, so that all others are planned under the rules of their turn.
        let is_alone = changes_rules(&writes[next]);
        let most = if is_alone { 1 } else { GROUP };
        let with = writes[next + 1..].iter().take(most - 1).take_while(|write| !changes_rules(write)).count();
        let end = next + 1 + with;
        let (sender, answers) = channel();
        for (place, write) in writes.iter().enumerate().take(end).skip(next) {
            noted(&watched.book, |book| book.queued = place + 1);
            let (sender, book) = (sender.clone(), Arc::clone(&watched.book));
            directory.begin(
                |meta| write.plan(meta),
                move |answer| {
                    noted(&book, |book| book.answer(place + 1));
                    sender.send((place, code(answer.map(drop)))).expect("the test waits");
                },
            );
        }
        for _ in next..end {
            let (place, code) = answers.recv_timeout(LOST).expect("the disk was found as it must be");
            assert_eq!(code, codes[place], "{:?}", writes[place]);
        }
        next = end;
        group += 1;
        if group % 15 == 0 {
            directory.service.shutdown().expect("a clean end");
            directory = open(Arc::new(watched.clone()));
        }
    }
    directory.service.shutdown().expect("a clean end");
    noted(&watched.book, |book| {
        assert_eq!((book.answered, book.queued), (OPERATIONS, OPERATIONS));
        assert!(book.crashes > 300, "{} crashes", book.crashes);
    });
    assert!(disk.syncs() > 100, "{} syncs", disk.syncs());
}
