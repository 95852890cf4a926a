//! A persistent map from dense numbers, for records and for the chunks of postings.
//!
//! A radix tree: the number itself is the path, so nothing is compared and no key is stored. A clone copies one pointer;
//! a change copies one path as far as it is shared, and nothing where it is not. Copying a node raises the count of each
//! child, which for a leaf means touching that many values: hence leaves are small. Invariants: no node below the root is
//! empty; `len` is the number of values; all leaves are at the same depth, and no number at or above `capacity` is held.

use std::array;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Numbers to a leaf, in bits.
const LEAF_BITS: u32 = 4;
const LEAF_SIZE: usize = 1 << LEAF_BITS;

/// Children of a branch, in bits.
const BRANCH_BITS: u32 = 4;
const BRANCH_SIZE: usize = 1 << BRANCH_BITS;

/// A persistent map from numbers to values.
pub struct NumberMap<V> {
    root: Option<Node<V>>,
    /// Branches above the leaves.
    height: u32,
    len: usize,
}

enum Node<V> {
    Leaf(Arc<Leaf<V>>),
    Branch(Arc<Branch<V>>),
}

#[derive(Clone)]
struct Leaf<V> {
    values: [Option<V>; LEAF_SIZE],
}

/// Two variants, so that a child takes one word.
enum Branch<V> {
    Leaves([Option<Arc<Leaf<V>>>; BRANCH_SIZE]),
    Branches([Option<Arc<Self>>; BRANCH_SIZE]),
}

impl<V> Clone for Node<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(leaf) => Self::Leaf(Arc::clone(leaf)),
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
        }
    }
}

impl<V> Clone for Branch<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaves(leaves) => Self::Leaves(leaves.clone()),
            Self::Branches(branches) => Self::Branches(branches.clone()),
        }
    }
}

impl<V> Clone for NumberMap<V> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), height: self.height, len: self.len }
    }
}

impl<V> Default for NumberMap<V> {
    fn default() -> Self {
        Self { root: None, height: 0, len: 0 }
    }
}

impl<V> Leaf<V> {
    fn new() -> Self {
        Self { values: array::from_fn(|_| None) }
    }

    fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }
}

impl<V> Branch<V> {
    /// A branch without children of this height, which is at least 1.
    fn new(height: u32) -> Self {
        if height == 1 {
            Self::Leaves(array::from_fn(|_| None))
        } else {
            Self::Branches(array::from_fn(|_| None))
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Leaves(leaves) => leaves.iter().all(Option::is_none),
            Self::Branches(branches) => branches.iter().all(Option::is_none),
        }
    }
}

/// The position in a leaf.
fn leaf_slot(number: u32) -> usize {
    number as usize & (LEAF_SIZE - 1)
}

/// The position in a branch of this height.
fn branch_slot(number: u32, height: u32) -> usize {
    (number >> (LEAF_BITS + BRANCH_BITS * (height - 1))) as usize & (BRANCH_SIZE - 1)
}

/// How many numbers a tree of this height has room for.
fn capacity(height: u32) -> u64 {
    1 << (LEAF_BITS + BRANCH_BITS * height)
}

