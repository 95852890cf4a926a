//! The table `DHCP_Options`.

use cowslip_ovsdb_client::model::{Model, Uuid};

/// A row of the table `DHCP_Options` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "DHCP_Options", optional)]
#[ovsdb(columns = "DhcpOptionsColumns")]
pub struct DhcpOptions {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// An integer.
    pub a: i64,
}

impl Default for DhcpOptions {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            a: Default::default(),
        }
    }
}
