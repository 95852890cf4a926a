//! The directory as the engine sees it: one table of entries, their keys and their references.
//!
//! Invariants: an index holds a key of an entry exactly if the version of the entry that the root has gives that key; a
//! value that is held by an entry's number counts as one reference from the holder, with the attribute's type as slot.

use cowslip_engine::{
    IndexIx, KeyChanges, Model, Reference, ReferenceChanges, Step, Strength, TableIx, TableLayout,
};
use cowslip_ldap::matching::{MatchingRule, phonetic_key, phonetic_words};
use cowslip_ldap::schema::{AttributeTypeId, Schema};
use cowslip_ldap::time::Timestamp;

use crate::entry::{AttributeDelta, EntryDelta, EntryNumber, StoredEntry, Value};
use crate::key::Key;
use crate::meta::{ENTRIES, IndexForm, IndexSlot, Meta, fixed};
use crate::tree::{child_key, normalized_name};

/// The directory's [`Model`].
#[derive(Debug)]
pub struct Directory;

/// What a commit carries besides its changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// No entry number up to this one may be given to a new entry.
    pub last_number: u32,
}

/// Stands before the first and behind the last byte of a value in a substring index.
pub(crate) const EDGE: u8 = 0;

/// How many bytes in a row make a key of a substring index.
pub(crate) const GRAM_BYTES: usize = 3;

/// The key in a substring or approximate index of an entry with so many values that it is a candidate for everything.
pub(crate) const ANYTHING: &[u8] = b"";

impl Model for Directory {
    type Id = EntryNumber;
    type Value = StoredEntry;
    type Key = Key;
    type Delta = EntryDelta;
    type Meta = Meta;
    type Note = Note;

    fn layout(meta: &Meta) -> Vec<TableLayout> {
        meta.layout()
    }

    fn keys(meta: &Meta, _: TableIx, index: IndexIx, step: &Step<'_, Self>, out: &mut KeyChanges<Key>) {
        match index {
            fixed::NAME if is_same(step, |entry| (entry.parent, &entry.rdn)) => {}
            fixed::NAME => {
                each(step, out, |entry, keys| keys.push(name_key(&meta.schema, entry.parent, &entry.rdn)))
            }
            fixed::CHILDREN if is_same(step, |entry| entry.parent) => {}
            fixed::CHILDREN => each(step, out, |entry, keys| keys.push(number_key(entry.parent))),
            fixed::PRESENCE => presence(step, out),
            fixed::UUID if is_same(step, |entry| entry.uuid) => {}
            fixed::UUID => each(step, out, |entry, keys| keys.push(Key::new(entry.uuid.as_bytes()))),
            fixed::UNRESOLVED => unresolved(step, out),
            fixed::CREATED if is_same(step, |entry| second(entry.created_us)) => {}
            fixed::CREATED => {
                each(step, out, |entry, keys| keys.push(time_key(&meta.schema, entry.created_us)))
            }
            fixed::MODIFIED if is_same(step, |entry| second(entry.modified_us)) => {}
            fixed::MODIFIED => {
                each(step, out, |entry, keys| keys.push(time_key(&meta.schema, entry.modified_us)))
            }
            _ => {
                if let Some(slot) = meta.slot(index).filter(|slot| !slot.is_absent) {
                    attribute_keys(meta, slot, step, out);
                }
            }
        }
    }

    fn references(_: &Meta, _: TableIx, step: &Step<'_, Self>, out: &mut ReferenceChanges<EntryNumber>) {
        if let (Some(_), Some(_)) = (step.old, step.new) {
            for attribute in &step.delta.0 {
                let numbers = |values: &[Value]| -> Vec<EntryNumber> {
                    values.iter().filter_map(Value::entry).collect()
                };
                numbers(&attribute.removed)
                    .into_iter()
                    .for_each(|to| out.remove(reference(attribute.kind, to)));
                numbers(&attribute.added).into_iter().for_each(|to| out.add(reference(attribute.kind, to)));
            }
            return;
        }
        for attribute in step.old.into_iter().flat_map(StoredEntry::references) {
            attribute.entries.iter().for_each(|to| out.remove(reference(attribute.kind, to)));
        }
        for attribute in step.new.into_iter().flat_map(StoredEntry::references) {
            attribute.entries.iter().for_each(|to| out.add(reference(attribute.kind, to)));
        }
    }

