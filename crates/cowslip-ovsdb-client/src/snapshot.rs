//! One version of the cache: rows, look-ups, conditions. Never changes; reading it takes no lock and copies no row.

use crate::error::BuildError;
use crate::filter::{Filter, Path, Selection, table_of};
use crate::model::{FromDatum, Model, ModelError, Ref};
use crate::plan::Known;
use crate::shared::Shared;
use cowslip_engine::{IndexIx, Root, TableIx, Uuid};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::executor::Knowledge;
use cowslip_ovsdb::row::{IndexKey, Ovsdb, Row};
use cowslip_ovsdb::schema::{Column, Schema, TableSchema};
use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// One version of the cache. Cloning copies two pointers; holding it keeps this version's memory.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) root: Arc<Root<Ovsdb>>,
    pub(crate) known: Arc<Known>,
}

/// How a look-up finds its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// At most one row, by its UUID.
    ByUuid,
    /// By an index; what else the filter asks is tested on what the index gives.
    ByIndex {
        /// The client index's name, or the schema index's columns joined by commas.
        index: String,
    },
    /// By each of these, for filters joined by "or"; a row that is found twice is given once.
    EachOf(Vec<Explanation>),
    /// Every row of the table is tested.
    Scan {
        /// How many rows.
        rows: usize,
    },
}

impl Snapshot {
    /// The number of this version; later versions have greater ones.
    pub fn generation(&self) -> u64 {
        self.root.generation()
    }

    /// The server's schema, with the client's indexes in it.
    pub fn schema(&self) -> &Arc<Schema> {
        self.root.meta()
    }

    /// The engine's root, for what this type does not offer.
    pub fn root(&self) -> &Arc<Root<Ovsdb>> {
        &self.root
    }

    /// Whether the server has the table and it is monitored.
    pub fn has_table(&self, table: &str) -> bool {
        self.schema().table(table).and_then(|t| self.known.table(t)).is_some_and(|t| t.is_monitored)
    }

    /// Whether the server has the column and it is monitored.
    pub fn has_column(&self, table: &str, column: &str) -> bool {
        let Some(table) = self.schema().table(table) else { return false };
        match self.schema().at(table).column(column) {
            Some(Column::Data(column)) => self.known.has_column(table, column),
            _ => false,
        }
    }

    /// Whether every row of the table is here.
    pub fn has_all_rows(&self, table: &str) -> bool {
        self.schema().table(table).is_some_and(|t| self.known.has_all_rows(t))
    }

    /// The number of rows of a table that are here.
    pub fn len(&self, table: &str) -> usize {
        self.schema().table(table).map_or(0, |t| self.root.len(t))
    }

    /// Whether no row of a table is here.
    pub fn is_empty(&self, table: &str) -> bool {
        self.len(table) == 0
    }

