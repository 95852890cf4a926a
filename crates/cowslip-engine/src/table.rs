//! One table of a root: records by id, its indexes, and who refers to its records.
//!
//! Everything is a persistent map, so a clone copies a few pointers and a change copies one path. The choice of map
//! stays behind this type: `imbl::OrdMap` holds an entry in a quarter of the memory of its hash map and gives order
//! for free; for dense ids see `records` and `posting`. Invariants: an index holds exactly the keys that the model
//! reports for the records; `referrers` counts exactly their references into this table, whether the target exists or
//! not.

use std::ops::{Bound, RangeFrom};
use std::sync::Arc;

use imbl::OrdMap;

use crate::change::TableChanges;
use crate::index::Index;
use crate::model::{Model, Referrer, Strength, TableLayout};
use crate::overlay::referrer_range;
use crate::posting::Posting;
use crate::records::Records;

/// The records of a model's table.
pub(crate) type RecordMap<M> = <<M as Model>::Id as crate::id::Kind>::Map<Arc<<M as Model>::Value>>;

pub(crate) struct Table<M: Model> {
    pub(crate) records: RecordMap<M>,
    pub(crate) indexes: Vec<Index<M::Key, M::Id>>,
    pub(crate) referrers: OrdMap<Referrer<M::Id>, u32>,
}

impl<M: Model> Clone for Table<M> {
    fn clone(&self) -> Self {
        Self {
            records: self.records.clone(),
            indexes: self.indexes.clone(),
            referrers: self.referrers.clone(),
        }
    }
}

impl<M: Model> Table<M> {
    pub(crate) fn new(layout: &TableLayout) -> Self {
        Self {
            records: RecordMap::<M>::default(),
            indexes: layout.indexes.iter().map(|kind| Index::new(*kind)).collect(),
            referrers: OrdMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn record(&self, id: &M::Id) -> Option<&Arc<M::Value>> {
        self.records.get(*id)
    }

    pub(crate) fn scan(
        &self,
        ids: RangeFrom<M::Id>,
    ) -> impl DoubleEndedIterator<Item = (M::Id, &Arc<M::Value>)> + use<'_, M> {
        self.records.from(ids)
    }

    pub(crate) fn lookup(&self, index: usize, key: &M::Key) -> impl Iterator<Item = M::Id> + use<'_, M> {
        self.indexes.get(index).map(|index| index.lookup(key)).into_iter().flatten()
    }

    pub(crate) fn range(
        &self,
        index: usize,
        start: Bound<&M::Key>,
        end: Bound<&M::Key>,
    ) -> impl DoubleEndedIterator<Item = (&M::Key, M::Id)> + use<'_, M> {
        self.indexes.get(index).map(|index| index.range(start, end)).into_iter().flatten()
    }

    pub(crate) fn posting(&self, index: usize, key: &M::Key) -> Option<&Posting> {
        self.indexes.get(index)?.posting(key)
    }

    pub(crate) fn has_postings(&self, index: usize) -> bool {
        matches!(self.indexes.get(index), Some(Index::Postings(_)))
    }

    pub(crate) fn postings(
        &self,
        index: usize,
        start: Bound<&M::Key>,
        end: Bound<&M::Key>,
    ) -> impl DoubleEndedIterator<Item = (&M::Key, &Posting)> + use<'_, M> {
        self.indexes.get(index).map(|index| index.postings(start, end)).into_iter().flatten()
    }

    pub(crate) fn referrers(
        &self,
        target: M::Id,
        strength: Option<Strength>,
    ) -> impl Iterator<Item = (Referrer<M::Id>, u32)> + use<'_, M> {
        self.referrers.range(referrer_range(target, strength)).map(|(referrer, count)| (*referrer, *count))
    }

    pub(crate) fn apply(&mut self, changes: &TableChanges<M>) {
        for change in &changes.records {
            match &change.new {
                Some(value) => self.records.put(change.id, Arc::clone(value)),
                None => self.records.take(change.id),
            }
        }
        for (index, changed) in self.indexes.iter_mut().zip(&changes.keys) {
            index.apply(changed);
        }
        for (referrer, net) in &changes.referrers {
            let count = self.referrers.get(referrer).map_or(0, |count| i64::from(*count)) + net;
            if count > 0 {
                self.referrers.insert(*referrer, u32::try_from(count).unwrap_or(u32::MAX));
            } else {
                self.referrers.remove(referrer);
            }
        }
    }
}