impl<V> NumberMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, number: u32) -> Option<&V> {
        self.leaf(number)?.values[leaf_slot(number)].as_ref()
    }

    /// The values of a range of numbers, in their order.
    pub(crate) fn range(&self, numbers: RangeInclusive<u32>) -> Range<'_, V> {
        let (next, end) = (u64::from(*numbers.start()), u64::from(*numbers.end()) + 1);
        Range { map: self, next, end, front: None, back: None }
    }

    pub(crate) fn iter(&self) -> Range<'_, V> {
        self.range(0..=u32::MAX)
    }

    /// The leaf that a number belongs to, if it is there.
    fn leaf(&self, number: u32) -> Option<&Leaf<V>> {
        if u64::from(number) >= capacity(self.height) {
            return None;
        }
        let mut height = self.height;
        let mut branch = match self.root.as_ref()? {
            Node::Leaf(leaf) => return Some(leaf),
            Node::Branch(branch) => branch,
        };
        loop {
            match &**branch {
                Branch::Leaves(leaves) => return leaves[branch_slot(number, 1)].as_deref(),
                Branch::Branches(branches) => branch = branches[branch_slot(number, height)].as_ref()?,
            }
            height -= 1;
        }
    }

    /// The first leaf that has a number from `next` on, and the first number that belongs to it and is not before `next`.
    fn leaf_from(&self, next: u64) -> Option<(u64, &Leaf<V>)> {
        let number = u32::try_from(next).ok().filter(|_| next < capacity(self.height))?;
        match self.root.as_ref()? {
            Node::Leaf(leaf) => Some((next, leaf)),
            Node::Branch(branch) => branch.leaf_from(number, self.height).map(|(at, leaf)| (at.into(), leaf)),
        }
    }

    /// The last leaf that has a number before `end`, and the first number after those of it that are before `end`.
    fn leaf_before(&self, end: u64) -> Option<(u64, &Leaf<V>)> {
        let last = u32::try_from(end.min(capacity(self.height)).checked_sub(1)?).ok()?;
        let (last, leaf) = match self.root.as_ref()? {
            Node::Leaf(leaf) => (last, &**leaf),
            Node::Branch(branch) => branch.leaf_to(last, self.height)?,
        };
        Some((u64::from(last) + 1, leaf))
    }
}

impl<V> Branch<V> {
    fn leaf_from(&self, number: u32, height: u32) -> Option<(u32, &Leaf<V>)> {
        let slot = branch_slot(number, height);
        let bits = LEAF_BITS + BRANCH_BITS * (height - 1);
        // Where the numbers of another child begin.
        let first = |child: usize| {
            if child == slot {
                number
            } else {
                ((number >> bits >> BRANCH_BITS << BRANCH_BITS) | child as u32) << bits
            }
        };
        match self {
            Self::Leaves(leaves) => (slot..BRANCH_SIZE)
                .find_map(|child| leaves[child].as_deref().map(|leaf| (first(child), leaf))),
            Self::Branches(branches) => (slot..BRANCH_SIZE)
                .find_map(|child| branches[child].as_deref()?.leaf_from(first(child), height - 1)),
        }
    }

    fn leaf_to(&self, number: u32, height: u32) -> Option<(u32, &Leaf<V>)> {
        let slot = branch_slot(number, height);
        let bits = LEAF_BITS + BRANCH_BITS * (height - 1);
        let last = |child: usize| {
            if child == slot {
                number
            } else {
                (((number >> bits >> BRANCH_BITS << BRANCH_BITS) | child as u32) << bits) | ((1 << bits) - 1)
            }
        };
        match self {
            Self::Leaves(leaves) => {
                (0..=slot).rev().find_map(|child| leaves[child].as_deref().map(|leaf| (last(child), leaf)))
            }
            Self::Branches(branches) => (0..=slot)
                .rev()
                .find_map(|child| branches[child].as_deref()?.leaf_to(last(child), height - 1)),
        }
    }
}

impl<V: Clone> NumberMap<V> {
    /// Puts a value and gives back the one before.
    pub(crate) fn insert(&mut self, number: u32, value: V) -> Option<V> {
        while u64::from(number) >= capacity(self.height) {
            self.grow();
        }
        let leaf = match self.root.get_or_insert_with(|| Node::new(self.height)) {
            Node::Leaf(leaf) => Arc::make_mut(leaf),
            Node::Branch(branch) => Arc::make_mut(branch).leaf_mut(number, self.height),
        };
        let before = leaf.values[leaf_slot(number)].replace(value);
        self.len += usize::from(before.is_none());
        before
    }

