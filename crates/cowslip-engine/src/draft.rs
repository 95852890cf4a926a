//! An overlay on a root: a transaction while it runs.
//!
//! Invariants: the base is never written; whatever a draft holds, and whatever its checks look at, grows with what it
//! touched and not with the database; for each touched record the overlay of an index or of the references holds the
//! net difference between its first and its last version, and nothing for untouched ones.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;
use std::iter::Peekable;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::change::{ChangeSet, RecordChange, TableChanges};
use crate::model::{
    IndexIx, IndexKind, KeyChanges, Model, Reference, ReferenceChanges, Referrer, Step, Strength, TableIx,
};
use crate::overlay::{
    NetEntries, Place, PlaceRange, add_net, note_keys, referrer_range, summed, summed_descending,
};
use crate::root::Root;

/// An overlay on a root: a transaction while it runs.
///
/// Reads see the draft's own writes. Dropping the draft undoes it; [`finish`](Self::finish) checks the primary indexes
/// and gives the change set.
pub struct Draft<'r, M: Model> {
    base: &'r Root<M>,
    /// By table; empty until the first write, so that a draft that only reads allocates nothing.
    tables: Vec<Option<Box<TableDraft<M>>>>,
    keys: KeyChanges<M::Key>,
    references: ReferenceChanges<M::Id>,
}

struct TableDraft<M: Model> {
    records: BTreeMap<M::Id, Touch<M>>,
    inserted: usize,
    removed: usize,
    indexes: Vec<NetEntries<M::Key, M::Id>>,
    /// References into this table.
    referrers: BTreeMap<Referrer<M::Id>, i64>,
}

struct Touch<M: Model> {
    first: Option<Arc<M::Value>>,
    last: Option<Arc<M::Value>>,
    delta: M::Delta,
}

/// What a draft did to one record.
pub struct Touched<'a, M: Model> {
    /// The record in the base.
    pub first: Option<&'a Arc<M::Value>>,
    /// The record as the draft leaves it.
    pub last: Option<&'a Arc<M::Value>>,
    /// What changed inside large values between the two, if both are there.
    pub delta: &'a M::Delta,
}

impl<M: Model> Clone for Touched<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Model> Copy for Touched<'_, M> {}

/// Several records hold one key of a primary index.
pub struct Conflict<M: Model> {
    /// The table.
    pub table: TableIx,
    /// The primary index.
    pub index: IndexIx,
    /// The key.
    pub key: M::Key,
    /// All records that hold it, in the order of their ids.
    pub ids: Vec<M::Id>,
}

impl<M: Model> fmt::Debug for Conflict<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, index, key: _, ids } = self;
        f.debug_struct("Conflict")
            .field("table", table)
            .field("index", index)
            .field("ids", ids)
            .finish_non_exhaustive()
    }
}

impl<M: Model> fmt::Display for Conflict<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, index, ids, .. } = self;
        write!(f, "{} records hold one key of primary index {} of table {}", ids.len(), index.0, table.0)
    }
}

impl<M: Model> std::error::Error for Conflict<M> {}

impl<'r, M: Model> Draft<'r, M> {
    /// A draft without changes.
    pub fn new(base: &'r Root<M>) -> Self {
        Self { base, tables: Vec::new(), keys: KeyChanges::new(), references: ReferenceChanges::new() }
    }

