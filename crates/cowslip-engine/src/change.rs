//! Finished changes: what a draft did, ready to be applied, journalled, fed to others and merged.
//!
//! Invariants: a record appears at most once, and only if its last version is another than its first; tables and
//! records come in ascending order; keys and referrers are the net difference between all first and all last versions.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::model::{IndexIx, Model, Referrer, TableIx};
use crate::overlay::EntryChange;

/// All changes of one finished draft.
pub struct ChangeSet<M: Model> {
    tables: Vec<TableChanges<M>>,
    /// Most change sets are never asked.
    bytes: OnceLock<usize>,
}

/// The changes to one table.
pub struct TableChanges<M: Model> {
    /// The table.
    pub table: TableIx,
    /// Its changed records in the order of their ids. It is empty if only references into the table changed.
    pub records: Vec<RecordChange<M>>,
    pub(crate) keys: Vec<Vec<EntryChange<M::Key, M::Id>>>,
    pub(crate) referrers: Vec<(Referrer<M::Id>, i64)>,
}

/// The change of one record: inserted (`old` is none), changed, or removed (`new` is none).
pub struct RecordChange<M: Model> {
    /// The record.
    pub id: M::Id,
    /// Its version before the draft.
    pub old: Option<Arc<M::Value>>,
    /// Its version after the draft.
    pub new: Option<Arc<M::Value>>,
    /// What changed inside large values between `old` and `new`, if both are there.
    pub delta: M::Delta,
}

impl<M: Model> ChangeSet<M> {
    /// Changes that change nothing.
    pub const fn empty() -> Self {
        Self { tables: Vec::new(), bytes: OnceLock::new() }
    }

    pub(crate) fn new(tables: Vec<TableChanges<M>>) -> Self {
        Self { tables, bytes: OnceLock::new() }
    }

    /// The changed tables in ascending order.
    pub fn tables(&self) -> &[TableChanges<M>] {
        &self.tables
    }

    /// The changes to one table, if there are any.
    pub fn table(&self, table: TableIx) -> Option<&TableChanges<M>> {
        let position = self.tables.binary_search_by_key(&table, |changes| changes.table).ok()?;
        self.tables.get(position)
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The number of changed records.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|changes| changes.records.len()).sum()
    }

    /// An estimate of the memory that this change set keeps from being freed, by [`Model::weight`].
    pub fn bytes(&self) -> usize {
        *self
            .bytes
            .get_or_init(|| size_of::<Self>() + self.tables.iter().map(TableChanges::bytes).sum::<usize>())
    }
}

impl<M: Model> fmt::Debug for ChangeSet<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeSet").field("records", &self.len()).field("bytes", &self.bytes()).finish()
    }
}

impl<M: Model> TableChanges<M> {
    /// The change of one record, if it changed.
    pub fn record(&self, id: &M::Id) -> Option<&RecordChange<M>> {
        let position = self.records.binary_search_by_key(id, |change| change.id).ok()?;
        self.records.get(position)
    }

    /// The keys that records gave up (false) and took (true), with the record, by index.
    pub fn keys(&self) -> impl Iterator<Item = (IndexIx, &M::Key, M::Id, bool)> {
        let indexes = (0..=u16::MAX).map(IndexIx).zip(&self.keys);
        indexes.flat_map(|(index, keys)| {
            keys.iter().map(move |(entry, is_taken)| (index, &entry.key, entry.id, *is_taken))
        })
    }

    /// By how much the counts of references into this table changed.
    pub fn referrers(&self) -> impl Iterator<Item = &(Referrer<M::Id>, i64)> {
        self.referrers.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.referrers.is_empty() && self.keys.iter().all(Vec::is_empty)
    }

    fn bytes(&self) -> usize {
        let values: usize = self.records.iter().map(RecordChange::bytes).sum();
        let keys: usize = self.keys.iter().map(Vec::len).sum();
        size_of::<Self>()
            + values
            + keys * size_of::<EntryChange<M::Key, M::Id>>()
            + self.referrers.len() * size_of::<(Referrer<M::Id>, i64)>()
    }
}

impl<M: Model> RecordChange<M> {
    fn bytes(&self) -> usize {
        let weight = |value: &Option<Arc<M::Value>>| value.as_ref().map_or(0, |value| M::weight(value));
        size_of::<Self>() + weight(&self.old) + weight(&self.new)
    }
}
