//! Many change sets as one: what a follower that fell behind sends instead of every step.
//!
//! Invariants: a record appears once, with its version before the first and after the last of the change sets, and not
//! at all if these are the same; tables and records come in ascending order.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change::ChangeSet;
use crate::model::{Model, TableIx};

/// The change of one record over several change sets.
pub struct MergedChange<'a, M: Model> {
    /// Its version before.
    pub old: Option<&'a Arc<M::Value>>,
    /// Its version after.
    pub new: Option<&'a Arc<M::Value>>,
    /// The deltas that lead from `old` to `new` one after the other; none if the record did not exist all along, so
    /// that a difference must be found by comparing the two.
    pub deltas: Option<Vec<&'a M::Delta>>,
}

/// The changed records of each changed table.
pub type MergedChanges<'a, M> = BTreeMap<TableIx, BTreeMap<<M as Model>::Id, MergedChange<'a, M>>>;

/// Merges change sets that follow one another.
pub fn merge<'a, M: Model>(sets: impl IntoIterator<Item = &'a ChangeSet<M>>) -> MergedChanges<'a, M> {
    let mut merged: MergedChanges<'a, M> = BTreeMap::new();
    for table in sets.into_iter().flat_map(ChangeSet::tables) {
        let records = merged.entry(table.table).or_default();
        for change in &table.records {
            let (old, new) = (change.old.as_ref(), change.new.as_ref());
            let all_along = old.is_some() && new.is_some();
            let record =
                records.entry(change.id).or_insert(MergedChange { old, new, deltas: Some(Vec::new()) });
            record.new = new;
            match &mut record.deltas {
                Some(deltas) if all_along => deltas.push(&change.delta),
                deltas => *deltas = None,
            }
        }
    }
    for records in merged.values_mut() {
        records.retain(|_, record| match (record.old, record.new) {
            (None, None) => false,
            (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
            _ => true,
        });
    }
    merged.retain(|_, records| !records.is_empty());
    merged
}
