//! A small model that uses everything the engine offers, and the same database as plain maps to compare with.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod journal;

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;

use cowslip_engine::{
    Conflict, Draft, IndexIx, IndexKind, KeyChanges, Model, Posting, RecordId, RecordNumber, Reference,
    ReferenceChanges, Referrer, Root, Step, Strength, TableIx, TableLayout, Uuid,
};

pub const TABLES: [TableIx; 2] = [TableIx(0), TableIx(1)];
pub const NAME: IndexIx = IndexIx(0);
pub const GROUP: IndexIx = IndexIx(1);
pub const TAG: IndexIx = IndexIx(2);

/// A key of the index that only [`WITH_REST`] has.
pub const REST: IndexIx = IndexIx(3);

/// Metas with this bit have no index of groups.
pub const WITHOUT_GROUP: u32 = 0x100;
/// Metas with this bit have no index of tags.
pub const WITHOUT_TAG: u32 = 0x200;
/// Metas with this bit have one more index: the name's rest after division by four.
pub const WITH_REST: u32 = 0x400;

/// What identifies a toy record, unless a test says otherwise.
pub type Id = Uuid;

/// An id that can be made of any number.
pub trait ToyId: RecordId {
    fn toy(number: u128) -> Self;
}

impl ToyId for Uuid {
    fn toy(number: u128) -> Self {
        Self::from_u128(number)
    }
}

impl ToyId for RecordNumber {
    fn toy(number: u128) -> Self {
        Self(number as u32)
    }
}

pub struct Toy<I = Id>(PhantomData<I>);

/// A record of either table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<I = Id> {
    /// Unique in its table.
    pub name: u32,
    /// Not every item is in a group.
    pub group: Option<u32>,
    /// Grows large.
    pub tags: imbl::OrdSet<u32>,
    /// May name one target several times.
    pub links: Vec<(TableIx, I, Strength)>,
}