    fn merge(into: &mut EntryDelta, step: EntryDelta) {
        into.merge(step);
    }

    fn difference(_: &Meta, _: TableIx, old: &StoredEntry, new: &StoredEntry) -> EntryDelta {
        EntryDelta::between(old, new)
    }

    fn key_bytes(key: &Key) -> Option<&[u8]> {
        Some(key.bytes())
    }

    fn weight(value: &StoredEntry) -> usize {
        value.weight()
    }
}

fn reference(kind: AttributeTypeId, target: EntryNumber) -> Reference<EntryNumber> {
    Reference { table: ENTRIES, target, strength: Strength::Weak, slot: kind.0 }
}

/// Whether a part of an entry is on both sides and equal.
fn is_same<'s, T: PartialEq>(step: &Step<'s, Directory>, part: impl Fn(&'s StoredEntry) -> T) -> bool {
    matches!((step.old, step.new), (Some(old), Some(new)) if part(old) == part(new))
}

fn each(step: &Step<'_, Directory>, out: &mut KeyChanges<Key>, keys: impl Fn(&StoredEntry, &mut Vec<Key>)) {
    step.old.into_iter().for_each(|entry| keys(entry, &mut out.removed));
    step.new.into_iter().for_each(|entry| keys(entry, &mut out.added));
}

/// The key of an entry in the index of names. An RDN that cannot be normalised was never let in.
pub(crate) fn name_key(schema: &Schema, parent: EntryNumber, rdn: &str) -> Key {
    let dn = cowslip_ldap::dn::Dn::parse(rdn.as_bytes()).ok();
    match dn.and_then(|dn| normalized_name(&dn, schema).ok()) {
        Some(normalized) => child_key(parent, &normalized),
        None => child_key(parent, rdn.as_bytes()),
    }
}

/// The key of an entry's number.
pub(crate) fn number_key(number: EntryNumber) -> Key {
    Key::new(&number.0.to_be_bytes())
}

/// The key of an attribute type.
pub(crate) fn type_key(kind: AttributeTypeId) -> Key {
    Key::new(&kind.0.to_be_bytes())
}

/// The key of a moment in the two indexes of times.
fn time_key(schema: &Schema, time_us: u64) -> Key {
    let text = Timestamp::from_micros(second(time_us) * 1_000_000).to_string();
    let mut normalized = Vec::with_capacity(16);
    // What the clock gives is a time.
    let _ = MatchingRule::GeneralizedTimeOrderingMatch.normalize(text.as_bytes(), schema, &mut normalized);
    Key::new(&normalized)
}

fn second(time_us: u64) -> u64 {
    time_us / 1_000_000
}

fn presence(step: &Step<'_, Directory>, out: &mut KeyChanges<Key>) {
    if let (Some(old), Some(new)) = (step.old, step.new) {
        // What lost values and got some was there before and is there after.
        let may_differ =
            |attribute: &&AttributeDelta| attribute.removed.is_empty() || attribute.added.is_empty();
        for attribute in step.delta.0.iter().filter(may_differ) {
            let (before, after) = (old.has(attribute.kind), new.has(attribute.kind));
            let side = if before { &mut out.removed } else { &mut out.added };
            let key = type_key(attribute.kind);
            if before != after && !side.contains(&key) {
                side.push(key);
            }
        }
        return;
    }
    each(step, out, |entry, keys| {
        keys.extend(entry.descriptions().map(|(kind, _)| type_key(kind)));
        distinct(keys);
    });
}

fn unresolved(step: &Step<'_, Directory>, out: &mut KeyChanges<Key>) {
    let is_changed = |step: &Step<'_, Directory>| {
        step.delta
            .0
            .iter()
            .any(|a| a.removed.iter().chain(&a.added).any(|value| matches!(value, Value::Name(..))))
    };
    if step.old.is_some() && step.new.is_some() && !is_changed(step) {
        return;
    }
    each(step, out, |entry, keys| {
        keys.extend(
            entry
                .references()
                .iter()
                .flat_map(|attribute| attribute.names.iter())
                .map(|(key, _)| key.clone()),
        );
        distinct(keys);
    });
}

