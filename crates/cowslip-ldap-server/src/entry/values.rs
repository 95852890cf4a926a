//! Sets of values: few are a slice, many a persistent set, so that one more among 100,000 costs what it costs among 10.

use std::sync::Arc;

use imbl::ordmap::DiffItem as MapDiff;
use imbl::ordset::DiffItem as SetDiff;
use imbl::{OrdMap, OrdSet};

use super::EntryNumber;
use crate::key::Key;

/// From how many values on a set is persistent.
pub(super) const LARGE_MIN: usize = 64;

/// A set of entries.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// In ascending order.
    Small(Box<[EntryNumber]>),
    /// 64 or more at some time.
    Large(OrdSet<EntryNumber>),
}

impl Default for Numbers {
    fn default() -> Self {
        Self::Small(Box::default())
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Small(one), Self::Small(other)) => one == other,
            (Self::Large(one), Self::Large(other)) => one.ptr_eq(other) || one == other,
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

impl Numbers {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Small(numbers) => numbers.len(),
            Self::Large(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this one is among them.
    pub fn contains(&self, number: EntryNumber) -> bool {
        match self {
            Self::Small(numbers) => numbers.binary_search(&number).is_ok(),
            Self::Large(numbers) => numbers.contains(&number),
        }
    }

    /// All of them, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = EntryNumber> + '_ {
        let (small, large) = match self {
            Self::Small(numbers) => (Some(numbers.iter()), None),
            Self::Large(numbers) => (None, Some(numbers.iter())),
        };
        small.into_iter().flatten().chain(large.into_iter().flatten()).copied()
    }

    /// Adds one; false if it was there.
    pub fn insert(&mut self, number: EntryNumber) -> bool {
        match self {
            Self::Large(numbers) => numbers.insert(number).is_none(),
            Self::Small(numbers) => {
                let Err(place) = numbers.binary_search(&number) else { return false };
                if numbers.len() + 1 >= LARGE_MIN {
                    let mut large: OrdSet<EntryNumber> = numbers.iter().copied().collect();
                    large.insert(number);
                    *self = Self::Large(large);
                } else {
                    let mut more = Vec::with_capacity(numbers.len() + 1);
                    more.extend_from_slice(&numbers[..place]);
                    more.push(number);
                    more.extend_from_slice(&numbers[place..]);
                    *numbers = more.into_boxed_slice();
                }
                true
            }
        }
    }

    /// Takes one away; false if it was not there.
    pub fn remove(&mut self, number: EntryNumber) -> bool {
        match self {
            Self::Large(numbers) => numbers.remove(&number).is_some(),
            Self::Small(numbers) => {
                let Ok(place) = numbers.binary_search(&number) else { return false };
                let mut fewer = std::mem::take(numbers).into_vec();
                fewer.remove(place);
                *numbers = fewer.into_boxed_slice();
                true
            }
        }
    }
}

impl Numbers {
    /// What these have and the others lack, and the reverse. What two large sets share is not looked at.
    pub fn difference(&self, other: &Self) -> (Vec<EntryNumber>, Vec<EntryNumber>) {
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        if let (Self::Large(one), Self::Large(other)) = (self, other) {
            for item in one.diff(other) {
                match item {
                    SetDiff::Add(number) => added.push(*number),
                    SetDiff::Remove(number) => removed.push(*number),
                }
            }
        } else {
            removed.extend(self.iter().filter(|number| !other.contains(*number)));
            added.extend(other.iter().filter(|number| !self.contains(*number)));
        }
        (removed, added)
    }
}

impl Numbers {
    /// Makes these the numbers. What stays keeps its place in memory, so that the [difference](Self::difference) to what
    /// was there is found without looking at it.
    pub fn assign(&mut self, wanted: impl IntoIterator<Item = EntryNumber>) {
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let Self::Large(held) = self else { return *self = Self::of_sorted(wanted) };
        let (gone, come) = sorted_difference(held.iter().copied(), wanted.iter().copied());
        if wanted.len() < LARGE_MIN || is_rather_new(gone.len() + come.len(), held.len()) {
            *self = Self::of_sorted(wanted);
            return;
        }
        for number in &gone {
            held.remove(number);
        }
        for number in come {
            held.insert(number);
        }
    }

    fn of_sorted(numbers: Vec<EntryNumber>) -> Self {
        if numbers.len() >= LARGE_MIN {
            Self::Large(numbers.into_iter().collect())
        } else {
            Self::Small(numbers.into_boxed_slice())
        }
    }
}

/// Whether so much changes in a set that a new one is quicker.
fn is_rather_new(changes: usize, held: usize) -> bool {
    changes > held / 8
}

/// What the one has and the other lacks, and the reverse; both come in ascending order.
fn sorted_difference<T: Ord>(
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
) -> (Vec<T>, Vec<T>) {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    loop {
        match (one.peek(), other.peek()) {
            (None, None) => return (gone, come),
            (Some(left), Some(right)) if left == right => {
                one.next();
                other.next();
            }
            (Some(left), right) if right.is_none_or(|right| left < right) => gone.extend(one.next()),
            _ => come.extend(other.next()),
        }
    }
}

impl FromIterator<EntryNumber> for Numbers {
    fn from_iter<I: IntoIterator<Item = EntryNumber>>(numbers: I) -> Self {
        let mut numbers: Vec<_> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self::of_sorted(numbers)
    }
}

/// Values by their normalised form.
#[derive(Clone, Debug, Default)]
pub struct LargeValues(OrdMap<Key, Arc<[u8]>>);

impl PartialEq for LargeValues {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0) || self.0 == other.0
    }
}

