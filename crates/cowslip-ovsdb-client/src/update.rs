//! Updates as servers send them: parsed in full first, then applied as one change set.
//!
//! Invariant: an update that cannot be right on the rows that are there changes nothing at all ([`Impossible`]).

use crate::plan::Known;
use cowslip_engine::{ChangeSet, Draft, Root, TableIx, Uuid};
use cowslip_ovsdb::atom::parse_uuid;
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::executor::Knowledge;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::monitor::Dialect;
use cowslip_ovsdb::row::{Ovsdb, Row, RowDelta};
use cowslip_ovsdb::schema::{Column, ColumnIx, Schema, TableSchema};
use cowslip_ovsdb::types::{ColumnType, UNLIMITED};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An update that cannot be right: the cache and the server have parted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("impossible update: {reason}")]
pub(crate) struct Impossible {
    pub(crate) reason: String,
}

fn impossible<T>(reason: impl Into<String>) -> Result<T, Impossible> {
    Err(Impossible { reason: reason.into() })
}

/// What an update says of one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowUpdate {
    pub(crate) table: TableIx,
    pub(crate) id: Uuid,
    pub(crate) change: Change,
}

/// Values by column.
type Values = Vec<(ColumnIx, Datum)>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A new row; what is left out is default.
    Insert(Values),
    /// Differences where the column has them, else new values.
    Modify(Values),
    /// New values.
    Replace(Values),
    Delete,
}

/// Takes a `<table-updates>` object.
///
/// # Errors
/// It is not one that the server could send for what is monitored.
pub(crate) fn parse(
    schema: &Schema,
    known: &Known,
    dialect: Dialect,
    json: &Json<'_>,
) -> Result<Vec<RowUpdate>, Impossible> {
    let Some(tables) = json.as_object() else { return impossible("table-updates is no object") };
    let mut updates = Vec::new();
    for (name, rows) in tables.iter() {
        let Some(table) = schema.table(name) else { return impossible(format!("unknown table {name}")) };
        let Some(rows) = rows.as_object() else { return impossible(format!("{name}: no object")) };
        updates.reserve(rows.len());
        for (id, change) in rows.iter() {
            let Some(id) = parse_uuid(id) else { return impossible(format!("{name}: {id} is no UUID")) };
            let parser = Parser { definition: schema.at(table), table, known };
            let change = whole(change).and_then(|change| match dialect {
                Dialect::Plain => parser.plain(&change),
                Dialect::Conditional | Dialect::Since => parser.difference(&change),
            });
            let change =
                change.map_err(|e| Impossible { reason: format!("{name} row {id}: {}", e.reason) })?;
            updates.push(RowUpdate { table, id, change });
        }
    }
    Ok(updates)
}

/// A part of an update, parsed now if it was left as text.
fn whole<'j>(json: &'j Json<'_>) -> Result<Cow<'j, Json<'j>>, Impossible> {
    match json {
        Json::Raw(text) => {
            Json::parse(text.as_bytes()).map(Cow::Owned).map_err(|e| Impossible { reason: e.to_string() })
        }
        _ => Ok(Cow::Borrowed(json)),
    }
}

struct Parser<'a> {
    definition: &'a TableSchema,
    table: TableIx,
    known: &'a Known,
}

impl Parser<'_> {
    fn plain(&self, json: &Json<'_>) -> Result<Change, Impossible> {
        let Some(object) = json.as_object() else { return impossible("no object") };
        match (object.member("old"), object.member("new")) {
            (None, Some(new)) => Ok(Change::Insert(self.values(new, false)?)),
            (Some(_), Some(new)) => Ok(Change::Replace(self.values(new, false)?)),
            (Some(_), None) => Ok(Change::Delete),
            (None, None) => impossible("neither old nor new"),
        }
    }

    fn difference(&self, json: &Json<'_>) -> Result<Change, Impossible> {
        let Some(object) = json.as_object() else { return impossible("no object") };
        let mut members = object.iter();
        match (members.next(), members.next()) {
            (Some(("initial" | "insert", row)), None) => Ok(Change::Insert(self.values(row, false)?)),
            (Some(("modify", row)), None) => Ok(Change::Modify(self.values(row, true)?)),
            (Some(("delete", _)), None) => Ok(Change::Delete),
            _ => impossible("neither initial, insert, modify nor delete"),
        }
    }

    fn values(&self, json: &Json<'_>, are_differences: bool) -> Result<Values, Impossible> {
        let json = whole(json)?;
        let Some(object) = json.as_object() else { return impossible("row is no object") };
        let mut values = Vec::with_capacity(object.len());
        for (name, value) in object.iter() {
            let column = match self.definition.column(name) {
                Some(Column::Data(column)) if self.known.has_column(self.table, column) => column,
                Some(Column::Uuid | Column::Version) => continue,
                _ => return impossible(format!("unknown column {name}")),
            };
            let ty = &self.definition.data(column).ty;
            let value = match are_differences && ty.has_differences() {
                true => Datum::from_json(&difference_type(ty), value, None),
                false => Datum::from_json(ty, value, None),
            };
            match value {
                Ok(value) => values.push((column, value)),
                Err(error) => return impossible(format!("column {name}: {error}")),
            }
        }
        Ok(values)
    }
}

