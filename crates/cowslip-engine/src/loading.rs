//! Indexes and references of many records at once: for a start from a snapshot, an import, another layout.
//!
//! Keys are collected for one index at a time, sorted (`sorting`), and made into a map whose nodes are full; the indexes
//! are shared out among the cores. So what it takes besides the result is one index's keys for each core. Invariant: the result is
//! the one that putting the records one by one would give.

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use imbl::OrdMap;

use crate::draft::Conflict;
use crate::id::RecordId;
use crate::index::{Index, fill};
use crate::model::{IndexIx, IndexKind, KeyChanges, Model, ReferenceChanges, Referrer, Step, TableIx};
use crate::records::Records;
use crate::root::table_ixs;
use crate::sorting::{Collected, Collector};
use crate::table::{RecordMap, Table};

/// An index of all records of a table, and the first key of a primary index that several hold.
pub(crate) struct Loaded<M: Model> {
    pub(crate) content: Index<M::Key, M::Id>,
    pub(crate) conflict: Option<Conflict<M>>,
    /// By how much the entries of a primary index outnumber its keys.
    pub(crate) surplus: usize,
}

/// Builds one index of these records.
pub(crate) fn load_index<M: Model>(
    meta: &M::Meta,
    (table, index): (TableIx, IndexIx),
    kind: IndexKind,
    records: &RecordMap<M>,
) -> Loaded<M> {
    let mut loaded = Loaded { content: Index::new(kind), conflict: None, surplus: 0 };
    if kind == IndexKind::Absent {
        return loaded;
    }
    let (mut keys, delta) = (KeyChanges::new(), M::Delta::default());
    let mut collector = Collector::<M>::new(kind);
    for (id, value) in records.from(M::Id::MIN..) {
        M::keys(meta, table, index, &Step { old: None, new: Some(value), delta: &delta }, &mut keys);
        keys.added.drain(..).for_each(|key| collector.add(key, id));
        keys.removed.clear();
    }
    let entries = match collector.finish() {
        Collected::Postings(postings) => {
            loaded.content = Index::of_postings(postings);
            return loaded;
        }
        Collected::Entries(entries) => entries,
    };
    if kind == IndexKind::Primary {
        let holders = entries.chunk_by(|left, right| left.key == right.key);
        loaded.surplus = entries.len() - holders.clone().count();
        loaded.conflict = holders.into_iter().find(|holders| holders.len() > 1).map(|holders| Conflict {
            table,
            index,
            key: holders[0].key.clone(),
            ids: holders.iter().map(|holder| holder.id).collect(),
        });
    }
    loaded.content = Index::of_entries(entries);
    loaded
}

/// Fills the indexes and references of tables that have only records so far; gives the first conflict by table and index.
pub(crate) fn load_indexes<M: Model>(
    meta: &M::Meta,
    layout: &[crate::model::TableLayout],
    tables: &mut [Table<M>],
) -> Option<Conflict<M>> {
    let places = table_ixs(layout).flat_map(|(table, layout)| {
        (0..).map(IndexIx).zip(&layout.indexes).map(move |(index, kind)| (table, index, *kind))
    });
    let places: Vec<_> = places.filter(|(.., kind)| *kind != IndexKind::Absent).collect();
    let tables_read = &*tables;
    let mut loaded = shared_out(&places, |(table, index, kind)| {
        let records = &tables_read[usize::from(table.0)].records;
        load_index::<M>(meta, (*table, *index), *kind, records)
    });
    let mut conflict = None;
    for ((table, index, _), loaded) in places.iter().zip(loaded.drain(..)) {
        conflict = conflict.or(loaded.conflict);
        tables[usize::from(table.0)].indexes[usize::from(index.0)] = loaded.content;
    }
    load_references(meta, tables);
    conflict
}

fn load_references<M: Model>(meta: &M::Meta, tables: &mut [Table<M>]) {
    let mut counted: Vec<Vec<(Referrer<M::Id>, i64)>> = tables.iter().map(|_| Vec::new()).collect();
    let (mut references, delta) = (ReferenceChanges::new(), M::Delta::default());
    for (table, content) in table_ixs(tables) {
        for (source, value) in content.records.from(M::Id::MIN..) {
            M::references(meta, table, &Step { old: None, new: Some(value), delta: &delta }, &mut references);
            for (reference, count) in references.changes.drain(..) {
                let crate::model::Reference { table: target_table, target, strength, slot } = reference;
                let referrer = Referrer { target, strength, table, source, slot };
                let counts = counted.get_mut(usize::from(target_table.0));
                counts.expect("the layout has the table of each reference").push((referrer, count));
            }
        }
    }
    for (table, mut counts) in tables.iter_mut().zip(counted) {
        counts.sort_unstable_by_key(|(referrer, _)| *referrer);
        counts.dedup_by(|(later, more), (earlier, count)| {
            let is_same = later == earlier;
            *count += if is_same { *more } else { 0 };
            is_same
        });
        let mut referrers = OrdMap::new();
        fill(counts.into_iter().filter(|(_, count)| *count > 0).collect(), |(referrer, count)| {
            referrers.insert(referrer, u32::try_from(count).unwrap_or(u32::MAX));
        });
        table.referrers = referrers;
    }
}

/// The records of each table, of which the last with an id counts.
///
/// # Panics
/// If there are fewer tables than a record's table asks for.
pub(crate) fn record_maps<M: Model>(
    tables: usize,
    records: impl IntoIterator<Item = (TableIx, M::Id, Arc<M::Value>)>,
) -> Vec<RecordMap<M>> {
    let mut sorted: Vec<Vec<_>> = (0..tables).map(|_| Vec::new()).collect();
    for (table, id, value) in records {
        sorted.get_mut(usize::from(table.0)).expect("the layout has the table").push((id, value));
    }
    let map = |mut records: Vec<_>| {
        records.sort_by_key(|(id, _): &(M::Id, Arc<M::Value>)| *id);
        // The later of two takes the place of the earlier.
        records.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        RecordMap::<M>::of_sorted(records)
    };
    sorted.into_iter().map(map).collect()
}

/// The results of a function for each item, in their order, worked out on as many threads as there are cores.
fn shared_out<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    let (waiting, done) = (Mutex::new(items.iter().enumerate()), Mutex::new(Vec::new()));
    let run = || {
        // The lock is let go before the work begins.
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((position, item)) = next() {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((position, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without another thread this one does it all.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(position, _)| *position);
    done.into_iter().map(|(_, result)| result).collect()
}
