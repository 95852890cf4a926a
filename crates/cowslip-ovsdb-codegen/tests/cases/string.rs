//! The table `String`.

use cowslip_ovsdb_client::model::{Model, Uuid};

/// A row of the table `String` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "String", optional)]
#[ovsdb(columns = "StringRowColumns")]
pub struct StringRow {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// A string.
    pub text: String,
}

impl Default for StringRow {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            text: Default::default(),
        }
    }
}
