//! `restore`: replaces the content of a database by that of a database file, in one transaction.
//!
//! The rows get new UUIDs, as the protocol has it; references among them are carried along as named UUIDs.

use super::Context;
use super::commands::{check_results, fetch_schema};
use super::dump::unconstrained;
use super::error::ClientError;
use super::json::{Value, object, string};
use super::remote::Target;
use super::schema_text::SchemaText;
use super::table::datum_json;
use cowslip_ovsdb::atom::{Atom, parse_uuid};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::{Json, Object};
use cowslip_ovsdb::schema::{Column, Schema, TableSchema};
use cowslip_ovsdb::types::BaseType;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};

/// The rows of a table by UUID, each with the values that are not default.
type Rows = BTreeMap<String, BTreeMap<String, Datum>>;

/// `restore`
pub(super) fn restore(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        return Err(ClientError::Usage(
            "a backup does not come from a terminal: redirect the input from a file".to_owned(),
        ));
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|e| bad(super::error::reason(&e)))?;
    let records = records(&bytes)?;
    let Some((first, changes)) = records.split_first() else {
        return Err(bad("there is no record in it"));
    };
    let backup = SchemaText::from_json(first)?;
    let online = fetch_schema(&mut target.connection, &target.database)?;
    if !context.force && backup.json.to_sorted_string() != online.json.to_sorted_string() {
        let (a, b) = (&backup.schema.version, &online.schema.version);
        let what = if a == b {
            format!("the schemas of the backup and of the database differ, though both are of version {a}")
        } else {
            format!("the backup has a schema of version {a:?}, the database one of version {b:?}")
        };
        let advice = "use --force to restore all the same, or convert the database first";
        return Err(ClientError::Usage(format!("{what}; {advice}")));
    }
    let mut tables: BTreeMap<String, Rows> = BTreeMap::new();
    for record in changes {
        apply(&backup.schema, record, &mut tables)?;
    }
    let transaction = transaction(&backup.schema, &tables);
    check_results(&target.connection.call("transact", transaction)?)
}

fn bad(reason: impl Into<String>) -> ClientError {
    ClientError::File { path: "the backup".to_owned(), reason: reason.into() }
}

/// The records of a database file.
fn records(mut bytes: &[u8]) -> Result<Vec<Value>, ClientError> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let broken = || bad(format!("record {} is damaged, or this is no OVSDB file", records.len() + 1));
        let end = bytes.iter().position(|b| *b == b'\n').ok_or_else(broken)?;
        let header = std::str::from_utf8(&bytes[..end]).map_err(|_| broken())?;
        let mut words = header.split(' ');
        match (words.next(), words.next()) {
            (Some("OVSDB"), Some("JSON")) => {}
            (Some("CLUSTER"), _) => {
                return Err(bad("it is of a cluster; run ovsdb-tool cluster-to-standalone on it first"));
            }
            _ => return Err(broken()),
        }
        let length: usize = words.next().and_then(|w| w.parse().ok()).ok_or_else(broken)?;
        let sum = words.next().ok_or_else(broken)?;
        let data = bytes.get(end + 1..).and_then(|rest| rest.get(..length)).ok_or_else(broken)?;
        let actual: String = Sha1::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
        if actual != sum {
            return Err(broken());
        }
        let json =
            Json::parse(data).map_err(|error| bad(format!("record {}: {error}", records.len() + 1)))?;
        bytes = &bytes[end + 1 + length..];
        records.push(json.into_owned());
    }
    Ok(records)
}