    /// The root below.
    pub fn base(&self) -> &'r Root<M> {
        self.base
    }

    /// The meta of the root below.
    pub fn meta(&self) -> &'r Arc<M::Meta> {
        self.base.meta()
    }

    /// A record by its id.
    pub fn record(&self, table: TableIx, id: &M::Id) -> Option<&Arc<M::Value>> {
        match self.touch(table, id) {
            Some(touch) => touch.last.as_ref(),
            None => self.base.record(table, id),
        }
    }

    /// The number of records in a table.
    pub fn len(&self, table: TableIx) -> usize {
        let (inserted, removed) = self.overlay(table).map_or((0, 0), |over| (over.inserted, over.removed));
        (self.base.len(table) + inserted).saturating_sub(removed)
    }

    /// Whether a table has no records.
    pub fn is_empty(&self, table: TableIx) -> bool {
        self.len(table) == 0
    }

    /// All records of a table in the order of their ids.
    pub fn scan(&self, table: TableIx) -> impl Iterator<Item = (M::Id, &Arc<M::Value>)> + use<'_, M> {
        let over = self.overlay(table).map(|over| over.records.iter());
        Scan { base: self.base.scan(table).peekable(), over: over.into_iter().flatten().peekable() }
    }

    /// The records that hold a key, in the order of their ids.
    pub fn lookup(
        &self,
        table: TableIx,
        index: IndexIx,
        key: &M::Key,
    ) -> impl Iterator<Item = M::Id> + use<'_, M> {
        let over = self.index(table, index);
        let over = over
            .map(|entries| entries.range::<dyn Place<M::Key, M::Id> + '_, _>(PlaceRange::of(key).bounds()));
        let over = over.into_iter().flatten().map(|(entry, net)| (entry.id, *net));
        let base = self.base.lookup(table, index, key).map(|id| (id, 1));
        summed(base, over).map(|(id, _)| id)
    }

    /// The entries of an index whose keys lie in a range, in the order of keys, then ids.
    pub fn range<'a, R: RangeBounds<M::Key>>(
        &'a self,
        table: TableIx,
        index: IndexIx,
        keys: R,
    ) -> impl Iterator<Item = (&'a M::Key, M::Id)> + use<'a, 'r, M, R> {
        let (start, end) = (keys.start_bound(), keys.end_bound());
        let base = self.base.table(table).map(|records| records.range(usize::from(index.0), start, end));
        let base = base.into_iter().flatten().map(|entry| (entry, 1));
        let over = self.index(table, index).zip(PlaceRange::between(start, end));
        let over =
            over.map(|(entries, keys)| entries.range::<dyn Place<M::Key, M::Id> + '_, _>(keys.bounds()));
        let over = over.into_iter().flatten().map(|(entry, net)| ((&entry.key, entry.id), *net));
        summed(base, over).map(|(entry, _)| entry)
    }

    /// The same entries in the opposite order.
    pub fn range_descending<'a, R: RangeBounds<M::Key>>(
        &'a self,
        table: TableIx,
        index: IndexIx,
        keys: R,
    ) -> impl Iterator<Item = (&'a M::Key, M::Id)> + use<'a, 'r, M, R> {
        let (start, end) = (keys.start_bound(), keys.end_bound());
        let base = self.base.table(table).map(|records| records.range(usize::from(index.0), start, end));
        let base = base.into_iter().flatten().rev().map(|entry| (entry, 1));
        let over = self.index(table, index).zip(PlaceRange::between(start, end));
        let over =
            over.map(|(entries, keys)| entries.range::<dyn Place<M::Key, M::Id> + '_, _>(keys.bounds()));
        let over = over.into_iter().flatten().rev().map(|(entry, net)| ((&entry.key, entry.id), *net));
        summed_descending(base, over).map(|(entry, _)| entry)
    }

    /// Who refers to a record (that need not exist), and how many times.
    pub fn referrers(
        &self,
        target_table: TableIx,
        target: &M::Id,
    ) -> impl Iterator<Item = (Referrer<M::Id>, u32)> + use<'_, M> {
        self.counted_referrers(target_table, *target, None)
            .map(|(referrer, count)| (referrer, u32::try_from(count).unwrap_or(u32::MAX)))
    }

    /// Whether anything refers to a record, or does so with the strength asked for.
    pub fn has_referrer(&self, target_table: TableIx, target: &M::Id, strength: Option<Strength>) -> bool {
        self.counted_referrers(target_table, *target, strength).next().is_some()
    }

    /// The records that were put or removed, in the order of their ids, whether they differ in the end or not.
    pub fn touched(&self, table: TableIx) -> impl Iterator<Item = (&M::Id, Touched<'_, M>)> {
        self.overlay(table).into_iter().flat_map(|over| &over.records).map(|(id, touch)| (id, touch.view()))
    }

    /// The tables that have touched records, in ascending order.
    pub fn touched_tables(&self) -> impl Iterator<Item = TableIx> + use<'_, M> {
        self.overlays().filter(|(_, over)| !over.records.is_empty()).map(|(table, _)| table)
    }

    /// What the draft did to a record, if it touched it.
    pub fn touched_record(&self, table: TableIx, id: &M::Id) -> Option<Touched<'_, M>> {
        self.touch(table, id).map(Touch::view)
    }

    /// Whether a record was put or removed.
    pub fn is_touched(&self, table: TableIx, id: &M::Id) -> bool {
        self.touch(table, id).is_some()
    }

    /// Whether a record, from the base or the draft's own, was removed and not put again.
    pub fn was_deleted_here(&self, table: TableIx, id: &M::Id) -> bool {
        self.touch(table, id).is_some_and(|touch| touch.last.is_none())
    }

    /// Inserts or replaces a record. The delta says what changed inside large values since the version it replaces.
    ///
    /// # Panics
    /// If the layout has no such table, or the model reports a reference into a table that it doesn't have.
    pub fn put(&mut self, table: TableIx, id: M::Id, value: Arc<M::Value>, delta: M::Delta) {
        self.step(table, id, None, Some(value), delta);
    }

    /// Replaces a record whose version in this draft, `old`, the caller has at hand, which spares looking it up.
    /// Whether the draft had touched the record before.
    ///
    /// # Panics
    /// As [`put`](Self::put).
    pub fn replace(
        &mut self,
        table: TableIx,
        id: M::Id,
        old: Arc<M::Value>,
        new: Arc<M::Value>,
        delta: M::Delta,
    ) -> bool {
        debug_assert!(
            self.record(table, &id).is_some_and(|last| Arc::ptr_eq(last, &old)),
            "its last version"
        );
        self.step(table, id, Some(old), Some(new), delta)
    }

    /// Removes a record; false if there was none.
    pub fn remove(&mut self, table: TableIx, id: &M::Id) -> bool {
        let exists = self.record(table, id).is_some();
        if exists {
            self.step(table, *id, None, None, M::Delta::default());
        }
        exists
    }

    /// Takes a record whose last version equals its first, by the protocol's judgement, off the list of touched ones.
    ///
    /// Its keys and references have netted out. False, and nothing happens, if it is not touched, or exists on one
    /// side only.
    pub fn forget(&mut self, table: TableIx, id: &M::Id) -> bool {
        let Some(over) = self.tables.get_mut(usize::from(table.0)).and_then(Option::as_mut) else {
            return false;
        };
        match over.records.get(id) {
            Some(touch) if touch.first.is_some() == touch.last.is_some() => over.records.remove(id).is_some(),
            _ => false,
        }
    }

    /// Whether nothing is touched.
    pub fn is_untouched(&self) -> bool {
        self.touched_tables().next().is_none()
    }

    /// The first conflict in a primary index, by table, index and key.
    ///
    /// Only keys that the draft took are looked at: without these the base would have been in conflict already. A
    /// record of the base that gave up its key in this draft is not in the way.
    pub fn check_unique(&self) -> Option<Conflict<M>> {
        self.conflicts().next()
    }

    /// All conflicts in primary indexes, by table, index and key, as [`check_unique`](Self::check_unique) finds them.
    pub fn conflicts(&self) -> impl Iterator<Item = Conflict<M>> + use<'_, M> {
        self.overlays().flat_map(move |(table, over)| {
            let kinds = self.base.layout().get(usize::from(table.0)).map(|layout| &layout.indexes);
            let indexes = (0..).map(IndexIx).zip(kinds.into_iter().flatten()).zip(&over.indexes);
            indexes
                .filter(|((_, kind), _)| **kind == IndexKind::Primary)
                .flat_map(move |((index, _), entries)| self.conflicts_in(table, index, entries))
        })
    }

    /// Checks the primary indexes and turns the draft into its change set.
    ///
    /// # Errors
    /// The first conflict that [`check_unique`](Self::check_unique) finds.
    pub fn finish(self) -> Result<ChangeSet<M>, Conflict<M>> {
        match self.check_unique() {
            Some(conflict) => Err(conflict),
            None => Ok(self.into_changes()),
        }
    }

    /// Turns the draft into its change set without a check: for one already made, or where another side's word counts.
    pub fn into_changes(self) -> ChangeSet<M> {
        let overlays = (0..=u16::MAX).map(TableIx).zip(self.tables);
        let tables = overlays.filter_map(|(table, over)| Some(over?.into_changes(table)));
        ChangeSet::new(tables.filter(|changes| !changes.is_empty()).collect())
    }

    fn conflicts_in<'a>(
        &'a self,
        table: TableIx,
        index: IndexIx,
        entries: &'a NetEntries<M::Key, M::Id>,
    ) -> impl Iterator<Item = Conflict<M>> + use<'a, 'r, M> {
        let taken = entries.iter().filter(|(_, net)| **net > 0).map(|(entry, _)| &entry.key);
        taken.filter_map(move |key| {
            self.lookup(table, index, key).nth(1)?;
            let ids = self.lookup(table, index, key).collect();
            Some(Conflict { table, index, key: key.clone(), ids })
        })
    }

    /// Whether the record had been touched before; `base_version` is its version in the base in case it was not, if
    /// that is known.
    fn step(
        &mut self,
        table: TableIx,
        id: M::Id,
        base_version: Option<Arc<M::Value>>,
        new: Option<Arc<M::Value>>,
        delta: M::Delta,
    ) -> bool {
        let (base, meta) = (self.base, self.base.meta());
        let mut references = std::mem::take(&mut self.references);
        let mut keys = std::mem::take(&mut self.keys);
        let over = self.overlay_mut(table);
        let (touch, was_touched) = match over.records.entry(id) {
            btree_map::Entry::Occupied(touched) => (touched.into_mut(), true),
            btree_map::Entry::Vacant(place) => {
                let first = base_version.or_else(|| base.record(table, &id).cloned());
                let touch = Touch { last: first.clone(), first, delta: M::Delta::default() };
                (place.insert(touch), false)
            }
        };
        match (&touch.last, &new) {
            (None, Some(_)) => over.inserted += 1,
            (Some(_), None) => over.removed += 1,
            _ => {}
        }
        let step = Step { old: touch.last.as_deref(), new: new.as_deref(), delta: &delta };
        let kinds = base.layout().get(usize::from(table.0)).map(|layout| &layout.indexes);
        let indexes = (0..).map(IndexIx).zip(kinds.into_iter().flatten()).zip(&mut over.indexes);
        for ((index, _), entries) in indexes.filter(|((_, kind), _)| **kind != IndexKind::Absent) {
            M::keys(meta, table, index, &step, &mut keys);
            note_keys(entries, id, &mut keys);
        }
        M::references(meta, table, &step, &mut references);
        touch.advance(meta, table, new, delta);
        for (reference, net) in references.changes.drain(..) {
            let Reference { table: target_table, target, strength, slot } = reference;
            let referrer = Referrer { target, strength, table, source: id, slot };
            add_net(&mut self.overlay_mut(target_table).referrers, referrer, net);
        }
        self.references = references;
        self.keys = keys;
        was_touched
    }

    fn counted_referrers(
        &self,
        target_table: TableIx,
        target: M::Id,
        strength: Option<Strength>,
    ) -> impl Iterator<Item = (Referrer<M::Id>, i64)> + use<'_, M> {
        let base = self.base.table(target_table).into_iter();
        let base = base.flat_map(move |records| records.referrers(target, strength));
        let over = self.overlay(target_table).into_iter();
        let over = over.flat_map(move |over| over.referrers.range(referrer_range(target, strength)));
        summed(
            base.map(|(referrer, count)| (referrer, i64::from(count))),
            over.map(|(referrer, net)| (*referrer, *net)),
        )
    }

    fn overlay(&self, table: TableIx) -> Option<&TableDraft<M>> {
        self.tables.get(usize::from(table.0))?.as_deref()
    }

    fn overlays(&self) -> impl Iterator<Item = (TableIx, &TableDraft<M>)> + use<'_, M> {
        (0..=u16::MAX)
            .map(TableIx)
            .zip(&self.tables)
            .filter_map(|(table, over)| Some((table, over.as_deref()?)))
    }

    fn overlay_mut(&mut self, table: TableIx) -> &mut TableDraft<M> {
        let layout = self.base.layout();
        let position = usize::from(table.0);
        let indexes = &layout.get(position).expect("the layout has the table").indexes;
        if self.tables.is_empty() {
            self.tables.resize_with(layout.len(), || None);
        }
        self.tables[position].get_or_insert_with(|| Box::new(TableDraft::new(indexes.len())))
    }

    fn touch(&self, table: TableIx, id: &M::Id) -> Option<&Touch<M>> {
        self.overlay(table)?.records.get(id)
    }

    fn index(&self, table: TableIx, index: IndexIx) -> Option<&NetEntries<M::Key, M::Id>> {
        self.overlay(table)?.indexes.get(usize::from(index.0))
    }
}

