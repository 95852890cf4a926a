//! Which tables and columns to generate.
//!
//! Invariant: a selection holds numbers of the schema that it was made with, so it names nothing that is not there.

use crate::error::CodegenError;
use cowslip_engine::TableIx;
use cowslip_ovsdb::schema::{Column, ColumnIx, Schema, TableSchema};
use std::collections::{BTreeMap, BTreeSet};

/// The chosen tables, and the chosen columns of each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selection(BTreeMap<TableIx, BTreeSet<ColumnIx>>);

impl Selection {
    /// Takes `Table` and `Table:column,column`; without any, everything is chosen.
    pub(crate) fn new(schema: &Schema, chosen: &[String]) -> Result<Self, CodegenError> {
        let mut tables: BTreeMap<TableIx, BTreeSet<ColumnIx>> = BTreeMap::new();
        if chosen.is_empty() {
            tables.extend(schema.numbered_tables().map(|(ix, table)| (ix, every_column(table).collect())));
        }
        for text in chosen {
            let (name, columns) = match text.split_once(':') {
                Some((name, columns)) => (name, Some(columns)),
                None => (text.as_str(), None),
            };
            let ix = schema.table(name).ok_or_else(|| CodegenError::UnknownTable {
                database: schema.name.to_string(),
                table: name.to_owned(),
                known: schema.tables.iter().map(|table| table.name.to_string()).collect(),
            })?;
            let table = schema.at(ix);
            let entry = tables.entry(ix).or_default();
            match columns {
                None => entry.extend(every_column(table)),
                Some(columns) => {
                    for column in columns.split(',') {
                        entry.extend(column_of(table, column)?);
                    }
                }
            }
        }
        Ok(Selection(tables))
    }

    /// The chosen tables in the order of their names, each with its columns.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (TableIx, &BTreeSet<ColumnIx>)> {
        self.0.iter().map(|(table, columns)| (*table, columns))
    }

    /// Whether a table is generated.
    pub(crate) fn has(&self, table: TableIx) -> bool {
        self.0.contains_key(&table)
    }
}

fn every_column(table: &TableSchema) -> impl Iterator<Item = ColumnIx> {
    table.data_columns().map(|(column, _)| column)
}

/// The column with this name; none for those that every model has.
fn column_of(table: &TableSchema, name: &str) -> Result<Option<ColumnIx>, CodegenError> {
    match table.column(name) {
        Some(Column::Data(column)) => Ok(Some(column)),
        Some(Column::Uuid) => Ok(None),
        Some(Column::Version) | None => Err(CodegenError::UnknownColumn {
            table: table.name.to_string(),
            column: name.to_owned(),
            known: table.columns.iter().map(|column| column.name.to_string()).collect(),
        }),
    }
}
