//! One published version of everything: the tables, and the meta they were made under.
//!
//! Invariants: a root that others can see never changes; a clone costs one count per table; the number of tables and
//! indexes is the one that the model's layout gives for this root's meta.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::change::ChangeSet;
use crate::draft::Conflict;
use crate::id::RecordId;
use crate::index::Index;
use crate::index_builder::{IndexBuilder, IndexRefusal, RefusedIndexes};
use crate::loading::{load_indexes, record_maps};
use crate::model::{IndexIx, IndexKind, Model, Referrer, TableIx, TableLayout};
use crate::posting::Posting;
use crate::table::{RecordMap, Table};

/// One version of a database: records, indexes, references, and the meta they were made under.
pub struct Root<M: Model> {
    generation: u64,
    meta: Arc<M::Meta>,
    layout: Arc<[TableLayout]>,
    tables: Vec<Arc<Table<M>>>,
}

impl<M: Model> Clone for Root<M> {
    fn clone(&self) -> Self {
        Self {
            generation: self.generation,
            meta: Arc::clone(&self.meta),
            layout: Arc::clone(&self.layout),
            tables: self.tables.clone(),
        }
    }
}

impl<M: Model> fmt::Debug for Root<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<_> = self.tables.iter().map(|table| table.len()).collect();
        f.debug_struct("Root").field("generation", &self.generation).field("records", &lengths).finish()
    }
}

impl<M: Model> Root<M> {
    /// An empty root of generation 0.
    pub fn new(meta: Arc<M::Meta>) -> Self {
        let layout: Arc<[TableLayout]> = M::layout(&meta).into();
        let tables = layout.iter().map(|table| Arc::new(Table::new(table))).collect();
        Self { generation: 0, meta, layout, tables }
    }

    /// A root of these records, of which the last with an id counts; they are quickest in the order of their ids.
    ///
    /// For a start from a snapshot and for imports: indexes are built from sorted keys, and on all cores.
    ///
    /// # Errors
    /// Several records hold one key of a primary index: the first such key by table, index and key.
    ///
    /// # Panics
    /// If the layout lacks the table of a record or of a reference.
    pub fn load(
        meta: Arc<M::Meta>,
        generation: u64,
        records: impl IntoIterator<Item = (TableIx, M::Id, Arc<M::Value>)>,
    ) -> Result<Self, Conflict<M>> {
        let records = record_maps::<M>(M::layout(&meta).len(), records);
        let (root, conflict) = Self::of_records(meta, generation, records);
        conflict.map_or(Ok(root), Err)
    }

    /// The number of commits that led here, counted from some beginning; it only grows.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Gives the root the number under which it will be published.
    pub fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// The schema and configuration of this version.
    pub fn meta(&self) -> &Arc<M::Meta> {
        &self.meta
    }

    /// The tables and their indexes.
    pub fn layout(&self) -> &[TableLayout] {
        &self.layout
    }

    /// The same records under another meta.
    ///
    /// The tables are shared if the layout stays the same and otherwise made anew as by [`rebuilt`](Self::rebuilt).
    /// Where the meaning of an index changes under an equal layout, call `rebuilt` instead.
    #[must_use]
    pub fn with_meta(&self, meta: Arc<M::Meta>) -> Self {
        if M::layout(&meta) == *self.layout { Self { meta, ..self.clone() } } else { self.rebuilt(meta) }
    }

    /// The same records under another meta, with all keys and references asked of the model again.
    ///
    /// The cost grows with the database. Records of tables that the new layout has no more are left out.
    #[must_use]
    pub fn rebuilt(&self, meta: Arc<M::Meta>) -> Self {
        let records = self.tables.iter().map(|table| table.records.clone()).collect();
        Self::of_records(meta, self.generation, records).0
    }

