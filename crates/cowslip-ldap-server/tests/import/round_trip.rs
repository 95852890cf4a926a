//! Importing what was exported gives the same.

use std::path::Path;
use std::sync::Arc;

use cowslip_engine::sim::SimDisk;
use cowslip_ldap_server::export::Dialect;
use cowslip_ldap_server::offline;
use cowslip_ldap_server::service::{Service, ServiceOptions};

use crate::support::{SUFFIX, exported, imported};

/// Values that LDIF has a hard time with, names with escapes, options, references, binary values, a large attribute.
fn awkward() -> String {
    let mut ldif = "version: 1\n\ndn: dc=example,dc=com\nobjectClass: domain\ndc: example\n".to_owned();
    ldif += "\ndn: ou=MiXed\\, \\+\\20,DC=example,dc=com\nobjectClass: organizationalUnit\nou: MiXed, + \ndescription::  IGxlYWRpbmc=\n\
        description:: dHJhaWxpbmcg\ndescription:: bGluZQpsaW5l\ndescription;lang-de: \u{fc}ber\ndescription;lang-de;lang-fr: x\n\
        description: :colon\ndescription: <less\n";
    ldif += "\ndn: cn=Amy+uid=amy,ou=mixed\\2c \\2b\\20,dc=example,dc=com\nobjectClass: inetOrgPerson\nsn: Doe\njpegPhoto:: /9j/AAEC\n\
        userPassword: secret\nmanager: cn=nobody,dc=example,dc=com\nsecretary: cn=group,dc=example,dc=com\n\
        seeAlso: cn=far,dc=elsewhere\ncreateTimestamp: 20200101000000.25Z\n";
    ldif += "\ndn: cn=group,dc=example,dc=com\nobjectClass: groupOfNames\nmember: uid=AMY+cn=amy,ou=Mixed\\, \\+\\20,dc=example,dc=com\n";
    (0..100).for_each(|number| {
        ldif += &format!("description: number {number}\nmember: cn={number},dc=elsewhere\n")
    });
    ldif
}

#[test]
fn a_round_trip_changes_nothing() {
    let first = imported(awkward().as_bytes());
    assert_eq!(first.rejections, []);
    let text = exported(&first.root, Dialect::Cowslip);
    let second = imported(text.as_bytes());
    assert_eq!(second.rejections, []);
    assert_eq!(exported(&second.root, Dialect::Cowslip), text);
    assert!(
        text.contains("\ndn: cn=Amy+uid=amy,ou=MiXed\\, \\+\\20,DC=example,dc=com\n")
            || text.contains("\ndn: cn=Amy+uid=amy,ou=MiXed"),
        "L036: {text}"
    );
    assert!(text.contains("\ncreateTimestamp: 20200101000000.25Z\n"));
    for dialect in [Dialect::OpenLdap, Dialect::Ds389] {
        assert_eq!(
            imported(exported(&first.root, dialect).as_bytes()).report.imported,
            first.report.imported
        );
    }
}

#[test]
fn an_import_can_be_served_and_passes_the_check() {
    let done = imported(awkward().as_bytes());
    let disk = SimDisk::new();
    let folder = Path::new("/directory");
    let options = ServiceOptions::new([SUFFIX]);
    Service::create_from(&disk, folder, &options, &done.root).expect("a folder");
    let mut problems = Vec::new();
    let verified = offline::verify(&disk, folder, &mut |_| {}, &mut |problem| problems.push(problem));
    let verified = verified.expect("a directory");
    assert_eq!(problems, []);
    assert_eq!(verified.entries, Some(done.root.len(cowslip_ldap_server::meta::ENTRIES) as u64));
    let loaded = offline::load(&disk, folder).expect("a directory");
    assert_eq!(exported(&loaded.root, Dialect::Cowslip), exported(&done.root, Dialect::Cowslip));
    let (service, _) = Service::open(Arc::new(disk), folder, &options).expect("a directory");
    assert_eq!(exported(&service.root(), Dialect::Cowslip), exported(&done.root, Dialect::Cowslip));
    service.shutdown().expect("a clean end");
}

#[test]
fn indexes_do_not_depend_on_the_order_of_the_file() {
    let ldif = awkward();
    let mut records: Vec<&str> = ldif.trim_start_matches("version: 1\n\n").split("\n\n").collect();
    records.reverse();
    let backwards = imported(records.join("\n\n").as_bytes());
    assert_eq!(backwards.rejections, []);
    let forwards = imported(ldif.as_bytes());
    // Who has no UUID and no times gets new ones.
    let stable = |text: String| -> Vec<String> {
        let mut records: Vec<String> = text
            .split("\n\n")
            .map(|record| {
                let made = ["entryUUID", "entryCSN", "createTimestamp", "modifyTimestamp"];
                let mut lines: Vec<&str> =
                    record.lines().filter(|line| !made.iter().any(|name| line.starts_with(name))).collect();
                lines.sort_unstable();
                lines.join("\n")
            })
            .collect();
        records.sort();
        records
    };
    let text = |root| stable(exported(root, Dialect::Cowslip));
    assert_eq!(text(&backwards.root), text(&forwards.root));
    assert_eq!(backwards.report.unresolved, forwards.report.unresolved);
}
