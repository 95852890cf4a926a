//! A small model that uses everything the engine offers, and the same database as plain maps to compare with.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod journal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cowslip_engine::{
    Conflict, Draft, Id, IndexIx, IndexKind, KeyChanges, Model, Reference, ReferenceChanges, Referrer, Root,
    Step, Strength, TableIx, TableLayout,
};

pub const TABLES: [TableIx; 2] = [TableIx(0), TableIx(1)];
pub const NAME: IndexIx = IndexIx(0);
pub const GROUP: IndexIx = IndexIx(1);
pub const TAG: IndexIx = IndexIx(2);

pub struct Toy;

/// A record of either table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Unique in its table.
    pub name: u32,
    /// Not every item is in a group.
    pub group: Option<u32>,
    /// Grows large.
    pub tags: imbl::OrdSet<u32>,
    /// May name one target several times.
    pub links: Vec<(TableIx, Id, Strength)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagDelta {
    pub added: BTreeSet<u32>,
    pub removed: BTreeSet<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u32);

impl TagDelta {
    pub fn between(old: &Item, new: &Item) -> Self {
        let mut delta = Self::default();
        for item in old.tags.diff(&new.tags) {
            match item {
                imbl::ordset::DiffItem::Add(tag) => delta.added.insert(*tag),
                imbl::ordset::DiffItem::Remove(tag) => delta.removed.insert(*tag),
            };
        }
        delta
    }
}

impl Model for Toy {
    type Value = Item;
    type Key = Key;
    type Delta = TagDelta;
    type Meta = u32;
    type Note = String;

    fn layout(_meta: &u32) -> Vec<TableLayout> {
        let indexes = vec![IndexKind::Primary, IndexKind::Secondary, IndexKind::Secondary];
        vec![TableLayout { indexes: indexes.clone() }, TableLayout { indexes }]
    }

    fn keys(_: &u32, _: TableIx, index: IndexIx, step: &Step<'_, Self>, out: &mut KeyChanges<Key>) {
        match index {
            NAME => {
                out.removed.extend(step.old.map(|item| Key(item.name)));
                out.added.extend(step.new.map(|item| Key(item.name)));
            }
            GROUP => {
                out.removed.extend(step.old.and_then(|item| item.group).map(Key));
                out.added.extend(step.new.and_then(|item| item.group).map(Key));
            }
            _ => match (step.old, step.new) {
                (Some(_), Some(_)) => {
                    out.removed.extend(step.delta.removed.iter().copied().map(Key));
                    out.added.extend(step.delta.added.iter().copied().map(Key));
                }
                (old, new) => {
                    out.removed.extend(old.into_iter().flat_map(|item| &item.tags).copied().map(Key));
                    out.added.extend(new.into_iter().flat_map(|item| &item.tags).copied().map(Key));
                }
            },
        }
    }

    fn references(_: &u32, _: TableIx, step: &Step<'_, Self>, out: &mut ReferenceChanges) {
        for (table, target, strength) in step.old.into_iter().flat_map(|item| item.links.iter().copied()) {
            out.remove(Reference { table, target, strength, slot: 7 });
        }
        for (table, target, strength) in step.new.into_iter().flat_map(|item| item.links.iter().copied()) {
            out.add(Reference { table, target, strength, slot: 7 });
        }
    }

    fn merge(into: &mut TagDelta, step: TagDelta) {
        for tag in step.added {
            if !into.removed.remove(&tag) {
                into.added.insert(tag);
            }
        }
        for tag in step.removed {
            if !into.added.remove(&tag) {
                into.removed.insert(tag);
            }
        }
    }

    fn difference(_: &u32, _: TableIx, old: &Item, new: &Item) -> TagDelta {
        TagDelta::between(old, new)
    }
}

/// The same database as plain maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plain(pub BTreeMap<(TableIx, Id), Item>);

impl Plain {
    pub fn of(root: &Root<Toy>) -> Self {
        let records = TABLES
            .into_iter()
            .flat_map(|table| root.scan(table).map(move |(id, item)| ((table, *id), Item::clone(item))));
        Self(records.collect())
    }

    pub fn table(&self, table: TableIx) -> impl Iterator<Item = (&Id, &Item)> {
        self.0.iter().filter(move |((of, _), _)| *of == table).map(|((_, id), item)| (id, item))
    }

    pub fn keys(item: &Item, index: IndexIx) -> Vec<u32> {
        match index {
            NAME => vec![item.name],
            GROUP => item.group.into_iter().collect(),
            _ => item.tags.iter().copied().collect(),
        }
    }

