//! `dump` prints the rows of a database as tables, `backup` as a database file.

use super::Context;
use super::commands::{columns_of, fetch_schema};
use super::error::ClientError;
use super::json::{Value, select_all, string, strings, text};
use super::remote::Target;
use super::table::{Cell, Table};
use cowslip_ovsdb::atom::AtomicType;
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::{Json, Object, write_int, write_str};
use cowslip_ovsdb::schema::TableSchema;
use cowslip_ovsdb::types::ColumnType;
use cowslip_ovsdb_server::file::date::now_ms;
use cowslip_ovsdb_server::file::log::write_record;
use std::cmp::Ordering;
use std::io::{IsTerminal, Write};

/// The columns of a table that are asked for, sorted by name.
struct Selection<'s> {
    table: &'s TableSchema,
    columns: Vec<(&'s str, ColumnType)>,
}

/// `dump`
pub(super) fn dump(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let schema = fetch_schema(&mut target.connection, &target.database)?.schema;
    let (only, named) = match target.rest.split_first() {
        None => (None, [].as_slice()),
        Some((name, columns)) => match schema.table(name) {
            Some(table) => (Some(schema.at(table)), columns),
            None => return Err(ClientError::Usage(format!("{} has no table named {name:?}", schema.name))),
        },
    };
    let tables: Vec<&TableSchema> = only.map_or_else(|| schema.tables.iter().collect(), |table| vec![table]);
    let mut selections = Vec::new();
    for table in tables {
        let mut columns = columns_of(table);
        if let Some(unknown) = named.iter().find(|name| !columns.iter().any(|c| c.0 == name.as_str())) {
            return Err(ClientError::Usage(format!(
                "the table {} has no column named {unknown:?}",
                table.name
            )));
        }
        columns
            .retain(|(name, _)| *name != "_version" && (named.is_empty() || named.iter().any(|n| n == name)));
        columns.sort_by_key(|(name, _)| *name);
        selections.push(Selection { table, columns });
    }
    let rows = select(&mut target, &selections)?;
    for (selection, rows) in selections.iter().zip(rows) {
        dump_table(context, selection, &rows)?;
    }
    Ok(())
}

/// The rows of all selections, as of one moment.
fn select(target: &mut Target<'_>, selections: &[Selection<'_>]) -> Result<Vec<Vec<Value>>, ClientError> {
    let mut transaction = vec![string(&target.database)];
    for selection in selections {
        let columns = strings(selection.columns.iter().map(|(name, _)| *name));
        transaction.push(select_all(&selection.table.name, columns));
    }
    let result = target.connection.call("transact", Json::Array(transaction))?;
    let Json::Array(results) = result else {
        return Err(ClientError::Reply("the results are no array".to_owned()));
    };
    if results.len() != selections.len() {
        return Err(ClientError::Reply(format!("{} results for {} tables", results.len(), selections.len())));
    }
    let mut tables = Vec::with_capacity(results.len());
    for result in results {
        match result.as_object().and_then(|o| o.member("rows")) {
            Some(Json::Array(rows)) => tables.push(rows.clone()),
            _ => return Err(ClientError::Operation(text(&result, false))),
        }
    }
    Ok(tables)
}

fn member_of<'r>(row: &'r Value, table: &TableSchema, column: &str) -> Result<&'r Value, ClientError> {
    row.as_object()
        .and_then(|r| r.member(column))
        .ok_or_else(|| ClientError::Reply(format!("a row of {} lacks the column {column}", table.name)))
}

