//! What a client wants to see of a database, and what it turns out to know once the server's schema is there.
//!
//! [`Monitor`] and [`Index`] are written by the user, in names. [`Plan`] is the same against a server's schema: the
//! schema with the client's indexes in it, the tables and columns that are known, and what the server lacks. Invariant:
//! every column of an index that a plan keeps is known.

use crate::error::{BuildError, Mismatch};
use crate::filter::Filter;
use crate::model::{Model, Shape, count_in_words};
use cowslip_engine::{IndexIx, IndexKind, TableIx};
use cowslip_ovsdb::atom::Atom;
use cowslip_ovsdb::condition::Clause;
use cowslip_ovsdb::executor::Knowledge;
use cowslip_ovsdb::json::write_str;
use cowslip_ovsdb::schema::{ClientIndex, Column, ColumnIx, KeyPart, Schema, TableSchema};
use cowslip_ovsdb::types::ColumnType;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which tables, columns and rows a client keeps in its cache.
///
/// ```
/// use cowslip_ovsdb_client::{Filter, Monitor};
/// let monitor = Monitor::nothing()
///     .columns("Bridge", ["name", "external_ids"])
///     .table("Port")
///     .rows("Port", Filter::all().equal("tag", &Some(7_i64)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Monitor {
    everything: bool,
    tables: BTreeMap<String, TableRequest>,
    shapes: Vec<(String, String, Shape, bool)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableRequest {
    /// All columns, if there is none.
    columns: Option<Vec<String>>,
    /// One of them must hold; every row is seen, if there is none.
    filters: Vec<Filter>,
}

impl Monitor {
    /// No table.
    pub fn nothing() -> Self {
        Monitor::default()
    }

    /// Every table and column that the server has.
    pub fn everything() -> Self {
        Monitor { everything: true, ..Monitor::default() }
    }

    /// Adds a table with all its columns.
    #[must_use]
    pub fn table(mut self, table: &str) -> Self {
        self.tables.entry(table.to_string()).or_default().columns = None;
        self
    }

    /// Adds columns of a table; what was asked of the table before is merged with it.
    #[must_use]
    pub fn columns<'a>(mut self, table: &str, columns: impl IntoIterator<Item = &'a str>) -> Self {
        let is_new = !self.tables.contains_key(table);
        let request = self.tables.entry(table.to_string()).or_default();
        if is_new {
            request.columns = Some(Vec::new());
        }
        if let Some(known) = &mut request.columns {
            for column in columns {
                if !known.iter().any(|c| c == column) {
                    known.push(column.to_string());
                }
            }
        }
        self
    }

    /// Adds the table and columns of a model, whose types are compared with the schema when the client connects.
    #[must_use]
    pub fn model<M: Model>(mut self) -> Self {
        for spec in M::columns() {
            self.shapes.push((M::TABLE.to_string(), spec.name.to_string(), spec.shape, spec.is_required));
        }
        self.columns(M::TABLE, M::columns().iter().map(|c| c.name))
    }

    /// Restricts a table to rows that meet the filter, or another one given before.
    ///
    /// A server joins the clauses of a monitor's condition by "or", other than those of an operation. So the filter may
    /// be of one requirement, or of several that are joined by [`Filter::or`]; one that has a row meet two requirements
    /// at once is refused when the client is made ([`BuildError::Conjunction`]).
    #[must_use]
    pub fn rows(mut self, table: &str, filter: Filter) -> Self {
        self.tables.entry(table.to_string()).or_default().filters.push(filter);
        self
    }

    /// Whether all filters are such as a monitor can have, whatever the schema is.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let of = |(table, request): (&String, &TableRequest)| {
            let refuse = || BuildError::Conjunction { table: table.clone() };
            request.filters.iter().all(Filter::is_disjunction).then_some(()).ok_or_else(refuse)
        };
        self.tables.iter().try_for_each(of)
    }

    /// Replaces a table's filters; none lets every row in.
    pub(crate) fn set_filter(&mut self, table: &str, filter: Option<Filter>) {
        self.tables.entry(table.to_string()).or_default().filters = filter.into_iter().collect();
    }
}

