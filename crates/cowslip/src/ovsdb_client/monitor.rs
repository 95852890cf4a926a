//! `monitor`, `monitor-cond` and `monitor-cond-since`: print the rows, then every change as it comes, until the program
//! is ended.

use super::Context;
use super::commands::{columns_of, fetch_schema, parse_condition, set_change_aware};
use super::connection::Message;
use super::error::ClientError;
use super::json::{Value, object, string, strings, text};
use super::remote::Target;
use super::table::{Cell, Heading, Table};
use cowslip_ovsdb::atom::parse_uuid;
use cowslip_ovsdb::json::{Json, Object};
use cowslip_ovsdb::schema::{Schema, TableSchema};

/// The id that stands for "from the beginning".
const NO_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Which request is sent, and so which kind of updates comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `monitor`, with whole old and new rows.
    Plain,
    /// `monitor_cond`, with differences.
    Conditional,
    /// `monitor_cond_since`, with differences and transaction ids.
    Since,
}

impl Kind {
    fn method(self) -> &'static str {
        match self {
            Kind::Plain => "monitor",
            Kind::Conditional => "monitor_cond",
            Kind::Since => "monitor_cond_since",
        }
    }

    fn notice(self) -> &'static str {
        match self {
            Kind::Plain => "update",
            Kind::Conditional => "update2",
            Kind::Since => "update3",
        }
    }
}

/// A table that is watched, and which columns of it.
struct Watched {
    name: String,
    columns: Vec<Heading>,
}

/// `monitor`
pub(super) fn monitor(context: &mut Context, target: Target<'_>) -> Result<(), ClientError> {
    run(context, target, Kind::Plain, None)
}

/// `monitor-cond`
pub(super) fn monitor_cond(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let (condition, rest) = target.rest.split_first().ok_or_else(no_condition)?;
    let condition = parse_condition(condition)?;
    target.rest = rest;
    run(context, target, Kind::Conditional, Some((condition, NO_ID)))
}

/// `monitor-cond-since`
pub(super) fn monitor_cond_since(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let (mut first, mut rest) = target.rest.split_first().ok_or_else(no_condition)?;
    let mut last_id = NO_ID;
    if parse_uuid(first).is_some() {
        last_id = first;
        (first, rest) = rest.split_first().ok_or_else(no_condition)?;
    }
    let condition = parse_condition(first)?;
    target.rest = rest;
    run(context, target, Kind::Since, Some((condition, last_id)))
}

fn no_condition() -> ClientError {
    ClientError::Usage("a condition and a table are missing".to_owned())
}

fn run(
    context: &mut Context,
    mut target: Target<'_>,
    kind: Kind,
    condition: Option<(Value, &str)>,
) -> Result<(), ClientError> {
    let (table_name, groups) = target.rest.split_first().ok_or_else(no_condition)?;
    let schema = fetch_schema(&mut target.connection, &target.database)?.schema;
    let tables = tables_to_watch(&schema, table_name, condition.is_some())?;
    let mut watched = Vec::new();
    let mut requests = Vec::new();
    for table in tables {
        let (columns, request) = table_request(table, groups, condition.as_ref().map(|c| &c.0))?;
        watched.push(Watched { name: table.name.to_string(), columns });
        requests.push((&*table.name, request));
    }
    let mut params = vec![string(&target.database), Json::Null, object(requests)];
    if let (Kind::Since, Some((_, last_id))) = (kind, &condition) {
        params.push(string(last_id));
    }
    set_change_aware(&mut target.connection)?;
    let request = target.connection.send(kind.method(), Json::Array(params))?;
    loop {
        match target.connection.receive()? {
            Message::Reply { id, outcome } if id == request => {
                let result = outcome.map_err(|error| ClientError::Refused {
                    method: kind.method().to_owned(),
                    error: text(&error, false),
                })?;
                print_first(context, kind, &watched, &result)?;
            }
            Message::Notice { method, params } if method == kind.notice() => {
                print_update(context, kind, &watched, &params)?;
            }
            Message::Notice { method, .. } if method == "monitor_canceled" => {
                return Err(ClientError::Reply(format!(
                    "{}: the database {} was removed or converted",
                    target.connection.server(),
                    target.database
                )));
            }
            _ => {}
        }
    }
}

fn tables_to_watch<'s>(
    schema: &'s Schema,
    name: &str,
    conditional: bool,
) -> Result<Vec<&'s TableSchema>, ClientError> {
    if name == "ALL" && !conditional {
        return Ok(schema.tables.iter().collect());
    }
    match schema.table(name) {
        Some(table) => Ok(vec![schema.at(table)]),
        None => Err(ClientError::Usage(format!("{} has no table named {name:?}", schema.name))),
    }
}

