//! A client's view of a database, made from a monitor's first reply and its updates alone.
//!
//! Invariant: an update that does not fit the view (a change of a row that is not there, an old value that the view does
//! not have) is an error, never mended.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::generate::{Column, Table};

/// A value as its members: the keys as JSON text with their values, or with nothing in a set.
type Datum = BTreeMap<String, String>;

/// Rows by table and UUID.
#[derive(Default)]
pub(super) struct View {
    rows: BTreeMap<(String, String), BTreeMap<String, Datum>>,
    columns: BTreeMap<String, Vec<String>>,
}

fn datum(value: &Value) -> Datum {
    match (value[0].as_str(), value[1].as_array()) {
        (Some("set"), Some(members)) => members.iter().map(|m| (m.to_string(), String::new())).collect(),
        (Some("map"), Some(pairs)) => pairs.iter().map(|p| (p[0].to_string(), p[1].to_string())).collect(),
        _ => Datum::from([(value.to_string(), String::new())]),
    }
}

fn default(column: &Column) -> Datum {
    let atom = |base: &Value| match base["type"].as_str() {
        Some("integer" | "real") => "0",
        Some("boolean") => "false",
        Some("string") => "\"\"",
        _ => "[\"uuid\",\"00000000-0000-0000-0000-000000000000\"]",
    };
    match (column.min, &column.value) {
        (0, _) => Datum::new(),
        (_, None) => Datum::from([(atom(&column.key).to_owned(), String::new())]),
        (_, Some(value)) => Datum::from([(atom(&column.key).to_owned(), atom(value).to_owned())]),
    }
}

/// Takes a difference into a value: members of both go, others come, and a pair with another value takes the place.
fn apply(old: &mut Datum, difference: Datum) {
    for (key, value) in difference {
        if old.get(&key) == Some(&value) {
            old.remove(&key);
        } else {
            old.insert(key, value);
        }
    }
}

impl View {
    /// A view of these columns.
    pub(super) fn new(requests: &Value) -> View {
        let mut view = View::default();
        for (table, request) in requests.as_object().into_iter().flatten() {
            let names = request[0]["columns"].as_array().into_iter().flatten();
            view.columns.insert(table.clone(), names.filter_map(|n| n.as_str().map(str::to_owned)).collect());
        }
        view
    }

    /// Takes a `<table-updates>` or `<table-updates2>` object in.
    pub(super) fn take(&mut self, tables: &[Table], updates: &Value) -> Result<(), String> {
        for (name, rows) in updates.as_object().into_iter().flatten() {
            let table = tables.iter().find(|t| t.name == *name).ok_or("an unknown table")?;
            for (id, change) in rows.as_object().into_iter().flatten() {
                self.take_row(table, id, change).map_err(|e| format!("{e}: {name} {id} {change}"))?;
            }
        }
        Ok(())
    }

    fn take_row(&mut self, table: &Table, id: &str, change: &Value) -> Result<(), String> {
        let place = (table.name.clone(), id.to_owned());
        let values = |kind: &str| change.get(kind).and_then(Value::as_object);
        if let Some(new) = values("initial").or_else(|| values("insert")) {
            let row = self.whole(table, new);
            return self
                .rows
                .insert(place, row)
                .map_or(Ok(()), |_| Err("an insert of a known row".to_owned()));
        }
        if let Some(new) = values("modify") {
            let row = self.rows.get_mut(&place).ok_or("a change of an unknown row")?;
            for (name, value) in new {
                let column = table.columns.iter().find(|c| c.name == *name).ok_or("an unknown column")?;
                let old = row.entry(name.clone()).or_default();
                if column.max > 1 { apply(old, datum(value)) } else { *old = datum(value) }
            }
            return Ok(());
        }
        if let Some(old) = values("old") {
            let row = self.rows.get(&place).ok_or("an old row that is unknown")?;
            let other = old.iter().find(|(name, value)| row.get(*name) != Some(&datum(value)));
            other.map_or(Ok(()), |(name, _)| Err(format!("another old value of {name}")))?;
        }
        match values("new") {
            Some(new) => {
                self.rows.insert(place, new.iter().map(|(k, v)| (k.clone(), datum(v))).collect());
                Ok(())
            }
            None => self.rows.remove(&place).map(|_| ()).ok_or("a deletion of an unknown row".to_owned()),
        }
    }

    /// A row of which columns with the default were left out.
    fn whole(&self, table: &Table, values: &Map<String, Value>) -> BTreeMap<String, Datum> {
        let shown = self.columns.get(&table.name).cloned().unwrap_or_default();
        let columns = table.columns.iter().filter(|c| shown.contains(&c.name));
        columns.map(|c| (c.name.clone(), values.get(&c.name).map_or_else(|| default(c), datum))).collect()
    }

    /// Whether the rows of a table are those of a select, as far as the view shows their columns.
    pub(super) fn compare(&self, table: &str, rows: &[Value]) -> Result<(), String> {
        let mine = self.rows.iter().filter(|((t, _), _)| t == table).count();
        if mine != rows.len() {
            return Err(format!("{table}: the view has {mine} rows, the database {}", rows.len()));
        }
        for row in rows {
            let id = row["_uuid"][1].as_str().unwrap_or_default().to_owned();
            let seen =
                self.rows.get(&(table.to_owned(), id.clone())).ok_or(format!("{table} {id} is not seen"))?;
            for (column, value) in seen {
                if *value != datum(&row[column]) {
                    return Err(format!("{table} {id} {column}: seen {value:?}, stored {}", row[column]));
                }
            }
        }
        Ok(())
    }
}
