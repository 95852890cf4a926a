//! Ordered entries of indexes and references, and how an overlay's counts combine with those of the base.
//!
//! Invariant: both sides of a merge come in the same order without repeats; the result does, too.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;
use std::ops::Bound;

use crate::id::RecordId;
use crate::model::{KeyChanges, Referrer, Strength, TableIx};

/// A key and a record that holds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry<K, I> {
    pub(crate) key: K,
    pub(crate) id: I,
}

/// An entry that a record gave up (false) or took (true).
pub(crate) type EntryChange<K, I> = (Entry<K, I>, bool);

/// By how much the counts of entries changed, where they did.
pub(crate) type NetEntries<K, I> = BTreeMap<Entry<K, I>, i64>;

/// A place in the order of entries. Searching through this trait spares a copy of the key for each look-up.
pub(crate) trait Place<K, I> {
    fn place(&self) -> (&K, I);
}

impl<K, I: Copy> Place<K, I> for Entry<K, I> {
    fn place(&self) -> (&K, I) {
        (&self.key, self.id)
    }
}

/// A place made of a borrowed key.
struct Probe<'a, K, I>(&'a K, I);

impl<K, I: Copy> Place<K, I> for Probe<'_, K, I> {
    fn place(&self) -> (&K, I) {
        (self.0, self.1)
    }
}

impl<'a, K: Ord + 'a, I: RecordId> Borrow<dyn Place<K, I> + 'a> for Entry<K, I> {
    fn borrow(&self) -> &(dyn Place<K, I> + 'a) {
        self
    }
}

impl<K: Ord, I: RecordId> PartialEq for dyn Place<K, I> + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<K: Ord, I: RecordId> Eq for dyn Place<K, I> + '_ {}

impl<K: Ord, I: RecordId> PartialOrd for dyn Place<K, I> + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, I: RecordId> Ord for dyn Place<K, I> + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// A range of keys as a range of places.
pub(crate) struct PlaceRange<'a, K, I>(Bound<Probe<'a, K, I>>, Bound<Probe<'a, K, I>>);

/// A range of places as ordered maps take it.
pub(crate) type Places<'a, K, I> = (Bound<&'a (dyn Place<K, I> + 'a)>, Bound<&'a (dyn Place<K, I> + 'a)>);

impl<'a, K: Ord, I: RecordId> PlaceRange<'a, K, I> {
    /// The entries of one key.
    pub(crate) fn of(key: &'a K) -> Self {
        Self(Bound::Included(Probe(key, I::MIN)), Bound::Included(Probe(key, I::MAX)))
    }

    /// The entries of one key and of all after it.
    pub(crate) fn from(key: &'a K) -> Self {
        Self(Bound::Included(Probe(key, I::MIN)), Bound::Unbounded)
    }

    /// The entries of a range of keys; none if it ends before it starts, because ordered maps panic on that.
    pub(crate) fn between(start: Bound<&'a K>, end: Bound<&'a K>) -> Option<Self> {
        let empty = is_empty_range(start, end);
        let start = match start {
            Bound::Included(key) => Bound::Included(Probe(key, I::MIN)),
            Bound::Excluded(key) => Bound::Excluded(Probe(key, I::MAX)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match end {
            Bound::Included(key) => Bound::Included(Probe(key, I::MAX)),
            Bound::Excluded(key) => Bound::Excluded(Probe(key, I::MIN)),
            Bound::Unbounded => Bound::Unbounded,
        };
        (!empty).then_some(Self(start, end))
    }

    pub(crate) fn bounds(&self) -> Places<'_, K, I> {
        (as_place(&self.0), as_place(&self.1))
    }
}

/// Whether a range ends before it starts.
pub(crate) fn is_empty_range<K: Ord>(start: Bound<&K>, end: Bound<&K>) -> bool {
    match (start, end) {
        (Bound::Included(first), Bound::Included(last)) => first > last,
        (Bound::Included(first) | Bound::Excluded(first), Bound::Included(last) | Bound::Excluded(last)) => {
            first >= last
        }
        _ => false,
    }
}

fn as_place<'a, K: Ord, I: RecordId>(bound: &'a Bound<Probe<'_, K, I>>) -> Bound<&'a (dyn Place<K, I> + 'a)> {
    match bound {
        Bound::Included(probe) => Bound::Included(probe),
        Bound::Excluded(probe) => Bound::Excluded(probe),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// The range of a target's referrers, all of them or those of one strength.
pub(crate) fn referrer_range<I: RecordId>(
    target: I,
    strength: Option<Strength>,
) -> std::ops::RangeInclusive<Referrer<I>> {
    let first = Referrer {
        target,
        strength: strength.unwrap_or(Strength::Strong),
        table: TableIx(0),
        source: I::MIN,
        slot: 0,
    };
    let last = Referrer {
        target,
        strength: strength.unwrap_or(Strength::Weak),
        table: TableIx(u16::MAX),
        source: I::MAX,
        slot: u32::MAX,
    };
    first..=last
}

/// Two sequences of counted things in one order, added up. What does not stay above zero is left out.
pub(crate) struct Summed<T, A: Iterator<Item = (T, i64)>, B: Iterator<Item = (T, i64)>> {
    base: Peekable<A>,
    over: Peekable<B>,
    is_descending: bool,
}

/// Adds an overlay's net counts to the counts of the base.
pub(crate) fn summed<T: Ord, A: Iterator<Item = (T, i64)>, B: Iterator<Item = (T, i64)>>(
    base: A,
    over: B,
) -> Summed<T, A, B> {
    Summed { base: base.peekable(), over: over.peekable(), is_descending: false }
}

/// The same where both come in descending order.
pub(crate) fn summed_descending<T: Ord, A: Iterator<Item = (T, i64)>, B: Iterator<Item = (T, i64)>>(
    base: A,
    over: B,
) -> Summed<T, A, B> {
    Summed { is_descending: true, ..summed(base, over) }
}

impl<T: Ord, A: Iterator<Item = (T, i64)>, B: Iterator<Item = (T, i64)>> Iterator for Summed<T, A, B> {
    type Item = (T, i64);

    fn next(&mut self) -> Option<(T, i64)> {
        loop {
            let order = match (self.base.peek(), self.over.peek()) {
                (Some((base, _)), Some((over, _))) if self.is_descending => over.cmp(base),
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

/// Adds what a step does to the keys of a record to the net counts of an index.
pub(crate) fn note_keys<K: Ord, I: RecordId>(
    entries: &mut NetEntries<K, I>,
    id: I,
    keys: &mut KeyChanges<K>,
) {
    // Most steps leave most keys alone.
    if keys.removed == keys.added {
        keys.removed.clear();
        keys.added.clear();
        return;
    }
    for key in keys.removed.drain(..) {
        add_net(entries, Entry { key, id }, -1);
    }
    for key in keys.added.drain(..) {
        add_net(entries, Entry { key, id }, 1);
    }
}

/// Counts that come to nothing are left out, so that what was taken and given back within the draft leaves no trace.
pub(crate) fn add_net<T: Ord>(counts: &mut BTreeMap<T, i64>, thing: T, net: i64) {
    match counts.entry(thing) {
        btree_map::Entry::Vacant(vacant) => {
            if net != 0 {
                vacant.insert(net);
            }
        }
        btree_map::Entry::Occupied(mut occupied) => {
            *occupied.get_mut() += net;
            if *occupied.get() == 0 {
                occupied.remove();
            }
        }
    }
}