    /// The same records under another meta, with indexes that were built aside from the records of this root.
    ///
    /// Whatever else the layouts have in common is shared, an index that is [absent](crate::IndexKind::Absent) now is
    /// left out, and a table without records needs nothing built. What it costs does not grow with the database.
    ///
    /// # Errors
    /// See [`IndexRefusal`]; here each index must be of this root's generation.
    pub fn with_indexes(
        &self,
        meta: Arc<M::Meta>,
        built: Vec<IndexBuilder<M>>,
    ) -> Result<Self, RefusedIndexes<M>> {
        let layout: Arc<[TableLayout]> = M::layout(&meta).into();
        match self.refusal(&layout, &built) {
            Some(reason) => Err(RefusedIndexes { reason, indexes: built }),
            None => Ok(self.switched(meta, layout, built)),
        }
    }

    fn refusal(&self, layout: &[TableLayout], built: &[IndexBuilder<M>]) -> Option<IndexRefusal> {
        let kept = self.layout.iter().zip(layout);
        if layout.len() < self.layout.len()
            || kept.clone().any(|(old, new)| new.indexes.len() < old.indexes.len())
        {
            return Some(IndexRefusal::Shrunk);
        }
        for builder in built {
            let (table, index) = (builder.table(), builder.index());
            let kind =
                layout.get(usize::from(table.0)).and_then(|table| table.indexes.get(usize::from(index.0)));
            if kind != Some(&builder.kind()) {
                return Some(IndexRefusal::Unknown { table, index });
            }
            if builder.generation() != self.generation {
                return Some(IndexRefusal::Stale);
            }
            if builder.has_conflict() {
                return Some(IndexRefusal::Conflict { table, index });
            }
        }
        for ((table, content), layout) in
            table_ixs(&self.tables).zip(layout).filter(|((_, table), _)| table.len() > 0)
        {
            for (index, kind) in (0..).map(IndexIx).zip(&layout.indexes) {
                let is_there = *kind == IndexKind::Absent || self.kind(table, index) == Some(*kind);
                let is_built =
                    || built.iter().any(|builder| (builder.table(), builder.index()) == (table, index));
                if !is_there && !is_built() {
                    return Some(IndexRefusal::Missing { table, index });
                }
            }
            debug_assert_eq!(content.indexes.len(), self.layout[usize::from(table.0)].indexes.len());
        }
        None
    }

    fn switched(&self, meta: Arc<M::Meta>, layout: Arc<[TableLayout]>, built: Vec<IndexBuilder<M>>) -> Self {
        let mut tables = self.tables.clone();
        tables.extend(layout.iter().skip(tables.len()).map(|table| Arc::new(Table::new(table))));
        for ((table, content), layout) in (0..).map(TableIx).zip(&mut tables).zip(&*layout) {
            for (index, kind) in (0..).map(IndexIx).zip(&layout.indexes) {
                if usize::from(index.0) >= content.indexes.len() {
                    Arc::make_mut(content).indexes.push(Index::new(*kind));
                } else if self.kind(table, index).is_some_and(|before| before != *kind) {
                    Arc::make_mut(content).indexes[usize::from(index.0)] = Index::new(*kind);
                }
            }
        }
        for builder in built {
            let (table, index) = (usize::from(builder.table().0), usize::from(builder.index().0));
            Arc::make_mut(&mut tables[table]).indexes[index] = builder.into_content();
        }
        Self { generation: self.generation, meta, layout, tables }
    }

    fn of_records(
        meta: Arc<M::Meta>,
        generation: u64,
        records: Vec<RecordMap<M>>,
    ) -> (Self, Option<Conflict<M>>) {
        let layout: Arc<[TableLayout]> = M::layout(&meta).into();
        let mut tables: Vec<_> = layout.iter().map(Table::new).collect();
        for (table, records) in tables.iter_mut().zip(records) {
            table.records = records;
        }
        let conflict = load_indexes::<M>(&meta, &layout, &mut tables);
        (Self { generation, meta, layout, tables: tables.into_iter().map(Arc::new).collect() }, conflict)
    }

    /// The kind of an index in this root's layout.
    fn kind(&self, table: TableIx, index: IndexIx) -> Option<IndexKind> {
        self.layout.get(usize::from(table.0))?.indexes.get(usize::from(index.0)).copied()
    }

    /// The number of records in a table.
    pub fn len(&self, table: TableIx) -> usize {
        self.table(table).map_or(0, Table::len)
    }

