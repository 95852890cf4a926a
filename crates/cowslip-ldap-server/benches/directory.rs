//! What operations of the directory cost apart from sockets and the disk, and what entries take in memory.
//!
//! `cargo bench -p cowslip-ldap-server --bench directory -- [operations|memory|groups|start|sockets] [ENTRIES] [sub]`
//!
//! * `operations`: a modify of two attributes and a search by uid, step by step;
//! * `memory`: per entry, after loading and after each entry was modified once;
//! * `groups`: one member more or less of groups of 10 and of 100,000, and what else touches many references;
//! * `start`: a snapshot written and read;
//! * `sockets`: durable modifies over 1, 5, 20 and 100 connections, with the processor time of the server's threads.
//!
//! People are entries `uid=user.N,ou=People,dc=example,dc=com` of twelve attributes, with equality indexes on
//! objectClass, uid, cn, sn and mail, and with `sub` substring indexes on cn, sn and mail. Means are of the processor time
//! of the thread, so that other programs on the machine disturb them little; medians are of the time on the clock.

use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cowslip_engine::{ChangeSet, Commit, Draft, RecordNumber, Root, Uuid};
use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{
    Authentication, ChangeOperation, Limits, MessageId, ModifyDnRequest, Operation, Scope, SearchParameters,
    decode_request, write_bind, write_modify, write_modify_dn, write_search,
};
use cowslip_ldap::schema::AttributeTypeId;
use cowslip_ldap_server::codec::DirectoryCodec;
use cowslip_ldap_server::entry::{
    AttributesWriter, Csn, EntryNumber, NO_ENTRY, Numbers, ReferenceAttribute, Special, StoredEntry,
};
use cowslip_ldap_server::journal::Codec;
use cowslip_ldap_server::meta::{ENTRIES, IndexForm, IndexSlot, Meta};
use cowslip_ldap_server::model::{Directory, Note};
use cowslip_ldap_server::operations::write::{self, Circumstances};
use cowslip_ldap_server::operations::{Plan, request, uniqueness};
use cowslip_ldap_server::search::{self, RootDse, Search};
use cowslip_ldap_server::server::ServerOptions;
use cowslip_ldap_server::service::{self, Service, ServiceOptions};
use cowslip_ldap_server::testing::{ROOT_DN, ROOT_PASSWORD, TestServer};

const SUFFIX: &str = "dc=example,dc=com";

/// How many commits one publication takes together.
const BATCH: usize = 4;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let count = words.iter().find_map(|word| word.parse().ok());
    let has = |name: &str| words.iter().any(|word| word == name);
    let all = !["operations", "memory", "groups", "start", "sockets"].iter().any(|name| has(name));
    if all || has("operations") {
        operations(count.unwrap_or(10_000), has("sub"));
    }
    if all || has("memory") {
        memory(count.unwrap_or(10_000), has("sub"));
    }
    if all || has("groups") {
        groups(count.unwrap_or(100_000));
    }
    if all || has("start") {
        start(count.unwrap_or(10_000), has("sub"));
    }
    if all || has("sockets") {
        sockets(count.unwrap_or(10_000));
    }
}

/// The processor time that this thread has had, in microseconds.
fn cpu_us() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default() / 1e3
}

/// The memory of this process, in bytes.
fn resident_bytes() -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or_default() * 1024.0
}

/// A directory without sockets, threads and disk.
struct Bench {
    root: Root<Directory>,
    published: Option<Root<Directory>>,
    codec: DirectoryCodec,
    last_number: u32,
    csn_us: u64,
    random: u64,
    since_published: usize,
    record: Vec<u8>,
    who: Arc<str>,
}

fn options() -> ServiceOptions {
    ServiceOptions::new([SUFFIX])
}

fn slots(meta: &Meta, with_substrings: bool) -> Vec<IndexSlot> {
    let mut slots = Vec::new();
    for name in ["objectClass", "uid", "cn", "sn", "mail"] {
        let kind = meta.schema.attribute(name).expect("a standard type");
        slots.push(IndexSlot { kind, form: IndexForm::Equality, is_absent: false });
        if with_substrings && ["cn", "sn", "mail"].contains(&name) {
            slots.push(IndexSlot { kind, form: IndexForm::Substring, is_absent: false });
        }
    }
    slots.sort_by_key(|slot| (slot.kind, slot.form));
    slots
}

