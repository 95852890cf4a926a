//! Change sets as the JSON of a record, and back.
//!
//! A record is `{"_date":…,"_comment":…,"_is_diff":true,"<table>":{"<uuid>":{"<column>":<value>}|null}}`. Ephemeral
//! columns and `_version` are not stored, nor are default values of new rows. Under `_is_diff`, a column that can hold
//! more than one member stores its difference from the row's previous version, except in new rows.
//!
//! Invariant: decoding what was encoded, onto the root it was made on, gives the same content. One thing is avoided on
//! top of that: Open vSwitch 3.1 takes a difference onto a default that is not empty for the whole value, so a record
//! with such a difference stores whole values instead.

use std::borrow::Cow;
use std::sync::Arc;

use cowslip_engine::{ChangeSet, Draft, RecordChange, Root, TableIx, Uuid};
use cowslip_ovsdb::atom::parse_uuid;
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::error::Error;
use cowslip_ovsdb::json::{Json, Object, write_int, write_str};
use cowslip_ovsdb::row::{Note, Ovsdb, Row, RowDelta};
use cowslip_ovsdb::schema::{Column, ColumnIx, Schema, TableSchema};
use cowslip_ovsdb::types::{ColumnType, UNLIMITED};

/// The comment of the record that a compaction writes, as the reference server's.
pub const COMPACTION_COMMENT: &str = "compacting database online";

/// Appends a transaction's record, with differences of large columns if `differences` allows. False, and nothing is
/// appended, if nothing of it is to be stored.
pub fn encode(
    schema: &Schema,
    changes: &ChangeSet<Ovsdb>,
    note: &Note,
    date_ms: i64,
    differences: bool,
    out: &mut String,
) -> bool {
    let is_whole = !differences || misread_as_difference(schema, changes);
    let form = if is_whole { Form::Whole } else { Form::Differences };
    let start = out.len();
    write_head(out, note.comment.as_deref(), date_ms, form);
    let empty = out.len();
    for table in changes.tables() {
        let definition = schema.at(table.table);
        let mut rows = RowList::new(&definition.name);
        for change in &table.records {
            rows.add(out, &change.id, |out| write_change(out, definition, change, form));
        }
        rows.finish(out);
    }
    if out.len() == empty {
        out.truncate(start);
        return false;
    }
    out.push('}');
    true
}

/// Writes the record of a whole database, handing over what has gathered whenever `piece_bytes` are exceeded.
pub fn encode_snapshot(root: &Root<Ovsdb>, comment: &str, date_ms: i64, pieces: &mut Pieces<'_>) {
    let schema = root.meta();
    write_head(&mut pieces.text, Some(comment), date_ms, Form::Whole);
    for (table, definition) in schema.numbered_tables() {
        let mut rows = RowList::new(&definition.name);
        for (id, row) in root.scan(table) {
            rows.add(&mut pieces.text, &id, |out| {
                write_new(out, definition, row);
                true
            });
            pieces.hand_over_when_full();
        }
        rows.finish(&mut pieces.text);
    }
    pieces.text.push_str("}\n");
    pieces.hand_over();
}

/// Where the text of a snapshot goes, piece by piece.
pub struct Pieces<'s> {
    text: String,
    piece_bytes: usize,
    sink: &'s mut dyn FnMut(&[u8]),
}

impl<'s> Pieces<'s> {
    /// Pieces of about this size.
    pub fn new(piece_bytes: usize, sink: &'s mut dyn FnMut(&[u8])) -> Self {
        Self { text: String::with_capacity(piece_bytes), piece_bytes, sink }
    }

    fn hand_over_when_full(&mut self) {
        if self.text.len() >= self.piece_bytes {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        (self.sink)(self.text.as_bytes());
        self.text.clear();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Differences,
    Whole,
}

fn write_head(out: &mut String, comment: Option<&str>, date_ms: i64, form: Form) {
    out.push_str("{\"_date\":");
    write_int(out, date_ms);
    if let Some(comment) = comment.filter(|comment| !comment.is_empty()) {
        out.push_str(",\"_comment\":");
        write_str(out, comment);
    }
    if form == Form::Differences {
        out.push_str(",\"_is_diff\":true");
    }
}

/// A table's rows; the table is named when the first of them is written.
struct RowList<'n> {
    table: &'n str,
    rows: usize,
}

impl<'n> RowList<'n> {
    fn new(table: &'n str) -> Self {
        Self { table, rows: 0 }
    }

    /// Writes a row, unless `content` finds nothing to write.
    fn add(&mut self, out: &mut String, id: &Uuid, content: impl FnOnce(&mut String) -> bool) {
        let start = out.len();
        out.push(',');
        if self.rows == 0 {
            write_str(out, self.table);
            out.push_str(":{");
        }
        out.push('"');
        out.push_str(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        out.push_str("\":");
        if content(out) {
            self.rows += 1;
        } else {
            out.truncate(start);
        }
    }

    fn finish(self, out: &mut String) {
        if self.rows > 0 {
            out.push('}');
        }
    }
}

fn write_change(out: &mut String, table: &TableSchema, change: &RecordChange<Ovsdb>, form: Form) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => return write_update(out, table, (old, new), &change.delta, form),
        (None, Some(new)) => write_new(out, table, new),
        (_, None) => out.push_str("null"),
    }
    true
}

