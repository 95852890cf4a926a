//! What 389 Directory Server's db2ldif and OpenLDAP's slapcat write.

use std::collections::BTreeMap;

use cowslip_ldap_server::export::Dialect;

use crate::support::{entry, exported, imported};

const DS389: &[u8] = include_bytes!("../data/389ds.ldif");
const SLAPD: &[u8] = include_bytes!("../data/slapd.ldif");

fn counts(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    counts.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

#[test]
fn ldif_of_389ds() {
    let done = imported(DS389);
    assert_eq!((done.report.read, done.report.imported), (6, 5));
    let [tombstone] = &done.rejections[..] else { panic!("{:?}", done.rejections) };
    assert_eq!((tombstone.line, tombstone.reason.contains("nsTombstone")), (93, true));
    let dropped = [
        ("entryid", 6),
        ("memberOf", 1),
        ("nsParentUniqueId", 1),
        ("nsds50ruv", 1),
        ("numSubordinates", 1),
        ("parentid", 4),
    ];
    assert_eq!(counts(&done.report.dropped), dropped);
    assert_eq!(done.report.access_rule_count, 3, "two of aci and nsAccountLock");
    let rules: Vec<_> = done.report.access_rules.iter().map(|rule| (rule.line, &*rule.attribute)).collect();
    assert_eq!(rules, [(4, "aci"), (67, "nsAccountLock")]);
    assert!(!done.report.is_complete());
    assert_eq!(done.report.unresolved, 1, "uid=gone");

    let top = entry(&done.root, "dc=example,dc=com");
    assert!(top.contains("\nentryUUID: 3f3a1c52-0cc5-4a8e-8f0f-6c0f8f6b1c11"), "its own UUID wins: {top}");
    assert!(top.contains("\nnsUniqueId: 8f1c3a01-4b2511ee-9c5a8d41-1b5d3f7c"));
    assert_eq!(top.matches("\naci: ").count(), 2);
    let staff = entry(&done.root, "cn=staff,ou=groups,dc=example,dc=com");
    assert!(staff.contains("\nentryUUID: 8f1c3a04-4b25-11ee-9c5a-8d411b5d3f7c"), "from nsUniqueId: {staff}");
    assert!(
        staff.contains("\nmember: uid=demouser,ou=people,dc=example,dc=com"),
        "the present name: {staff}"
    );
    assert!(staff.contains("\nmember: uid=gone,ou=people,dc=example,dc=com"));
    assert!(staff.contains("\nmodifyTimestamp: 20240512101112Z"));
    assert!(staff.contains("\nmodifiersName: uid=demouser,ou=people,dc=example,dc=com"));
    let demo = entry(&done.root, "uid=demouser,ou=people,dc=example,dc=com");
    assert!(demo.contains("userPassword: {SSHA}BhiEv4frmAWXSrJaFWHZVT5NKiOoJFCX77v4Rw=="), "{demo}");
    assert!(demo.contains("\ncn;lang-de:: RGVtb2Jlbi1adXR6ZXIgxI0="));
    assert!(!demo.contains("memberOf"));
}

#[test]
fn ldif_of_slapd() {
    let done = imported(SLAPD);
    assert_eq!((done.report.imported, done.report.rejected), (4, 0));
    assert_eq!(counts(&done.report.malformed), [("entryCSN", 1)]);
    let dropped = [("contextCSN", 1), ("pwdAccountLockedTime", 1), ("structuralObjectClass", 4)];
    assert_eq!(counts(&done.report.dropped), dropped);
    assert_eq!(done.report.access_rule_count, 1, "an account that was locked is not");
    assert_eq!(done.report.unresolved, 0, "bob comes after amy, who names him");
    let amy = entry(&done.root, "uid=amy,ou=People,dc=example,dc=com");
    assert!(amy.contains("\nentryCSN: 20240512101112.000001Z#000000#001#000000"), "{amy}");
    assert!(amy.contains("\nentryUUID: 51e2b4c8-7a3c-103e-9d0d-2f1f3a5b7c9d"));
    assert!(amy.contains("\ncreateTimestamp: 20240311082002Z"));
    assert!(amy.contains("\nmanager: uid=bob,ou=People,dc=example,dc=com"));
    let bob = entry(&done.root, "uid=bob,ou=People,dc=example,dc=com");
    assert!(bob.contains("\nentryCSN: 2") && !bob.contains("nonsense"), "a new one: {bob}");
}

#[test]
fn an_export_leaves_out_what_the_other_server_refuses() {
    let done = imported(DS389);
    let has = |dialect, name: &str| exported(&done.root, dialect).contains(&format!("\n{name}: "));
    let cases = [
        ("entryUUID", [true, true, true]),
        ("entryCSN", [true, true, false]),
        ("nsUniqueId", [true, false, true]),
        ("aci", [true, false, true]),
        ("createTimestamp", [true, true, true]),
        ("uidNumber", [true, true, true]),
        ("memberOf", [false, false, false]),
    ];
    for (name, expected) in cases {
        let found = [Dialect::Cowslip, Dialect::OpenLdap, Dialect::Ds389].map(|dialect| has(dialect, name));
        assert_eq!(found, expected, "{name}");
    }
}