    /// Whether a table has no records.
    pub fn is_empty(&self, table: TableIx) -> bool {
        self.len(table) == 0
    }

    /// A record by its id.
    pub fn record(&self, table: TableIx, id: &M::Id) -> Option<&Arc<M::Value>> {
        self.table(table)?.record(id)
    }

    /// All records of a table in the order of their ids.
    pub fn scan(
        &self,
        table: TableIx,
    ) -> impl DoubleEndedIterator<Item = (M::Id, &Arc<M::Value>)> + use<'_, M> {
        self.scan_from(table, M::Id::MIN)
    }

    /// The records of a table from an id on, in the order of their ids. Those before are not walked over.
    pub fn scan_from(
        &self,
        table: TableIx,
        first: M::Id,
    ) -> impl DoubleEndedIterator<Item = (M::Id, &Arc<M::Value>)> + use<'_, M> {
        self.table(table).map(|records| records.scan(first..)).into_iter().flatten()
    }

    /// The records that hold a key, in the order of their ids.
    pub fn lookup(
        &self,
        table: TableIx,
        index: IndexIx,
        key: &M::Key,
    ) -> impl Iterator<Item = M::Id> + use<'_, M> {
        self.table(table).map(|records| records.lookup(usize::from(index.0), key)).into_iter().flatten()
    }

    /// The entries of an index whose keys lie in a range, in the order of keys, then ids.
    pub fn range(
        &self,
        table: TableIx,
        index: IndexIx,
        keys: impl RangeBounds<M::Key>,
    ) -> impl DoubleEndedIterator<Item = (&M::Key, M::Id)> {
        let (start, end) = (keys.start_bound(), keys.end_bound());
        self.table(table).map(|records| records.range(usize::from(index.0), start, end)).into_iter().flatten()
    }

    /// The records that hold a key, as a set to compute with.
    ///
    /// None if there are none, or the index is not of [`IndexKind::Postings`](crate::IndexKind::Postings) with dense
    /// ids: see [`has_postings`](Self::has_postings).
    pub fn posting(&self, table: TableIx, index: IndexIx, key: &M::Key) -> Option<&Posting> {
        self.table(table)?.posting(usize::from(index.0), key)
    }

    /// The keys of a range and the records that hold them, in the order of the keys; nothing if the index keeps no
    /// postings.
    pub fn postings(
        &self,
        table: TableIx,
        index: IndexIx,
        keys: impl RangeBounds<M::Key>,
    ) -> impl DoubleEndedIterator<Item = (&M::Key, &Posting)> {
        let (start, end) = (keys.start_bound(), keys.end_bound());
        let table = self.table(table);
        table.map(|records| records.postings(usize::from(index.0), start, end)).into_iter().flatten()
    }

    /// Whether an index keeps postings.
    pub fn has_postings(&self, table: TableIx, index: IndexIx) -> bool {
        self.table(table).is_some_and(|records| records.has_postings(usize::from(index.0)))
    }

    /// Who refers to a record (that need not exist), and how many times.
    pub fn referrers(
        &self,
        target_table: TableIx,
        target: &M::Id,
    ) -> impl Iterator<Item = (Referrer<M::Id>, u32)> + use<'_, M> {
        let target = *target;
        self.table(target_table).into_iter().flat_map(move |records| records.referrers(target, None))
    }

    /// Makes the changes, which must have been drafted on this root or on one with the same records where it matters.
    ///
    /// What this root alone owns is changed in place; what it shares with a clone is copied along one path.
    pub fn apply(&mut self, changes: &ChangeSet<M>) {
        for changed in changes.tables() {
            let table = self.tables.get_mut(usize::from(changed.table.0));
            debug_assert!(table.is_some(), "change set and root have the same layout");
            if let Some(table) = table {
                Arc::make_mut(table).apply(changed);
            }
        }
    }

    pub(crate) fn table(&self, table: TableIx) -> Option<&Table<M>> {
        self.tables.get(usize::from(table.0)).map(|table| &**table)
    }
}

pub(crate) fn table_ixs<T>(tables: &[T]) -> impl Iterator<Item = (TableIx, &T)> {
    (0..=u16::MAX).map(TableIx).zip(tables)
}