/// What a difference of a column may hold: members that come and members that go.
fn difference_type(ty: &ColumnType) -> ColumnType {
    ColumnType { min: 0, max: UNLIMITED, ..ty.clone() }
}

/// The change set of an update on the rows that are there.
///
/// # Errors
/// The update cannot be right on these rows.
pub(crate) fn apply(root: &Root<Ovsdb>, updates: Vec<RowUpdate>) -> Result<ChangeSet<Ovsdb>, Impossible> {
    let schema = root.meta().as_ref();
    let mut draft = Draft::new(root);
    for RowUpdate { table, id, change } in updates {
        let definition = schema.at(table);
        let about = |what: &str| format!("{what}: {} row {id}", definition.name);
        let old = draft.record(table, &id).cloned();
        match (change, old) {
            (Change::Insert(values), None) => {
                draft.put(table, id, Arc::new(new_row(definition, values)), RowDelta::default());
            }
            (Change::Insert(_), Some(_)) => return impossible(about("insert of a known row")),
            (Change::Delete, Some(_)) => {
                draft.remove(table, &id);
            }
            (Change::Modify(values), Some(old)) => {
                let (row, delta) = modified(definition, &old, values)?;
                draft.put(table, id, Arc::new(row), delta);
            }
            (Change::Replace(values), Some(old)) => {
                let (row, delta) = replaced(&old, values);
                draft.put(table, id, Arc::new(row), delta);
            }
            (_, None) => return impossible(about("change of an unknown row")),
        }
    }
    Ok(draft.into_changes())
}

/// The change set that turns the rows that are there into those of a new dump. Tables that are no longer monitored have
/// none.
pub(crate) fn resync(root: &Root<Ovsdb>, updates: Vec<RowUpdate>) -> Result<ChangeSet<Ovsdb>, Impossible> {
    let schema = root.meta().as_ref();
    let is_list = updates.iter().all(|update| matches!(update.change, Change::Insert(_)));
    if is_list && schema.numbered_tables().all(|(table, _)| root.is_empty(table)) {
        return apply(root, updates);
    }
    let mut dumped: BTreeMap<(TableIx, Uuid), Values> = BTreeMap::new();
    for RowUpdate { table, id, change } in updates {
        let Change::Insert(values) = change else { return impossible("a dump that is no list of rows") };
        dumped.insert((table, id), values);
    }
    let mut draft = Draft::new(root);
    for (table, _) in schema.numbered_tables() {
        for (id, _) in root.scan(table).filter(|(id, _)| !dumped.contains_key(&(table, *id))) {
            draft.remove(table, &id);
        }
    }
    for ((table, id), values) in dumped {
        let row = new_row(schema.at(table), values);
        let mut delta = RowDelta::default();
        if let Some(old) = root.record(table, &id) {
            for (column, _) in schema.at(table).data_columns() {
                if old.data(column) != row.data(column) {
                    delta.touch(column);
                }
            }
            if delta.columns().next().is_none() {
                continue;
            }
        }
        draft.put(table, id, Arc::new(row), delta);
    }
    Ok(draft.into_changes())
}

fn new_row(definition: &TableSchema, values: Values) -> Row {
    let mut columns: Box<[Datum]> = definition.defaults().into();
    for (column, value) in values {
        columns[usize::from(column.0)] = value;
    }
    Row { version: Uuid::nil(), columns }
}

fn modified(definition: &TableSchema, old: &Row, values: Values) -> Result<(Row, RowDelta), Impossible> {
    let mut row = old.clone();
    let mut delta = RowDelta::default();
    for (column, value) in values {
        let ty = &definition.data(column).ty;
        let place = &mut row.columns[usize::from(column.0)];
        if !ty.has_differences() {
            *place = value;
            delta.touch(column);
            continue;
        }
        let changes = place.changes_of_difference(&value);
        let new = place.with(&changes);
        let count = new.len();
        if count < ty.min as usize || (ty.max != UNLIMITED && count > ty.max as usize) {
            let name = &definition.data(column).name;
            return impossible(format!("{}.{name} would have {count} members", definition.name));
        }
        if place.is_large() || new.is_large() {
            delta.change(column, changes);
        } else {
            delta.touch(column);
        }
        *place = new;
    }
    Ok((row, delta))
}

fn replaced(old: &Row, values: Values) -> (Row, RowDelta) {
    let mut row = old.clone();
    let mut delta = RowDelta::default();
    for (column, value) in values {
        let place = &mut row.columns[usize::from(column.0)];
        if *place != value {
            *place = value;
            delta.touch(column);
        }
    }
    (row, delta)
}
