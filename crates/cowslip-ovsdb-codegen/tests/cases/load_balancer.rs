//! The table `Load_Balancer`.

use cowslip_ovsdb_client::model::{Model, Uuid};

/// A row of the table `Load_Balancer` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Load_Balancer", optional)]
#[ovsdb(columns = "LoadBalancer2Columns")]
pub struct LoadBalancer2 {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// An integer.
    pub a: i64,
}

impl Default for LoadBalancer2 {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            a: Default::default(),
        }
    }
}
