//! LDIF: the cases of the public bug reports (by L-number), RFC 2849's rules, errors with their lines, limits, and the
//! way there and back.

use cowslip_ldap::entry::{Attribute, Entry};
use cowslip_ldap::ldif::{
    LdifBody, LdifControl, LdifError, LdifErrorKind, LdifLimits, LdifModification, LdifOperation,
    LdifOptions, LdifReader, LdifRecord, LdifWriter,
};
use proptest::prelude::*;

fn read(text: &str) -> Vec<Result<LdifRecord, LdifError>> {
    LdifReader::new(text.as_bytes()).collect()
}

fn one(text: &str) -> LdifRecord {
    let mut records = read(text);
    assert_eq!(records.len(), 1, "{text:?}");
    records.remove(0).unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

fn attributes(body: &LdifBody) -> Vec<(&str, Vec<&[u8]>)> {
    let (LdifBody::Entry(attributes) | LdifBody::Add(attributes)) = body else { panic!("{body:?}") };
    attributes
        .iter()
        .map(|it| (it.description.as_str(), it.values.iter().map(Vec::as_slice).collect()))
        .collect()
}

fn attribute(description: &str, values: &[&str]) -> Attribute {
    let values = values.iter().map(|value| value.as_bytes().to_vec()).collect();
    Attribute { description: description.to_owned(), values }
}

fn written(record: &LdifRecord) -> String {
    let mut writer = LdifWriter::new(Vec::new());
    writer.record(record).expect("a vector takes everything");
    String::from_utf8(writer.into_inner()).expect("LDIF is ASCII")
}

#[test]
fn l097_blanks_and_tabs() {
    for (line, value) in [
        ("cn:   x", &b"x"[..]),
        ("cn:x", b"x"),
        ("cn: \tx", b"\tx"),
        ("cn:: ICB4", b"  x"),
        ("cn::ICB4", b"  x"),
        ("cn::   ICB4 ", b"  x"),
        ("cn:\x0bx", b"\x0bx"),
        ("cn:", b""),
        ("cn::", b""),
        ("cn: x ", b"x "),
        ("cn: a:b", b"a:b"),
        ("cn: ä", "ä".as_bytes()),
        ("cn: a\n b", b"ab"),
        ("cn: a\n  b\n c", b"a bc"),
        ("cn:: IC\n B4", b"  x"),
        ("c\n n: x", b"x"),
    ] {
        let record = one(&format!("dn: cn=x\n{line}\n"));
        assert_eq!(attributes(&record.body), [("cn", vec![value])], "L097: {line:?}");
        let crlf = one(&format!("dn: cn=x\n{line}\n").replace('\n', "\r\n"));
        assert_eq!(crlf, record, "L097: {line:?}");
    }
}

#[test]
fn l077_values_that_need_base64() {
    for (value, text) in [
        (&b"x"[..], "cn: x\n"),
        (b"", "cn:\n"),
        (b" x", "cn:: IHg=\n"),
        (b"x ", "cn:: eCA=\n"),
        (b":x", "cn:: Ong=\n"),
        (b"<x", "cn:: PHg=\n"),
        (b"a:<b", "cn: a:<b\n"),
        (b"a\nb", "cn:: YQpi\n"),
        (b"a\rb", "cn:: YQ1i\n"),
        (b"a\0b", "cn:: YQBi\n"),
        (b"\xff\xfe", "cn:: //4=\n"),
        ("ä".as_bytes(), "cn:: w6Q=\n"),
        (b"\tx", "cn: \tx\n"),
        (b"#x", "cn: #x\n"),
    ] {
        let mut entry = Entry::new("cn=x");
        entry.push("cn", value);
        let mut writer = LdifWriter::new(Vec::new());
        writer.entry(&entry).expect("a vector takes everything");
        let found = String::from_utf8(writer.into_inner()).expect("LDIF is ASCII");
        assert_eq!(found, format!("dn: cn=x\n{text}\n"), "L077");
        let change =
            LdifModification { operation: LdifOperation::Replace, attribute: entry.attributes[0].clone() };
        let body = LdifBody::Modify(vec![change]);
        let record = LdifRecord { line: 1, dn: "cn=ä".to_owned(), controls: Vec::new(), body };
        assert_eq!(one(&written(&record)), record, "L077");
    }
}

const RECORDS: &str = "\
# a comment
#  that goes
 on
version: 1

dn: cn=a,dc=x
objectClass: top
cn: a
objectclass: person
CN;lang-en: b


dn:: Y249w6QsZGM9eA==
control: 1.2.840.113556.1.4.805 true
control: 1.2.3
control: 1.2.4 false:: AP8=
control: 1.2.5 : text
changetype: delete

dn: cn=b,dc=x
changetype: Add
cn: b

dn: cn=c,dc=x
changetype: modify
add: mail
mail: a@x
# in between
mail:: YkB4
-
delete: sn
-
replace: cn;lang-en
-
increment: uidNumber
uidNumber: 1

dn: cn=d,dc=x
changetype: modrdn
newrdn: cn=e
deleteoldrdn: 1

dn: cn=e,dc=x
changetype: moddn
newRDN: cn=f
deleteOldRDN: 0
newSuperior: dc=y";

#[test]
fn records_of_all_kinds_are_read() {
    let records: Vec<LdifRecord> =
        read(RECORDS).into_iter().map(|record| record.expect("a record")).collect();
    let lines: Vec<u64> = records.iter().map(|record| record.line).collect();
    assert_eq!(lines, [6, 13, 20, 24, 38, 43]);
    let body = attributes(&records[0].body);
    assert_eq!(body[0], ("objectClass", vec![&b"top"[..], b"person"]));
    assert_eq!((body[1].0, body[2].0), ("cn", "CN;lang-en"));
    assert_eq!((records[1].dn.as_str(), &records[1].body), ("cn=ä,dc=x", &LdifBody::Delete));
    let control = |oid: &str, is_critical, value: Option<&[u8]>| LdifControl {
        oid: oid.to_owned(),
        is_critical,
        value: value.map(<[u8]>::to_vec),
    };
    let controls = [
        control("1.2.840.113556.1.4.805", true, None),
        control("1.2.3", false, None),
        control("1.2.4", false, Some(b"\0\xff")),
        control("1.2.5", false, Some(b"text")),
    ];
    assert_eq!(records[1].controls, controls);
    assert!(
        matches!(&records[2].body, LdifBody::Add(attributes) if *attributes == [attribute("cn", &["b"])])
    );
    let step = |operation, attribute| LdifModification { operation, attribute };
    let steps = vec![
        step(LdifOperation::Add, attribute("mail", &["a@x", "b@x"])),
        step(LdifOperation::Delete, attribute("sn", &[])),
        step(LdifOperation::Replace, attribute("cn;lang-en", &[])),
        step(LdifOperation::Increment, attribute("uidNumber", &["1"])),
    ];
    assert_eq!(records[3].body, LdifBody::Modify(steps));
    let rename = |new_rdn: &str, deletes_old_rdn, new_superior: Option<&str>| LdifBody::Rename {
        new_rdn: new_rdn.to_owned(),
        deletes_old_rdn,
        new_superior: new_superior.map(str::to_owned),
    };
    assert_eq!(records[4].body, rename("cn=e", true, None));
    assert_eq!(records[5].body, rename("cn=f", false, Some("dc=y")));
}

/// A text, the line of the error, and what it is like.
type Refusal = (&'static str, u64, fn(&LdifErrorKind) -> bool);

#[test]
fn errors_name_their_line_and_reading_goes_on() {
    let cases: &[Refusal] = &[
        ("cn: x\n", 1, |e| matches!(e, LdifErrorKind::Expected { .. })),
        ("dn: cn=x\n\n x: y\n", 3, |e| matches!(e, LdifErrorKind::LoneContinuation)),
        ("dn: cn=x\nnonsense\n", 2, |e| matches!(e, LdifErrorKind::NoColon)),
        ("dn: cn=x\n: y\n", 2, |e| matches!(e, LdifErrorKind::Description(_))),
        ("dn: cn=x\nc n: y\n", 2, |e| matches!(e, LdifErrorKind::Description(_))),
        ("dn: cn=x\ncn: a\ncn: a\0b\n", 3, |e| matches!(e, LdifErrorKind::Character { offset: 5, byte: 0 })),
        ("dn: cn=x\ncn: a\rb\n", 2, |e| matches!(e, LdifErrorKind::Character { offset: 5, byte: b'\r' })),
        ("dn: cn=x\ncn: a\ncn:: x\n", 3, |e| matches!(e, LdifErrorKind::Base64)),
        ("dn:: /w==\n", 1, |e| matches!(e, LdifErrorKind::NotUtf8)),
        ("dn: cn=x\ncn:< file:///etc/passwd\n", 2, |e| matches!(e, LdifErrorKind::UrlRefused { .. })),
        ("dn: cn=x\nchangetype: move\n", 2, |e| matches!(e, LdifErrorKind::ChangeType { .. })),
        ("dn: cn=x\nchangetype: delete\ncn: x\n", 3, |e| matches!(e, LdifErrorKind::Expected { .. })),
        ("dn: cn=x\nchangetype: modrdn\n", 3, |e| matches!(e, LdifErrorKind::Expected { .. })),
        ("dn: cn=x\nchangetype: modrdn\nnewrdn: cn=y\ndeleteoldrdn: no\n", 4, |e| {
            matches!(e, LdifErrorKind::Expected { .. })
        }),
        ("dn: cn=x\nchangetype: modify\ncn: y\n", 3, |e| matches!(e, LdifErrorKind::Expected { .. })),
        (
            "dn: cn=x\nchangetype: modify\nadd: cn\ncn: y\nsn: z\n",
            5,
            |e| matches!(e, LdifErrorKind::OtherAttribute { expected, found } if expected == "cn" && found == "sn"),
        ),
        ("dn: cn=x\ncontrol: x\nchangetype: delete\n", 2, |e| matches!(e, LdifErrorKind::Control)),
        ("dn: cn=x\ncontrol: 1.2.3 maybe\n", 2, |e| matches!(e, LdifErrorKind::Control)),
        ("dn: cn=x\ncontrol: 1.2.3\ncn: x\n", 3, |e| matches!(e, LdifErrorKind::Expected { .. })),
        ("version: 2\n\ndn: cn=x\n", 1, |e| matches!(e, LdifErrorKind::Version { found } if found == "2")),
    ];
    for (text, line, is_expected) in cases {
        let mut records = read(&format!("{text}\ndn: cn=after\ncn: after\n"));
        let last =
            records.pop().and_then(Result::ok).unwrap_or_else(|| panic!("{text:?}: nothing after the error"));
        assert_eq!(last.dn, "cn=after", "{text:?}");
        let errors: Vec<LdifError> = records.into_iter().filter_map(Result::err).collect();
        let [error] = errors.as_slice() else { panic!("{text:?}: {errors:?}") };
        assert!(error.line == *line && is_expected(&error.kind), "{text:?}: {error:?}");
    }
}

#[test]
fn limits_hold() {
    let limits = LdifLimits { line_bytes: 20, record_values: 3, record_bytes: 59 };
    let options = LdifOptions { limits, reads_files: false };
    let read = |text: &str| -> Vec<Result<LdifRecord, LdifError>> {
        LdifReader::with_options(text.as_bytes(), options).collect()
    };
    assert!(read("dn: cn=x\ncn: 1\ncn: 2\ncn: 3\n").iter().all(Result::is_ok));
    let cases: &[Refusal] = &[
        ("dn: cn=x\ncn: 5678901234567890x\n", 2, |e| matches!(e, LdifErrorKind::LineTooLong { max: 20 })),
        ("dn: cn=x\ncn: 56789012345\n 67890x\n cn: y\n", 2, |e| {
            matches!(e, LdifErrorKind::LineTooLong { .. })
        }),
        ("dn: cn=x\ncn: 1\ncn: 2\ncn: 3\ncn: 4\n", 5, |e| {
            matches!(e, LdifErrorKind::TooManyValues { max: 3 })
        }),
        ("dn: cn=x\nsn: 789012345678\ncn: 789012345678\nx: 45678901234567890\n", 4, |e| {
            matches!(e, LdifErrorKind::RecordTooLong { max: 59 })
        }),
    ];
    for (text, line, is_expected) in cases {
        let records = read(&format!("{text}\ndn: cn=z\n"));
        let [Err(error), Ok(after)] = records.as_slice() else { panic!("{text:?}: {records:?}") };
        assert!(error.line == *line && is_expected(&error.kind), "{text:?}: {error:?}");
        assert_eq!(after.dn, "cn=z");
    }
}

#[test]
fn files_are_read_by_option_only() {
    let folder = std::env::temp_dir().join(format!("cowslip-ldif-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the value");
    let path = folder.join("a value");
    std::fs::write(&path, b"\0value").expect("a file for the value");
    let url = format!("file://{}", path.display()).replace(' ', "%20");
    let text = format!("dn: cn=x\njpegPhoto:< {url}\n\ndn: cn=y\ncn:< {url}x\n\ndn: cn=z\ncn:< http://x/\n");
    let options = LdifOptions { reads_files: true, ..LdifOptions::default() };
    let records: Vec<_> = LdifReader::with_options(text.as_bytes(), options).collect();
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    let [Ok(record), Err(missing), Err(refused)] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(attributes(&record.body), [("jpegPhoto", vec![&b"\0value"[..]])]);
    assert!(matches!(missing, LdifError { line: 5, kind: LdifErrorKind::File { .. } }), "{missing:?}");
    assert!(matches!(refused, LdifError { line: 8, kind: LdifErrorKind::UrlRefused { .. } }), "{refused:?}");
}

#[test]
fn long_lines_are_folded() {
    let mut entry = Entry::new("cn=x");
    entry.push("description", "y".repeat(200));
    let mut writer = LdifWriter::new(Vec::new());
    writer.entry(&entry).expect("a vector takes everything");
    let text = String::from_utf8(writer.into_inner()).expect("LDIF is ASCII");
    let lengths: Vec<usize> = text.lines().map(str::len).collect();
    assert_eq!(lengths, [8, 76, 76, 63, 0]);
    assert_eq!(one(&text).body, LdifBody::Entry(entry.attributes));
}

#[test]
fn many_attributes_are_gathered() {
    let lines: String =
        (0..200).map(|number| format!("a{}: {number}\nA{}: x\n", number % 100, number % 100)).collect();
    let record = one(&format!("dn: cn=x\n{lines}"));
    let body = attributes(&record.body);
    assert_eq!(body.len(), 100);
    assert!(body.iter().all(|(_, values)| values.len() == 4));
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        "[ :<#a\\-\r\n\t]{0,6}".prop_map(String::into_bytes),
        "[a-z ]{60,200}".prop_map(String::into_bytes),
    ]
}

fn an_attribute() -> impl Strategy<Value = Attribute> {
    ("[a-z]{1,4}(;lang-[a-z]{2})?", prop::collection::vec(octets(), 1..4))
        .prop_map(|(description, values)| Attribute { description, values })
}

/// Attributes with different names.
fn some_attributes() -> impl Strategy<Value = Vec<Attribute>> {
    prop::collection::vec(an_attribute(), 1..6).prop_map(|mut attributes| {
        attributes.sort_by(|one, other| one.description.cmp(&other.description));
        attributes.dedup_by(|one, other| one.description == other.description);
        attributes.retain(|attribute| {
            !["dn", "control", "changetype", "version"].contains(&&*attribute.description)
        });
        attributes
    })
}

fn text() -> impl Strategy<Value = String> {
    "[ -~\u{e4}\r\n]{0,100}"
}

fn body() -> impl Strategy<Value = LdifBody> {
    let operation = prop::sample::select(vec![
        LdifOperation::Add,
        LdifOperation::Delete,
        LdifOperation::Replace,
        LdifOperation::Increment,
    ]);
    let step =
        (operation, an_attribute(), any::<bool>()).prop_map(|(operation, mut attribute, has_values)| {
            attribute.values.retain(|_| has_values);
            LdifModification { operation, attribute }
        });
    prop_oneof![
        some_attributes().prop_map(LdifBody::Entry),
        some_attributes().prop_map(LdifBody::Add),
        Just(LdifBody::Delete),
        prop::collection::vec(step, 0..4).prop_map(LdifBody::Modify),
        (text(), any::<bool>(), prop::option::of(text())).prop_map(
            |(new_rdn, deletes_old_rdn, new_superior)| {
                LdifBody::Rename { new_rdn, deletes_old_rdn, new_superior }
            }
        ),
    ]
}

fn record() -> impl Strategy<Value = LdifRecord> {
    let control = ("1\\.2\\.[1-9]{1,3}", any::<bool>(), prop::option::of(octets()))
        .prop_map(|(oid, is_critical, value)| LdifControl { oid, is_critical, value });
    (text(), prop::collection::vec(control, 0..3), body()).prop_map(|(dn, mut controls, body)| {
        if matches!(body, LdifBody::Entry(_)) {
            controls.clear();
        }
        LdifRecord { line: 0, dn, controls, body }
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(records in prop::collection::vec(record(), 0..4)) {
        let text: String = records.iter().map(written).collect();
        prop_assert!(text.lines().all(|line| line.len() <= 76));
        let mut found: Vec<LdifRecord> = read(&text).into_iter().collect::<Result<_, _>>().expect("what was written");
        found.iter_mut().for_each(|record| record.line = 0);
        prop_assert_eq!(found, records, "{}", text);
    }

    #[test]
    fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let records = LdifReader::new(octets.as_slice()).count();
        prop_assert!(records <= octets.len());
    }

    #[test]
    fn nearly_ldif_is_read_or_refused(
        text in "((dn|cn|changetype|add|newrdn|control|version|-|#| ): ?(:|<)?(x|modify|1|add|modrdn| )?(\r?\n){1,2}){0,12}"
    ) {
        let lines = text.lines().count() as u64;
        for record in read(&text) {
            prop_assert!(record.map_or_else(|error| error.line, |record| record.line) <= lines + 1);
        }
    }
}
