//! Add, delete, modify and modifyDN (RFC 4511, sections 4.6 to 4.9), references and uniqueness.

use cowslip_ldap::result::ResultCode;

use crate::support::{Directory, assert_indexes, code, content};

const AMY: &str = "uid=amy,ou=People,dc=example,dc=com";
const BOB: &str = "uid=bob,ou=People,dc=example,dc=com";

#[test]
fn entries_are_added_and_deleted() {
    let directory = Directory::new();
    assert_eq!(code(directory.person("amy", "")), ResultCode::EntryAlreadyExists);
    assert_eq!(
        code(directory.add("uid=x,ou=None,dc=example,dc=com", "objectClass: account")),
        ResultCode::NoSuchObject
    );
    assert_eq!(code(directory.add("dc=org", "objectClass: domain")), ResultCode::NoSuchObject);
    assert_eq!(code(directory.delete("ou=People,dc=example,dc=com")), ResultCode::NotAllowedOnNonLeaf);
    assert_eq!(code(directory.delete(AMY)), ResultCode::Success);
    assert_eq!(code(directory.delete(AMY)), ResultCode::NoSuchObject);
    assert_eq!(code(directory.delete("ou=People,dc=example,dc=com")), ResultCode::Success, "L085");
    assert_indexes(&directory.root());
}

#[test]
fn values_come_and_go() {
    let directory = Directory::new();
    let modify = |changes: &str| code(directory.modify(AMY, changes));
    assert_eq!(modify("add\nmail: amy@example.com"), ResultCode::Success);
    assert_eq!(modify("add\nmail: AMY@example.com"), ResultCode::AttributeOrValueExists);
    assert_eq!(modify("delete\nmail: none@example.com"), ResultCode::NoSuchAttribute, "L068");
    assert_eq!(modify("replace\nmail:"), ResultCode::Success, "L068");
    assert_eq!(modify("replace\nmail:"), ResultCode::Success, "L068");
    assert_eq!(modify("delete\nmail:"), ResultCode::NoSuchAttribute, "L068");
    assert_eq!(modify("replace\nsn:"), ResultCode::ObjectClassViolation, "L068");
    assert_eq!(modify("add\nnosuch: x"), ResultCode::UndefinedAttributeType);
    assert_eq!(modify("add\nuidNumber: 7"), ResultCode::ObjectClassViolation);
    assert_eq!(modify("replace\nmodifiersName: cn=x"), ResultCode::ConstraintViolation, "L064");
    assert_eq!(directory.values(AMY, "mail"), [""; 0]);
    assert_indexes(&directory.root());
}

#[test]
fn the_rdn_stays() {
    let directory = Directory::new();
    let modify = |changes: &str| code(directory.modify(AMY, changes));
    assert_eq!(modify("delete\nuid:"), ResultCode::NotAllowedOnRdn, "L069");
    assert_eq!(modify("replace\nuid: bob"), ResultCode::NotAllowedOnRdn, "L069");
    assert_eq!(modify("delete\nuid: AMY"), ResultCode::NotAllowedOnRdn, "L069");
    assert_eq!(modify("replace\nuid: amy\nuid: bob"), ResultCode::Success, "L069");
    assert_eq!(modify("replace\nuid: Amy"), ResultCode::Success, "L069");
    assert_eq!(directory.values(AMY, "uid"), ["Amy"]);
}

#[test]
fn a_rename_keeps_what_names_the_entry() {
    let directory = Directory::new();
    let group = "cn=g1,ou=Groups,dc=example,dc=com";
    let members = format!("objectClass: groupOfNames\nmember: {AMY}\nmember: {BOB}");
    directory.add(group, &members).expect("a group");
    assert_eq!(directory.values(group, "member"), [AMY, BOB]);
    directory.person("bob", "").expect("bob");
    directory.rename(AMY, "uid=Ann", true, None).expect("a new name");
    assert_eq!(directory.values(group, "member"), ["uid=Ann,ou=People,dc=example,dc=com", BOB]);
    directory.rename("ou=People,dc=example,dc=com", "ou=Staff", true, None).expect("a new name for all");
    assert_eq!(
        directory.values(group, "member"),
        ["uid=Ann,ou=Staff,dc=example,dc=com", "uid=bob,ou=Staff,dc=example,dc=com"]
    );
    directory.delete("uid=bob,ou=Staff,dc=example,dc=com").expect("bob goes");
    assert_eq!(directory.values(group, "member"), ["uid=Ann,ou=Staff,dc=example,dc=com"]);
    assert_indexes(&directory.root());
}

