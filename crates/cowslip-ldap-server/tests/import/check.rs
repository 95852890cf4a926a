//! What a look at every entry finds.

use std::sync::Arc;

use cowslip_engine::{RecordNumber, Root};
use cowslip_ldap_server::entry::{AttributesWriter, EntryNumber, StoredEntry};
use cowslip_ldap_server::meta::{ENTRIES, Meta};
use cowslip_ldap_server::model::Directory;
use cowslip_ldap_server::offline::{Problem, check};
use cowslip_ldap_server::operations::prepare;
use cowslip_ldap_server::tree::Tree;

use crate::support::imported;

const LDIF: &str = "dn: dc=example,dc=com\nobjectClass: domain\n\n\
    dn: ou=a,dc=example,dc=com\nobjectClass: organizationalUnit\n\n\
    dn: ou=b,ou=a,dc=example,dc=com\nobjectClass: organizationalUnit\n\n\
    dn: cn=g,ou=b,ou=a,dc=example,dc=com\nobjectClass: groupOfNames\nmember: ou=c,dc=example,dc=com\n\n\
    dn: ou=c,dc=example,dc=com\nobjectClass: organizationalUnit\n";

/// Changes one entry; gives its new version.
type Change = fn(&StoredEntry, &dyn Fn(&str) -> EntryNumber, &Meta) -> StoredEntry;

/// The problems of the directory after changes behind the server's back.
fn problems(changes: &[(&str, Change)]) -> Vec<String> {
    let root = imported(LDIF.as_bytes()).root;
    let number = |dn: &str| -> EntryNumber {
        let path =
            prepare::path(&prepare::name(dn.as_bytes()).expect("a name"), root.meta()).expect("a path");
        root.resolve(&path).expect("the entry is there")
    };
    let mut entries: Vec<(EntryNumber, Arc<StoredEntry>)> =
        root.scan(ENTRIES).map(|(number, entry)| (number, Arc::clone(entry))).collect();
    for (dn, change) in changes {
        let changed = number(dn);
        let place = entries.iter().position(|(number, _)| *number == changed).expect("the entry is there");
        let new = change(&entries[place].1, &number, root.meta());
        entries[place].1 = Arc::new(new);
    }
    let records = entries.into_iter().map(|(number, entry)| (ENTRIES, number, entry));
    let broken = Root::<Directory>::load(Arc::clone(root.meta()), 0, records).expect("names are unique");
    let mut found = Vec::new();
    check(&broken, &mut |problem: Problem| found.push(problem.to_string()));
    found
}

fn below(entry: &StoredEntry, parent: EntryNumber) -> StoredEntry {
    StoredEntry { parent, ..entry.clone() }
}

fn named(entry: &StoredEntry, rdn: &str) -> StoredEntry {
    StoredEntry { rdn: rdn.into(), ..entry.clone() }
}

fn without_attributes(entry: &StoredEntry) -> StoredEntry {
    StoredEntry { attributes: AttributesWriter::default().finish(), ..entry.clone() }
}

const A: &str = "ou=a,dc=example,dc=com";
const B: &str = "ou=b,ou=a,dc=example,dc=com";
const G: &str = "cn=g,ou=b,ou=a,dc=example,dc=com";
const C: &str = "ou=c,dc=example,dc=com";

#[test]
fn each_kind_of_problem_is_told_once() {
    type Case = (&'static str, &'static [(&'static str, Change)], &'static [&'static str]);
    let cases: [Case; 8] = [
        ("nothing", &[], &[]),
        (
            "a missing parent",
            &[(A, |entry, _, _| below(entry, RecordNumber(9_999)))],
            &["(ou=a): the entry above it, 9999"],
        ),
        (
            "a loop",
            &[(A, |entry, number, _| below(entry, number(B)))],
            &[
                "(ou=a): the entries above it lead back",
                "(ou=b): the entries above",
                "(cn=g): the entries above",
            ],
        ),
        ("no name", &[(C, |entry, _, _| named(entry, "noSuch=c"))], &["(noSuch=c): no name: "]),
        (
            "a name of a value that is not there",
            &[(C, |entry, _, _| named(entry, "ou=d"))],
            &["no such value of ou"],
        ),
        (
            "a reference to nothing",
            &[(G, |entry, _, meta| {
                let member = meta.schema.attribute("member").expect("it is standard");
                let none = AttributesWriter::default().finish();
                let mut edit = cowslip_ldap_server::entry::EntryEdit::of(&none, None, |_, value: &[u8]| {
                    cowslip_ldap_server::key::Key::new(value)
                });
                let missing = cowslip_ldap_server::entry::Incoming {
                    text: Arc::default(),
                    key: cowslip_ldap_server::key::Key::new(b""),
                    target: Some(RecordNumber(9_999)),
                };
                edit.add(member, "", true, &missing);
                let (_, special, _) = edit.finish().expect("a value was added");
                StoredEntry { special, ..entry.clone() }
            })],
            &["member names entry 9999"],
        ),
        (
            "what the schema does not allow",
            &[(C, |entry, _, meta| {
                let mut writer = AttributesWriter::default();
                let mut kinds: Vec<_> =
                    entry.attributes.iter().map(|a| (a.kind, a.first().to_vec())).collect();
                kinds.push((meta.schema.attribute("uidNumber").expect("it is standard"), b"7".to_vec()));
                kinds.sort();
                kinds.iter().for_each(|(kind, value)| writer.write(*kind, "", [&value[..]].into_iter()));
                StoredEntry { attributes: writer.finish(), ..entry.clone() }
            })],
            &["ou=c,dc=example,dc=com: "],
        ),
        (
            "no class",
            &[(C, |entry, _, _| without_attributes(entry))],
            &["no such value of ou", "ou=c,dc=example,dc=com: "],
        ),
    ];
    for (what, changes, expected) in cases {
        let found = problems(changes);
        assert_eq!(found.len(), expected.len(), "{what}: {found:?}");
        for (problem, part) in found.iter().zip(expected) {
            assert!(problem.contains(part), "{what}: {problem}");
        }
    }
}
