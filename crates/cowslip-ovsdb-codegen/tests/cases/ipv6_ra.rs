//! The table `IPv6_RA`.

use cowslip_ovsdb_client::model::{Model, Uuid};

/// A row of the table `IPv6_RA` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "IPv6_RA", optional)]
#[ovsdb(columns = "IPv6RaColumns")]
pub struct IPv6Ra {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// An integer.
    pub a: i64,
}

impl Default for IPv6Ra {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            a: Default::default(),
        }
    }
}