/// Applies one transaction record.
fn apply(schema: &Schema, record: &Value, tables: &mut BTreeMap<String, Rows>) -> Result<(), ClientError> {
    let members = record.as_object().ok_or_else(|| bad("a record is no object"))?;
    let is_diff = members.member("_is_diff") == Some(&Json::Bool(true));
    for (name, rows) in members.iter().filter(|(name, _)| !name.starts_with('_')) {
        let table =
            schema.table(name).ok_or_else(|| bad(format!("a record changes an unknown table {name}")))?;
        let table = schema.at(table);
        let changed = rows.as_object().ok_or_else(|| bad(format!("the rows of {name} are no object")))?;
        let stored = tables.entry(name.to_owned()).or_default();
        for (uuid, columns) in changed.iter() {
            parse_uuid(uuid).ok_or_else(|| bad(format!("{uuid:?} is no UUID")))?;
            match columns {
                Json::Null => {
                    stored.remove(uuid);
                }
                Json::Object(columns) => {
                    // A difference is one against the row that is there; a new row's values are whole.
                    let is_diff = is_diff && stored.contains_key(uuid);
                    change_row(table, columns, is_diff, stored.entry(uuid.to_owned()).or_default())?;
                }
                _ => return Err(bad(format!("the row {uuid} is no object"))),
            }
        }
    }
    Ok(())
}

fn change_row(
    table: &TableSchema,
    columns: &Object<'static>,
    is_diff: bool,
    row: &mut BTreeMap<String, Datum>,
) -> Result<(), ClientError> {
    for (name, value) in columns.iter() {
        let Some(Column::Data(column)) = table.column(name) else {
            return Err(bad(format!("the table {} has no column {name}", table.name)));
        };
        let mut ty = unconstrained(&table.data(column).ty);
        let is_diff = is_diff && ty.has_differences();
        if is_diff {
            // A difference may hold more, or fewer, members than a value.
            (ty.min, ty.max) = (0, cowslip_ovsdb::types::UNLIMITED);
        }
        let mut value = Datum::from_json(&ty, value, None)?;
        if is_diff {
            let old = row.get(name).unwrap_or(&table.defaults()[usize::from(column.0)]);
            value = old.with(&old.changes_of_difference(&value));
        }
        row.insert(name.to_owned(), value);
    }
    Ok(())
}

/// Deletes all there is and inserts the rows.
fn transaction(schema: &Schema, tables: &BTreeMap<String, Rows>) -> Value {
    let mut operations = vec![string(&schema.name)];
    for table in &schema.tables {
        operations.push(object([
            ("op", string("delete")),
            ("table", string(&table.name)),
            ("where", Json::Array(Vec::new())),
        ]));
        for (uuid, row) in tables.get(&*table.name).into_iter().flatten() {
            let mut columns = Vec::new();
            for (column, definition) in table.data_columns().filter(|(_, c)| c.persistent) {
                let Some(value) = row.get(&*definition.name) else { continue };
                if *value != table.defaults()[usize::from(column.0)] {
                    let (key, of) = (&definition.ty.key, definition.ty.value.as_ref());
                    columns.push((&*definition.name, with_row_names(value, key, of)));
                }
            }
            operations.push(object([
                ("op", string("insert")),
                ("table", string(&table.name)),
                ("uuid-name", string(&row_name(uuid))),
                ("row", object(columns)),
            ]));
        }
    }
    Json::Array(operations)
}

/// The name by which the rows of the transaction refer to a row.
fn row_name(uuid: &str) -> String {
    format!("row{}", uuid.replace('-', "_"))
}

/// A value in which references are named UUIDs.
fn with_row_names(datum: &Datum, key: &BaseType, value: Option<&BaseType>) -> Value {
    if key.reference.is_none() && value.is_none_or(|v| v.reference.is_none()) {
        return datum_json(datum, value.is_some());
    }
    let atom = |atom: &Atom, base: &BaseType| match (atom, &base.reference) {
        (Atom::Uuid(uuid), Some(_)) => {
            Json::Array(vec![string("named-uuid"), string(&row_name(&uuid.hyphenated().to_string()))])
        }
        _ => datum_json(&Datum::One(atom.clone()), false),
    };
    let members = datum.members().map(|(k, v)| match (v, value) {
        (Some(v), Some(base)) => Json::Array(vec![atom(k, key), atom(v, base)]),
        _ => atom(k, key),
    });
    let tag = if value.is_some() { "map" } else { "set" };
    Json::Array(vec![string(tag), Json::Array(members.collect())])
}