impl LargeValues {
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of this normalised form, as the client sent it.
    pub fn value(&self, key: &Key) -> Option<&Arc<[u8]>> {
        self.0.get(key)
    }

    /// All of them, in the order of their normalised forms.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<[u8]>)> {
        self.0.iter()
    }

    /// Adds a value; false, and nothing happens, if an equal one is there.
    pub fn insert(&mut self, key: Key, value: Arc<[u8]>) -> bool {
        if self.0.contains_key(&key) {
            return false;
        }
        self.0.insert(key, value);
        true
    }

    /// Makes these the values, of equal ones the first. What stays keeps its place in memory, so that the
    /// [difference](Self::difference) to what was there is found without looking at it.
    pub fn assign(&mut self, wanted: impl IntoIterator<Item = (Key, Arc<[u8]>)>) {
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_by(|(one, _), (other, _)| one.cmp(other));
        wanted.dedup_by(|(later, _), (earlier, _)| later == earlier);
        let (gone, come) = sorted_difference(self.0.iter(), wanted.iter().map(|(key, value)| (key, value)));
        if is_rather_new(gone.len() + come.len(), self.len()) {
            self.0 = wanted.into_iter().collect();
            return;
        }
        let gone: Vec<Key> = gone.into_iter().map(|(key, _)| key.clone()).collect();
        let come: Vec<(Key, Arc<[u8]>)> =
            come.into_iter().map(|(key, value)| (key.clone(), Arc::clone(value))).collect();
        gone.iter().for_each(|key| drop(self.0.remove(key)));
        come.into_iter().for_each(|(key, value)| drop(self.0.insert(key, value)));
    }

    /// What these have and the others lack, and the reverse; a value that is spelled anew counts as both.
    #[expect(clippy::type_complexity, reason = "two lists of the pairs that a set is made of")]
    pub fn difference(&self, other: &Self) -> (Vec<(Key, Arc<[u8]>)>, Vec<(Key, Arc<[u8]>)>) {
        let pair = |(key, value): (&Key, &Arc<[u8]>)| (key.clone(), Arc::clone(value));
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for item in self.0.diff(&other.0) {
            match item {
                MapDiff::Add(key, value) => added.push(pair((key, value))),
                MapDiff::Remove(key, value) => removed.push(pair((key, value))),
                MapDiff::Update { old, new } => {
                    removed.push(pair(old));
                    added.push(pair(new));
                }
            }
        }
        (removed, added)
    }

    /// Takes a value away and gives it.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<[u8]>> {
        self.0.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_engine::RecordNumber;

    #[test]
    fn numbers_stay_a_sorted_set_whatever_their_form() {
        let mut numbers = Numbers::default();
        let all: Vec<u32> = (0..200).map(|n| n * 37 % 211).collect();
        for number in &all {
            assert!(numbers.insert(RecordNumber(*number)));
            assert!(!numbers.insert(RecordNumber(*number)));
        }
        assert_eq!(numbers.len(), 200);
        assert!(numbers.iter().is_sorted());
        assert_eq!(numbers, numbers.iter().collect());
        for number in &all {
            assert!(numbers.contains(RecordNumber(*number)));
            assert!(numbers.remove(RecordNumber(*number)));
            assert!(!numbers.remove(RecordNumber(*number)));
        }
        assert!(numbers.is_empty());
        assert_eq!(numbers, Numbers::default(), "an empty set is an empty set in either form");
    }

    #[test]
    fn an_assigned_set_is_the_one_that_was_asked_for() {
        let ranges = [0..10, 0..200, 0..201, 5..201, 100..300, 0..63, 0..65, 0..0];
        for before in &ranges {
            for after in &ranges {
                let numbers = |range: &std::ops::Range<u32>| range.clone().map(RecordNumber);
                let mut assigned: Numbers = numbers(before).collect();
                assigned.assign(numbers(after).rev());
                assert!(assigned.iter().eq(numbers(after)), "{before:?} to {after:?}");

                let pairs = |range: &std::ops::Range<u32>, prefix: &str| -> Vec<(Key, Arc<[u8]>)> {
                    // Every fiftieth is spelled in another way.
                    let text =
                        |n: u32| if n.is_multiple_of(50) { format!("{prefix}{n}") } else { format!("{n}") };
                    range.clone().map(|n| (Key::new(&n.to_be_bytes()), text(n).into_bytes().into())).collect()
                };
                let mut assigned = LargeValues::default();
                assigned.assign(pairs(before, "a"));
                let old = assigned.clone();
                assigned.assign(pairs(after, "b"));
                let held: Vec<_> =
                    assigned.iter().map(|(key, text)| (key.clone(), Arc::clone(text))).collect();
                assert_eq!(held, pairs(after, "b"), "{before:?} to {after:?}");
                assert_eq!(assigned.difference(&assigned.clone()), (vec![], vec![]));
                assert_eq!(old.difference(&assigned).1.is_empty(), after.is_empty());
            }
        }
    }
}