/// Writes entries of the bench without asking the schema.
struct Maker<'a> {
    meta: &'a Meta,
    last_number: u32,
    who: Arc<str>,
}

impl Maker<'_> {
    fn entry(
        &mut self,
        parent: EntryNumber,
        rdn: &str,
        given: &[(&str, &[&str])],
    ) -> (EntryNumber, StoredEntry) {
        let mut attributes: Vec<(AttributeTypeId, &[&str])> = given
            .iter()
            .map(|(name, values)| (self.meta.schema.attribute(name).expect("a standard type"), *values))
            .collect();
        attributes.sort_by_key(|(kind, _)| *kind);
        let mut writer = AttributesWriter::default();
        for (kind, values) in attributes {
            writer.write(kind, "", values.iter().map(|value| value.as_bytes()));
        }
        self.last_number += 1;
        let us = 1_700_000_000_000_000 + u64::from(self.last_number) * 50;
        let entry = StoredEntry {
            parent,
            rdn: rdn.into(),
            uuid: Uuid::new_v4(),
            created_us: us / 1_000_000 * 1_000_000,
            creator: Arc::clone(&self.who),
            modified_us: us / 1_000_000 * 1_000_000,
            modifier: Arc::clone(&self.who),
            csn: Csn::new(us, 0),
            attributes: writer.finish(),
            special: None,
        };
        (RecordNumber(self.last_number), entry)
    }

    fn person(&mut self, parent: EntryNumber, number: usize) -> (EntryNumber, StoredEntry) {
        let (given, family) = (word(number, 0), word(number, 1));
        let cn = format!("{given} {family} {number}");
        let uid = format!("user.{number}");
        let mail = format!("user.{number}@example.com");
        let phone = format!("+1 555 {:03} {:04}", number / 10_000 % 1000, number % 10_000);
        let street = format!("{:05} {family} Street", number % 100_000);
        let description = format!("This is the description for {cn}.");
        let password = format!("{{SSHA}}{:048}", number as u64 * 0x9e37_79b9);
        self.entry(
            parent,
            &format!("uid={uid}"),
            &[
                ("objectClass", &["top", "person", "organizationalPerson", "inetOrgPerson"]),
                ("uid", &[&uid]),
                ("cn", &[&cn]),
                ("sn", &[&family]),
                ("givenName", &[&given]),
                ("mail", &[&mail]),
                ("telephoneNumber", &[&phone]),
                ("street", &[&street]),
                ("description", &[&description]),
                ("userPassword", &[&password]),
            ],
        )
    }
}