fn write_new(out: &mut String, table: &TableSchema, row: &Row) {
    let defaults = table.defaults();
    let mut columns = ColumnList::new(out);
    for (column, definition) in table.data_columns() {
        let value = row.data(column);
        if definition.persistent && *value != defaults[usize::from(column.0)] {
            columns.add(&definition.name, value, &definition.ty);
        }
    }
    columns.finish();
}

fn write_update(
    out: &mut String,
    table: &TableSchema,
    (old, new): (&Row, &Row),
    delta: &RowDelta,
    form: Form,
) -> bool {
    let mut changed: Vec<ColumnIx> = delta
        .columns()
        .filter(|column| table.data(*column).persistent && delta.differs(*column, old, new))
        .collect();
    changed.sort_unstable();
    let mut columns = ColumnList::new(out);
    for column in &changed {
        let definition = table.data(*column);
        let value = if form == Form::Differences && definition.ty.has_differences() {
            Cow::Owned(Datum::difference(&delta.changes(*column, old, new)))
        } else {
            Cow::Borrowed(new.data(*column))
        };
        columns.add(&definition.name, &value, &definition.ty);
    }
    columns.finish();
    !changed.is_empty()
}

struct ColumnList<'o> {
    out: &'o mut String,
    first: bool,
}

impl<'o> ColumnList<'o> {
    fn new(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, first: true }
    }

    fn add(&mut self, name: &str, value: &Datum, ty: &ColumnType) {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        write_str(self.out, name);
        self.out.push(':');
        value.write(self.out, ty.is_map());
    }

    fn finish(self) {
        self.out.push('}');
    }
}

/// Whether Open vSwitch 3.1 would misread the differences of these changes.
fn misread_as_difference(schema: &Schema, changes: &ChangeSet<Ovsdb>) -> bool {
    changes.tables().iter().any(|changed| {
        let table = schema.at(changed.table);
        let is_misread = |old: &Row, column: ColumnIx| {
            let default = &table.defaults()[usize::from(column.0)];
            table.data(column).ty.has_differences() && !default.is_empty() && old.data(column) == default
        };
        changed.records.iter().any(|change| match (&change.old, &change.new) {
            (Some(old), Some(_)) => change.delta.columns().any(|column| is_misread(old, column)),
            _ => false,
        })
    })
}

/// What is wrong with the content of a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentFault {
    /// It is not JSON.
    #[error("the record is not JSON: {source}")]
    Json {
        /// Where and why.
        source: cowslip_ovsdb::json::JsonError,
    },
    /// Something is an object that must be, or is none that must be one.
    #[error("{expected} expected")]
    Form {
        /// What was expected, and where.
        expected: &'static str,
    },
    /// A member beginning with an underscore that nobody here knows. It might change the meaning of all others.
    #[error("unknown special member \"{name}\"")]
    Special {
        /// Its name.
        name: String,
    },
    /// A table that the schema lacks.
    #[error("no table named {name}")]
    Table {
        /// Its name.
        name: String,
    },
    /// A column that the table lacks.
    #[error("no column {name} in table {table}")]
    Column {
        /// The table's name.
        table: String,
        /// The column's name.
        name: String,
    },
    /// A row's name is not a UUID.
    #[error("\"{name}\" is not a valid UUID")]
    RowName {
        /// The name.
        name: String,
    },
    /// A row is deleted that does not exist.
    #[error("row {row} is deleted and does not exist")]
    Absent {
        /// The row.
        row: Uuid,
    },
    /// A value that does not fit its column.
    #[error("column {column} of table {table}: {source}")]
    Value {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
        /// Why it does not fit.
        source: Error,
    },
    /// A difference leaves a column with too few or too many members.
    #[error("column {column} of table {table} would have {members} members")]
    Count {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
        /// How many members it leaves.
        members: usize,
    },
    /// Two rows of one table agree in an index.
    #[error("rows of table {table} agree in an index: {}", list(rows))]
    Duplicate {
        /// The table's name.
        table: String,
        /// The rows.
        rows: Vec<Uuid>,
    },
    /// A schema in the middle of the file is none.
    #[error("a schema inside the file is bad: {source}")]
    Schema {
        /// What is wrong with it.
        source: Error,
    },
}

fn list(rows: &[Uuid]) -> String {
    rows.iter().map(Uuid::to_string).collect::<Vec<_>>().join(" ")
}

/// Applies records to drafts under one schema.
pub struct Decoder {
    schema: Arc<Schema>,
    /// By table and column: the type of a difference, whose count of members is free.
    differences: Vec<Vec<ColumnType>>,
}

