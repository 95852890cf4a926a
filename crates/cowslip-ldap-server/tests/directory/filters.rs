//! Random filters over what random writes write.

use cowslip_engine::Root;
use cowslip_ldap::filter::Filter;
use cowslip_ldap::time::Timestamp;
use cowslip_ldap_server::meta::ENTRIES;
use cowslip_ldap_server::model::Directory as Model;

use crate::random::{Random, SUFFIX};

const TEXTS: [&str; 12] = [
    "cn",
    "cn;lang-en",
    "2.5.4.3",
    "sn",
    "name",
    "description",
    "description;x-a",
    "description;lang-en",
    "title",
    "uid",
    "ou",
    "mail",
];

const REFERENCES: [&str; 8] =
    ["member", "member;lang-en", "manager", "seeAlso", "owner", "distinguishedName", "memberOf", "entryDN"];

const CLASSES: [&str; 7] =
    ["top", "person", "INETORGPERSON", "organizationalUnit", "groupOfNames", "2.5.6.6", "noSuchClass"];

/// A random filter, whose depth is at most `depth`.
pub(crate) fn filter(random: &mut Random, root: &Root<Model>, names: &[String], depth: usize) -> Filter {
    let parts = |random: &mut Random, most: usize| -> Vec<Filter> {
        (0..random.below(most + 1)).map(|_| filter(random, root, names, depth - 1)).collect()
    };
    match random.below(if depth == 0 { 6 } else { 10 }) {
        6 | 7 => Filter::And(parts(random, 3)),
        8 => Filter::Or(parts(random, 3)),
        9 => Filter::Not(Box::new(filter(random, root, names, depth - 1))),
        _ => term(random, root, names),
    }
}

fn term(random: &mut Random, root: &Root<Model>, names: &[String]) -> Filter {
    match random.below(20) {
        0..6 => text(random),
        6..10 => reference(random, names),
        10 => Filter::Equality {
            attribute: "objectClass".into(),
            value: random.pick(&CLASSES).as_bytes().into(),
        },
        11 => time(random, root),
        12 => identity(random, root),
        13 => number(random),
        14 => telephone(random),
        15 => of_large(random),
        16 => Filter::Present(
            (*random.pick(&[
                "cn",
                "cn;lang-en",
                "member",
                "memberOf",
                "objectClass",
                "nosuch",
                "name",
                "description;x-a",
            ]))
            .into(),
        ),
        17 => in_name(random),
        18 => Filter::Equality { attribute: "hasSubordinates".into(), value: b"TRUE".into() },
        _ => unknown(random),
    }
}

fn text(random: &mut Random) -> Filter {
    let attribute = (*random.pick(&TEXTS)).to_owned();
    let value = random.word(4).into_bytes();
    match random.below(10) {
        0..3 => Filter::Equality { attribute, value },
        3..7 => {
            let mut piece = |percent| random.chance(percent).then(|| random.word(3).into_bytes());
            let (initial, last) = (piece(50), piece(40));
            let any: Vec<Vec<u8>> = piece(40).into_iter().chain(piece(20)).collect();
            let any = if initial.is_none() && last.is_none() && any.is_empty() { vec![value] } else { any };
            Filter::Substrings { attribute, initial, any, last }
        }
        7 => Filter::Approximate { attribute, value },
        8 => Filter::GreaterOrEqual { attribute, value },
        _ => Filter::LessOrEqual { attribute, value },
    }
}

fn reference(random: &mut Random, names: &[String]) -> Filter {
    let attribute = (*random.pick(&REFERENCES)).to_owned();
    let name = random.name(names);
    let value = if random.chance(30) { name.to_uppercase() } else { name }.into_bytes();
    match random.below(10) {
        0..6 => Filter::Equality { attribute, value },
        6..9 => Filter::Extensible {
            rule: Some("1.2.840.113556.1.4.1941".into()),
            attribute: Some(attribute),
            value,
            dn_attributes: false,
        },
        _ => Filter::Extensible {
            rule: Some("distinguishedNameMatch".into()),
            attribute: random.chance(50).then_some(attribute),
            value,
            dn_attributes: false,
        },
    }
}