fn dump_table(context: &mut Context, selection: &Selection<'_>, rows: &[Value]) -> Result<(), ClientError> {
    let types: Vec<ColumnType> = selection.columns.iter().map(|(_, ty)| unconstrained(ty)).collect();
    let mut data = Vec::with_capacity(rows.len());
    for row in rows {
        let mut cells = Vec::with_capacity(types.len());
        for ((name, _), ty) in selection.columns.iter().zip(&types) {
            cells.push(Datum::from_json(ty, member_of(row, selection.table, name)?, None)?);
        }
        data.push(cells);
    }
    // UUIDs differ from run to run; as tie-breakers only, they leave the order of the rest reproducible.
    let is_uuid = |x: &usize| types[*x].key.atomic == AtomicType::Uuid;
    let (last, first): (Vec<usize>, Vec<usize>) = (0..types.len()).partition(is_uuid);
    let order: Vec<usize> = first.into_iter().chain(last).collect();
    data.sort_by(|a, b| {
        order.iter().map(|&x| compare(&a[x], &b[x])).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    });
    let mut table = Table::new(Some(format!("{} table", selection.table.name)));
    for (name, ty) in &selection.columns {
        table.column(name, Some(ty.clone()));
    }
    table.rows = data.into_iter().map(|row| row.into_iter().map(Cell::Datum).collect()).collect();
    context.print_table(&table)
}

/// The smaller value comes first, then keys count, then values.
fn compare(a: &Datum, b: &Datum) -> Ordering {
    let values = |d: &Datum| d.members().filter_map(|(_, v)| v.cloned()).collect::<Vec<_>>();
    a.len().cmp(&b.len()).then_with(|| a.keys().cmp(b.keys())).then_with(|| values(a).cmp(&values(b)))
}

/// The type without limits on its members: what the server holds is to be shown whatever the schema says.
fn unconstrained(ty: &ColumnType) -> ColumnType {
    ColumnType {
        key: ty.key.unconstrained(),
        value: ty.value.as_ref().map(|v| v.unconstrained()),
        ..ty.clone()
    }
}

/// `backup`
pub(super) fn backup(_: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        return Err(ClientError::Usage(
            "a backup is no text for a terminal: redirect the output to a file".to_owned(),
        ));
    }
    let schema = fetch_schema(&mut target.connection, &target.database)?;
    let mut selections = Vec::new();
    for table in &schema.schema.tables {
        let mut columns = columns_of(table);
        let is_stored = |name: &str| table.columns.iter().any(|c| *c.name == *name && c.persistent);
        columns.retain(|(name, _)| *name == "_uuid" || is_stored(name));
        selections.push(Selection { table, columns });
    }
    let tables = select(&mut target, &selections)?;
    let mut file = Vec::new();
    write_record(&mut file, &mut schema.json.to_string());
    write_record(&mut file, &mut backup_record(&selections, &tables)?);
    out.write_all(&file).and_then(|()| out.flush()).map_err(ClientError::Output)
}

/// The transaction record that holds all rows.
fn backup_record(selections: &[Selection<'_>], tables: &[Vec<Value>]) -> Result<String, ClientError> {
    let mut record = String::from("{");
    for (selection, rows) in selections.iter().zip(tables).filter(|(_, rows)| !rows.is_empty()) {
        write_str(&mut record, &selection.table.name);
        for (i, row) in rows.iter().enumerate() {
            record.push_str(if i == 0 { ":{" } else { "," });
            let uuid = match member_of(row, selection.table, "_uuid")?.as_array() {
                Some([Json::Str(tag), Json::Str(uuid)]) if tag == "uuid" => uuid,
                _ => {
                    return Err(ClientError::Reply(format!(
                        "a row of {} has a bad _uuid",
                        selection.table.name
                    )));
                }
            };
            write_str(&mut record, uuid);
            record.push(':');
            let members =
                row.as_object().into_iter().flat_map(Object::iter).filter(|(name, _)| *name != "_uuid");
            Json::Object(Object::new(members.map(|(k, v)| (k.into(), v.clone())).collect()))
                .write(&mut record, false);
        }
        record.push_str("},");
    }
    record.push_str("\"_comment\":\"produced by \\\"cowslip ovsdb-client backup\\\"\",\"_date\":");
    write_int(&mut record, now_ms());
    record.push('}');
    Ok(record)
}