/// The type of a column's differences: any number of members.
pub fn difference_type(ty: &ColumnType) -> ColumnType {
    if ty.has_differences() { ColumnType { min: 0, max: UNLIMITED, ..ty.clone() } } else { ty.clone() }
}

impl Decoder {
    /// For records of databases with this schema.
    pub fn new(schema: Arc<Schema>) -> Self {
        let differences = schema
            .tables
            .iter()
            .map(|table| table.columns.iter().map(|column| difference_type(&column.ty)).collect())
            .collect();
        Self { schema, differences }
    }

    /// Makes the changes of a record on a draft of the state before it.
    ///
    /// # Errors
    /// What the first thing is that is wrong; the draft is to be thrown away.
    pub fn decode(&self, json: &Json<'_>, draft: &mut Draft<'_, Ovsdb>) -> Result<Note, ContentFault> {
        let object = object(json, "an object of tables")?;
        let is_difference = matches!(object.member("_is_diff"), Some(Json::Bool(true)));
        let mut note = Note::default();
        for (name, content) in object.iter() {
            match name {
                "_date" if matches!(content, Json::Int(_)) => {}
                "_is_diff" if matches!(content, Json::Bool(_)) => {}
                "_comment" => note.comment = content.as_str().map(str::to_owned),
                _ if name.starts_with('_') => {
                    return Err(ContentFault::Special { name: name.to_owned() });
                }
                _ => {
                    let table = self.schema.table(name);
                    let table = table.ok_or_else(|| ContentFault::Table { name: name.to_owned() })?;
                    self.decode_table(table, content, is_difference, draft)?;
                }
            }
        }
        Ok(note)
    }

    fn decode_table(
        &self,
        table: TableIx,
        json: &Json<'_>,
        is_difference: bool,
        draft: &mut Draft<'_, Ovsdb>,
    ) -> Result<(), ContentFault> {
        for (name, content) in object(json, "an object of rows")?.iter() {
            let row = parse_uuid(name).ok_or_else(|| ContentFault::RowName { name: name.to_owned() })?;
            if *content == Json::Null {
                if !draft.remove(table, &row) {
                    return Err(ContentFault::Absent { row });
                }
                continue;
            }
            let columns = object(content, "an object of columns, or null,")?;
            let old = draft.record(table, &row).cloned();
            let (new, delta) = match &old {
                Some(old) => self.updated(table, old, columns, is_difference)?,
                None => (self.inserted(table, columns)?, RowDelta::default()),
            };
            draft.put(table, row, Arc::new(new), delta);
        }
        Ok(())
    }

    fn inserted(&self, table: TableIx, columns: &Object<'_>) -> Result<Row, ContentFault> {
        let definition = self.schema.at(table);
        let mut row = Row { version: Uuid::new_v4(), columns: definition.defaults().into() };
        for (name, json) in columns.iter() {
            let column = column_named(definition, name)?;
            row.columns[usize::from(column.0)] =
                value(definition, column, &definition.data(column).ty, json)?;
        }
        Ok(row)
    }

    fn updated(
        &self,
        table: TableIx,
        old: &Row,
        columns: &Object<'_>,
        is_difference: bool,
    ) -> Result<(Row, RowDelta), ContentFault> {
        let definition = self.schema.at(table);
        let mut row = Row { version: Uuid::new_v4(), columns: old.columns.clone() };
        let mut delta = RowDelta::default();
        for (name, json) in columns.iter() {
            let column = column_named(definition, name)?;
            let ty = &definition.data(column).ty;
            let place = &mut row.columns[usize::from(column.0)];
            if !is_difference || !ty.has_differences() {
                *place = value(definition, column, ty, json)?;
                delta.touch(column);
                continue;
            }
            let free = &self.differences[usize::from(table.0)][usize::from(column.0)];
            let difference = value(definition, column, free, json)?;
            let changes = place.changes_of_difference(&difference);
            *place = place.with(&changes);
            delta.change(column, changes);
            let members = place.len();
            if members < ty.min as usize || (ty.max != UNLIMITED && members > ty.max as usize) {
                let (table, column) = (definition.name.to_string(), name.to_owned());
                return Err(ContentFault::Count { table, column, members });
            }
        }
        Ok((row, delta))
    }
}

fn object<'j, 'a>(json: &'j Json<'a>, expected: &'static str) -> Result<&'j Object<'a>, ContentFault> {
    json.as_object().ok_or(ContentFault::Form { expected })
}

fn column_named(table: &TableSchema, name: &str) -> Result<ColumnIx, ContentFault> {
    match table.column(name) {
        Some(Column::Data(column)) => Ok(column),
        _ => Err(ContentFault::Column { table: table.name.to_string(), name: name.to_owned() }),
    }
}

fn value(
    table: &TableSchema,
    column: ColumnIx,
    ty: &ColumnType,
    json: &Json<'_>,
) -> Result<Datum, ContentFault> {
    Datum::from_json(ty, json, None).map_err(|source| ContentFault::Value {
        table: table.name.to_string(),
        column: table.data(column).name.to_string(),
        source,
    })
}
