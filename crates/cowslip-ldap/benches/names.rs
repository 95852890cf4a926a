//! Names, filters and LDIF: what each search, each modify and each imported entry pays.

use std::ops::ControlFlow;

use cowslip_ldap::dn::{Dn, Rdn};
use cowslip_ldap::entry::Entry;
use cowslip_ldap::filter::{CompiledFilter, EntryView, Filter, Scratch, VisitAva, VisitKind, VisitValue};
use cowslip_ldap::ldif::{LdifReader, LdifWriter};
use cowslip_ldap::matching::MatchingRule;
use cowslip_ldap::schema::{AttributeTypeId, Schema};
use divan::{Bencher, black_box, counter::BytesCount};

fn main() {
    divan::main();
}

const DN: &[u8] = b"uid=user.4711,ou=People,dc=example,dc=com";

const PERSON: &str = "\
dn: uid=user.4711,ou=People,dc=example,dc=com
objectClass: top
objectClass: person
objectClass: organizationalPerson
objectClass: inetOrgPerson
uid: user.4711
cn: Amalie Doe
sn: Doe
givenName: Amalie
mail: user.4711@example.com
telephoneNumber: +1 555 0100
mobile: +1 555 0101
street: 17 Lincoln Street
l: Springfield
st: Kentucky
postalCode: 50369
description: This is the description for Amalie Doe.
employeeNumber: 4711
initials: AD

";

#[divan::bench]
fn dn_parse() -> Option<Dn> {
    Dn::parse(black_box(DN)).ok()
}

#[divan::bench]
fn dn_display(bencher: Bencher<'_, '_>) {
    let dn = Dn::parse(DN).expect("a name");
    bencher.bench(|| black_box(&dn).to_string());
}

#[divan::bench]
fn dn_normalize_parsed(bencher: Bencher<'_, '_>) {
    let (schema, dn) = (Schema::standard(), Dn::parse(DN).expect("a name"));
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        dn.normalize(&schema, &mut out).is_ok()
    });
}

#[divan::bench]
fn dn_normalize_text(bencher: Bencher<'_, '_>) {
    let schema = Schema::standard();
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        MatchingRule::DistinguishedNameMatch.normalize(black_box(DN), &schema, &mut out).is_ok()
    });
}

/// The person, with attribute numbers.
struct Person {
    schema: Schema,
    values: Vec<(AttributeTypeId, Vec<u8>)>,
    dn: Dn,
}

impl Person {
    fn new() -> Self {
        let schema = Schema::standard();
        let values = PERSON.lines().skip(1).filter_map(|line| line.split_once(": "));
        let values =
            values.map(|(name, value)| (schema.attribute(name).expect("a type"), value.into())).collect();
        Self { schema, values, dn: Dn::parse(DN).expect("a name") }
    }
}

impl EntryView for Person {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn values(&self, kind: AttributeTypeId, visit: VisitValue<'_>) -> ControlFlow<()> {
        self.values.iter().filter(|(held, _)| *held == kind).try_for_each(|(_, value)| visit("", value))
    }

    fn kinds(&self, visit: VisitKind<'_>) -> ControlFlow<()> {
        self.values.iter().try_for_each(|(kind, _)| visit(*kind))
    }

    fn name_values(&self, visit: VisitAva<'_>) -> ControlFlow<()> {
        self.dn.rdns().iter().flat_map(Rdn::avas).try_for_each(|ava| {
            let kind = self.schema.attribute(ava.attribute());
            kind.map_or(ControlFlow::Continue(()), |kind| visit(kind, ava.value()))
        })
    }
}

const FILTERS: &[&str] = &[
    "(uid=user.4711)",
    "(objectClass=inetOrgPerson)",
    "(&(objectClass=person)(|(cn=amalie doe)(mail=amalie@example.com)))",
    "(cn=Ama*do*)",
    "(description~=emily)",
    "(name=doe)",
];

#[divan::bench(args = FILTERS)]
fn filter_parse(text: &str) -> Option<Filter> {
    Filter::parse(black_box(text)).ok()
}

#[divan::bench(args = FILTERS)]
fn filter_compile(bencher: Bencher<'_, '_>, text: &str) {
    let (schema, filter) = (Schema::standard(), Filter::parse(text).expect("a filter"));
    bencher.bench(|| CompiledFilter::new(&filter, &schema));
}

#[divan::bench(args = FILTERS)]
fn filter_evaluate(bencher: Bencher<'_, '_>, text: &str) {
    let person = Person::new();
    let compiled = CompiledFilter::new(&Filter::parse(text).expect("a filter"), &person.schema);
    let mut scratch = Scratch::default();
    bencher.bench_local(|| compiled.evaluate(black_box(&person), &mut scratch));
}

#[divan::bench(args = [20, 2_000, 20_000])]
fn filter_of_many_names(bencher: Bencher<'_, '_>, terms: usize) {
    let person = Person::new();
    let terms: String = (0..terms).map(|number| format!("(uid=other.{number})")).collect();
    let compiled =
        CompiledFilter::new(&Filter::parse(&format!("(|{terms})")).expect("a filter"), &person.schema);
    let mut scratch = Scratch::default();
    bencher.bench_local(|| compiled.evaluate(black_box(&person), &mut scratch));
}

#[divan::bench]
fn ldif_read(bencher: Bencher<'_, '_>) {
    let text = PERSON.repeat(100);
    bencher.counter(BytesCount::of_str(&text)).bench(|| LdifReader::new(text.as_bytes()).count());
}

#[divan::bench]
fn ldif_write(bencher: Bencher<'_, '_>) {
    let mut lines = PERSON.lines();
    let mut entry = Entry::new(lines.next().unwrap_or_default().trim_start_matches("dn: "));
    lines.filter_map(|line| line.split_once(": ")).for_each(|(name, value)| entry.push(name, value));
    let mut out = Vec::with_capacity(100 * PERSON.len());
    bencher.counter(BytesCount::new(100 * PERSON.len())).bench_local(|| {
        out.clear();
        let mut writer = LdifWriter::new(&mut out);
        (0..100).all(|_| writer.entry(black_box(&entry)).is_ok())
    });
}
