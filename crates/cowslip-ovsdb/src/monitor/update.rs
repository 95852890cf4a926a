//! Writes what changed as a client wants to hear it.
//!
//! In [`Dialect::Plain`] a row carries its changed old values and all its new ones; in the other dialects an insert
//! leaves default values out, a modification carries differences where the column can hold more than one member, and a
//! row that enters or leaves the client's condition is inserted or deleted.

use super::{Dialect, MonitorSpec, Select, TableSpec, type_of};
use crate::atom::write_uuid;
use crate::datum::Datum;
use crate::json::write_str;
use crate::row::{Ovsdb, Row, RowDelta};
use crate::schema::{Column, Schema, TableSchema};
use cowslip_engine::{Root, TableIx, Uuid};

/// A row before and after.
#[derive(Clone, Copy, Debug)]
pub struct RowChange<'a> {
    /// The row.
    pub id: &'a Uuid,
    /// Before; none if it is new.
    pub old: Option<&'a Row>,
    /// After; none if it is gone.
    pub new: Option<&'a Row>,
    /// What may differ between the two.
    pub delta: &'a RowDelta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Initial,
    Insert,
    Delete,
    Modify,
}

impl Kind {
    fn is_in(self, select: Select) -> bool {
        match self {
            Kind::Initial => select.initial,
            Kind::Insert => select.insert,
            Kind::Delete => select.delete,
            Kind::Modify => select.modify,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Initial => "initial",
            Kind::Insert => "insert",
            Kind::Delete => "delete",
            Kind::Modify => "modify",
        }
    }
}

/// Appends a `<table-updates>` object row by row; tables must come one after another.
pub struct UpdateWriter<'a> {
    schema: &'a Schema,
    dialect: Dialect,
    out: &'a mut String,
    open: Option<TableIx>,
    is_empty: bool,
}

impl<'a> UpdateWriter<'a> {
    /// Begins the object.
    pub fn new(schema: &'a Schema, dialect: Dialect, out: &'a mut String) -> Self {
        out.push('{');
        UpdateWriter { schema, dialect, out, open: None, is_empty: true }
    }

    /// Ends the object; tells whether any row was written.
    pub fn finish(self) -> bool {
        self.out.push_str(if self.is_empty { "}" } else { "}}" });
        !self.is_empty
    }

    /// Adds a change as the client of `spec` sees it, if it sees anything of it.
    pub fn add(&mut self, spec: &TableSpec, change: &RowChange<'_>) {
        let old = change.old.filter(|row| spec.sees(change.id, row));
        let new = change.new.filter(|row| spec.sees(change.id, row));
        let kind = match (old, new) {
            (None, None) => return,
            (None, Some(_)) => Kind::Insert,
            (Some(_), None) => Kind::Delete,
            (Some(_), Some(_)) => Kind::Modify,
        };
        self.row(spec, kind, change.id, old, new, change.delta);
    }

    /// Adds a row that is there at first.
    pub fn add_initial(&mut self, spec: &TableSpec, id: &Uuid, row: &Row) {
        self.row(spec, Kind::Initial, id, None, Some(row), &RowDelta::default());
    }

    fn row(
        &mut self,
        spec: &TableSpec,
        kind: Kind,
        id: &Uuid,
        old: Option<&Row>,
        new: Option<&Row>,
        delta: &RowDelta,
    ) {
        if !kind.is_in(spec.select) {
            return;
        }
        let definition = self.schema.at(spec.table);
        let differs = |column: Column| match (column, old, new) {
            (Column::Data(column), Some(old), Some(new)) => delta.differs(column, old, new),
            (Column::Version, Some(old), Some(new)) => old.version != new.version,
            _ => false,
        };
        if kind == Kind::Modify && !spec.columns.iter().any(|(column, _)| differs(*column)) {
            return;
        }
        self.begin_row(spec.table, &definition.name, id);
        match (self.dialect, new) {
            (Dialect::Plain, _) => self.plain_row(definition, spec, kind, id, old, new, &differs),
            (_, None) => self.out.push_str("{\"delete\":null}"),
            (_, Some(new)) => {
                self.out.push_str("{\"");
                self.out.push_str(kind.name());
                self.out.push_str("\":{");
                let mut columns = Columns { out: self.out, is_first: true };
                for (column, select) in &spec.columns {
                    if !kind.is_in(*select) {
                        continue;
                    }
                    if kind != Kind::Modify {
                        columns.unless_default(definition, *column, id, new);
                    } else if let (true, Some(old)) = (differs(*column), old) {
                        columns.difference(definition, *column, id, old, new, delta);
                    }
                }
                self.out.push_str("}}");
            }
        }
    }

