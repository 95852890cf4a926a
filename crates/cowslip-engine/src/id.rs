//! What identifies a record.
//!
//! Two kinds are known: random numbers so large that everybody can make them up ([`Uuid`]), and small dense numbers
//! that one side gives out in order ([`RecordNumber`]), for which maps and sets of ids can be made much smaller.
//! Invariant: the order of ids is the order in which tables are scanned.

use std::fmt;
use std::hash::Hash;

use uuid::Uuid;

use crate::number_map::NumberMap;
use crate::records::{Records, UuidMap};

/// The identity of a record, by which tables are ordered.
///
/// It is implemented for [`Uuid`] and [`RecordNumber`] and for nothing else: the engine's maps depend on the kind.
pub trait RecordId: Copy + Ord + Hash + fmt::Debug + Send + Sync + sealed::Kind + 'static {
    /// The first id in their order.
    const MIN: Self;
    /// The last id in their order.
    const MAX: Self;
}

pub(crate) use sealed::Kind;

mod sealed {
    use super::{RecordNumber, Records};

    /// What the engine must know of a kind of id.
    pub trait Kind: Copy {
        /// Whether ids are dense numbers.
        const IS_DENSE: bool;
        /// The map of records that suits the kind.
        type Map<V: Clone + Send + Sync>: Records<Self, V>;
        /// The dense number that this is, if it is one.
        fn number(self) -> Option<RecordNumber>;
        /// The id of a dense number; asked only where they are dense.
        fn from_number(number: RecordNumber) -> Self;
    }
}

impl sealed::Kind for Uuid {
    const IS_DENSE: bool = false;
    type Map<V: Clone + Send + Sync> = UuidMap<V>;

    fn number(self) -> Option<RecordNumber> {
        None
    }

    fn from_number(number: RecordNumber) -> Self {
        Self::from_u128(number.0.into())
    }
}

impl RecordId for Uuid {
    const MIN: Self = Self::nil();
    const MAX: Self = Self::max();
}

/// A number that is given to records one after the other, so that most numbers below the largest are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordNumber(pub u32);

impl fmt::Display for RecordNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl sealed::Kind for RecordNumber {
    const IS_DENSE: bool = true;
    type Map<V: Clone + Send + Sync> = NumberMap<V>;

    fn number(self) -> Option<RecordNumber> {
        Some(self)
    }

    fn from_number(number: RecordNumber) -> Self {
        number
    }
}

impl RecordId for RecordNumber {
    const MIN: Self = Self(0);
    const MAX: Self = Self(u32::MAX);
}