/// One of 5,000 names.
fn word(number: usize, salt: u64) -> String {
    let mut state = (number as u64 + salt * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 5000 + 1;
    let mut word = String::new();
    for at in 0..3 {
        let (c, v) = (state % 17, state / 17 % 5);
        word.push(char::from(b"bcdfghklmnprstvwz"[c as usize]));
        word.push(char::from(b"aeiou"[v as usize]));
        state = state / 3 + at * 31;
    }
    word[..1].to_uppercase() + &word[1..]
}

impl Bench {
    fn new(
        people: usize,
        with_substrings: bool,
        more: impl FnOnce(&mut Maker<'_>, EntryNumber, &mut Vec<Entry>),
    ) -> Self {
        let first = service::initial_root(&options()).expect("a directory");
        let meta = first.meta();
        let rules = Arc::new(meta.rules.as_ref().clone());
        let meta = Meta::new(meta.schema.clone(), rules, slots(meta, with_substrings), 1);
        let mut maker = Maker { meta: &meta, last_number: 100, who: "cn=admin,dc=example,dc=com".into() };
        let mut entries: Vec<Entry> =
            first.scan(ENTRIES).map(|(number, entry)| (number, StoredEntry::clone(entry))).collect();
        let top = maker.entry(NO_ENTRY, SUFFIX, &[("objectClass", &["top", "domain"]), ("dc", &["example"])]);
        let unit = ("objectClass", &["top", "organizationalUnit"][..]);
        let unit = maker.entry(top.0, "ou=People", &[unit, ("ou", &["People"])]);
        let parent = unit.0;
        entries.extend([top, unit]);
        entries.extend((1..=people).map(|number| maker.person(parent, number)));
        more(&mut maker, parent, &mut entries);
        let (last_number, who) = (maker.last_number, Arc::clone(&maker.who));
        let before = Instant::now();
        let records = entries.into_iter().map(|(number, entry)| (ENTRIES, number, Arc::new(entry)));
        let root = Root::load(Arc::new(meta), 0, records).expect("different names");
        println!("{} entries loaded in {:.1} s", root.len(ENTRIES), before.elapsed().as_secs_f64());
        Self {
            root,
            published: None,
            codec: service::codec(&options()),
            last_number,
            csn_us: 1_800_000_000_000_000,
            random: 1,
            since_published: 0,
            record: Vec::new(),
            who,
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    fn plan(&self, frame: &[u8]) -> Plan {
        let request = decode_request(frame, &Limits::default()).expect("a request");
        request::plan(&request, self.root.meta()).expect("a plan")
    }

    /// What the committer does up to the changes.
    fn draft(&mut self, plan: &Plan) -> ChangeSet<Directory> {
        self.csn_us += 400;
        let mut now = Circumstances {
            who: &self.who,
            now_us: self.csn_us / 1_000_000 * 1_000_000,
            csn: Csn::new(self.csn_us, 0),
            last_number: &mut self.last_number,
            changes_max: write::CHANGES_PER_OPERATION_MAX_DEFAULT + 1,
        };
        let mut draft = Draft::new(&self.root);
        write::run(&mut draft, plan, &mut now).expect("a write that is allowed");
        uniqueness::check(&draft).expect("unique values");
        draft.finish().expect("a name of its own")
    }

    /// What the journal does, up to the disk; gives the bytes of the record.
    fn encode(&mut self, changes: ChangeSet<Directory>) -> (Commit<Directory>, usize) {
        let note = Arc::new(Note { last_number: self.last_number });
        let commit = Commit { changes: Arc::new(changes), note, root: None };
        self.record.clear();
        self.codec.encode_commit(&commit, &mut self.record).expect("a record");
        (commit, self.record.len())
    }

    fn apply(&mut self, commit: &Commit<Directory>) {
        self.root.apply(&commit.changes);
        self.since_published += 1;
        if self.since_published == BATCH {
            self.since_published = 0;
            self.published = Some(self.root.clone());
        }
    }

    fn write_unclocked(&mut self, frame: &[u8]) {
        let plan = self.plan(frame);
        let changes = self.draft(&plan);
        let (commit, _) = self.encode(changes);
        self.apply(&commit);
    }

    /// A whole write; gives its time in microseconds and the bytes of its record.
    fn write(&mut self, frame: &[u8]) -> (f64, usize) {
        let before = Instant::now();
        let plan = self.plan(frame);
        let changes = self.draft(&plan);
        let (commit, bytes) = self.encode(changes);
        self.apply(&commit);
        drop((plan, commit));
        (before.elapsed().as_secs_f64() * 1e6, bytes)
    }
}

type Entry = (EntryNumber, StoredEntry);

fn id() -> MessageId {
    MessageId::new(7).expect("in range")
}

fn person_dn(number: usize) -> String {
    format!("uid=user.{number},ou=People,{SUFFIX}")
}

fn modify_frame(dn: &str, street: &str, description: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    let changes = [
        (ChangeOperation::Replace, "street", &[street][..]),
        (ChangeOperation::Replace, "description", &[description][..]),
    ];
    write_modify(&mut frame, id(), dn.as_bytes(), changes, &[]);
    frame
}

fn operations(people: usize, with_substrings: bool) {
    let mut bench = Bench::new(people, with_substrings, |_, _, _| {});
    let count = 20_000;
    let frames: Vec<Vec<u8>> = (0..count)
        .map(|round| {
            let number = 1 + bench.random(people);
            modify_frame(&person_dn(number), &format!("{round:012}"), &format!("{:012}", round * 7))
        })
        .collect();
    frames[..count / 10].iter().for_each(|frame| bench.write_unclocked(frame));
    let mut steps: [Vec<f64>; 5] = Default::default();
    for frame in &frames {
        let mut times = [Instant::now(); 6];
        let plan = bench.plan(frame);
        times[1] = Instant::now();
        let changes = bench.draft(&plan);
        times[2] = Instant::now();
        let (commit, _) = bench.encode(changes);
        times[3] = Instant::now();
        bench.apply(&commit);
        times[4] = Instant::now();
        drop((commit, plan));
        times[5] = Instant::now();
        for (step, pair) in steps.iter_mut().zip(times.windows(2)) {
            step.push((pair[1] - pair[0]).as_secs_f64() * 1e6);
        }
    }
    for (name, times) in ["decode, plan", "draft", "encode", "apply", "drop"].iter().zip(steps) {
        println!("  modify: {name:14} {:6.2} us (median)", median(times));
    }
    let before = cpu_us();
    frames.iter().for_each(|frame| bench.write_unclocked(frame));
    println!("  modify: all            {:6.2} us", (cpu_us() - before) / count as f64);
    searches(&mut bench, people, count);
}

fn searches(bench: &mut Bench, people: usize, count: usize) {
    let frames: Vec<Vec<u8>> = (0..count)
        .map(|_| {
            let mut frame = Vec::new();
            let filter =
                Filter::parse(&format!("(uid=user.{})", 1 + bench.random(people))).expect("a filter");
            let base = SUFFIX;
            let search = SearchParameters { base, scope: Scope::Subtree, ..SearchParameters::default() };
            write_search(&mut frame, id(), &search, &filter, &[]);
            frame
        })
        .collect();
    let (mut out, dse) = (Vec::new(), RootDse::default());
    for round in 0..2 {
        let mut steps = [0.0; 3];
        for chunk in frames.chunks(1000) {
            let at = cpu_us();
            let requests: Vec<_> = chunk
                .iter()
                .map(|frame| decode_request(frame, &Limits::default()).expect("a request"))
                .collect();
            let decoded = cpu_us();
            let mut searches: Vec<Search> = requests
                .iter()
                .map(|request| {
                    let Operation::Search(asked) = &request.operation else { unreachable!("a search") };
                    Search::new(&bench.root, asked, search::Limits::default(), true, &dse).expect("a search")
                })
                .collect();
            let begun = cpu_us();
            for search in &mut searches {
                out.clear();
                black_box(search.step(&bench.root, id(), 512, 1 << 17, &mut out));
                assert_eq!(search.answered(), 1, "each uid is one entry's");
            }
            drop(searches);
            for (step, us) in steps.iter_mut().zip([decoded - at, begun - decoded, cpu_us() - begun]) {
                *step += us / count as f64;
            }
        }
        if round == 1 {
            let [decode, begin, run] = steps;
            let all = decode + begin + run;
            println!("  search: decode {decode:.2}, begin {begin:.2}, run {run:.2}, all {all:.2} us");
        }
    }
}

fn memory(people: usize, with_substrings: bool) {
    let before = resident_bytes();
    let mut bench = Bench::new(people, with_substrings, |_, _, _| {});
    let per_entry = |bytes: f64| (bytes - before) / people as f64;
    println!("  loaded: {:.0} bytes per entry", per_entry(resident_bytes()));
    for number in 1..=people {
        let frame = modify_frame(&person_dn(number), &format!("{number:012}"), "changed once, and no more");
        bench.write(&frame);
    }
    println!("  each modified once: {:.0} bytes per entry", per_entry(resident_bytes()));
}

fn group(maker: &mut Maker<'_>, parent: EntryNumber, name: &str, members: &[EntryNumber]) -> Entry {
    let given = [("objectClass", &["top", "groupOfNames"][..]), ("cn", &[name])];
    let (number, mut entry) = maker.entry(parent, &format!("cn={name}"), &given);
    let kind = maker.meta.schema.attribute("member").expect("a standard type");
    let entries: Numbers = members.iter().copied().collect();
    let names = Default::default();
    let references = vec![ReferenceAttribute { kind, options: "".into(), entries, names }];
    entry.special = Some(Arc::new(Special { references, large: Vec::new() }));
    (number, entry)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn groups(people: usize) {
    let mut bench = Bench::new(people + 1000, false, |maker, parent, entries| {
        let persons: Vec<EntryNumber> =
            entries.iter().filter(|(_, entry)| entry.parent == parent).map(|(number, _)| *number).collect();
        entries.push(group(maker, parent, "few", &persons[..10]));
        entries.push(group(maker, parent, "many", &persons[..people]));
        entries.push(group(maker, parent, "doomed", &persons[..people - 1]));
        for number in 0..1000 {
            entries.push(group(maker, parent, &format!("group.{number}"), &persons[people..people + 2]));
        }
        for (name, count) in [("few", 10), ("many", people)] {
            let unit = [("objectClass", &["top", "organizationalUnit"][..]), ("ou", &[name])];
            let unit = maker.entry(parent, &format!("ou={name}.0"), &unit);
            // The persons that the groups refer to lie below it.
            let below = if name == "many" { 10..count } else { 0..count };
            let moved = &persons[below];
            for (_, entry) in entries.iter_mut().filter(|(number, _)| moved.binary_search(number).is_ok()) {
                entry.parent = unit.0;
            }
            entries.push(unit);
        }
    });
    let dn = |number: usize| {
        let below = match number {
            ..=10 => "ou=few.0,",
            number if number <= people => "ou=many.0,",
            _ => "",
        };
        format!("uid=user.{number},{below}ou=People,{SUFFIX}")
    };
    for (name, size) in [("few", 10), ("many", people)] {
        one_more_and_less(&mut bench, name, size, &dn);
    }
    for name in ["few", "many"] {
        let times: Vec<(f64, usize)> = (0..20)
            .map(|round| {
                let mut frame = Vec::new();
                let dn = format!("ou={name}.{round},ou=People,{SUFFIX}");
                let new = format!("ou={name}.{}", round + 1);
                let request = ModifyDnRequest {
                    name: dn.as_bytes(),
                    new_rdn: new.as_bytes(),
                    deletes_old_rdn: true,
                    new_superior: None,
                };
                write_modify_dn(&mut frame, id(), &request, &[]);
                bench.write(&frame)
            })
            .collect();
        let bytes = times[0].1;
        let us = median(times.into_iter().map(|(us, _)| us).collect());
        println!("  renaming what is above {name} referenced entries: {us:9.1} us, {bytes} bytes");
    }
    for (what, dn) in [
        ("deleting the large group", format!("cn=doomed,ou=People,{SUFFIX}")),
        ("deleting a member of 1,000 groups", person_dn(people + 1)),
    ] {
        let mut frame = Vec::new();
        cowslip_ldap::message::write_delete(&mut frame, id(), dn.as_bytes(), &[]);
        let (us, bytes) = bench.write(&frame);
        println!("  {what}: {us:9.1} us, {bytes} bytes");
    }
}

fn one_more_and_less(bench: &mut Bench, name: &str, size: usize, dn: &dyn Fn(usize) -> String) {
    let group = format!("cn={name},ou=People,{SUFFIX}");
    let people = bench.root.len(ENTRIES) - 1200;
    let mut change = |operation, values: &[String]| {
        let mut frame = Vec::new();
        write_modify(&mut frame, id(), group.as_bytes(), [(operation, "member", values)], &[]);
        bench.write(&frame)
    };
    let (mut added, mut deleted) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for round in 0..100 {
        // Those behind all that are members already.
        let one = [dn(people + 300 + round)];
        let (us, record) = change(ChangeOperation::Add, &one);
        added.push(us);
        bytes = record;
        deleted.push(change(ChangeOperation::Delete, &one).0);
    }
    let (added, deleted) = (median(added), median(deleted));
    println!("  {size:6} members: one more {added:9.1} us, one less {deleted:9.1} us, {bytes} bytes");
    let mut all: Vec<String> = (1..=size).map(dn).collect();
    let same = change(ChangeOperation::Replace, &all);
    all.push(dn(people + 400));
    let more = change(ChangeOperation::Replace, &all);
    println!(
        "  {size:6} members: replaced by the same {:9.1} us, {} bytes; by one more {:9.1} us, {} bytes",
        same.0, same.1, more.0, more.1
    );
}

fn start(people: usize, with_substrings: bool) {
    let bench = Bench::new(people, with_substrings, |_, _, _| {});
    let folder = tempfile::tempdir().expect("room for a folder");
    let storage = cowslip_engine::storage::FileSystem::new();
    let before = Instant::now();
    Service::create_from(&storage, folder.path(), &options(), &bench.root).expect("a directory");
    println!("  snapshot written in {:.1} s", before.elapsed().as_secs_f64());
    drop(bench);
    let before = Instant::now();
    let (service, _) = Service::open(Arc::new(storage), folder.path(), &options()).expect("a directory");
    println!("  opened in {:.1} s", before.elapsed().as_secs_f64());
    service.shutdown().expect("a clean end");
}

fn sockets(people: usize) {
    let bench = Bench::new(people, false, |_, _, _| {});
    let folder = tempfile::tempdir().expect("room for a folder");
    let storage = cowslip_engine::storage::FileSystem::new();
    Service::create_from(&storage, folder.path(), &options(), &bench.root).expect("a directory");
    drop(bench);
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let (service, _) = Service::open(Arc::new(storage), folder.path(), &options()).expect("a directory");
    let options = ServerOptions::new(ROOT_DN, Some(ROOT_PASSWORD.into()));
    let server = runtime.block_on(TestServer::with_options(service, options));
    for connections in [1, 5, 20, 100] {
        let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let (elapsed, user, system) = thread::scope(|scope| {
            for number in 0..connections {
                let (is_over, done, port) = (&is_over, &done, server.port);
                let client = thread::Builder::new().name(CLIENT.to_owned());
                let work = move || client_modifies(port, people, number as u64, is_over, done);
                client.spawn_scoped(scope, work).expect("a thread");
            }
            thread::sleep(Duration::from_millis(500));
            let (start, before, first) = (Instant::now(), server_ticks(), done.load(Ordering::Relaxed));
            thread::sleep(Duration::from_secs(4));
            let (elapsed, after) = (start.elapsed().as_secs_f64(), server_ticks());
            let count = (done.load(Ordering::Relaxed) - first) as f64;
            is_over.store(true, Ordering::Relaxed);
            println!("  {connections:3} connections: {:6.0} modifies per second", count / elapsed);
            // A tick is a hundredth of a second.
            let us = |ticks: u64| ticks as f64 * 1e4 / count;
            (elapsed, us(after.0 - before.0), us(after.1 - before.1))
        });
        black_box(elapsed);
        println!("      server: {user:.1} us user, {system:.1} us system per modify");
    }
    runtime.block_on(server.stop());
}

const CLIENT: &str = "bench-client";

/// The processor time of all threads that are not a client's, in ticks: user, system.
fn server_ticks() -> (u64, u64) {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let ticks = stats.filter(|stat| !stat.contains(CLIENT)).filter_map(|stat| {
        let fields: Vec<u64> =
            stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        Some((*fields.get(11)?, *fields.get(12)?))
    });
    ticks.fold((0, 0), |(user, system), (u, s)| (user + u, system + s))
}

fn client_modifies(port: u16, people: usize, number: u64, is_over: &AtomicBool, done: &AtomicU64) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let mut frame = Vec::new();
    write_bind(&mut frame, id(), ROOT_DN.as_bytes(), Authentication::Simple(ROOT_PASSWORD.as_bytes()), &[]);
    let mut answer = [0; 256];
    let mut ask = |frame: &[u8]| {
        stream.write_all(frame).expect("a server");
        let count = stream.read(&mut answer).expect("a server");
        // An answer of success is so short that it comes at once: message, number, operation, result code 0.
        assert!(count > 10 && answer[7..10] == [10, 1, 0], "{:?}", &answer[..count]);
    };
    ask(&frame);
    let mut state = number + 1;
    while !is_over.load(Ordering::Relaxed) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let person = 1 + (state >> 33) as usize % people;
        let value = format!("{:012}", state >> 30);
        ask(&modify_frame(&person_dn(person), &value, &value));
        done.fetch_add(1, Ordering::Relaxed);
    }
}