fn time(random: &mut Random, root: &Root<Model>) -> Filter {
    let stored: Vec<(u64, u64)> =
        root.scan(ENTRIES).map(|(_, entry)| (entry.created_us, entry.modified_us)).collect();
    let (created, modified) = *random.pick(&stored);
    let (attribute, time_us) =
        if random.chance(50) { ("createTimestamp", created) } else { ("modifyTimestamp", modified) };
    let time_us = match random.below(4) {
        0 => time_us,
        1 => time_us + 500_000,
        2 => time_us - 500_000,
        _ => time_us + 1_000_000,
    };
    let value = Timestamp::from_micros(time_us).to_string().into_bytes();
    let attribute = attribute.to_owned();
    match random.below(3) {
        0 => Filter::Equality { attribute, value },
        1 => Filter::GreaterOrEqual { attribute, value },
        _ => Filter::LessOrEqual { attribute, value },
    }
}

fn identity(random: &mut Random, root: &Root<Model>) -> Filter {
    let stored: Vec<_> = root.scan(ENTRIES).map(|(_, entry)| (entry.uuid, entry.csn)).collect();
    let (uuid, csn) = *random.pick(&stored);
    match random.below(4) {
        0 | 1 => Filter::Equality { attribute: "entryUUID".into(), value: uuid.to_string().into_bytes() },
        2 => Filter::GreaterOrEqual { attribute: "entryUUID".into(), value: uuid.to_string().into_bytes() },
        _ => Filter::GreaterOrEqual { attribute: "entryCSN".into(), value: csn.to_string().into_bytes() },
    }
}

fn number(random: &mut Random) -> Filter {
    let attribute = "uidNumber".to_owned();
    let numbers = ["-3", "-1", "0", "1", "5", "9", "10", "16", "abc", ""];
    let value = random.pick(&numbers).as_bytes().to_vec();
    match random.below(3) {
        0 => Filter::Equality { attribute, value },
        1 => Filter::GreaterOrEqual { attribute, value },
        _ => Filter::LessOrEqual { attribute, value },
    }
}

fn telephone(random: &mut Random) -> Filter {
    let attribute = "telephoneNumber".to_owned();
    match random.chance(50) {
        true => Filter::Equality { attribute, value: random.telephone().into_bytes() },
        false => Filter::Substrings {
            attribute,
            initial: random.chance(50).then(|| b"+1".to_vec()),
            any: vec![],
            last: Some(random.pick(&["5 1", "52", "- 3", "0"]).as_bytes().to_vec()),
        },
    }
}

/// Filters that only entries with very large attributes match, or such as would if they had them all.
fn of_large(random: &mut Random) -> Filter {
    let value = |random: &mut Random| format!("m{}", random.below(80)).into_bytes();
    match random.below(3) {
        0 => Filter::Equality { attribute: "memberUid".into(), value: value(random) },
        1 => Filter::Substrings {
            attribute: "memberUid".into(),
            initial: None,
            any: vec![value(random)],
            last: None,
        },
        _ => Filter::Substrings {
            attribute: "description".into(),
            initial: None,
            any: vec![],
            last: Some(format!("{}", random.below(80)).into_bytes()),
        },
    }
}

fn in_name(random: &mut Random) -> Filter {
    let name = *random.pick(&["People", "o1", "u7", "g3", "example"]);
    let rules = [
        None,
        Some("caseIgnoreMatch"),
        Some("2.5.13.5"),
        Some("caseIgnoreSubstringsMatch"),
        Some("noSuchRule"),
    ];
    let rule = random.pick(&rules).map(str::to_owned);
    let attribute =
        random.pick(&[None, Some("ou"), Some("cn"), Some("name"), Some("nosuch")]).map(str::to_owned);
    let attribute = if rule.is_none() { attribute.or(Some("uid".into())) } else { attribute };
    Filter::Extensible { rule, attribute, value: name.as_bytes().into(), dn_attributes: random.chance(60) }
}

fn unknown(random: &mut Random) -> Filter {
    let attribute = (*random.pick(&["nosuch", "cn;", "1.2.3.4", "jpegPhoto", "userPassword"])).to_owned();
    let value = random.word(2).into_bytes();
    match random.below(3) {
        0 => Filter::Equality { attribute, value },
        1 => Filter::GreaterOrEqual { attribute, value },
        _ => Filter::Not(Box::new(Filter::Equality { attribute, value })),
    }
}

/// A base, mostly one that is there.
pub(crate) fn base(random: &mut Random, names: &[String]) -> String {
    match random.below(10) {
        0 => String::new(),
        1..5 => SUFFIX.to_owned(),
        _ => random.pick(names).clone(),
    }
}
