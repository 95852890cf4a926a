//! What an import tells: what it took, what it left out, and what it will not enforce.

use std::collections::BTreeMap;

/// A record that is not in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Where the record begins, or for damaged text the line that is wrong; the first line is 1.
    pub line: u64,
    /// Its name, as far as it could be read.
    pub dn: String,
    /// Why.
    pub reason: String,
}

/// How many attributes with access rules are listed one by one; the values of the others are counted only.
pub const ACCESS_RULES_LISTED_MAX: usize = 100;

/// An attribute that says who may do what and that this server does not enforce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// Where the record begins that has it, the first line being 1.
    pub line: u64,
    /// The entry's name.
    pub dn: String,
    /// The attribute.
    pub attribute: String,
    /// How many values of it.
    pub values: u64,
}

/// What became of a file's records. Every record is counted once: `read` is `imported` plus `rejected`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// How many records there were, unreadable ones among them.
    pub read: u64,
    /// How many became entries, or changes that were made.
    pub imported: u64,
    /// How many did not.
    pub rejected: u64,
    /// How many values were left out, by attribute: those that are computed when they are read, and those by which
    /// another server keeps its own books.
    pub dropped: BTreeMap<String, u64>,
    /// How many values were not of their form and were made anew, by attribute.
    pub malformed: BTreeMap<String, u64>,
    /// How many values were left out because the schema does not have the attribute or the object class, by name.
    pub unknown: BTreeMap<String, u64>,
    /// How many values say who may do what, and are not enforced.
    pub access_rule_count: u64,
    /// The first [`ACCESS_RULES_LISTED_MAX`] of them.
    pub access_rules: Vec<AccessRule>,
    /// Values that name no entry of this directory and are kept as text.
    pub unresolved: u64,
}

impl ImportReport {
    /// Whether everything that the file said is in the directory and in force.
    pub fn is_complete(&self) -> bool {
        self.rejected == 0 && self.access_rule_count == 0
    }

    pub(super) fn rule(&mut self, line: u64, dn: &str, attribute: &str, values: usize) {
        self.access_rule_count += values as u64;
        if self.access_rules.len() < ACCESS_RULES_LISTED_MAX {
            let (dn, attribute) = (dn.to_owned(), attribute.to_owned());
            self.access_rules.push(AccessRule { line, dn, attribute, values: values as u64 });
        }
    }
}

pub(super) fn count(counts: &mut BTreeMap<String, u64>, name: &str, values: usize) {
    match counts.get_mut(name) {
        Some(count) => *count += values as u64,
        None => {
            counts.insert(name.to_owned(), values as u64);
        }
    }
}
