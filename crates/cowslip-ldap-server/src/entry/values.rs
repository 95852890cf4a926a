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
    /// At least [`LARGE_MIN`] at some time.
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

impl FromIterator<EntryNumber> for Numbers {
    fn from_iter<I: IntoIterator<Item = EntryNumber>>(numbers: I) -> Self {
        let mut numbers: Vec<_> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() >= LARGE_MIN {
            Self::Large(numbers.into_iter().collect())
        } else {
            Self::Small(numbers.into_boxed_slice())
        }
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
}