impl<I> Default for Item<I> {
    fn default() -> Self {
        Self { name: 0, group: None, tags: imbl::OrdSet::new(), links: Vec::new() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagDelta {
    pub added: BTreeSet<u32>,
    pub removed: BTreeSet<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u32);

impl TagDelta {
    pub fn between<I>(old: &Item<I>, new: &Item<I>) -> Self {
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

impl<I: ToyId> Model for Toy<I> {
    type Id = I;
    type Value = Item<I>;
    type Key = Key;
    type Delta = TagDelta;
    type Meta = u32;
    type Note = String;

    fn layout(meta: &u32) -> Vec<TableLayout> {
        let unless = |bit: u32, kind| if meta & bit == 0 { kind } else { IndexKind::Absent };
        let mut indexes = vec![
            IndexKind::Primary,
            unless(WITHOUT_GROUP, IndexKind::Secondary),
            unless(WITHOUT_TAG, IndexKind::Postings),
        ];
        indexes.extend((meta & WITH_REST != 0).then_some(IndexKind::Postings));
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
            REST => {
                out.removed.extend(step.old.map(|item| Key(item.name % 4)));
                out.added.extend(step.new.map(|item| Key(item.name % 4)));
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

    fn references(_: &u32, _: TableIx, step: &Step<'_, Self>, out: &mut ReferenceChanges<I>) {
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

    fn difference(_: &u32, _: TableIx, old: &Item<I>, new: &Item<I>) -> TagDelta {
        TagDelta::between(old, new)
    }
}

/// The same database as plain maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain<I = Id>(pub BTreeMap<(TableIx, I), Item<I>>);

impl<I> Default for Plain<I> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<I: ToyId> Plain<I> {
    pub fn of(root: &Root<Toy<I>>) -> Self {
        let records = TABLES
            .into_iter()
            .flat_map(|table| root.scan(table).map(move |(id, item)| ((table, id), Item::clone(item))));
        Self(records.collect())
    }

    pub fn table(&self, table: TableIx) -> impl Iterator<Item = (&I, &Item<I>)> {
        self.0.iter().filter(move |((of, _), _)| *of == table).map(|((_, id), item)| (id, item))
    }

    pub fn keys(item: &Item<I>, index: IndexIx) -> Vec<u32> {
        match index {
            NAME => vec![item.name],
            GROUP => item.group.into_iter().collect(),
            REST => vec![item.name % 4],
            _ => item.tags.iter().copied().collect(),
        }
    }

    pub fn entries(&self, table: TableIx, index: IndexIx) -> BTreeSet<(u32, I)> {
        let entries = self
            .table(table)
            .flat_map(|(id, item)| Self::keys(item, index).into_iter().map(|key| (key, *id)));
        entries.collect()
    }

    pub fn referrers(&self, table: TableIx, target: I) -> BTreeMap<Referrer<I>, u32> {
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
    pub fn conflict(&self) -> Option<(TableIx, u32, Vec<I>)> {
        TABLES.into_iter().find_map(|table| {
            let mut names: BTreeMap<u32, Vec<I>> = BTreeMap::new();
            for (name, id) in self.entries(table, NAME) {
                names.entry(name).or_default().push(id);
            }
            names.into_iter().find(|(_, ids)| ids.len() > 1).map(|(name, ids)| (table, name, ids))
        })
    }
}

pub fn conflict_of<I: ToyId>(conflict: Conflict<Toy<I>>) -> (TableIx, u32, Vec<I>) {
    assert_eq!(conflict.index, NAME);
    (conflict.table, conflict.key.0, conflict.ids)
}

/// Puts an item into a draft with the delta that leads to it.
pub fn put<I: ToyId>(draft: &mut Draft<'_, Toy<I>>, table: TableIx, id: I, item: Item<I>) {
    let delta = draft.record(table, &id).map(|old| TagDelta::between(old, &item)).unwrap_or_default();
    draft.put(table, id, Arc::new(item), delta);
}

/// The entries that an index has under this meta, in their order.
fn expected_entries<I: ToyId>(
    meta: u32,
    plain: &Plain<I>,
    table: TableIx,
    index: IndexIx,
) -> BTreeSet<(u32, I)> {
    let is_there = match index {
        GROUP => meta & WITHOUT_GROUP == 0,
        TAG => meta & WITHOUT_TAG == 0,
        REST => meta & WITH_REST != 0,
        _ => true,
    };
    if is_there { plain.entries(table, index) } else { BTreeSet::new() }
}

/// Compares a root with the plain maps in everything one can ask.
pub fn assert_root_is<I: ToyId>(root: &Root<Toy<I>>, plain: &Plain<I>, ids: &[I]) {
    assert_eq!(&Plain::of(root), plain);
    for table in TABLES {
        assert_eq!(root.len(table), plain.table(table).count());
        for index in [NAME, GROUP, TAG, REST] {
            let entries = expected_entries(**root.meta(), plain, table, index);
            assert_index_is(root, table, index, &entries);
        }
        for id in ids {
            let referrers: BTreeMap<_, _> = root.referrers(table, id).collect();
            assert_eq!(referrers, plain.referrers(table, *id));
            let after: Vec<_> = root.scan_from(table, *id).map(|(id, _)| id).collect();
            let expected: Vec<_> = plain.table(table).map(|(id, _)| *id).filter(|it| it >= id).collect();
            assert_eq!(after, expected);
            let backwards: Vec<_> = root.scan_from(table, *id).rev().map(|(id, _)| id).collect();
            assert!(backwards.iter().eq(expected.iter().rev()));
        }
    }
}

fn assert_index_is<I: ToyId>(
    root: &Root<Toy<I>>,
    table: TableIx,
    index: IndexIx,
    entries: &BTreeSet<(u32, I)>,
) {
    let ranged: Vec<_> = root.range(table, index, ..).map(|(key, id)| (key.0, id)).collect();
    assert!(ranged.iter().eq(entries));
    let backwards = root.range(table, index, Key(1)..=Key(6)).rev().map(|(key, id)| (key.0, id));
    assert!(backwards.eq(entries.iter().copied().rev().filter(|(key, _)| (1..=6).contains(key))));
    for key in 0..12 {
        let found: Vec<_> = root.lookup(table, index, &Key(key)).collect();
        let expected: Vec<_> = entries.iter().filter(|entry| entry.0 == key).map(|entry| entry.1).collect();
        assert_eq!(found, expected);
        if root.has_postings(table, index) {
            let posting = root.posting(table, index, &Key(key));
            assert_eq!(posting.is_none(), expected.is_empty());
            assert_eq!(posting.map_or(0, Posting::len), expected.len());
            let numbers = posting.into_iter().flatten().map(|number| I::toy(number.0.into()));
            assert!(numbers.eq(expected));
        }
    }
    let postings: Vec<_> = root.postings(table, index, Key(1)..).map(|(key, _)| key.0).collect();
    let keys: BTreeSet<_> = entries.iter().map(|(key, _)| *key).filter(|key| *key >= 1).collect();
    let has_postings = root.has_postings(table, index);
    assert!(postings.into_iter().eq(keys.into_iter().filter(|_| has_postings)));
}

/// Compares what a draft shows with the plain maps in everything one can ask.
pub fn assert_draft_is<I: ToyId>(draft: &Draft<'_, Toy<I>>, plain: &Plain<I>, ids: &[I]) {
    for table in TABLES {
        let scanned: Vec<_> = draft.scan(table).map(|(id, item)| (id, Item::clone(item))).collect();
        let expected: Vec<_> = plain.table(table).map(|(id, item)| (*id, item.clone())).collect();
        assert_eq!(scanned, expected);
        assert_eq!(draft.len(table), expected.len());
        for index in [NAME, GROUP, TAG, REST] {
            let entries = expected_entries(**draft.meta(), plain, table, index);
            let ranged: Vec<_> = draft.range(table, index, ..).map(|(key, id)| (key.0, id)).collect();
            assert_eq!(ranged, entries.iter().copied().collect::<Vec<_>>());
            let some = || entries.iter().copied().filter(|(key, _)| (2..7).contains(key));
            let ranged = draft.range(table, index, Key(2)..Key(7)).map(|(key, id)| (key.0, id));
            assert_eq!(ranged.collect::<Vec<_>>(), some().collect::<Vec<_>>());
            let ranged = draft.range_descending(table, index, Key(2)..Key(7)).map(|(key, id)| (key.0, id));
            assert!(ranged.eq(some().collect::<Vec<_>>().into_iter().rev()));
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
