//! `restore`: replaces the content of a database by that of a database file, in one transaction.
//!
//! The rows get new UUIDs, as the protocol has it; references among them are carried along as named UUIDs.

use super::Context;
use super::commands::{check_results, fetch_schema};
use super::error::ClientError;
use super::json::{Value, object, string};
use super::remote::Target;
use super::schema_text::SchemaText;
use super::table::datum_json;
use cowslip_engine::Root;
use cowslip_engine::storage::FileSystem;
use cowslip_ovsdb::atom::Atom;
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::row::Ovsdb;
use cowslip_ovsdb::types::BaseType;
use cowslip_ovsdb_server::file;
use std::io::{self, IsTerminal};

/// `restore`
pub(super) fn restore(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let content = read_backup(io::stdin().lock())?;
    let schema = Json::parse(content.meta().text().as_bytes()).map_err(|e| bad(e.to_string()))?;
    let backup = SchemaText::from_json(&schema)?;
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
    check_results(&target.connection.call("transact", transaction(&content))?)
}

fn bad(reason: impl Into<String>) -> ClientError {
    ClientError::File { path: "the backup".to_owned(), reason: reason.into() }
}

/// Reads a database file that comes through a pipe. It goes through a temporary file, because the reader of database
/// files wants to know their length.
fn read_backup(mut input: io::StdinLock<'_>) -> Result<Root<Ovsdb>, ClientError> {
    if input.is_terminal() {
        return Err(ClientError::Usage(
            "a backup does not come from a terminal: redirect the input from a file".to_owned(),
        ));
    }
    let copied = tempfile::NamedTempFile::new()
        .and_then(|mut copy| io::copy(&mut input, copy.as_file_mut()).map(|_| copy))
        .map_err(|error| bad(super::error::reason(&error)))?;
    let loaded = file::load(&FileSystem::new(), copied.path()).map_err(|error| bad(error.to_string()))?;
    match loaded.report.damage {
        None => Ok(loaded.root),
        Some(damage) => Err(bad(format!("it is damaged at byte {}: {}", damage.offset, damage.fault))),
    }
}

/// Deletes all there is and inserts the rows.
fn transaction(content: &Root<Ovsdb>) -> Value {
    let schema = content.meta();
    let mut operations = vec![string(&schema.name)];
    for (number, table) in schema.numbered_tables() {
        operations.push(object([
            ("op", string("delete")),
            ("table", string(&table.name)),
            ("where", Json::Array(Vec::new())),
        ]));
        for (id, row) in content.scan(number) {
            let mut columns = Vec::new();
            for (column, definition) in table.data_columns().filter(|(_, c)| c.persistent) {
                let value = row.data(column);
                if *value != table.defaults()[usize::from(column.0)] {
                    let (key, of) = (&definition.ty.key, definition.ty.value.as_ref());
                    columns.push((&*definition.name, with_row_names(value, key, of)));
                }
            }
            operations.push(object([
                ("op", string("insert")),
                ("table", string(&table.name)),
                ("uuid-name", string(&row_name(&id.hyphenated().to_string()))),
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
