//! Messages decoded and encoded, beside `rasn-ldap`, which derives its codec from RFC 4511's ASN.1 and is the oracle of
//! the differential test.
//!
//! Fastest runs in ns on two busy cores (rustc 1.95; ours walks all values as well, the others make their message from or
//! into octets, and have it at hand when they encode):
//!
//! | | ours | rasn-ldap 0.30 | ldap3_proto 0.9 |
//! | --- | --- | --- | --- |
//! | modify, two replaces | 132 | 438 | 809 |
//! | search, and of two equalities | 222 | 525 | 800 |
//! | add, 10 attributes | 303 | 1,177 | 1,966 |
//! | entry encoded, 10 attributes | 299 | 640 | 3,290 |

use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{
    Attributes, ChangeOperation, EntryWriter, Limits, MessageId, Operation, SearchParameters, decode_request,
    write_add, write_modify, write_search,
};
use divan::{Bencher, black_box};
use rasn_ldap::LdapMessage;

fn main() {
    divan::main();
}

/// An entry of the kind that the modify and search benchmarks of directories use.
const ATTRIBUTES: &[(&str, &[&str])] = &[
    ("objectClass", &["top", "person", "organizationalPerson", "inetOrgPerson"]),
    ("uid", &["user.4711"]),
    ("cn", &["Amy Doe"]),
    ("sn", &["Doe"]),
    ("givenName", &["Amy"]),
    ("mail", &["user.4711@example.com"]),
    ("telephoneNumber", &["+1 555-0100"]),
    ("street", &["12345 Main Street"]),
    ("description", &["This is the description for Amy Doe, who works in the first office."]),
    ("employeeNumber", &["4711"]),
];

const NAME: &[u8] = b"uid=user.4711,ou=People,dc=example,dc=com";

fn id() -> MessageId {
    MessageId::new(4711).expect("in range")
}

/// Two replaces of 12 characters.
fn modify() -> Vec<u8> {
    let mut out = Vec::new();
    let changes = [
        (ChangeOperation::Replace, "street", &["abcdefghijkl"][..]),
        (ChangeOperation::Replace, "description", &["mnopqrstuvwx"][..]),
    ];
    write_modify(&mut out, id(), NAME, changes, &[]);
    out
}

fn search() -> Vec<u8> {
    let mut out = Vec::new();
    let filter = Filter::parse("(&(objectClass=person)(uid=user.4711))").expect("a filter");
    let parameters = SearchParameters {
        base: "ou=People,dc=example,dc=com",
        attributes: &["cn", "mail"],
        ..Default::default()
    };
    write_search(&mut out, id(), &parameters, &filter, &[]);
    out
}

fn add() -> Vec<u8> {
    let mut out = Vec::new();
    write_add(&mut out, id(), NAME, ATTRIBUTES.iter().copied(), &[]);
    out
}

fn rasn(bencher: Bencher<'_, '_>, frame: &[u8]) {
    bencher.bench(|| rasn::ber::decode::<LdapMessage>(black_box(frame)).expect("a message"));
}

#[divan::bench]
fn decode_modify(bencher: Bencher<'_, '_>) {
    let frame = modify();
    bencher.bench(|| {
        let request = decode_request(black_box(&frame), &Limits::DEFAULT).expect("a request");
        let Operation::Modify(modify) = request.operation else { unreachable!("a modify was written") };
        modify
            .changes
            .iter()
            .map(|change| change.attribute.values.iter().map(<[u8]>::len).sum::<usize>())
            .sum::<usize>()
    });
}

#[divan::bench]
fn decode_modify_rasn(bencher: Bencher<'_, '_>) {
    rasn(bencher, &modify());
}

#[divan::bench]
fn decode_search(bencher: Bencher<'_, '_>) {
    let frame = search();
    bencher.bench(|| decode_request(black_box(&frame), &Limits::DEFAULT).map(drop));
}

#[divan::bench]
fn decode_search_rasn(bencher: Bencher<'_, '_>) {
    rasn(bencher, &search());
}

fn walk(attributes: &Attributes<'_>) -> usize {
    attributes.iter().map(|attribute| attribute.values.iter().map(<[u8]>::len).sum::<usize>()).sum()
}

#[divan::bench]
fn decode_add(bencher: Bencher<'_, '_>) {
    let frame = add();
    bencher.bench(|| {
        let request = decode_request(black_box(&frame), &Limits::DEFAULT).expect("a request");
        let Operation::Add(add) = request.operation else { unreachable!("an add was written") };
        walk(&add.attributes)
    });
}

#[divan::bench]
fn decode_add_rasn(bencher: Bencher<'_, '_>) {
    rasn(bencher, &add());
}

#[divan::bench]
fn encode_entry(bencher: Bencher<'_, '_>) {
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        let mut entry = EntryWriter::new(&mut out, id(), NAME);
        for (description, values) in black_box(ATTRIBUTES) {
            entry.attribute(description, *values);
        }
        entry.finish(&[]);
        out.len()
    });
}

/// The message is at hand, as nothing else is done here; a server would have to make it first.
#[divan::bench]
fn encode_entry_rasn(bencher: Bencher<'_, '_>) {
    let mut out = Vec::new();
    let mut entry = EntryWriter::new(&mut out, id(), NAME);
    for (description, values) in ATTRIBUTES {
        entry.attribute(description, *values);
    }
    entry.finish(&[]);
    let message = rasn::ber::decode::<LdapMessage>(&out).expect("a message");
    bencher.bench(|| rasn::ber::encode(black_box(&message)).expect("encoded").len());
}
