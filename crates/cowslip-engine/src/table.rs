//! One table of a root: records by id, its indexes, and who refers to its records.
//!
//! Everything is a persistent map, so a clone copies a few pointers and a change copies one path. The choice of map
//! stays behind this type: `imbl::OrdMap` holds an entry in a quarter of the memory of its hash map and gives order
//! for free. Invariants: an index holds exactly the keys that the model reports for the records; `referrers` counts
//! exactly their references into this table, whether the target exists or not.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::change::TableChanges;
use crate::model::{Id, Model, Referrer, Strength, TableLayout};
use crate::overlay::{Entry, Place, PlaceRange, referrer_range};

pub(crate) struct Table<M: Model> {
    records: OrdMap<Id, Arc<M::Value>>,
    indexes: Vec<OrdSet<Entry<M::Key>>>,
    referrers: OrdMap<Referrer, u32>,
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
            records: OrdMap::new(),
            indexes: layout.indexes.iter().map(|_| OrdSet::new()).collect(),
            referrers: OrdMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn record(&self, id: &Id) -> Option<&Arc<M::Value>> {
        self.records.get(id)
    }

    pub(crate) fn scan(&self) -> impl Iterator<Item = (&Id, &Arc<M::Value>)> + use<'_, M> {
        self.records.iter()
    }

    pub(crate) fn lookup(&self, index: usize, key: &M::Key) -> impl Iterator<Item = Id> + use<'_, M> {
        // Comparing keys is what a look-up costs: an end that is found by walking spares the second descent.
        let wanted = key.clone();
        let entries = self.indexes.get(index);
        let entries =
            entries.map(|entries| entries.range::<_, dyn Place<M::Key> + '_>(PlaceRange::from(key).bounds()));
        let entries = entries.into_iter().flatten();
        entries.take_while(move |entry| entry.key == wanted).map(|entry| entry.id)
    }

    pub(crate) fn range(
        &self,
        index: usize,
        start: Bound<&M::Key>,
        end: Bound<&M::Key>,
    ) -> impl Iterator<Item = (&M::Key, Id)> + use<'_, M> {
        let entries = self.indexes.get(index).zip(PlaceRange::between(start, end));
        let entries =
            entries.map(|(entries, keys)| entries.range::<_, dyn Place<M::Key> + '_>(keys.bounds()));
        entries.into_iter().flatten().map(|entry| (&entry.key, entry.id))
    }

    pub(crate) fn referrers(
        &self,
        target: Id,
        strength: Option<Strength>,
    ) -> impl Iterator<Item = (Referrer, u32)> + use<'_, M> {
        self.referrers.range(referrer_range(target, strength)).map(|(referrer, count)| (*referrer, *count))
    }

    pub(crate) fn apply(&mut self, changes: &TableChanges<M>) {
        for change in &changes.records {
            match &change.new {
                Some(value) => self.records.insert(change.id, Arc::clone(value)),
                None => self.records.remove(&change.id),
            };
        }
        for (entries, changed) in self.indexes.iter_mut().zip(&changes.keys) {
            for (entry, added) in changed {
                if *added {
                    entries.insert(entry.clone());
                } else {
                    entries.remove(entry);
                }
            }
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