    pub fn entries(&self, table: TableIx, index: IndexIx) -> BTreeSet<(u32, Id)> {
        let entries = self
            .table(table)
            .flat_map(|(id, item)| Self::keys(item, index).into_iter().map(|key| (key, *id)));
        entries.collect()
    }

    pub fn referrers(&self, table: TableIx, target: Id) -> BTreeMap<Referrer, u32> {
        let mut referrers = BTreeMap::new();
        for ((source_table, source), item) in &self.0 {
            for (_, _, strength) in item.links.iter().filter(|link| (link.0, link.1) == (table, target)) {
                let (table, source, strength) = (*source_table, *source, *strength);
                *referrers.entry(Referrer { target, strength, table, source, slot: 7 }).or_default() += 1;
            }
        }
        referrers
    }

    /// What the engine should report as the first conflict: table, name, holders.
    pub fn conflict(&self) -> Option<(TableIx, u32, Vec<Id>)> {
        TABLES.into_iter().find_map(|table| {
            let mut names: BTreeMap<u32, Vec<Id>> = BTreeMap::new();
            for (name, id) in self.entries(table, NAME) {
                names.entry(name).or_default().push(id);
            }
            names.into_iter().find(|(_, ids)| ids.len() > 1).map(|(name, ids)| (table, name, ids))
        })
    }
}

pub fn conflict_of(conflict: Conflict<Toy>) -> (TableIx, u32, Vec<Id>) {
    assert_eq!(conflict.index, NAME);
    (conflict.table, conflict.key.0, conflict.ids)
}

/// Puts an item into a draft with the delta that leads to it.
pub fn put(draft: &mut Draft<'_, Toy>, table: TableIx, id: Id, item: Item) {
    let delta = draft.record(table, &id).map(|old| TagDelta::between(old, &item)).unwrap_or_default();
    draft.put(table, id, Arc::new(item), delta);
}

/// Compares a root with the plain maps in everything one can ask.
pub fn assert_root_is(root: &Root<Toy>, plain: &Plain, ids: &[Id]) {
    assert_eq!(&Plain::of(root), plain);
    for table in TABLES {
        assert_eq!(root.len(table), plain.table(table).count());
        for index in [NAME, GROUP, TAG] {
            let entries: BTreeSet<_> = root.range(table, index, ..).map(|(key, id)| (key.0, id)).collect();
            assert_eq!(entries, plain.entries(table, index));
            for key in 0..12 {
                let found: Vec<_> = root.lookup(table, index, &Key(key)).collect();
                let expected: Vec<_> =
                    entries.iter().filter(|entry| entry.0 == key).map(|entry| entry.1).collect();
                assert_eq!(found, expected);
            }
        }
        for id in ids {
            let referrers: BTreeMap<_, _> = root.referrers(table, id).collect();
            assert_eq!(referrers, plain.referrers(table, *id));
        }
    }
}

/// Compares what a draft shows with the plain maps in everything one can ask.
pub fn assert_draft_is(draft: &Draft<'_, Toy>, plain: &Plain, ids: &[Id]) {
    for table in TABLES {
        let scanned: Vec<_> = draft.scan(table).map(|(id, item)| (*id, Item::clone(item))).collect();
        let expected: Vec<_> = plain.table(table).map(|(id, item)| (*id, item.clone())).collect();
        assert_eq!(scanned, expected);
        assert_eq!(draft.len(table), expected.len());
        for index in [NAME, GROUP, TAG] {
            let entries = plain.entries(table, index);
            let ranged: Vec<_> = draft.range(table, index, ..).map(|(key, id)| (key.0, id)).collect();
            assert_eq!(ranged, entries.iter().copied().collect::<Vec<_>>());
            let ranged = draft.range(table, index, Key(2)..Key(7)).map(|(key, id)| (key.0, id));
            let expected = entries.iter().copied().filter(|(key, _)| (2..7).contains(key));
            assert_eq!(ranged.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            for key in 0..12 {
                let found: Vec<_> = draft.lookup(table, index, &Key(key)).collect();
                let expected = entries.iter().filter(|entry| entry.0 == key).map(|entry| entry.1);
                assert_eq!(found, expected.collect::<Vec<_>>());
            }
        }
        for id in ids {
            assert_eq!(draft.record(table, id).map(|item| &**item), plain.0.get(&(table, *id)));
            let referrers: BTreeMap<_, _> = draft.referrers(table, id).collect();
            assert_eq!(referrers, plain.referrers(table, *id));
            for strength in [None, Some(Strength::Strong), Some(Strength::Weak)] {
                let expected =
                    referrers.keys().any(|referrer| strength.is_none_or(|it| it == referrer.strength));
                assert_eq!(draft.has_referrer(table, id, strength), expected);
            }
        }
    }
}