    /// A value to be changed in place; what it shares with clones of the map is copied first.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        self.get(number)?;
        let leaf = match self.root.as_mut()? {
            Node::Leaf(leaf) => Arc::make_mut(leaf),
            Node::Branch(branch) => Arc::make_mut(branch).leaf_mut(number, self.height),
        };
        leaf.values[leaf_slot(number)].as_mut()
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, number: u32) -> Option<V> {
        // Asked first, so that nothing is copied in vain.
        self.get(number)?;
        let (value, is_empty) = match self.root.as_mut()? {
            Node::Leaf(leaf) => Arc::make_mut(leaf).remove(number),
            Node::Branch(branch) => Arc::make_mut(branch).remove(number, self.height),
        };
        self.len -= usize::from(value.is_some());
        if is_empty {
            *self = Self::default();
        }
        value
    }

    fn grow(&mut self) {
        self.height += 1;
        self.root = self.root.take().map(|root| {
            let mut above = Branch::new(self.height);
            match (&mut above, root) {
                (Branch::Leaves(leaves), Node::Leaf(leaf)) => leaves[0] = Some(leaf),
                (Branch::Branches(branches), Node::Branch(branch)) => branches[0] = Some(branch),
                _ => unreachable!("a tree of height 0 is a leaf, and no other is"),
            }
            Node::Branch(Arc::new(above))
        });
    }
}

impl<V> Node<V> {
    fn new(height: u32) -> Self {
        if height == 0 {
            Self::Leaf(Arc::new(Leaf::new()))
        } else {
            Self::Branch(Arc::new(Branch::new(height)))
        }
    }
}

impl<V: Clone> Leaf<V> {
    fn remove(&mut self, number: u32) -> (Option<V>, bool) {
        let value = self.values[leaf_slot(number)].take();
        (value, self.is_empty())
    }
}

impl<V: Clone> Branch<V> {
    fn leaf_mut(&mut self, number: u32, height: u32) -> &mut Leaf<V> {
        let slot = branch_slot(number, height);
        match self {
            Self::Leaves(leaves) => Arc::make_mut(leaves[slot].get_or_insert_with(|| Arc::new(Leaf::new()))),
            Self::Branches(branches) => {
                let below = branches[slot].get_or_insert_with(|| Arc::new(Self::new(height - 1)));
                Arc::make_mut(below).leaf_mut(number, height - 1)
            }
        }
    }

    fn remove(&mut self, number: u32, height: u32) -> (Option<V>, bool) {
        let slot = branch_slot(number, height);
        let (value, is_child_empty) = match self {
            Self::Leaves(leaves) => match &mut leaves[slot] {
                Some(leaf) => Arc::make_mut(leaf).remove(number),
                None => (None, false),
            },
            Self::Branches(branches) => match &mut branches[slot] {
                Some(branch) => Arc::make_mut(branch).remove(number, height - 1),
                None => (None, false),
            },
        };
        if is_child_empty {
            match self {
                Self::Leaves(leaves) => leaves[slot] = None,
                Self::Branches(branches) => branches[slot] = None,
            }
        }
        (value, is_child_empty && self.is_empty())
    }
}

impl<V: Clone> FromIterator<(u32, V)> for NumberMap<V> {
    fn from_iter<T: IntoIterator<Item = (u32, V)>>(entries: T) -> Self {
        let mut map = Self::default();
        for (number, value) in entries {
            map.insert(number, value);
        }
        map
    }
}

/// The values of a range of numbers.
pub(crate) struct Range<'a, V> {
    map: &'a NumberMap<V>,
    /// Everything before it has been given from the front.
    next: u64,
    /// Everything from here on is outside, or has been given from the back.
    end: u64,
    front: Option<&'a Leaf<V>>,
    back: Option<&'a Leaf<V>>,
}

impl<V> Clone for Range<'_, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, V> Iterator for Range<'a, V> {
    type Item = (u32, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            let leaf = match self.front {
                Some(leaf) => leaf,
                None => {
                    let (next, leaf) = self.map.leaf_from(self.next)?;
                    self.next = next;
                    self.front = Some(leaf);
                    continue;
                }
            };
            let number = u32::try_from(self.next).ok()?;
            self.next += 1;
            let slot = leaf_slot(number);
            if slot == LEAF_SIZE - 1 {
                self.front = None;
            }
            if let Some(value) = &leaf.values[slot] {
                return Some((number, value));
            }
        }
        None
    }
}

