//! Records that are wrong, alone or beside the others.

use cowslip_ldap_server::import::ImportOptions;
use cowslip_ldap_server::meta::{ENTRIES, IndexForm};

use crate::support::{SUFFIX, entry, imported, imported_with};

const TOP: &str = "dn: dc=example,dc=com\nobjectClass: domain\n";

fn unit(name: &str) -> String {
    format!("\ndn: ou={name}\nobjectClass: organizationalUnit\n")
}

/// What comes after the top, and the lines and reasons of what is rejected.
type Case = (&'static str, String, &'static [(u64, &'static str)]);

#[test]
fn rejections_name_their_lines() {
    let cases: [Case; 12] = [
        (
            "L099: twice, in other case",
            unit("a,dc=example,dc=com") + &unit("A , DC=Example,dc=com"),
            &[(7, "line 4 has")],
        ),
        ("L099: child before parent", unit("b,ou=a,dc=example,dc=com") + &unit("a,dc=example,dc=com"), &[]),
        (
            "L099: three levels backwards",
            unit("c,ou=b,ou=a,dc=example,dc=com")
                + &unit("b,ou=a,dc=example,dc=com")
                + &unit("a,dc=example,dc=com"),
            &[],
        ),
        (
            "L099: no parent",
            unit("b,ou=a,dc=example,dc=com") + &unit("c,ou=b,ou=a,dc=example,dc=com"),
            &[(4, "missing: ou=a,dc=example,dc=com"), (7, "missing: ou=b,ou=a,dc=example,dc=com")],
        ),
        (
            "a child that waits is wrong, too",
            "\ndn: ou=b,ou=a,dc=example,dc=com\nobjectClass: person\nsn: x\n".to_owned()
                + &unit("a,dc=example,dc=com"),
            &[(4, "requires the attribute \"cn\"")],
        ),
        ("another suffix", unit("a,dc=example,dc=org"), &[(4, "none of the directory's suffixes")]),
        ("no name", unit("a,,dc=example,dc=com"), &[(4, "")]),
        ("an unknown attribute", unit("a,dc=example,dc=com") + "noSuchThing: x\n", &[(4, "noSuchThing")]),
        ("a value of another syntax", unit("a,dc=example,dc=com") + "c: Utopia\n", &[(4, "c: ")]),
        (
            "an attribute that the class has not",
            unit("a,dc=example,dc=com") + "uidNumber: 1\n",
            &[(4, "uidNumber")],
        ),
        (
            "damaged text",
            "\ndn: ou=a,dc=example,dc=com\nobjectClass: organizationalUnit\nou:: ###\n".to_owned()
                + &unit("b,dc=example,dc=com"),
            &[(6, "base64")],
        ),
        (
            "a change",
            "\ndn: dc=example,dc=com\nchangetype: delete\n".to_owned(),
            &[(4, "a change of an entry")],
        ),
    ];
    for (what, more, expected) in cases {
        let done = imported(format!("{TOP}{more}").as_bytes());
        assert_eq!(done.rejections.len(), expected.len(), "{what}: {:?}", done.rejections);
        for (rejection, (line, reason)) in done.rejections.iter().zip(expected) {
            assert!(rejection.line == *line && rejection.reason.contains(reason), "{what}: {rejection:?}");
        }
    }
}

#[test]
fn without_the_entry_of_the_suffix_nothing_is_there() {
    let done = imported((unit("a,dc=example,dc=com") + &unit("b,ou=a,dc=example,dc=com")).as_bytes());
    assert_eq!(done.report.imported, 0, "L099");
    assert!(done.rejections[0].reason.contains("missing: dc=example,dc=com"), "{:?}", done.rejections);
}

#[test]
fn ids_are_unique() {
    let mut ldif = TOP.to_owned();
    for number in 0..2_000 {
        ldif += &unit(&format!("u{number},dc=example,dc=com"));
    }
    ldif += "\ndn: ou=one,dc=example,dc=com\nobjectClass: organizationalUnit\nentryUUID: 51e3c5da-7a3c-103e-9d0e-2f1f3a5b7c9d\n";
    ldif += "\ndn: ou=two,dc=example,dc=com\nobjectClass: organizationalUnit\nentryUUID: 51E3C5DA-7a3c-103e-9d0e-2f1f3a5b7c9d\n";
    let done = imported(ldif.as_bytes());
    assert_eq!(done.report.imported, 2_002, "L099");
    assert!(done.rejections[0].reason.contains("entryUUID"), "{:?}", done.rejections);
    let mut csns: Vec<_> = done.root.scan(ENTRIES).map(|(_, entry)| entry.csn).collect();
    csns.sort_unstable();
    csns.dedup();
    assert_eq!(csns.len(), done.root.len(ENTRIES));
}

#[test]
fn the_rdn_gives_the_value_that_is_left_out() {
    let done = imported(format!("{TOP}{}", unit("A\\2c b,dc=example,dc=com")).as_bytes());
    let unit = entry(&done.root, "ou=a\\2c B,dc=example,dc=com");
    assert!(unit.contains("\nou: A, b\n"), "{unit}");
}

#[test]
fn what_the_schema_lacks_can_be_left_out_or_added() {
    let ldif = format!("{TOP}{}objectClass: ourThing\nourValue: 7\n", unit("a,dc=example,dc=com"));
    assert_eq!(imported(ldif.as_bytes()).report.rejected, 1);
    let mut lenient = ImportOptions::new([SUFFIX]);
    lenient.drops_unknown = true;
    let done = imported_with(ldif.as_bytes(), &lenient);
    assert_eq!(done.report.imported, 2);
    assert_eq!(done.report.unknown.keys().collect::<Vec<_>>(), ["ourThing", "ourValue"]);
    let schema = "attributetype ( 1.3.6.1.4.1.32473.1 NAME 'ourValue' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )\n\
        objectclass ( 1.3.6.1.4.1.32473.2 NAME 'ourThing' AUXILIARY MAY ourValue )\n";
    let mut options = ImportOptions::new([SUFFIX]);
    options.schema.push(cowslip_ldap::schema::SchemaFile::parse(schema).expect("a schema"));
    options.indexes.push(("ourValue".to_owned(), vec![IndexForm::Equality]));
    let done = imported_with(ldif.as_bytes(), &options);
    assert_eq!(done.report.imported, 2);
    let meta = done.root.meta();
    let kind = meta.schema.attribute("ourValue").expect("it was added");
    let index = meta.index(kind, IndexForm::Equality).expect("an index");
    let posting = done.root.posting(ENTRIES, index, &meta.value_key(kind, b"7"));
    assert_eq!(posting.map(cowslip_engine::Posting::len), Some(1));
}
