//! The table `LoadBalancer`.

use cowslip_ovsdb_client::model::{Model, Uuid};

/// A row of the table `LoadBalancer` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "LoadBalancer", optional)]
#[ovsdb(columns = "LoadBalancerColumns")]
pub struct LoadBalancer {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// An integer.
    pub a: i64,
}

impl Default for LoadBalancer {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            a: Default::default(),
        }
    }
}
