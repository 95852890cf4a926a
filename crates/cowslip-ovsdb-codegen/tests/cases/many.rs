//! The table `Many`.

use cowslip_ovsdb_client::model::{Model, Ref, Uuid};
use std::collections::BTreeSet;

/// A row of the table `Many` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Many", optional)]
#[ovsdb(columns = "ManyColumns")]
pub struct Many {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// An integer from 1 up.
    pub c1: i64,
    /// An integer from 1 up.
    pub c2: i64,
    /// An integer from 1 up.
    pub c3: i64,
    /// An integer from 1 up.
    pub c4: i64,
    /// An integer up to -1.
    pub c5: i64,
    /// A real number from 0.5 up.
    pub c6: f64,
    /// A strong reference to a row of `C`.
    pub c7: Ref<super::C>,
    /// Set of at least one member, each a strong reference to a row of `C`.
    pub c8: BTreeSet<Ref<super::C>>,
}

impl Many {
    /// A new row of what an insertion has to give, with the defaults in all other columns.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        c1: i64,
        c2: i64,
        c3: i64,
        c4: i64,
        c5: i64,
        c6: f64,
        c7: Ref<super::C>,
        c8: BTreeSet<Ref<super::C>>,
    ) -> Self {
        Self {
            uuid: Uuid::nil(),
            c1,
            c2,
            c3,
            c4,
            c5,
            c6,
            c7,
            c8,
        }
    }
}