/// An index that a client keeps on its cache.
///
/// A *secondary* index makes look-ups fast. A *primary* one must also be unique within the cache, which validation
/// checks; with a [guard](Index::guarded), the server checks it, too.
///
/// ```
/// use cowslip_ovsdb_client::Index;
/// let by_pod = Index::primary("Logical_Switch_Port", "by_pod").map_key("external_ids", "pod");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    table: String,
    name: String,
    kind: IndexKind,
    parts: Vec<PartRequest>,
    is_guarded: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum PartRequest {
    Column(String),
    MapKey { column: String, key: Atom, indexes_absence: bool },
}

impl Index {
    /// An index whose keys are unique.
    pub fn primary(table: &str, name: &str) -> Self {
        Index {
            table: table.to_string(),
            name: name.to_string(),
            kind: IndexKind::Primary,
            parts: Vec::new(),
            is_guarded: false,
        }
    }

    /// An index for look-ups.
    pub fn secondary(table: &str, name: &str) -> Self {
        Index { kind: IndexKind::Secondary, ..Index::primary(table, name) }
    }

    /// Adds a column to the key. "No value" of an optional column is a value like any other.
    #[must_use]
    pub fn column(mut self, column: &str) -> Self {
        self.parts.push(PartRequest::Column(column.to_string()));
        self
    }

    /// Adds the value that a map has for a key; rows without the key are not in the index.
    #[must_use]
    pub fn map_key(self, column: &str, key: &str) -> Self {
        self.map_atom(column, Atom::string(key), false)
    }

    /// Adds the value that a map has for a key; rows without the key are in the index, with no value.
    #[must_use]
    pub fn map_key_or_absent(self, column: &str, key: &str) -> Self {
        self.map_atom(column, Atom::string(key), true)
    }

    /// The same for maps whose keys are no texts.
    #[must_use]
    pub fn map_atom(mut self, column: &str, key: Atom, indexes_absence: bool) -> Self {
        self.parts.push(PartRequest::MapKey { column: column.to_string(), key, indexes_absence });
        self
    }

    /// Has every transaction that takes a key guarded: the server is asked first whether other rows hold the key.
    ///
    /// The server looks at all rows of the table for it, unless its schema has an index on the same columns, so this
    /// costs more the larger the table is. A key with "no value" of a map cannot be guarded.
    #[must_use]
    pub fn guarded(mut self) -> Self {
        self.is_guarded = true;
        self
    }

    fn columns(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| match part {
            PartRequest::Column(column) | PartRequest::MapKey { column, .. } => column.as_str(),
        })
    }
}

/// What is known of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownTable {
    pub(crate) is_monitored: bool,
    pub(crate) has_all_rows: bool,
    columns: Box<[bool]>,
    /// Names of the client's indexes, in their order.
    pub(crate) index_names: Vec<Arc<str>>,
    /// Which of them are guarded.
    pub(crate) guarded: Vec<bool>,
}

/// What a client knows of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) tables: Vec<KnownTable>,
}

impl Knowledge for Known {
    const COMPLETE: bool = false;

    fn has_all_rows(&self, table: TableIx) -> bool {
        self.table(table).is_some_and(|t| t.has_all_rows)
    }

    fn has_column(&self, table: TableIx, column: ColumnIx) -> bool {
        self.table(table).is_some_and(|t| t.columns.get(usize::from(column.0)) == Some(&true))
    }
}

impl Known {
    pub(crate) fn table(&self, table: TableIx) -> Option<&KnownTable> {
        self.tables.get(usize::from(table.0))
    }

    /// The number of an index by its name, or of a schema index by its columns' names joined by commas.
    pub(crate) fn index(&self, schema: &Schema, table: TableIx, name: &str) -> Option<IndexIx> {
        let definition = schema.at(table);
        let declared = definition.indexes.len();
        let client = self.table(table)?.index_names.iter().position(|n| **n == *name).map(|i| i + declared);
        let at = client.or_else(|| {
            let names = |columns: &Vec<ColumnIx>| {
                columns.iter().map(|c| &*definition.data(*c).name).eq(name.split(','))
            };
            definition.indexes.iter().position(names)
        })?;
        Some(IndexIx(at as u16))
    }

