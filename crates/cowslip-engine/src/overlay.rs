//! Ordered entries of indexes and references, and how an overlay's counts combine with those of the base.
//!
//! Invariant: both sides of a merge come in the same order without repeats; the result does, too.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Bound;

use crate::model::{Id, Referrer, Strength, TableIx};

/// A key and a record that holds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry<K> {
    pub(crate) key: K,
    pub(crate) id: Id,
}

/// A place in the order of entries. Searching through this trait spares a copy of the key for each look-up.
pub(crate) trait Place<K> {
    fn place(&self) -> (&K, Id);
}

impl<K> Place<K> for Entry<K> {
    fn place(&self) -> (&K, Id) {
        (&self.key, self.id)
    }
}

/// A place made of a borrowed key.
struct Probe<'a, K>(&'a K, Id);

impl<K> Place<K> for Probe<'_, K> {
    fn place(&self) -> (&K, Id) {
        (self.0, self.1)
    }
}

impl<'a, K: Ord + 'a> Borrow<dyn Place<K> + 'a> for Entry<K> {
    fn borrow(&self) -> &(dyn Place<K> + 'a) {
        self
    }
}

impl<K: Ord> PartialEq for dyn Place<K> + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<K: Ord> Eq for dyn Place<K> + '_ {}

impl<K: Ord> PartialOrd for dyn Place<K> + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> Ord for dyn Place<K> + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// A range of keys as a range of places.
pub(crate) struct PlaceRange<'a, K>(Bound<Probe<'a, K>>, Bound<Probe<'a, K>>);

/// A range of places as ordered maps take it.
pub(crate) type Places<'a, K> = (Bound<&'a (dyn Place<K> + 'a)>, Bound<&'a (dyn Place<K> + 'a)>);

impl<'a, K: Ord> PlaceRange<'a, K> {
    /// The entries of one key.
    pub(crate) fn of(key: &'a K) -> Self {
        Self(Bound::Included(Probe(key, Id::nil())), Bound::Included(Probe(key, Id::max())))
    }

    /// The entries of one key and of all after it.
    pub(crate) fn from(key: &'a K) -> Self {
        Self(Bound::Included(Probe(key, Id::nil())), Bound::Unbounded)
    }

    /// The entries of a range of keys; none if it ends before it starts, because ordered maps panic on that.
    pub(crate) fn between(start: Bound<&'a K>, end: Bound<&'a K>) -> Option<Self> {
        let empty = match (start, end) {
            (Bound::Included(first), Bound::Included(last)) => first > last,
            (
                Bound::Included(first) | Bound::Excluded(first),
                Bound::Included(last) | Bound::Excluded(last),
            ) => first >= last,
            _ => false,
        };
        let start = match start {
            Bound::Included(key) => Bound::Included(Probe(key, Id::nil())),
            Bound::Excluded(key) => Bound::Excluded(Probe(key, Id::max())),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match end {
            Bound::Included(key) => Bound::Included(Probe(key, Id::max())),
            Bound::Excluded(key) => Bound::Excluded(Probe(key, Id::nil())),
            Bound::Unbounded => Bound::Unbounded,
        };
        (!empty).then_some(Self(start, end))
    }

    pub(crate) fn bounds(&self) -> Places<'_, K> {
        (as_place(&self.0), as_place(&self.1))
    }
}

fn as_place<'a, K: Ord>(bound: &'a Bound<Probe<'_, K>>) -> Bound<&'a (dyn Place<K> + 'a)> {
    match bound {
        Bound::Included(probe) => Bound::Included(probe),
        Bound::Excluded(probe) => Bound::Excluded(probe),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// The range of a target's referrers, all of them or those of one strength.
pub(crate) fn referrer_range(target: Id, strength: Option<Strength>) -> std::ops::RangeInclusive<Referrer> {
    let first = Referrer {
        target,
        strength: strength.unwrap_or(Strength::Strong),
        table: TableIx(0),
        source: Id::nil(),
        slot: 0,
    };
    let last = Referrer {
        target,
        strength: strength.unwrap_or(Strength::Weak),
        table: TableIx(u16::MAX),
        source: Id::max(),
        slot: u16::MAX,
    };
    first..=last
}

/// Two ordered sequences of counted things, added up. What does not stay above zero is left out.
pub(crate) struct Summed<T, A: Iterator<Item = (T, i64)>, B: Iterator<Item = (T, i64)>> {
    base: Peekable<A>,
    over: Peekable<B>,
}

/// Adds an overlay's net counts to the counts of the base.
pub(crate) fn summed<T: Ord, A: Iterator<Item = (T, i64)>, B: Iterator<Item = (T, i64)>>(
    base: A,
    over: B,
) -> Summed<T, A, B> {
    Summed { base: base.peekable(), over: over.peekable() }
}

impl<T: Ord, A: Iterator<Item = (T, i64)>, B: Iterator<Item = (T, i64)>> Iterator for Summed<T, A, B> {
    type Item = (T, i64);

    fn next(&mut self) -> Option<(T, i64)> {
        loop {
            let order = match (self.base.peek(), self.over.peek()) {
                (Some((base, _)), Some((over, _))) => base.cmp(over),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            let (thing, count) = match order {
                Ordering::Less => self.base.next()?,
                Ordering::Greater => self.over.next()?,
                Ordering::Equal => {
                    let (thing, count) = self.base.next()?;
                    let (_, net) = self.over.next()?;
                    (thing, count + net)
                }
            };
            if count > 0 {
                return Some((thing, count));
            }
        }
    }
}