/// The columns that `groups` name, and what is asked of the server for them.
fn table_request(
    table: &TableSchema,
    groups: &[String],
    condition: Option<&Value>,
) -> Result<(Vec<Heading>, Value), ClientError> {
    let mut headings: Vec<Heading> = Vec::new();
    let mut requests = Vec::new();
    let everything = [String::new()];
    for (i, group) in if groups.is_empty() { &everything } else { groups }.iter().enumerate() {
        let start = headings.len();
        let mut select: Vec<(&str, bool)> =
            ["initial", "insert", "delete", "modify"].map(|kind| (kind, true)).into();
        for name in group.split(',').filter(|name| !name.is_empty()) {
            match select.iter_mut().find(|s| name.strip_prefix('!') == Some(s.0)) {
                Some(kind) => kind.1 = false,
                None => add_column(table, &mut headings, name)?,
            }
        }
        if headings.len() == start {
            for column in &table.columns {
                add_column(table, &mut headings, &column.name)?;
            }
            add_column(table, &mut headings, "_version")?;
        }
        let mut members = vec![("columns", strings(headings[start..].iter().map(|h| h.name.as_str())))];
        if select.iter().any(|(_, wanted)| !wanted) {
            members.push((
                "select",
                object(select.into_iter().map(|(kind, wanted)| (kind, Json::Bool(wanted)))),
            ));
        }
        if let (0, Some(condition)) = (i, condition) {
            members.push(("where", condition.clone()));
        }
        requests.push(object(members));
    }
    Ok((headings, Json::Array(requests)))
}

fn add_column(table: &TableSchema, headings: &mut Vec<Heading>, name: &str) -> Result<(), ClientError> {
    if headings.iter().any(|h| h.name == name) {
        return Err(ClientError::Usage(format!("the column {name:?} is named twice")));
    }
    let Some((_, ty)) = columns_of(table).into_iter().find(|column| column.0 == name) else {
        return Err(ClientError::Usage(format!("the table {} has no column named {name:?}", table.name)));
    };
    headings.push(Heading { name: name.to_owned(), ty: Some(ty) });
    Ok(())
}

fn print_first(
    context: &mut Context,
    kind: Kind,
    watched: &[Watched],
    result: &Value,
) -> Result<(), ClientError> {
    if kind != Kind::Since {
        return print_tables(context, kind, watched, result, true);
    }
    let Some([Json::Bool(found), last_id, tables]) = result.as_array() else {
        return Err(ClientError::Reply("the reply to monitor_cond_since has not three elements".to_owned()));
    };
    context.print(&format!("found: {found}, last_id: {}\n", last_id.as_str().unwrap_or_default()))?;
    print_tables(context, kind, watched, tables, true)
}

fn print_update(
    context: &mut Context,
    kind: Kind,
    watched: &[Watched],
    params: &Value,
) -> Result<(), ClientError> {
    match (kind, params.as_array()) {
        (Kind::Since, Some([Json::Null, last_id, tables])) => {
            context.print(&format!("\nlast_id: {}\n", last_id.as_str().unwrap_or_default()))?;
            // The empty line before a table is above already.
            context.first_table = true;
            print_tables(context, kind, watched, tables, false)
        }
        (Kind::Plain | Kind::Conditional, Some([Json::Null, tables])) => {
            print_tables(context, kind, watched, tables, false)
        }
        _ => Ok(()),
    }
}

fn print_tables(
    context: &mut Context,
    kind: Kind,
    watched: &[Watched],
    tables: &Value,
    initial: bool,
) -> Result<(), ClientError> {
    let bad = |what: &str| ClientError::Reply(format!("{what} of an update is no object"));
    let tables = tables.as_object().ok_or_else(|| bad("the list of tables"))?;
    for of in watched {
        let Some(update) = tables.member(&of.name) else { continue };
        let mut table = Table::new((watched.len() > 1).then(|| of.name.clone()));
        table.timestamp = context.timestamp;
        table.column("row", None);
        table.column("action", None);
        table.headings.extend(of.columns.iter().cloned());
        let rows = update.as_object().ok_or_else(|| bad("a table"))?;
        let mut rows: Vec<(&str, &Value)> = rows.iter().collect();
        rows.sort_by_key(|(uuid, _)| *uuid);
        for (uuid, row) in rows {
            let row = row.as_object().ok_or_else(|| bad("a row"))?;
            if kind == Kind::Plain {
                add_plain(&mut table, &of.columns, uuid, row, initial);
            } else {
                add_difference(&mut table, &of.columns, uuid, row);
            }
        }
        context.print_table(&table)?;
    }
    Ok(())
}

fn add_plain(table: &mut Table, columns: &[Heading], uuid: &str, row: &Object<'static>, initial: bool) {
    let (old, new) = (row.member("old"), row.member("new"));
    match (old, new) {
        _ if initial => add_row(table, columns, uuid, "initial", new),
        (None, _) => add_row(table, columns, uuid, "insert", new),
        (_, None) => add_row(table, columns, uuid, "delete", old),
        _ => {
            add_row(table, columns, uuid, "old", old);
            add_row(table, columns, "", "new", new);
        }
    }
}

fn add_difference(table: &mut Table, columns: &[Heading], uuid: &str, row: &Object<'static>) {
    for action in ["delete", "initial", "modify", "insert"] {
        if let Some(row) = row.member(action) {
            return add_row(table, columns, uuid, action, Some(row));
        }
    }
}

fn add_row(table: &mut Table, columns: &[Heading], uuid: &str, action: &str, row: Option<&Value>) {
    let members = row.and_then(Json::as_object);
    let cell = |heading: &Heading| {
        members.and_then(|m| m.member(&heading.name)).cloned().map_or(Cell::Empty, Cell::Json)
    };
    let mut cells = vec![Cell::Text(uuid.to_owned()), Cell::Text(action.to_owned())];
    cells.extend(columns.iter().map(cell));
    table.rows.push(cells);
}