    fn begin_row(&mut self, table: TableIx, name: &str, id: &Uuid) {
        if self.open == Some(table) {
            self.out.push(',');
        } else {
            if self.open.is_some() {
                self.out.push_str("},");
            }
            write_str(self.out, name);
            self.out.push_str(":{");
            self.open = Some(table);
        }
        self.is_empty = false;
        self.out.push('"');
        self.out.push_str(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        self.out.push_str("\":");
    }

    #[allow(clippy::too_many_arguments)] // one row's facts, passed on once
    fn plain_row(
        &mut self,
        definition: &TableSchema,
        spec: &TableSpec,
        kind: Kind,
        id: &Uuid,
        old: Option<&Row>,
        new: Option<&Row>,
        differs: &dyn Fn(Column) -> bool,
    ) {
        let selected = || spec.columns.iter().filter(|(_, select)| kind.is_in(*select)).map(|(c, _)| *c);
        self.out.push('{');
        if let Some(old) = old {
            self.out.push_str("\"old\":{");
            let mut columns = Columns { out: self.out, is_first: true };
            for column in selected().filter(|c| kind == Kind::Delete || differs(*c)) {
                columns.value(definition, column, id, old);
            }
            self.out.push('}');
        }
        if let Some(new) = new {
            self.out.push_str(if old.is_some() { ",\"new\":{" } else { "\"new\":{" });
            let mut columns = Columns { out: self.out, is_first: true };
            for column in selected() {
                columns.value(definition, column, id, new);
            }
            self.out.push('}');
        }
        self.out.push('}');
    }
}

/// Appends `"name":value` members.
struct Columns<'o> {
    out: &'o mut String,
    is_first: bool,
}

impl Columns<'_> {
    fn name(&mut self, definition: &TableSchema, column: Column) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(',');
        }
        write_str(self.out, definition.column_name(column));
        self.out.push(':');
    }

    fn value(&mut self, definition: &TableSchema, column: Column, id: &Uuid, row: &Row) {
        self.name(definition, column);
        match column {
            Column::Uuid => write_uuid(self.out, id),
            Column::Version => write_uuid(self.out, &row.version),
            Column::Data(data) => row.data(data).write(self.out, type_of(definition, column).is_map()),
        }
    }

    fn unless_default(&mut self, definition: &TableSchema, column: Column, id: &Uuid, row: &Row) {
        let is_default = match column {
            Column::Data(data) => *row.data(data) == definition.defaults()[usize::from(data.0)],
            Column::Uuid | Column::Version => false,
        };
        if !is_default {
            self.value(definition, column, id, row);
        }
    }

    fn difference(
        &mut self,
        definition: &TableSchema,
        column: Column,
        id: &Uuid,
        old: &Row,
        new: &Row,
        delta: &RowDelta,
    ) {
        match column {
            Column::Data(data) if definition.data(data).ty.has_differences() => {
                let difference = Datum::difference(&delta.changes(data, old, new));
                self.name(definition, column);
                difference.write(self.out, definition.data(data).ty.is_map());
            }
            _ => self.value(definition, column, id, new),
        }
    }
}

/// Appends the rows that a client sees at first.
pub fn write_initial(spec: &MonitorSpec, root: &Root<Ovsdb>, out: &mut String) {
    let mut writer = UpdateWriter::new(root.meta(), spec.dialect, out);
    for table in spec.tables.iter().filter(|t| t.select.initial) {
        for (id, row) in root.scan(table.table) {
            if table.sees(&id, row) {
                writer.add_initial(table, &id, row);
            }
        }
    }
    writer.finish();
}

/// Appends the rows that enter or leave the client's sight when its conditions change from those of `before` to those
/// of `after`; tells whether there are any.
pub fn write_condition_change(
    before: &MonitorSpec,
    after: &MonitorSpec,
    root: &Root<Ovsdb>,
    out: &mut String,
) -> bool {
    let mut writer = UpdateWriter::new(root.meta(), after.dialect, out);
    for (old, new) in before.tables.iter().zip(&after.tables) {
        if old.condition == new.condition {
            continue;
        }
        for (id, row) in root.scan(new.table) {
            let delta = RowDelta::default();
            match (old.sees(&id, row), new.sees(&id, row)) {
                (false, true) => writer.row(new, Kind::Insert, &id, None, Some(row), &delta),
                (true, false) => writer.row(new, Kind::Delete, &id, Some(row), None, &delta),
                _ => {}
            }
        }
    }
    writer.finish()
}
