//! One published version of everything: the tables, and the meta they were made under.
//!
//! Invariants: a root that others can see never changes; a clone costs one count per table; the number of tables and
//! indexes is the one that the model's layout gives for this root's meta.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::change::ChangeSet;
use crate::draft::Draft;
use crate::model::{Id, IndexIx, Model, Referrer, TableIx, TableLayout};
use crate::table::Table;

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
        let mut root = Self::new(meta);
        root.generation = self.generation;
        let mut draft = Draft::new(&root);
        for (table, records) in table_ixs(&self.tables).take(root.tables.len()) {
            for (id, value) in records.scan() {
                draft.put(table, *id, Arc::clone(value), M::Delta::default());
            }
        }
        let changes = draft.into_changes();
        root.apply(&changes);
        root
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
    pub fn record(&self, table: TableIx, id: &Id) -> Option<&Arc<M::Value>> {
        self.table(table)?.record(id)
    }

    /// All records of a table in the order of their ids.
    pub fn scan(&self, table: TableIx) -> impl Iterator<Item = (&Id, &Arc<M::Value>)> + use<'_, M> {
        self.table(table).into_iter().flat_map(Table::scan)
    }

    /// The records that hold a key, in the order of their ids.
    pub fn lookup(
        &self,
        table: TableIx,
        index: IndexIx,
        key: &M::Key,
    ) -> impl Iterator<Item = Id> + use<'_, M> {
        self.table(table).map(|records| records.lookup(usize::from(index.0), key)).into_iter().flatten()
    }

    /// The entries of an index whose keys lie in a range, in the order of keys, then ids.
    pub fn range(
        &self,
        table: TableIx,
        index: IndexIx,
        keys: impl RangeBounds<M::Key>,
    ) -> impl Iterator<Item = (&M::Key, Id)> {
        let (start, end) = (keys.start_bound(), keys.end_bound());
        self.table(table).map(|records| records.range(usize::from(index.0), start, end)).into_iter().flatten()
    }

    /// Who refers to a record (that need not exist), and how many times.
    pub fn referrers(
        &self,
        target_table: TableIx,
        target: &Id,
    ) -> impl Iterator<Item = (Referrer, u32)> + use<'_, M> {
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

fn table_ixs<T>(tables: &[T]) -> impl Iterator<Item = (TableIx, &T)> {
    (0..=u16::MAX).map(TableIx).zip(tables)
}