fn attribute_keys(meta: &Meta, slot: IndexSlot, step: &Step<'_, Directory>, out: &mut KeyChanges<Key>) {
    let is_update = step.old.is_some() && step.new.is_some();
    if is_update && !step.delta.touches(slot.kind) {
        return;
    }
    if is_update && slot.form == IndexForm::Equality && is_one_large(step, slot.kind) {
        let keys = |values: &[Value], keys: &mut Vec<Key>| {
            keys.extend(values.iter().filter_map(Value::text).map(|value| meta.value_key(slot.kind, value)));
        };
        for attribute in step.delta.of_type(slot.kind) {
            keys(&attribute.removed, &mut out.removed);
            keys(&attribute.added, &mut out.added);
        }
        return;
    }
    each(step, out, |entry, keys| {
        keys_of(meta, slot, entry, keys);
        distinct(keys);
    });
}

/// Whether both versions hold the type as one attribute with very many values, so that its delta is that of the keys.
fn is_one_large(step: &Step<'_, Directory>, kind: AttributeTypeId) -> bool {
    [step.old, step.new].into_iter().flatten().all(|entry| {
        entry.large().iter().filter(|attribute| attribute.kind == kind).count() == 1
            && entry.attributes.of_type(kind).next().is_none()
    })
}

fn keys_of(meta: &Meta, slot: IndexSlot, entry: &StoredEntry, keys: &mut Vec<Key>) {
    let mut maker = KeyMaker::new(meta, slot);
    let large = entry.large().iter().filter(|attribute| attribute.kind == slot.kind);
    if large.clone().next().is_some() && matches!(slot.form, IndexForm::Substring | IndexForm::Approximate) {
        // One value less must not mean to look at all others for what they share with it.
        keys.push(Key::new(ANYTHING));
        return;
    }
    if slot.kind == AttributeTypeId::OBJECT_CLASS && slot.form == IndexForm::Equality {
        // An entry of a class is one of its superclasses, too.
        let classes = meta.classes(entry).flat_map(|class| &meta.schema.class(class).lineage);
        keys.extend(
            classes.map(|class| meta.value_key(slot.kind, meta.schema.class(*class).name().as_bytes())),
        );
    }
    for value in entry.attributes.of_type(slot.kind).flat_map(|attribute| attribute.values()) {
        maker.keys(value, keys);
    }
    for (_, value) in large.flat_map(|attribute| attribute.values.iter()) {
        maker.keys(value, keys);
    }
}

/// Makes the keys of values for one index.
struct KeyMaker<'a> {
    meta: &'a Meta,
    slot: IndexSlot,
    rule: Option<MatchingRule>,
    normalized: Vec<u8>,
}

impl<'a> KeyMaker<'a> {
    fn new(meta: &'a Meta, slot: IndexSlot) -> Self {
        let kind = meta.schema.attribute_type(slot.kind);
        let rule = match slot.form {
            IndexForm::Presence | IndexForm::Equality | IndexForm::Approximate => kind.equality,
            IndexForm::Ordering => kind.ordering,
            IndexForm::Substring => kind.substring,
        };
        Self { meta, slot, rule, normalized: Vec::new() }
    }

    fn keys(&mut self, value: &[u8], keys: &mut Vec<Key>) {
        let schema = &self.meta.schema;
        self.normalized.clear();
        match (self.slot.form, self.rule) {
            (IndexForm::Presence, _) | (_, None) => {}
            (IndexForm::Equality, _) => keys.push(self.meta.value_key(self.slot.kind, value)),
            (IndexForm::Ordering, Some(rule)) => {
                if rule.normalize(value, schema, &mut self.normalized).is_ok() {
                    keys.push(Key::new(&self.normalized));
                }
            }
            (IndexForm::Substring, Some(rule)) => {
                self.normalized.push(EDGE);
                if rule.normalize_for_substrings(value, schema, &mut self.normalized).is_ok() {
                    self.normalized.push(EDGE);
                    keys.extend(self.normalized.windows(GRAM_BYTES).map(Key::new));
                }
            }
            (IndexForm::Approximate, Some(_)) => {
                let text = String::from_utf8_lossy(value);
                for word in phonetic_words(&text) {
                    self.normalized.clear();
                    phonetic_key(word, &mut self.normalized);
                    keys.push(Key::new(&self.normalized));
                }
            }
        }
    }
}

fn distinct(keys: &mut Vec<Key>) {
    if keys.len() > 1 {
        keys.sort_unstable();
        keys.dedup();
    }
}