    /// What an index is called, in errors and explanations.
    pub(crate) fn index_name(&self, schema: &Schema, table: TableIx, index: IndexIx) -> String {
        let definition = schema.at(table);
        match usize::from(index.0).checked_sub(definition.indexes.len()) {
            Some(at) => self
                .table(table)
                .and_then(|t| t.index_names.get(at))
                .map_or_else(String::new, |n| n.to_string()),
            None => {
                let names: Vec<_> = definition.key_parts(index).iter().map(KeyPart::column).collect();
                names.iter().map(|c| &*definition.data(*c).name).collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// A monitor and indexes against a server's schema.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) schema: Arc<Schema>,
    /// What will be known once the first dump is there.
    pub(crate) known: Known,
    /// Monitored tables, each with its columns' names and the text of its condition, if it has one.
    pub(crate) requests: Vec<PlannedTable>,
    /// What is left out.
    pub(crate) mismatches: Vec<Mismatch>,
    /// Whether one of the mismatches makes the server unusable.
    pub(crate) is_fatal: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct PlannedTable {
    pub(crate) table: TableIx,
    pub(crate) name: Arc<str>,
    pub(crate) columns: Vec<ColumnIx>,
    /// The clauses as they travel; none if all rows are seen.
    pub(crate) condition: Option<String>,
}

impl Plan {
    /// Fits what was asked for to a server's schema.
    ///
    /// # Errors
    /// A filter or the key of an index cannot be used on a column that it names.
    pub(crate) fn new(mut schema: Schema, monitor: &Monitor, indexes: &[Index]) -> Result<Self, BuildError> {
        let mut mismatches = Vec::new();
        let mut is_fatal = false;
        for (table, column, shape, is_required) in &monitor.shapes {
            let found = schema.table(table).map(|t| schema.at(t));
            if let Some(mismatch) = mismatch_of(found, table, column, shape) {
                is_fatal |= *is_required || matches!(mismatch, Mismatch::Type { .. });
                if !mismatches.contains(&mismatch) {
                    mismatches.push(mismatch);
                }
            }
        }
        let requests = requests(&schema, monitor, indexes, &mut mismatches)?;
        let mut known = Known {
            tables: schema
                .tables
                .iter()
                .map(|table| KnownTable {
                    is_monitored: false,
                    has_all_rows: false,
                    columns: vec![false; table.columns.len()].into(),
                    index_names: Vec::new(),
                    guarded: Vec::new(),
                })
                .collect(),
        };
        for request in &requests {
            let place = &mut known.tables[usize::from(request.table.0)];
            place.is_monitored = true;
            place.has_all_rows = request.condition.is_none();
            for column in &request.columns {
                place.columns[usize::from(column.0)] = true;
            }
            // The keys of an index on a column that is not known would all look alike.
            let definition = &mut schema.tables[usize::from(request.table.0)];
            definition.indexes.retain(|index| index.iter().all(|c| place.columns[usize::from(c.0)]));
        }
        for index in indexes {
            add_index(&mut schema, &mut known, index, &mut mismatches);
        }
        mismatches.dedup();
        Ok(Plan { schema: Arc::new(schema), known, requests, mismatches, is_fatal })
    }

    /// Appends the `<monitor-requests>` object.
    pub(crate) fn write_requests(&self, out: &mut String, with_conditions: bool) {
        out.push('{');
        for (i, request) in self.requests.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_str(out, &request.name);
            out.push_str(":[{\"columns\":[");
            for (j, column) in request.columns.iter().enumerate() {
                if j > 0 {
                    out.push(',');
                }
                write_str(out, &self.schema.at(request.table).data(*column).name);
            }
            out.push(']');
            if let (Some(condition), true) = (&request.condition, with_conditions) {
                out.push_str(",\"where\":");
                out.push_str(condition);
            }
            out.push_str("}]");
        }
        out.push('}');
    }

    /// The monitored tables.
    pub(crate) fn tables(&self) -> Vec<TableIx> {
        self.requests.iter().map(|r| r.table).collect()
    }
}

fn mismatch_of(found: Option<&TableSchema>, table: &str, column: &str, shape: &Shape) -> Option<Mismatch> {
    let (table, column) = (table.to_string(), column.to_string());
    let Some(definition) = found else { return Some(Mismatch::Table { table }) };
    let Some(Column::Data(place)) = definition.column(&column) else {
        return Some(Mismatch::Column { table, column });
    };
    let ty = &definition.data(place).ty;
    let found = |ty: &ColumnType| match &ty.value {
        Some(value) => {
            format!("{} {} to {}", count_in_words(ty), ty.key.atomic.name(), value.atomic.name())
        }
        None => format!("{} {}", count_in_words(ty), ty.key.atomic.name()),
    };
    (!shape.fits(ty)).then(|| Mismatch::Type { table, column, expected: shape.to_string(), found: found(ty) })
}

fn requests(
    schema: &Schema,
    monitor: &Monitor,
    indexes: &[Index],
    mismatches: &mut Vec<Mismatch>,
) -> Result<Vec<PlannedTable>, BuildError> {
    let mut requests = Vec::new();
    for name in monitor.tables.keys().filter(|name| schema.table(name).is_none()) {
        let missing = Mismatch::Table { table: name.clone() };
        if !mismatches.contains(&missing) {
            mismatches.push(missing);
        }
    }
    for (table, definition) in schema.numbered_tables() {
        let request = monitor.tables.get(&*definition.name);
        if request.is_none() && !monitor.everything {
            continue;
        }
        let all = || definition.data_columns().map(|(column, _)| column).collect();
        let mut columns: Vec<ColumnIx> = match request.and_then(|r| r.columns.as_ref()) {
            Some(names) if !monitor.everything => columns_of(definition, names, mismatches),
            _ => all(),
        };
        for index in indexes.iter().filter(|index| *index.table == *definition.name) {
            for column in index.columns() {
                match definition.column(column) {
                    Some(Column::Data(column)) if !columns.contains(&column) => columns.push(column),
                    _ => {}
                }
            }
        }
        columns.sort();
        let condition = match request.filter(|r| !r.filters.is_empty()) {
            None => None,
            Some(request) => {
                let filter = Filter::any_of(request.filters.iter().cloned());
                let clauses = filter.resolve_any(schema, table)?;
                clauses.map(|clauses| condition_text(definition, &clauses))
            }
        };
        requests.push(PlannedTable { table, name: definition.name.clone(), columns, condition });
    }
    Ok(requests)
}

/// The clauses of a monitor's condition as they travel.
fn condition_text(definition: &TableSchema, clauses: &[Clause]) -> String {
    let mut text = "[".to_string();
    for clause in clauses {
        if text.len() > 1 {
            text.push(',');
        }
        crate::encode::write_clause(definition, clause, &crate::encode::NO_NAMES, &mut text);
    }
    text + "]"
}

fn columns_of(definition: &TableSchema, names: &[String], mismatches: &mut Vec<Mismatch>) -> Vec<ColumnIx> {
    let mut columns = Vec::new();
    for name in names {
        match definition.column(name) {
            Some(Column::Data(column)) => columns.push(column),
            Some(_) => {}
            None => {
                let missing = Mismatch::Column { table: definition.name.to_string(), column: name.clone() };
                if !mismatches.contains(&missing) {
                    mismatches.push(missing);
                }
            }
        }
    }
    columns
}

fn add_index(schema: &mut Schema, known: &mut Known, index: &Index, mismatches: &mut Vec<Mismatch>) {
    let Some(table) = schema.table(&index.table) else {
        mismatches.push(Mismatch::Table { table: index.table.clone() });
        return;
    };
    let place = &mut known.tables[usize::from(table.0)];
    let definition = &mut schema.tables[usize::from(table.0)];
    let mut parts = Vec::new();
    for part in &index.parts {
        let name = match part {
            PartRequest::Column(column) | PartRequest::MapKey { column, .. } => column,
        };
        let Some(Column::Data(column)) = definition.column(name) else {
            mismatches.push(Mismatch::Column { table: index.table.clone(), column: name.clone() });
            return;
        };
        let ty = &definition.data(column).ty;
        parts.push(match part {
            PartRequest::Column(_) => KeyPart::Column(column),
            PartRequest::MapKey { key, indexes_absence, .. } => {
                if !ty.is_map() {
                    mismatches.push(Mismatch::Type {
                        table: index.table.clone(),
                        column: name.clone(),
                        expected: "a map".to_string(),
                        found: format!("{} {}", count_in_words(ty), ty.key.atomic.name()),
                    });
                    return;
                }
                KeyPart::MapValue { column, key: key.clone(), indexes_absence: *indexes_absence }
            }
        });
    }
    definition.client_indexes.push(ClientIndex { kind: index.kind, parts });
    place.index_names.push(index.name.as_str().into());
    place.guarded.push(index.is_guarded);
}
