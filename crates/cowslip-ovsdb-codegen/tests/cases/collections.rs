//! The table `Collections`.

use cowslip_ovsdb_client::model::{Model, Real, Ref, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// A row of the table `Collections` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Collections", optional)]
#[ovsdb(columns = "CollectionsColumns")]
pub struct Collections {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// Map of any size, from a string to a weak reference to a row of `Names`.
    pub by_name: BTreeMap<String, Ref<super::Names>>,
    /// Map of one member, from a real number to a real number.
    pub by_real: BTreeMap<Real, f64>,
    /// Map of at least one member, from a string to a boolean.
    pub pair: BTreeMap<String, bool>,
    /// Set of 1 to 2 members, each a real number.
    pub reals: BTreeSet<Real>,
    /// Set of at least one member, each an integer.
    pub some: BTreeSet<i64>,
    /// Set of up to 5 members, each a strong reference to a row of `Names`.
    pub strong: BTreeSet<Ref<super::Names>>,
    /// Set of any size, each a weak reference to a row of `C`.
    pub weak: BTreeSet<Ref<super::C>>,
}

impl Default for Collections {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            by_name: Default::default(),
            by_real: BTreeMap::from([(Real::ZERO, Default::default())]),
            pair: BTreeMap::from([Default::default()]),
            reals: BTreeSet::from([Real::ZERO]),
            some: BTreeSet::from([Default::default()]),
            strong: Default::default(),
            weak: Default::default(),
        }
    }
}
