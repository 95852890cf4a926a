//! Results of single operations, kept unencoded so that large ones can be encoded away from the committer.

use crate::atom::write_uuid;
use crate::json::{write_int, write_str};
use crate::row::Row;
use crate::schema::{Column, Schema};
use cowslip_engine::{TableIx, Uuid};
use std::sync::Arc;

/// The result of an operation that succeeded.
#[derive(Clone, Debug)]
pub enum OperationResult {
    /// Of `insert`: the new row.
    Uuid(Uuid),
    /// Of `update`, `mutate` and `delete`: how many rows met the condition.
    Count(usize),
    /// Of `select`.
    Rows(Selection),
    /// Of the others.
    Empty,
}

/// The rows of a `select`.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The table.
    pub table: TableIx,
    /// Which columns of the rows are shown.
    pub columns: Box<[Column]>,
    /// The rows.
    pub rows: Vec<(Uuid, Arc<Row>)>,
}

impl OperationResult {
    /// Appends the result as it travels.
    pub fn write(&self, schema: &Schema, out: &mut String) {
        match self {
            OperationResult::Uuid(uuid) => {
                out.push_str("{\"uuid\":");
                write_uuid(out, uuid);
                out.push('}');
            }
            OperationResult::Count(count) => {
                out.push_str("{\"count\":");
                write_int(out, *count as i64);
                out.push('}');
            }
            OperationResult::Rows(selection) => selection.write(schema, out),
            OperationResult::Empty => out.push_str("{}"),
        }
    }

    /// Whether encoding the result is more than a moment's work.
    pub fn is_large(&self) -> bool {
        /// Rows that are encoded in less time than handing them to another thread takes.
        const ROWS_MAX: usize = 100;
        matches!(self, OperationResult::Rows(selection) if selection.rows.len() > ROWS_MAX)
    }
}

impl Selection {
    fn write(&self, schema: &Schema, out: &mut String) {
        let table = schema.at(self.table);
        out.push_str("{\"rows\":[");
        for (i, (id, row)) in self.rows.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push('{');
            for (j, column) in self.columns.iter().enumerate() {
                if j > 0 {
                    out.push(',');
                }
                write_str(out, table.column_name(*column));
                out.push(':');
                match column {
                    Column::Uuid => write_uuid(out, id),
                    Column::Version => write_uuid(out, &row.version),
                    Column::Data(column) => row.data(*column).write(out, table.data(*column).ty.is_map()),
                }
            }
            out.push('}');
        }
        out.push_str("]}");
    }
}
