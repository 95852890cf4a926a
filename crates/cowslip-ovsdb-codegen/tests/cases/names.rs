//! The table `Names`.

use cowslip_ovsdb_client::model::{Model, Uuid};
use std::collections::BTreeSet;

/// A row of the table `Names` of `Cases`.
///
/// The table holds at most 100 rows.
///
/// No two rows are equal in `type` and `match`.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Names", optional)]
#[ovsdb(columns = "NamesColumns")]
pub struct Names {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// Set of any size, each a string.
    ///
    /// Forgotten when the server restarts.
    #[ovsdb(column = "IPv6__addresses_")]
    pub ipv6_addresses: BTreeSet<String>,
    /// An integer.
    #[ovsdb(column = "Self")]
    pub self_column: i64,
    /// A string.
    #[ovsdb(column = "aB")]
    pub a_b_2: String,
    /// A string.
    pub a_b: String,
    /// A real number.
    pub r#async: f64,
    /// A boolean.
    #[ovsdb(column = "crate")]
    pub crate_column: bool,
    /// A string.
    ///
    /// Given when the row is inserted, never changed.
    pub r#match: String,
    /// An integer.
    #[ovsdb(column = "self")]
    pub self_column_2: i64,
    /// A string.
    pub r#type: String,
    /// A UUID.
    #[ovsdb(column = "uuid")]
    pub uuid_2: Uuid,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            ipv6_addresses: Default::default(),
            self_column: Default::default(),
            a_b_2: Default::default(),
            a_b: Default::default(),
            r#async: Default::default(),
            crate_column: Default::default(),
            r#match: Default::default(),
            self_column_2: Default::default(),
            r#type: Default::default(),
            uuid_2: Default::default(),
        }
    }
}