impl<V> DoubleEndedIterator for Range<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            let leaf = match self.back {
                Some(leaf) => leaf,
                None => {
                    let (end, leaf) = self.map.leaf_before(self.end)?;
                    self.end = end;
                    self.back = Some(leaf);
                    continue;
                }
            };
            let number = u32::try_from(self.end - 1).ok()?;
            self.end -= 1;
            let slot = leaf_slot(number);
            if slot == 0 {
                self.back = None;
            }
            if let Some(value) = &leaf.values[slot] {
                return Some((number, value));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Action {
        Insert(u32, u8),
        Remove(u32),
        Change(u32, u8),
        Keep,
    }

    fn any_number() -> impl Strategy<Value = u32> {
        prop_oneof![4 => 0_u32..40, 2 => 200_u32..300, 2 => 4_090_u32..4_100, 1 => any::<u32>(), 1 => Just(u32::MAX)]
    }

    fn any_action() -> impl Strategy<Value = Action> {
        prop_oneof![
            4 => (any_number(), any::<u8>()).prop_map(|(number, value)| Action::Insert(number, value)),
            3 => any_number().prop_map(Action::Remove),
            1 => (any_number(), any::<u8>()).prop_map(|(number, value)| Action::Change(number, value)),
            1 => Just(Action::Keep),
        ]
    }

    fn assert_same(map: &NumberMap<u8>, plain: &BTreeMap<u32, u8>, bounds: &[(u32, u32)]) {
        assert_eq!(map.len(), plain.len());
        let entries =
            |range: Range<'_, u8>| range.map(|(number, value)| (number, *value)).collect::<Vec<_>>();
        let expected: Vec<_> = plain.iter().map(|(number, value)| (*number, *value)).collect();
        assert_eq!(entries(map.iter()), expected);
        for (first, last) in bounds.iter().copied().filter(|(first, last)| first <= last) {
            let expected: Vec<_> =
                plain.range(first..=last).map(|(number, value)| (*number, *value)).collect();
            assert_eq!(entries(map.range(first..=last)), expected);
            let mut backwards: Vec<_> =
                map.range(first..=last).rev().map(|(number, value)| (number, *value)).collect();
            backwards.reverse();
            assert_eq!(backwards, expected);
            // From both ends in turn, until they meet.
            let mut walk = map.range(first..=last);
            let mut left = expected.into_iter();
            while let Some(front) = left.next() {
                assert_eq!(walk.next().map(|(number, value)| (number, *value)), Some(front));
                assert_eq!(walk.next_back().map(|(number, value)| (number, *value)), left.next_back());
            }
            assert!(walk.next().is_none() && walk.next_back().is_none());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn number_maps_agree_with_plain_maps(
            actions in prop::collection::vec(any_action(), 1..60),
            bounds in prop::collection::vec((any_number(), any_number()), 1..4),
        ) {
            let (mut map, mut plain) = (NumberMap::default(), BTreeMap::new());
            let mut kept = Vec::new();
            for action in actions {
                match action {
                    Action::Insert(number, value) => {
                        assert_eq!(map.insert(number, value), plain.insert(number, value));
                    }
                    Action::Remove(number) => assert_eq!(map.remove(number), plain.remove(&number)),
                    Action::Change(number, value) => {
                        let (own, expected) = (map.get_mut(number), plain.get_mut(&number));
                        assert_eq!(own, expected);
                        if let (Some(own), Some(expected)) = (own, expected) {
                            (*own, *expected) = (value, value);
                        }
                    }
                    Action::Keep => kept.push((map.clone(), plain.clone())),
                }
                assert_same(&map, &plain, &bounds);
            }
            for (map, plain) in &kept {
                assert_same(map, plain, &bounds);
            }
        }
    }
}
