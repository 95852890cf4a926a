//! The table `Mod`.

use cowslip_ovsdb_client::model::{Model, Uuid};

/// A row of the table `Mod` of `Cases`.
///
/// It lives as long as a strong reference to it does.
///
/// The table holds at most one row.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Mod", optional)]
#[ovsdb(columns = "ModColumns")]
pub struct Mod {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// An integer.
    pub a: i64,
}

impl Default for Mod {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            a: Default::default(),
        }
    }
}
