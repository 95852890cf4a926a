//! What each operation pays for the schema: names to numbers, normalised values, class checks; and what a change costs.

use std::hint::black_box;

use cowslip_ldap::matching::MatchingRule;
use cowslip_ldap::schema::{
    AttributeTypeId, Definition, Element, ObjectClassId, Schema, SchemaChange, Unused,
};
use divan::Bencher;

fn main() {
    divan::main();
}

#[divan::bench(args = ["cn", "description", "2.5.4.13", "physicalDeliveryOfficeName", "noSuchName"])]
fn attribute_by_name(bencher: Bencher<'_, '_>, name: &str) {
    let schema = Schema::standard();
    bencher.bench(|| schema.attribute(black_box(name)));
}

#[divan::bench(args = ["amy doe", "  Amy   Doe ", "Amy Doe, 27 Long Street, Littletown", "Amy M\u{fc}ller"])]
fn case_ignore(bencher: Bencher<'_, '_>, value: &str) {
    let schema = Schema::standard();
    let mut out = Vec::with_capacity(256);
    bencher.bench_local(|| {
        out.clear();
        MatchingRule::CaseIgnoreMatch.normalize(black_box(value.as_bytes()), &schema, &mut out)
    });
}

#[divan::bench]
fn distinguished_name(bencher: Bencher<'_, '_>) {
    let schema = Schema::standard();
    let mut out = Vec::with_capacity(256);
    bencher.bench_local(|| {
        out.clear();
        let name = black_box(b"uid=user.4711,ou=People,dc=example,dc=com".as_slice());
        MatchingRule::DistinguishedNameMatch.normalize(name, &schema, &mut out)
    });
}

#[divan::bench]
fn check_person(bencher: Bencher<'_, '_>) {
    let schema = Schema::standard();
    let classes: Vec<ObjectClassId> =
        ["top", "person", "organizationalPerson", "inetOrgPerson", "posixAccount"]
            .iter()
            .filter_map(|name| schema.object_class(name))
            .collect();
    let names = "objectClass cn sn givenName uid mail street description telephoneNumber uidNumber gidNumber \
                 homeDirectory loginShell userPassword l st postalCode createTimestamp modifyTimestamp entryUUID";
    let types: Vec<AttributeTypeId> =
        names.split_whitespace().filter_map(|name| schema.attribute(name)).collect();
    bencher.bench(|| schema.check_entry(black_box(&classes), black_box(&types)));
}

#[divan::bench]
fn change_of_an_alias(bencher: Bencher<'_, '_>) {
    let schema = Schema::standard();
    let text = "( 2.5.4.9 NAME ( 'street' 'streetAddress' 'road' ) EQUALITY caseIgnoreMatch \
                SUBSTR caseIgnoreSubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )";
    let change =
        SchemaChange::Replace(Definition::parse(Element::AttributeType, text).expect("a good definition"));
    bencher.bench(|| schema.apply(black_box(std::slice::from_ref(&change)), &Unused));
}
