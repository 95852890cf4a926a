//! What the executor's database holds of the real one.
//!
//! A server knows everything, and its instance of the executor compiles to no checks. A client's cache lacks rows
//! (tables not monitored, conditions) and columns; what depends on those is neither true nor false.

use crate::schema::ColumnIx;
use cowslip_engine::TableIx;

/// What is known of each table.
pub trait Knowledge {
    /// Whether everything is known, so that nothing need be asked.
    const COMPLETE: bool;

    /// Whether all rows of a table are known.
    fn has_all_rows(&self, table: TableIx) -> bool;

    /// Whether a column's values are known in the rows that are known.
    fn has_column(&self, table: TableIx, column: ColumnIx) -> bool;
}

/// The server's knowledge: all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Knowledge for Everything {
    const COMPLETE: bool = true;

    fn has_all_rows(&self, _table: TableIx) -> bool {
        true
    }

    fn has_column(&self, _table: TableIx, _column: ColumnIx) -> bool {
        true
    }
}
