//! `show-log`: what is written in a database file, record by record.
//!
//! The text is the reference tool's. Tables, rows and columns come in the order in which the record has them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::{Json, Object};
use cowslip_ovsdb::schema::{Column, Schema, TableSchema};
use cowslip_ovsdb_server::file::OpenError;
use cowslip_ovsdb_server::file::date::Date;
use cowslip_ovsdb_server::file::record::difference_type;

use super::{ToolError, each_record};

/// Dates below this are seconds: early versions of the format counted these.
const SECONDS_MAX: i64 = i32::MAX as i64;

/// How much of a row's UUID is shown.
const SHORT_UUID: usize = 8;

/// Prints a file's records.
pub(super) fn show_log(path: &Path, verbosity: u8, out: &mut dyn Write) -> Result<(), ToolError> {
    let mut log = Log { schema: None, names: HashMap::new(), verbosity };
    let mut number = 0;
    each_record(path, |body| {
        let bad = |reason: String| ToolError::Record { path: path.to_owned(), offset: 0, reason };
        let json = Json::parse(body).map_err(|error| bad(format!("record {number}: {error}")))?;
        if log.schema.is_none() {
            let schema = Schema::from_json(&json);
            let schema = schema.map_err(|source| OpenError::BadSchema { path: path.to_owned(), source })?;
            print_schema(&schema, out).map_err(ToolError::Output)?;
            log.schema = Some(schema);
        } else {
            write!(out, "record {number}:").map_err(ToolError::Output)?;
            log.print(&json, out).map_err(ToolError::Output)?;
        }
        number += 1;
        writeln!(out).map_err(ToolError::Output)
    })
}

fn print_schema(schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
    let Schema { name, version, cksum, .. } = schema;
    writeln!(out, "record 0: \"{name}\" schema, version=\"{version}\", cksum=\"{cksum}\"")
}

struct Log {
    schema: Option<Schema>,
    /// What each row is called: its name, or the beginning of its UUID.
    names: HashMap<String, String>,
    verbosity: u8,
}

impl Log {
    fn print(&mut self, json: &Json<'_>, out: &mut dyn Write) -> io::Result<()> {
        let Some(record) = json.as_object() else { return Ok(()) };
        if let Some(Json::Int(date)) = record.member("_date") {
            let ms = if *date < SECONDS_MAX { date.saturating_mul(1_000) } else { *date };
            let Date { year, month, day, hour, minute, second, millisecond } = Date::from_ms(ms);
            write!(out, " {year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millisecond:03}")?;
        }
        if let Some(comment) = record.member("_comment").and_then(Json::as_str) {
            write!(out, " \"{comment}\"")?;
        }
        if self.verbosity == 0 {
            return Ok(());
        }
        let is_difference = matches!(record.member("_is_diff"), Some(Json::Bool(true)));
        let tables = record.iter().filter(|(name, _)| !name.starts_with('_'));
        let mut first = true;
        for (table, rows) in tables.filter_map(|(name, rows)| Some((name, rows.as_object()?))) {
            if std::mem::take(&mut first) {
                writeln!(out)?;
            }
            for (row, content) in rows.iter() {
                self.print_row(table, row, content, is_difference, out)?;
            }
        }
        Ok(())
    }

    fn print_row(
        &mut self,
        table: &str,
        row: &str,
        content: &Json<'_>,
        is_difference: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let columns = content.as_object();
        let short = row.get(..SHORT_UUID).unwrap_or(row);
        let new_name = columns.and_then(|columns| columns.member("name")).map(Json::to_sorted_string);
        let is_new = !self.names.contains_key(row);
        write!(out, "  table {table}")?;
        match (self.names.get(row), &new_name) {
            (Some(name), _) => {
                let difference = if is_difference { " diff" } else { "" };
                writeln!(out, " row {name} ({short}){difference}:")?;
            }
            (None, Some(name)) => writeln!(out, " insert row {name} ({short}):")?,
            (None, None) => writeln!(out, " insert row {short}:")?,
        }
        match columns {
            Some(columns) => {
                if self.verbosity > 1 {
                    self.print_columns(table, columns, is_difference && !is_new, out)?;
                }
                if let Some(name) = new_name {
                    self.names.insert(row.to_owned(), name);
                } else if is_new {
                    self.names.insert(row.to_owned(), short.to_owned());
                }
            }
            None if *content == Json::Null => {
                writeln!(out, "    delete row")?;
                self.names.remove(row);
            }
            None => {}
        }
        Ok(())
    }

    fn print_columns(
        &self,
        table: &str,
        columns: &Object<'_>,
        is_difference: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let definition = self.schema.as_ref().and_then(|schema| Some(schema.at(schema.table(table)?)));
        for (name, value) in columns.iter() {
            let words = definition.and_then(|table| in_words(table, name, value, is_difference));
            writeln!(out, "    {name}={}", words.unwrap_or_else(|| value.to_sorted_string()))?;
        }
        Ok(())
    }
}

fn in_words(table: &TableSchema, name: &str, json: &Json<'_>, is_difference: bool) -> Option<String> {
    let Some(Column::Data(column)) = table.column(name) else { return None };
    let ty = &table.data(column).ty;
    let difference = is_difference.then(|| difference_type(ty));
    let ty = difference.as_ref().unwrap_or(ty);
    Some(Datum::from_json(ty, json, None).ok()?.in_words(ty))
}
