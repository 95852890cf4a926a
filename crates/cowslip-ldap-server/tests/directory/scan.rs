//! Searches against what looking at every entry finds, after any writes and with any indexes.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;

use cowslip_engine::Root;
use cowslip_ldap::dn::Dn;
use cowslip_ldap::filter::{
    CompiledFilter, EntryView, Filter, Scratch, Truth, VisitAva, VisitKind, VisitValue,
};
use cowslip_ldap::framing::{Framing, frame};
use cowslip_ldap::message::{
    Limits as MessageLimits, MessageId, Operation, ResponseOperation, Scope, SearchParameters,
    decode_request, decode_response, write_search,
};
use cowslip_ldap::schema::{AttributeTypeId, Schema};
use cowslip_ldap_server::entry::EntryNumber;
use cowslip_ldap_server::indexing;
use cowslip_ldap_server::meta::ENTRIES;
use cowslip_ldap_server::model::Directory as Model;
use cowslip_ldap_server::search::{Context, Limits, Progress, RootDse, Search, View, candidates};
use cowslip_ldap_server::tree::Tree;

use crate::filters;
use crate::random::{self, Random};
use crate::support::{Directory, assert_indexes, content};

const SEEDS: u64 = 12;
const BATCHES: usize = 8;
const WRITES_PER_BATCH: usize = 30;
const SEARCHES_PER_BATCH: usize = 60;

/// An entry as it shows itself value by value, without what views know faster.
struct Plain<'a> {
    view: &'a View<'a, Root<Model>>,
    root: &'a Root<Model>,
    number: EntryNumber,
    numbers: &'a HashMap<Vec<u8>, EntryNumber>,
    context: &'a Context,
}

fn normalized(dn: &Dn, schema: &Schema) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    dn.normalize(schema, &mut bytes).ok().map(|()| bytes)
}

impl Plain<'_> {
    /// The entries that the values of one type of one entry name.
    fn named(&self, number: EntryNumber, kind: AttributeTypeId) -> Vec<EntryNumber> {
        let Some(entry) = self.root.entry(number) else { return Vec::new() };
        let view = View::new(self.root, number, entry, self.context, true);
        let mut named = Vec::new();
        let _ = view.values(kind, &mut |_, value| {
            let name = Dn::parse(value).ok().and_then(|dn| normalized(&dn, self.schema()));
            named.extend(name.and_then(|name| self.numbers.get(&name)));
            ControlFlow::Continue(())
        });
        named
    }
}

impl EntryView for Plain<'_> {
    fn schema(&self) -> &Schema {
        self.view.schema()
    }

    fn values(&self, kind: AttributeTypeId, visit: VisitValue<'_>) -> ControlFlow<()> {
        self.view.values(kind, visit)
    }

    fn kinds(&self, visit: VisitKind<'_>) -> ControlFlow<()> {
        self.view.kinds(visit)
    }

    fn name_values(&self, visit: VisitAva<'_>) -> ControlFlow<()> {
        self.view.name_values(visit)
    }

    fn is_in_chain(&self, kind: AttributeTypeId, dn: &Dn) -> Truth {
        let Some(target) = normalized(dn, self.schema()) else { return Truth::Undefined };
        let Some(target) = self.numbers.get(&target) else { return Truth::False };
        let mut seen = BTreeSet::new();
        let mut open = self.named(self.number, kind);
        while let Some(number) = open.pop() {
            if seen.insert(number) {
                open.extend(self.named(number, kind));
            }
        }
        Truth::from(seen.contains(target))
    }
}

fn is_in_scope(dn: &str, base: &str, scope: Scope) -> bool {
    let depth = |dn: &str| if dn.is_empty() { 0 } else { dn.split(',').count() };
    let is_below = base.is_empty() || dn.ends_with(&format!(",{base}"));
    match scope {
        Scope::Base => dn == base,
        // The suffix has two RDNs, and is right below the root all the same.
        Scope::One if base.is_empty() => dn == random::SUFFIX,
        Scope::One => is_below && depth(dn) == depth(base) + 1,
        Scope::Subtree => is_below || dn == base,
        Scope::Subordinates => is_below,
    }
}

/// What looking at every entry finds.
fn scanned(root: &Root<Model>, base: &str, scope: Scope, filter: &Filter) -> Vec<String> {
    let schema = &root.meta().schema;
    let compiled = CompiledFilter::new(filter, schema);
    let numbers = root.scan(ENTRIES).filter_map(|(number, _)| {
        let dn = Dn::parse(root.dn(number).as_bytes()).expect("a name");
        Some((normalized(&dn, schema)?, number))
    });
    let numbers: HashMap<Vec<u8>, EntryNumber> = numbers.collect();
    let context = Context::default();
    let mut found = Vec::new();
    for (number, entry) in root.scan(ENTRIES) {
        let dn = root.dn(number);
        if !dn.ends_with(random::SUFFIX) || !is_in_scope(&dn, base, scope) {
            continue;
        }
        let view = View::new(root, number, entry, &context, true);
        let plain = Plain { view: &view, root, number, numbers: &numbers, context: &context };
        if compiled.evaluate(&plain, &mut Scratch::default()).is_true() {
            found.push(dn);
        }
    }
    found.sort();
    found
}