    /// A row by its UUID.
    pub fn row(&self, table: &str, uuid: Uuid) -> Option<RowView<'_>> {
        let table = self.schema().table(table)?;
        self.view(table, uuid)
    }

    /// The rows of a table, in the order of their UUIDs.
    ///
    /// # Errors
    /// There is no such table.
    pub fn rows(&self, table: &str) -> Result<impl Iterator<Item = RowView<'_>>, BuildError> {
        let table = table_of(self.schema(), table)?;
        Ok(self.root.scan(table).map(move |(uuid, row)| RowView { snapshot: self, table, uuid, row }))
    }

    /// The rows that hold a key of an index, which is named by its name, or, if it is one of the schema's, by its
    /// columns joined by commas.
    ///
    /// # Errors
    /// There is no such table or index.
    pub fn find(
        &self,
        table: &str,
        index: &str,
        key: &[Datum],
    ) -> Result<impl Iterator<Item = RowView<'_>>, BuildError> {
        let (table, index) = self.index(table, index)?;
        let key: IndexKey = key.into();
        let found = self.root.lookup(table, index, &key);
        Ok(found.filter_map(move |uuid| self.view(table, uuid)))
    }

    /// The rows whose keys lie in a range, in the order of their keys.
    ///
    /// # Errors
    /// There is no such table or index.
    pub fn find_range<R: RangeBounds<[Datum]>>(
        &self,
        table: &str,
        index: &str,
        keys: R,
    ) -> Result<Vec<RowView<'_>>, BuildError> {
        let (table, index) = self.index(table, index)?;
        let owned = |bound: Bound<&[Datum]>| match bound {
            Bound::Included(key) => Bound::Included(IndexKey::from(key)),
            Bound::Excluded(key) => Bound::Excluded(IndexKey::from(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let bounds = (owned(keys.start_bound()), owned(keys.end_bound()));
        let found = self.root.range(table, index, bounds);
        Ok(found.filter_map(|(_, uuid)| self.view(table, uuid)).collect())
    }

    /// The rows that meet a filter, found by the best index there is.
    ///
    /// # Errors
    /// The filter names something that is not there, or a value that the column cannot have.
    pub fn list(&self, table: &str, filter: &Filter) -> Result<Vec<RowView<'_>>, BuildError> {
        let table = table_of(self.schema(), table)?;
        let selection = filter.resolve_all(self.schema(), table)?;
        Ok(self.matching(table, &selection))
    }

    /// How [`list`](Self::list) would find its rows.
    ///
    /// # Errors
    /// As for `list`.
    pub fn explain(&self, table: &str, filter: &Filter) -> Result<Explanation, BuildError> {
        let table = table_of(self.schema(), table)?;
        let selection = filter.resolve_all(self.schema(), table)?;
        Ok(self.explained(table, selection.path(self.schema().at(table))))
    }

    fn explained(&self, table: TableIx, path: Path) -> Explanation {
        match path {
            Path::ByUuid(_) => Explanation::ByUuid,
            Path::ByIndex(index, _) => {
                Explanation::ByIndex { index: self.known.index_name(self.schema(), table, index) }
            }
            Path::EachOf(paths) => {
                Explanation::EachOf(paths.into_iter().map(|path| self.explained(table, path)).collect())
            }
            Path::Scan => Explanation::Scan { rows: self.root.len(table) },
        }
    }

    /// A row as a model.
    ///
    /// # Errors
    /// The row does not fit the model.
    pub fn get<M: Model>(&self, row: Ref<M>) -> Result<Option<M>, ModelError> {
        self.row(M::TABLE, row.uuid()).map(|row| M::from_row(&row)).transpose()
    }

    /// All rows of a model's table; none if the server lacks the table.
    ///
    /// # Errors
    /// A row does not fit the model.
    pub fn models<M: Model>(&self) -> Result<Vec<M>, ModelError> {
        let rows = self.rows(M::TABLE).into_iter().flatten();
        rows.map(|row| M::from_row(&row)).collect()
    }

    pub(crate) fn view(&self, table: TableIx, uuid: Uuid) -> Option<RowView<'_>> {
        let row = self.root.record(table, &uuid)?;
        Some(RowView { snapshot: self, table, uuid, row })
    }

    fn index(&self, table: &str, index: &str) -> Result<(TableIx, IndexIx), BuildError> {
        let ix = table_of(self.schema(), table)?;
        let unknown = || BuildError::Index { table: table.to_string(), index: index.to_string() };
        Ok((ix, self.known.index(self.schema(), ix, index).ok_or_else(unknown)?))
    }

    fn matching(&self, table: TableIx, selection: &Selection) -> Vec<RowView<'_>> {
        let holds = |row: &RowView<'_>| selection.holds(&row.uuid, row.row);
        match selection.path(self.schema().at(table)) {
            Path::ByUuid(uuid) => self.view(table, uuid).filter(holds).into_iter().collect(),
            Path::ByIndex(index, key) => {
                let found = self.root.lookup(table, index, &key);
                found.filter_map(|uuid| self.view(table, uuid)).filter(holds).collect()
            }
            Path::EachOf(paths) => {
                let mut found = BTreeSet::new();
                self.collect(table, &paths, &mut found);
                found.into_iter().filter_map(|uuid| self.view(table, uuid)).filter(holds).collect()
            }
            Path::Scan => {
                let rows = self.root.scan(table);
                rows.map(|(uuid, row)| RowView { snapshot: self, table, uuid, row }).filter(holds).collect()
            }
        }
    }

    /// What each of the paths finds.
    fn collect(&self, table: TableIx, paths: &[Path], found: &mut BTreeSet<Uuid>) {
        for path in paths {
            match path {
                Path::ByUuid(uuid) => found.extend([*uuid]),
                Path::ByIndex(index, key) => found.extend(self.root.lookup(table, *index, key)),
                Path::EachOf(paths) => self.collect(table, paths, found),
                Path::Scan => found.extend(self.root.scan(table).map(|(uuid, _)| uuid)),
            }
        }
    }
}

/// A row with what is needed to read it.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    snapshot: &'a Snapshot,
    table: TableIx,
    uuid: Uuid,
    row: &'a Arc<Row>,
}

impl<'a> RowView<'a> {
    /// The row's UUID.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The table's definition.
    pub fn table(&self) -> &'a TableSchema {
        self.snapshot.schema().at(self.table)
    }

    /// The row itself, to keep beyond the snapshot.
    pub fn shared(&self) -> &'a Arc<Row> {
        self.row
    }

    /// Whether the server has the column and the client monitors it.
    pub fn has_column(&self, column: &str) -> bool {
        self.datum(column).is_some()
    }

    /// The value of a column; none if it is not known.
    pub fn datum(&self, column: &str) -> Option<&'a Datum> {
        match self.table().column(column) {
            Some(Column::Data(column)) if self.snapshot.known.has_column(self.table, column) => {
                Some(self.row.data(column))
            }
            _ => None,
        }
    }

    /// The value of a column as a Rust type.
    ///
    /// # Errors
    /// The column is not known, or its value does not have the type's shape.
    pub fn value<T: FromDatum>(&self, column: &str) -> Result<T, ModelError> {
        let table = || self.table().name.to_string();
        let datum = self
            .datum(column)
            .ok_or_else(|| ModelError::NotSupported { table: table(), column: column.to_string() })?;
        T::from_datum(datum).ok_or_else(|| ModelError::Shape {
            table: table(),
            column: column.to_string(),
            expected: T::SHAPE,
        })
    }

    /// The value of a column, or none if the column is not known: for fields that older servers lack.
    ///
    /// # Errors
    /// The value does not have the type's shape.
    pub fn value_if_known<T: FromDatum>(&self, column: &str) -> Result<Option<T>, ModelError> {
        if self.has_column(column) { self.value(column).map(Some) } else { Ok(None) }
    }
}

/// One thread's way to the newest snapshot. Others' reading and the driver's publishing do not disturb it.
#[derive(Debug)]
pub struct SnapshotReader {
    shared: Arc<Shared>,
    snapshot: Snapshot,
    version: u64,
}

impl SnapshotReader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let version = shared.known_version();
        SnapshotReader { snapshot: shared.snapshot(), version, shared }
    }

    /// The newest snapshot.
    pub fn newest(&mut self) -> &Snapshot {
        let version = self.shared.known_version();
        if self.shared.publication.generation() != self.snapshot.generation() || version != self.version {
            self.snapshot = self.shared.snapshot();
            self.version = version;
        }
        &self.snapshot
    }
}