impl<M: Model> TableDraft<M> {
    fn new(indexes: usize) -> Self {
        Self {
            records: BTreeMap::new(),
            inserted: 0,
            removed: 0,
            indexes: (0..indexes).map(|_| BTreeMap::new()).collect(),
            referrers: BTreeMap::new(),
        }
    }

    fn into_changes(self, table: TableIx) -> TableChanges<M> {
        let mut records = Vec::with_capacity(self.records.len());
        let changed = self.records.into_iter().filter(|(_, touch)| !touch.is_unchanged());
        records.extend(changed.map(|(id, Touch { first, last, delta })| RecordChange {
            id,
            old: first,
            new: last,
            delta,
        }));
        let keys = self.indexes.into_iter();
        let keys = keys.map(|entries| entries.into_iter().map(|(entry, net)| (entry, net > 0)).collect());
        TableChanges { table, records, keys: keys.collect(), referrers: self.referrers.into_iter().collect() }
    }
}

impl<M: Model> Touch<M> {
    fn view(&self) -> Touched<'_, M> {
        Touched { first: self.first.as_ref(), last: self.last.as_ref(), delta: &self.delta }
    }

    fn is_unchanged(&self) -> bool {
        match (&self.first, &self.last) {
            (None, None) => true,
            (Some(first), Some(last)) => Arc::ptr_eq(first, last),
            _ => false,
        }
    }

    /// Keeps the delta the one that leads from `first` to `last`.
    fn advance(&mut self, meta: &M::Meta, table: TableIx, new: Option<Arc<M::Value>>, delta: M::Delta) {
        match (&self.first, &self.last, &new) {
            (Some(_), Some(_), Some(_)) => M::merge(&mut self.delta, delta),
            (Some(first), None, Some(new)) => self.delta = M::difference(meta, table, first, new),
            _ => self.delta = M::Delta::default(),
        }
        self.last = new;
    }
}

/// The overlay's records laid over the base's.
struct Scan<A: Iterator, B: Iterator> {
    base: Peekable<A>,
    over: Peekable<B>,
}

impl<'a, M: Model, A, B> Iterator for Scan<A, B>
where
    A: Iterator<Item = (M::Id, &'a Arc<M::Value>)>,
    B: Iterator<Item = (&'a M::Id, &'a Touch<M>)>,
{
    type Item = (M::Id, &'a Arc<M::Value>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((over, _)) = self.over.peek() else { return self.base.next() };
            if let Some(untouched) = self.base.next_if(|(id, _)| id < *over) {
                return Some(untouched);
            }
            let (id, touch) = self.over.next()?;
            self.base.next_if(|(base, _)| base == id);
            if let Some(last) = &touch.last {
                return Some((*id, last));
            }
        }
    }
}