/// What a search answers, in steps of any size.
fn searched(
    random: &mut Random,
    root: &Root<Model>,
    base: &str,
    scope: Scope,
    filter: &Filter,
) -> Vec<String> {
    let id = MessageId::new(1).expect("in range");
    let mut message = Vec::new();
    write_search(
        &mut message,
        id,
        &SearchParameters { base, scope, ..SearchParameters::default() },
        filter,
        &[],
    );
    let request = decode_request(&message, &MessageLimits::default()).expect("a request");
    let Operation::Search(request) = request.operation else { panic!("a search") };
    let mut search =
        Search::new(root, &request, Limits::default(), true, &RootDse::default()).expect("a base");
    let mut out = Vec::new();
    while search.step(root, id, 1 + random.below(40), 1 + random.below(2000), &mut out) == Progress::More {}
    let mut names = Vec::new();
    let mut rest = out.as_slice();
    while let Ok(Framing::Complete { bytes }) = frame(rest, usize::MAX) {
        let response = decode_response(&rest[..bytes]).expect("a response");
        let ResponseOperation::SearchEntry { name, .. } = response.operation else { panic!("an entry") };
        names.push(name.to_owned());
        rest = &rest[bytes..];
    }
    assert!(rest.is_empty());
    names.sort();
    names
}

/// Gives an attribute other indexes, or none, and waits until they are built.
fn reindex(random: &mut Random, directory: &Directory) {
    const FORMS: [(&str, &[&str]); 9] = [
        ("cn", &["eq", "sub", "approx", "ord"]),
        ("sn", &["eq", "sub", "approx"]),
        ("description", &["eq", "sub", "approx"]),
        ("title", &["eq", "sub", "ord"]),
        ("uid", &["eq", "sub"]),
        ("mail", &["eq", "sub"]),
        ("uidNumber", &["eq", "ord"]),
        ("telephoneNumber", &["eq", "sub"]),
        ("memberUid", &["eq", "sub"]),
    ];
    let (name, forms) = random.pick(&FORMS);
    let dn = format!("cn={name},cn=index,cn=config");
    let chosen = forms.iter().filter(|_| random.chance(60)).map(|form| format!("indexForm: {form}\n"));
    let chosen: String = chosen.collect();
    // It may not be there, and a form without a rule is refused: both leave what there was.
    let _ = directory.delete(&dn);
    if !chosen.is_empty() {
        let _ = directory.add(&dn, &format!("objectClass: cowslipIndex\n{chosen}"));
    }
    while indexing::missing(&directory.root()).is_some() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[derive(Default)]
struct Counts {
    searches: usize,
    indexed: usize,
    matching: usize,
    done: usize,
    refused: usize,
}

fn run(seed: u64, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let directory = Directory::new();
    for batch in 0..BATCHES {
        for _ in 0..WRITES_PER_BATCH {
            let names = random::names(&directory.root());
            match random::write(&mut random, &names).on(&directory) {
                Ok(()) => counts.done += 1,
                Err(_) => counts.refused += 1,
            }
        }
        if random.chance(60) {
            reindex(&mut random, &directory);
        }
        let root = directory.root();
        assert_indexes(&root);
        let names = random::names(&root);
        for _ in 0..SEARCHES_PER_BATCH {
            let filter = filters::filter(&mut random, &root, &names, 2);
            let base = filters::base(&mut random, &names);
            let scopes = [
                Scope::Base,
                Scope::One,
                Scope::Subtree,
                Scope::Subtree,
                Scope::Subtree,
                Scope::Subordinates,
            ];
            // The base of no name is the server's own entry.
            let scope = *random.pick(&scopes[usize::from(base.is_empty())..]);
            let wanted = scanned(&root, &base, scope, &filter);
            let compiled = CompiledFilter::new(&filter, &root.meta().schema);
            let is_indexed = candidates(&root, compiled.root(), &Context::default()).is_some();
            let found = searched(&mut random, &root, &base, scope, &filter);
            assert_eq!(found, wanted, "seed {seed}, batch {batch}: {scope:?} at \"{base}\": {filter}");
            counts.searches += 1;
            counts.indexed += usize::from(is_indexed);
            counts.matching += usize::from(!wanted.is_empty());
        }
    }
    directory.service.shutdown().expect("a clean end");
}

#[test]
fn a_search_finds_what_looking_at_every_entry_finds() {
    let mut counts = Counts::default();
    let seeds = std::env::var("COWSLIP_TEST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        run(seed, &mut counts);
    }
    let Counts { searches, indexed, matching, done, refused } = counts;
    assert!(indexed > searches / 4 && indexed < searches, "{indexed} of {searches} searches used an index");
    assert!(matching > searches / 5, "{matching} of {searches} searches found anything");
    assert!(done > refused / 3 && refused > 0, "{done} writes done, {refused} refused");
}

/// What was written in any order is there after a restart, and so are all indexes.
#[test]
fn random_writes_survive_a_restart() {
    for seed in 100..104 {
        let folder = tempfile::tempdir().expect("a folder");
        let mut random = Random::new(seed);
        let mut directory = Directory::create(folder.path());
        for _ in 0..3 {
            for _ in 0..60 {
                let names = random::names(&directory.root());
                let _ = random::write(&mut random, &names).on(&directory);
            }
            reindex(&mut random, &directory);
            let before = content(&directory.root());
            directory.service.shutdown().expect("a clean end");
            drop(directory);
            directory = Directory::open(folder.path());
            assert_eq!(content(&directory.root()), before, "seed {seed}");
            assert_indexes(&directory.root());
        }
        directory.service.shutdown().expect("a clean end");
    }
}
