//! The rows that an operation is about.
//!
//! Most operations name one row by its UUID: that one takes no memory and is looked up once, because each version comes
//! along with its UUID.

use crate::row::Row;
use cowslip_engine::Uuid;
use std::sync::Arc;

/// Rows with their present versions, in the order in which they were found.
#[derive(Default)]
pub(super) struct Found {
    first: Option<(Uuid, Arc<Row>)>,
    rest: Vec<(Uuid, Arc<Row>)>,
}

impl Found {
    /// At most one row.
    pub(super) fn one(row: Option<(Uuid, Arc<Row>)>) -> Self {
        Found { first: row, rest: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}

impl FromIterator<(Uuid, Arc<Row>)> for Found {
    fn from_iter<I: IntoIterator<Item = (Uuid, Arc<Row>)>>(rows: I) -> Self {
        let mut rows = rows.into_iter();
        Found { first: rows.next(), rest: rows.collect() }
    }
}

impl IntoIterator for Found {
    type Item = (Uuid, Arc<Row>);
    type IntoIter = std::iter::Chain<std::option::IntoIter<Self::Item>, std::vec::IntoIter<Self::Item>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}
