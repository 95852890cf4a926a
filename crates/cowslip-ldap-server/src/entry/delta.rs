//! What a change did to the attributes of an entry, value by value.
//!
//! The delta is made once, by the operation; the journal, the indexes and the references are all served from it, so
//! that one member more in a group of 100,000 costs all of them one value. Invariants: between two versions of an entry
//! an attribute that the delta does not name is equal; a value is not on both sides.

use std::collections::HashSet;
use std::sync::Arc;

use cowslip_ldap::schema::AttributeTypeId;

use super::{EntryNumber, StoredEntry};
use crate::key::Key;

/// One value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// As the client sent it.
    Plain(Arc<[u8]>),
    /// An entry of ours, of an attribute under referential integrity.
    Entry(EntryNumber),
    /// The name of an entry that we don't have, normalised and as the client sent it.
    Name(Key, Arc<[u8]>),
}

impl Value {
    /// A plain value.
    pub fn plain(bytes: &[u8]) -> Self {
        Self::Plain(bytes.into())
    }

    /// The entry of ours that it names.
    pub fn entry(&self) -> Option<EntryNumber> {
        match self {
            Self::Entry(number) => Some(*number),
            Self::Plain(_) | Self::Name(..) => None,
        }
    }

    /// What the client sent, unless it names an entry of ours.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(text) | Self::Name(_, text) => Some(text),
            Self::Entry(_) => None,
        }
    }
}

/// The values that one attribute lost and got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeDelta {
    /// The type.
    pub kind: AttributeTypeId,
    /// The options.
    pub options: Box<str>,
    /// What it lost.
    pub removed: Vec<Value>,
    /// What it got, in the order of coming.
    pub added: Vec<Value>,
}

/// What a change did to the attributes of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryDelta(pub Vec<AttributeDelta>);

impl EntryDelta {
    /// Whether a type was changed, with whatever options.
    pub fn touches(&self, kind: AttributeTypeId) -> bool {
        self.0.iter().any(|attribute| attribute.kind == kind)
    }

    /// The changes of a type, by options.
    pub fn of_type(&self, kind: AttributeTypeId) -> impl Iterator<Item = &AttributeDelta> {
        self.0.iter().filter(move |attribute| attribute.kind == kind)
    }

    /// The place for the changes of an attribute.
    pub fn attribute_mut(&mut self, kind: AttributeTypeId, options: &str) -> &mut AttributeDelta {
        let found = self.0.iter().position(|delta| delta.kind == kind && *delta.options == *options);
        let place = found.unwrap_or_else(|| {
            self.0.push(AttributeDelta {
                kind,
                options: options.into(),
                removed: Vec::new(),
                added: Vec::new(),
            });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// Adds what happened after.
    pub fn merge(&mut self, step: Self) {
        if self.0.is_empty() {
            // The first step, and mostly the only one.
            *self = step;
            return;
        }
        for attribute in step.0 {
            let into = self.attribute_mut(attribute.kind, &attribute.options);
            cancel(&mut into.added, attribute.removed, &mut into.removed);
            cancel(&mut into.removed, attribute.added, &mut into.added);
        }
    }

    /// The difference between two versions that no delta led from one to the other.
    pub fn between(old: &StoredEntry, new: &StoredEntry) -> Self {
        let mut delta = Self::default();
        for (kind, options) in old.descriptions() {
            let (before, after) = (old.values(kind, options), new.values(kind, options));
            if before != after {
                *delta.attribute_mut(kind, options) =
                    AttributeDelta { kind, options: options.into(), removed: before, added: after };
            }
        }
        for (kind, options) in new.descriptions() {
            if old.values(kind, options).is_empty() {
                delta.attribute_mut(kind, options).added = new.values(kind, options);
            }
        }
        delta
    }
}

/// Takes `values` out of `opposite`, where they undo what happened before, and puts the others into `same`.
fn cancel(opposite: &mut Vec<Value>, values: Vec<Value>, same: &mut Vec<Value>) {
    if opposite.is_empty() {
        return same.extend(values);
    }
    let mut undone: HashSet<Value> = HashSet::new();
    let before: HashSet<&Value> = opposite.iter().collect();
    for value in values {
        if before.contains(&value) {
            undone.insert(value);
        } else {
            same.push(value);
        }
    }
    opposite.retain(|value| !undone.contains(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_undone_is_not_in_the_sum() {
        let kind = AttributeTypeId(1);
        let step = |removed: &[&str], added: &[&str]| {
            let values = |texts: &[&str]| texts.iter().map(|text| Value::plain(text.as_bytes())).collect();
            let (removed, added) = (values(removed), values(added));
            EntryDelta(vec![AttributeDelta { kind, options: "".into(), removed, added }])
        };
        let mut sum = step(&["a"], &["b", "c"]);
        sum.merge(step(&["b"], &["a", "d"]));
        assert_eq!(sum, step(&[], &["c", "d"]));
    }
}
