//! One index of a table: which records hold which keys.
//!
//! Invariants: an index of pairs holds one entry for each key of each record; one of postings holds under each key a
//! posting that is not empty. Both give the same answers in the same order. An absent index holds nothing and takes
//! nothing.

use std::ops::Bound;

use imbl::{OrdMap, OrdSet};

use crate::either::Either;
use crate::id::RecordId;
use crate::model::IndexKind;
use crate::overlay::{Entry, EntryChange, Place, PlaceRange, is_empty_range};
use crate::posting::Posting;

pub(crate) enum Index<K, I> {
    Absent,
    Pairs(OrdSet<Entry<K, I>>),
    Postings(OrdMap<K, Posting>),
}

impl<K: Clone, I: Clone> Clone for Index<K, I> {
    fn clone(&self) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Pairs(entries) => Self::Pairs(entries.clone()),
            Self::Postings(postings) => Self::Postings(postings.clone()),
        }
    }
}

impl<K: Ord + Clone, I: RecordId> Index<K, I> {
    pub(crate) fn new(kind: IndexKind) -> Self {
        match kind {
            IndexKind::Absent => Self::Absent,
            IndexKind::Postings if I::IS_DENSE => Self::Postings(OrdMap::new()),
            IndexKind::Primary | IndexKind::Secondary | IndexKind::Postings => Self::Pairs(OrdSet::new()),
        }
    }

    /// An index of these entries, which come in order and without repeats.
    pub(crate) fn of_entries(entries: Vec<Entry<K, I>>) -> Self {
        let mut pairs = OrdSet::new();
        fill(entries, |entry| drop(pairs.insert(entry)));
        Self::Pairs(pairs)
    }

    /// An index of these postings, none of them empty, which come in the order of their keys and without repeats.
    pub(crate) fn of_postings(sorted: Vec<(K, Posting)>) -> Self {
        let mut postings = OrdMap::new();
        fill(sorted, |(key, posting)| drop(postings.insert(key, posting)));
        Self::Postings(postings)
    }

    /// The records that hold a key, in the order of their ids.
    pub(crate) fn lookup(&self, key: &K) -> impl Iterator<Item = I> + use<'_, K, I> {
        let entries = match self {
            Self::Pairs(entries) => Either::Left(entries),
            Self::Absent => Either::Right(None),
            Self::Postings(postings) => Either::Right(postings.get(key)),
        };
        match entries {
            Either::Left(entries) => {
                // Comparing keys is what a look-up costs: an end that is found by walking spares the second descent.
                let wanted = key.clone();
                let entries = entries.range::<_, dyn Place<K, I> + '_>(PlaceRange::from(key).bounds());
                Either::Left(entries.take_while(move |entry| entry.key == wanted).map(|entry| entry.id))
            }
            Either::Right(posting) => Either::Right(posting.into_iter().flatten().map(I::from_number)),
        }
    }

    /// The entries whose keys lie in a range, in the order of keys, then ids.
    pub(crate) fn range(
        &self,
        start: Bound<&K>,
        end: Bound<&K>,
    ) -> impl DoubleEndedIterator<Item = (&K, I)> + use<'_, K, I> {
        match self {
            Self::Pairs(entries) => {
                let entries = PlaceRange::between(start, end)
                    .map(|keys| entries.range::<_, dyn Place<K, I> + '_>(keys.bounds()));
                Either::Left(entries.into_iter().flatten().map(|entry| (&entry.key, entry.id)))
            }
            Self::Absent | Self::Postings(_) => {
                Either::Right(self.postings(start, end).flat_map(|(key, posting)| {
                    posting.iter().map(move |number| (key, I::from_number(number)))
                }))
            }
        }
    }

    /// The records that hold a key, if the index keeps postings and there are any.
    pub(crate) fn posting(&self, key: &K) -> Option<&Posting> {
        match self {
            Self::Postings(postings) => postings.get(key),
            Self::Absent | Self::Pairs(_) => None,
        }
    }

    /// The postings of a range of keys, in the order of these; nothing if the index keeps none.
    pub(crate) fn postings(
        &self,
        start: Bound<&K>,
        end: Bound<&K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &Posting)> + use<'_, K, I> {
        let postings = match self {
            Self::Postings(postings) if !is_empty_range(start, end) => {
                Some(postings.range::<_, K>((start, end)))
            }
            _ => None,
        };
        postings.into_iter().flatten()
    }

    pub(crate) fn apply(&mut self, changed: &[EntryChange<K, I>]) {
        match self {
            Self::Absent => {}
            Self::Pairs(entries) => {
                for (entry, is_taken) in changed {
                    if *is_taken {
                        entries.insert(entry.clone());
                    } else {
                        entries.remove(entry);
                    }
                }
            }
            Self::Postings(postings) => {
                for changed in changed.chunk_by(|(left, _), (right, _)| left.key == right.key) {
                    change_posting(postings, changed);
                }
            }
        }
    }
}

/// Makes the changes to the posting of one key.
fn change_posting<K: Ord + Clone, I: RecordId>(
    postings: &mut OrdMap<K, Posting>,
    changed: &[EntryChange<K, I>],
) {
    let Some((Entry { key, .. }, _)) = changed.first() else { return };
    let change = |posting: &mut Posting| {
        for (entry, is_taken) in changed {
            match (entry.id.number(), is_taken) {
                (None, _) => {}
                (Some(number), true) => drop(posting.insert(number)),
                (Some(number), false) => drop(posting.remove(number)),
            }
        }
    };
    if let Some(posting) = postings.get_mut(key) {
        change(posting);
        if posting.is_empty() {
            postings.remove(key);
        }
        return;
    }
    let mut posting = Posting::new();
    change(&mut posting);
    if !posting.is_empty() {
        postings.insert(key.clone(), posting);
    }
}

/// The postings of sorted entries.
pub(crate) fn grouped<K: Ord, I: RecordId>(entries: Vec<Entry<K, I>>) -> Vec<(K, Posting)> {
    let mut groups = Vec::new();
    let mut numbers = Vec::new();
    let mut entries = entries.into_iter().peekable();
    while let Some(Entry { key, id }) = entries.next() {
        numbers.extend(id.number().map(|number| number.0));
        if entries.peek().is_none_or(|next| next.key != key) {
            groups.push((key, Posting::of_sorted(&numbers)));
            numbers.clear();
        }
    }
    groups
}

/// Inserts sorted items into an ordered map so that its leaves are full.
///
/// Inserted one after the other, each item goes to the last leaf, and a leaf that was split when it was full stays half
/// empty for ever. So every second run of half a leaf is left out at first and inserted into the gaps after.
pub(crate) fn fill<T>(items: Vec<T>, mut insert: impl FnMut(T)) {
    /// Half of what a leaf of `imbl`'s maps holds.
    const RUN: usize = 8;
    let mut left_out = Vec::with_capacity(items.len() / 2);
    for (position, item) in items.into_iter().enumerate() {
        if (position / RUN).is_multiple_of(2) { insert(item) } else { left_out.push(item) }
    }
    left_out.into_iter().for_each(insert);
}
