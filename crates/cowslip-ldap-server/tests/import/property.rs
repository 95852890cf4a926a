//! Any tree comes back from LDIF as it was.

use cowslip_ldap::dn::{Ava, Dn, Rdn};
use cowslip_ldap::entry::Entry;
use cowslip_ldap::ldif::LdifWriter;
use cowslip_ldap_server::export::Dialect;
use proptest::prelude::*;

use crate::support::{SUFFIX, exported, imported};

/// An entry to be: below which of those before it, its name's value, texts, octets, and whom it names.
type Seed = (usize, String, Vec<String>, Vec<u8>, Vec<usize>);

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let name = "[a-cA-C ,+=#;<>\"\\\\äß\u{1F980}]{0,6}";
    let texts = prop::collection::vec("\\PC{1,90}|[ :<a-z\n\r\t]{1,8}", 0..4);
    let seed = (
        any::<usize>(),
        name,
        texts,
        prop::collection::vec(any::<u8>(), 1..40),
        prop::collection::vec(any::<usize>(), 0..4),
    );
    prop::collection::vec(seed, 1..24)
}

/// The entries, in the order of the seeds.
fn entries(seeds: &[Seed]) -> Vec<Entry> {
    let mut names = vec![Dn::parse(SUFFIX.as_bytes()).expect("a name")];
    let mut entries = Vec::new();
    for (place, (above, name, texts, octets, _)) in seeds.iter().enumerate() {
        let ava = Ava::new("cn", format!("{name}{place}").as_bytes()).expect("cn takes any text");
        let rdn = Rdn::new(vec![ava]).expect("one value");
        let dn = names[above % names.len()].child(rdn).expect("the tree is not deep");
        let mut entry = Entry::new(dn.to_string());
        entry.push("objectClass", "groupOfNames");
        entry.push("objectClass", "simpleSecurityObject");
        entry.push("userPassword", octets.clone());
        for (number, text) in texts.iter().enumerate() {
            // Values that differ in case alone are one value.
            entry.push(["description", "description;lang-de"][number % 2], format!("{number}{text}"));
        }
        names.push(dn);
        entries.push(entry);
    }
    for (entry, (_, _, _, _, members)) in entries.iter_mut().zip(seeds) {
        let mut members: Vec<usize> = members.iter().map(|member| member % (names.len() + 2)).collect();
        members.push(names.len());
        members.sort_unstable();
        members.dedup();
        for member in members {
            let name = names.get(member).map_or_else(|| format!("cn=m{member},{SUFFIX}"), Dn::to_string);
            entry.push("member", name);
        }
    }
    entries
}

fn ldif<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<u8> {
    let mut writer = LdifWriter::new(Vec::new());
    let mut top = Entry::new(SUFFIX);
    top.push("objectClass", "domain");
    top.push("dc", "example");
    writer.entry(&top).expect("memory takes it");
    entries.for_each(|entry| writer.entry(entry).expect("memory takes it"));
    writer.into_inner()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_comes_back(seeds in seeds()) {
        let entries = entries(&seeds);
        let first = imported(&ldif(entries.iter()));
        prop_assert_eq!(&first.rejections, &[]);
        let text = exported(&first.root, Dialect::Cowslip);
        let again = imported(text.as_bytes());
        prop_assert_eq!(&again.rejections, &[]);
        prop_assert_eq!(&exported(&again.root, Dialect::Cowslip), &text);
        prop_assert_eq!(again.report.unresolved, first.report.unresolved);
        // Everything that went in came out, in whatever order.
        let read: Vec<_> = cowslip_ldap::ldif::LdifReader::new(text.as_bytes()).map(|record| record.expect("ours")).collect();
        for entry in &entries {
            let found = read.iter().find(|record| record.dn == entry.dn);
            let Some(cowslip_ldap::ldif::LdifBody::Entry(attributes)) = found.map(|record| &record.body) else {
                return Err(TestCaseError::fail(format!("{} is missing", entry.dn)));
            };
            for attribute in &entry.attributes {
                let held = attributes.iter().find(|held| held.description == attribute.description);
                let sorted = |values: &[Vec<u8>]| { let mut values = values.to_vec(); values.sort(); values };
                prop_assert_eq!(held.map(|held| sorted(&held.values)), Some(sorted(&attribute.values)));
            }
        }
        let backwards = imported(&ldif(entries.iter().rev()));
        prop_assert_eq!(&backwards.rejections, &[]);
        prop_assert_eq!(backwards.report.unresolved, first.report.unresolved);
    }
}
