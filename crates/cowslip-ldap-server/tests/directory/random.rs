//! Random writes on a directory: entries of all shapes that are stored differently, names with and without entries.

use cowslip_engine::Root;
use cowslip_ldap_server::meta::{ENTRIES, Meta};
use cowslip_ldap_server::model::Directory as Model;
use cowslip_ldap_server::operations::{Plan, Refusal};
use cowslip_ldap_server::tree::Tree;

use crate::support::{Directory, plan_add, plan_delete, plan_modify, plan_rename};

/// The name of the only tree.
pub(crate) const SUFFIX: &str = "dc=example,dc=com";

/// From this many values on an attribute is stored as a set of its own.
const LARGE: usize = 64;

/// Numbers that depend on a seed only (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.bits() % limit.max(1) as u64).expect("it is below a usize")
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    /// A word of one to `most` letters, few of which differ.
    pub(crate) fn word(&mut self, most: usize) -> String {
        let first = ["a", "b", "B", "c", "é"];
        let next = ["a", "b", "B", "c", "é", " ", "  "];
        let mut word = (*self.pick(&first)).to_owned();
        for _ in 0..self.below(most) {
            word.push_str(self.pick::<&str>(&next));
        }
        word.trim_end().to_owned()
    }

    pub(crate) fn telephone(&mut self) -> String {
        let blanks = ["", " ", "-"];
        format!("+1{}5{}{}", self.pick(&blanks), self.pick(&blanks), self.below(4))
    }

    /// The name of an entry, or one that perhaps never will be.
    pub(crate) fn name(&mut self, names: &[String]) -> String {
        match self.chance(75) && !names.is_empty() {
            true => self.pick(names).clone(),
            false => format!("uid=u{},ou=People,{SUFFIX}", self.below(60)),
        }
    }
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Add { dn: String, attributes: String },
    Delete { dn: String },
    Modify { dn: String, changes: String },
    Rename { dn: String, rdn: String, deletes_old: bool, superior: Option<String> },
}

impl Write {
    pub(crate) fn on(&self, directory: &Directory) -> Result<(), Refusal> {
        directory.write(|meta| self.plan(meta))
    }

    pub(crate) fn plan(&self, meta: &Meta) -> Result<Plan, Refusal> {
        match self {
            Self::Add { dn, attributes } => plan_add(dn, attributes, meta),
            Self::Delete { dn } => plan_delete(dn, meta),
            Self::Modify { dn, changes } => plan_modify(dn, changes, meta),
            Self::Rename { dn, rdn, deletes_old, superior } => {
                plan_rename(dn, rdn, *deletes_old, superior.as_deref(), meta)
            }
        }
    }
}

/// The names of all entries of users.
pub(crate) fn names(root: &Root<Model>) -> Vec<String> {
    let all = root.scan(ENTRIES).map(|(number, _)| root.dn(number));
    all.filter(|dn| dn.ends_with(SUFFIX)).collect()
}

/// A random write; many of them are refused.
pub(crate) fn write(random: &mut Random, names: &[String]) -> Write {
    match random.below(100) {
        0..30 => add(random, names),
        30..70 => modify(random, names),
        70..85 => rename(random, names),
        _ => {
            // Containers stay, or there would soon be nothing left to write to.
            let dn = random.name(names);
            let is_container = dn.starts_with("ou=") || dn == SUFFIX;
            if is_container { modify(random, names) } else { Write::Delete { dn } }
        }
    }
}

/// Values of one attribute, as lines.
fn attribute(random: &mut Random, names: &[String]) -> String {
    let text =
        ["cn", "cn;lang-en", "sn", "description", "description;lang-en;x-a", "description;lang-fr", "title"];
    let reference = ["member", "member", "manager", "seeAlso", "owner"];
    let count = 1 + random.below(3);
    let lines = |name: &str, values: Vec<String>| {
        values.iter().map(|value| format!("{name}: {value}\n")).collect::<String>()
    };
    match random.below(10) {
        0..4 => {
            let name = *random.pick(&text);
            lines(name, (0..count).map(|_| random.word(4)).collect())
        }
        4..7 => {
            let name = *random.pick(&reference);
            lines(name, (0..count).map(|_| random.name(names)).collect())
        }
        7 => format!("uidNumber: {}\n", i64::try_from(random.below(20)).unwrap_or_default() - 3),
        8 => lines("telephoneNumber", vec![random.telephone()]),
        _ => lines("mail", vec![format!("{}@a.b", random.below(6))]),
    }
}

/// An attribute with so many values that it is stored as a set of its own.
fn large(random: &mut Random) -> String {
    let count = LARGE + random.below(10);
    match random.below(3) {
        0 => (0..count).map(|number| format!("memberUid: m{number}\n")).collect(),
        1 => (0..count).map(|number| format!("member: uid=u{number},ou=People,{SUFFIX}\n")).collect(),
        _ => (0..count).map(|number| format!("description: {} {number}\n", random.word(2))).collect(),
    }
}

fn add(random: &mut Random, names: &[String]) -> Write {
    let containers: Vec<&String> = names.iter().filter(|name| name.starts_with("ou=")).collect();
    let parent = match random.chance(70) && !containers.is_empty() {
        true => (*random.pick(&containers)).clone(),
        false => random.name(names),
    };
    let (rdn, mut attributes) = match random.below(10) {
        0..6 => {
            let classes = "objectClass: inetOrgPerson\nobjectClass: extensibleObject\n";
            let given = format!("{classes}cn: {}\nsn: {}\n", random.word(4), random.word(3));
            (format!("uid=u{}", random.below(60)), given)
        }
        6..9 => {
            let classes = "objectClass: groupOfNames\nobjectClass: extensibleObject\n";
            (format!("cn=g{}", random.below(12)), format!("{classes}member: {}\n", random.name(names)))
        }
        _ => (
            format!("ou=o{}", random.below(5)),
            "objectClass: organizationalUnit\nobjectClass: extensibleObject\n".to_owned(),
        ),
    };
    for _ in 0..random.below(4) {
        attributes.push_str(&attribute(random, names));
    }
    if random.chance(10) {
        attributes.push_str(&large(random));
    }
    Write::Add { dn: format!("{rdn},{parent}"), attributes }
}

fn modify(random: &mut Random, names: &[String]) -> Write {
    let changes: Vec<String> = (0..1 + random.below(2))
        .map(|_| {
            let values = match random.chance(10) {
                true => large(random),
                false => attribute(random, names),
            };
            match random.below(10) {
                0..4 => format!("add\n{values}"),
                4..8 => format!("replace\n{values}"),
                8 => format!("delete\n{values}"),
                _ => {
                    let name = values.split(':').next().unwrap_or_default();
                    format!("replace\n{name}:")
                }
            }
        })
        .collect();
    Write::Modify { dn: random.name(names), changes: changes.join("\n-\n") }
}

fn rename(random: &mut Random, names: &[String]) -> Write {
    let dn = random.name(names);
    let (kind, old) =
        dn.split_once(',').map_or(("ou", ""), |(rdn, _)| rdn.split_once('=').unwrap_or((rdn, "")));
    let rdn = match random.below(10) {
        0..3 => format!("{kind}={old}"),
        3..5 => format!("{kind}={}", old.to_uppercase()),
        5..7 => format!("{kind}={}", random.word(3)),
        _ => format!("{kind}=u{}", random.below(60)),
    };
    let superior = random.chance(40).then(|| random.name(names));
    Write::Rename { dn, rdn, deletes_old: random.chance(50), superior }
}
