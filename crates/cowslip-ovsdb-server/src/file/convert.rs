//! A database's rows under another schema.
//!
//! Tables and columns keep their content by name, what the new schema lacks is left out, and what the old one lacked
//! has its default. Invariant: every value of the result fits its column; references, counts of rows and indexes are not
//! looked at.

use std::sync::Arc;

use cowslip_engine::{Draft, Root};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::error::{Error, ErrorKind};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::row::{Ovsdb, Row, RowDelta};
use cowslip_ovsdb::schema::{Column, Schema, TableSchema};
use cowslip_ovsdb::types::ColumnType;

/// A value that the new schema does not allow.
#[derive(Debug, thiserror::Error)]
#[error("a value of column {column} in table {table} does not fit the new schema: {source}")]
#[non_exhaustive]
pub struct ConversionError {
    /// The table's name.
    pub table: String,
    /// The column's name.
    pub column: String,
    /// Why the value does not fit.
    pub source: Error,
}

/// The same rows under another schema.
///
/// # Errors
/// The first value that does not fit its column's new type.
pub fn convert(root: &Root<Ovsdb>, schema: Arc<Schema>) -> Result<Root<Ovsdb>, ConversionError> {
    let mut converted = Root::<Ovsdb>::new(schema);
    let schema = Arc::clone(converted.meta());
    let mut draft = Draft::new(&converted);
    for (table, definition) in schema.numbered_tables() {
        let Some(old_table) = root.meta().table(&definition.name) else { continue };
        let old_definition = root.meta().at(old_table);
        for (id, row) in root.scan(old_table) {
            let row = convert_row(row, old_definition, definition)?;
            draft.put(table, id, Arc::new(row), RowDelta::default());
        }
    }
    let changes = draft.into_changes();
    converted.apply(&changes);
    converted.set_generation(root.generation());
    Ok(converted)
}

fn convert_row(row: &Row, from: &TableSchema, to: &TableSchema) -> Result<Row, ConversionError> {
    let mut columns: Box<[Datum]> = to.defaults().into();
    for (column, definition) in to.data_columns() {
        let Some(Column::Data(old)) = from.column(&definition.name) else { continue };
        let value = row.data(old);
        let converted = convert_value(value, &from.data(old).ty, &definition.ty);
        columns[usize::from(column.0)] = converted.map_err(|source| ConversionError {
            table: to.name.to_string(),
            column: definition.name.to_string(),
            source,
        })?;
    }
    Ok(Row { version: row.version, columns })
}

/// Values of another type are taken as if a client had sent them: an integer becomes a real, a scalar a set.
fn convert_value(value: &Datum, from: &ColumnType, to: &ColumnType) -> Result<Datum, Error> {
    if from == to {
        return Ok(value.clone());
    }
    let mut text = String::new();
    value.write(&mut text, from.is_map());
    let json = Json::parse(text.as_bytes()).map_err(|e| Error::new(ErrorKind::Syntax, e.to_string()))?;
    Datum::from_json(to, &json, None)
}