#[test]
fn renames_have_their_rules() {
    let directory = Directory::new();
    directory.person("bob", "").expect("bob");
    let rename = |rdn: &str, superior| code(directory.rename(AMY, rdn, false, superior));
    assert_eq!(rename("uid=bob", None), ResultCode::EntryAlreadyExists);
    assert_eq!(rename("uid=amy", Some("ou=None,dc=example,dc=com")), ResultCode::NoSuchObject, "L082");
    assert_eq!(rename("uid=amy", Some(AMY)), ResultCode::UnwillingToPerform, "L082");
    assert_eq!(rename("uid=amy", Some("cn=config")), ResultCode::AffectsMultipleDsas, "L082");
    assert_eq!(rename("uid=amy", Some("ou=People,dc=example,dc=com")), ResultCode::Success, "L082");
    assert_eq!(rename("uid=Amy", None), ResultCode::Success, "L079");
    let before = directory.root().generation();
    assert_eq!(rename("uid=Amy", None), ResultCode::Success, "L079");
    assert_eq!(directory.root().generation(), before, "nothing changed");
    assert_eq!(directory.values(AMY, "uid"), ["Amy"], "L079");
    assert_indexes(&directory.root());
}

#[test]
fn unique_values_are_unique() {
    let directory = Directory::new();
    directory.person("bob", "mail: bob@example.com").expect("bob");
    let rule =
        "objectClass: cowslipUniqueRule\nuniqueAttribute: mail\nuniqueBelow: ou=People,dc=example,dc=com";
    directory.add("cn=mail,cn=uniqueness,cn=config", rule).expect("a rule");
    let mail = "add\nmail: BOB@example.com";
    assert_eq!(code(directory.modify(AMY, mail)), ResultCode::ConstraintViolation);
    assert_eq!(code(directory.person("eve", "mail: bob@example.com")), ResultCode::ConstraintViolation);
    let elsewhere = "uid=eve,ou=Groups,dc=example,dc=com";
    let eve = "objectClass: inetOrgPerson\ncn: Eve\nsn: Eve\nmail: bob@example.com";
    directory.add(elsewhere, eve).expect("outside the rule");
    let inside = Some("ou=People,dc=example,dc=com");
    assert_eq!(
        code(directory.rename(elsewhere, "uid=eve", false, inside)),
        ResultCode::ConstraintViolation,
        "L080"
    );
    directory.rename(BOB, "uid=bob", false, Some("ou=Groups,dc=example,dc=com")).expect("L080");
    assert_eq!(code(directory.modify(AMY, mail)), ResultCode::Success, "bob is elsewhere");

    // A rule that the data breaks already is refused, and gone.
    let rule = "objectClass: cowslipUniqueRule\nuniqueAttribute: sn";
    let refused =
        directory.add("cn=sn,cn=uniqueness,cn=config", rule).expect_err("two of them are called Doe");
    assert!(refused.message.contains("Doe"), "{refused}");
    assert_eq!(code(directory.person("max", "")), ResultCode::Success);
    assert_indexes(&directory.root());
}

#[test]
fn an_index_is_built_beside_the_writes() {
    let directory = Directory::new();
    for number in 0..500 {
        directory.person(&format!("user{number}"), &format!("title: Title {number}")).expect("a person");
    }
    let index = "objectClass: cowslipIndex\nindexForm: eq\nindexForm: sub";
    directory.add("cn=title,cn=index,cn=config", index).expect("an index");
    let kind = directory.root().meta().schema.attribute("title").expect("a type");
    let mut number = 500;
    while directory.root().meta().slots().filter(|(_, slot)| slot.kind == kind).count() < 2 {
        directory.person(&format!("user{number}"), "title: Late").expect("a person");
        number += 1;
    }
    assert_indexes(&directory.root());
    directory.delete("cn=title,cn=index,cn=config").expect("no index any more");
    assert!(
        directory.root().meta().slots().filter(|(_, slot)| slot.kind == kind).all(|(_, slot)| slot.is_absent)
    );
    assert_eq!(code(directory.person("last", "title: Last")), ResultCode::Success);
    assert_indexes(&directory.root());
}

#[test]
fn the_schema_changes_while_it_is_used() {
    let directory = Directory::new();
    let schema = |changes: &str| code(directory.modify("cn=schema", changes));
    assert_eq!(
        schema("add\nattributeTypes: ( 1.3.6.1.4.1.32473.1 NAME 'shoeSize' SUP name )"),
        ResultCode::Success
    );
    let class = "add\nobjectClasses: ( 1.3.6.1.4.1.32473.2 NAME 'shod' SUP top AUXILIARY MAY shoeSize )";
    assert_eq!(schema(class), ResultCode::Success);
    assert_eq!(
        code(directory.modify(AMY, "add\nobjectClass: shod\n-\nadd\nshoeSize: 38")),
        ResultCode::Success
    );
    let gone = "delete\nattributeTypes: ( 1.3.6.1.4.1.32473.1 )";
    assert_ne!(schema(gone), ResultCode::Success, "L054: it is used");
    assert_eq!(
        code(directory.modify(AMY, "delete\nshoeSize:\n-\ndelete\nobjectClass: shod")),
        ResultCode::Success
    );
    assert_eq!(schema("delete\nobjectClasses: ( 1.3.6.1.4.1.32473.2 )"), ResultCode::Success);
    assert_eq!(schema(gone), ResultCode::Success);
    assert_eq!(code(directory.modify(AMY, "add\nshoeSize: 38")), ResultCode::UndefinedAttributeType);
}

#[test]
fn the_servers_own_entries_stay_under_any_spelling() {
    let directory = Directory::new();
    let spelled = "cn=schema\\20";
    let definition = "replace\nattributeTypes: ( 1.3.6.1.4.1.32473.1 NAME 'shoeSize' SUP name )";
    assert_eq!(code(directory.modify(spelled, definition)), ResultCode::UnwillingToPerform);
    for own in [spelled, "cn=schema", "CN=Config"] {
        assert_ne!(code(directory.delete(own)), ResultCode::Success, "{own}");
    }
    let below = directory.add("cn=x,cn=schema", "objectClass: cowslipContainer");
    assert_eq!(code(below), ResultCode::UnwillingToPerform);
}

#[test]
fn what_was_written_is_there_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = Directory::create(folder.path());
    directory
        .modify("cn=schema", "add\nattributeTypes: ( 1.3.6.1.4.1.32473.1 NAME 'shoeSize' SUP name )")
        .expect("a type");
    directory.person("bob", "description: one\ndescription: two").expect("bob");
    let members: String =
        (0..100).map(|number| format!("member: uid=none{number},dc=example,dc=com\n")).collect();
    let group = "cn=g1,ou=Groups,dc=example,dc=com";
    directory.add(group, &format!("objectClass: groupOfNames\nmember: {AMY}\n{members}")).expect("a group");
    let uids: String = (0..100).map(|number| format!("memberUid: u{number}\n")).collect();
    let posix = "cn=g2,ou=Groups,dc=example,dc=com";
    directory
        .add(
            posix,
            &format!(
                "objectClass: groupOfNames\nobjectClass: posixGroup\ngidNumber: 1\nmember: {AMY}\n{uids}"
            ),
        )
        .expect("a group");
    directory.modify(posix, "delete\nmemberUid: u7\n-\nadd\nmemberUid: extra").expect("a change");
    directory.modify(BOB, "replace\ndescription: two\ndescription: three").expect("a change");
    directory.rename(BOB, "uid=ben", true, None).expect("a name");
    directory.delete(AMY).expect("amy goes");
    let index = "objectClass: cowslipIndex\nindexForm: eq";
    directory.add("cn=title,cn=index,cn=config", index).expect("an index");
    let before = content(&directory.root());
    directory.service.shutdown().expect("a clean end");
    drop(directory);

    let directory = Directory::open(folder.path());
    assert_eq!(content(&directory.root()), before);
    assert!(directory.root().meta().schema.attribute("shoeSize").is_some());
    assert_indexes(&directory.root());
    let (compacted, done) = std::sync::mpsc::channel();
    directory.service.compact(move |outcome| compacted.send(outcome).expect("the test waits")).expect("open");
    assert_eq!(done.recv(), Ok(cowslip_engine::CompactionOutcome::Done));
    directory.person("late", "").expect("a person after the snapshot");
    let before = content(&directory.root());
    directory.service.shutdown().expect("a clean end");
    drop(directory);

    let directory = Directory::open(folder.path());
    assert_eq!(content(&directory.root()), before);
    assert_indexes(&directory.root());
    directory.service.shutdown().expect("a clean end");
}
