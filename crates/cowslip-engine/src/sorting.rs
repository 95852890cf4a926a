//! The keys of many records for one index, collected record by record and put into their order.
//!
//! Two ways lead there. Where many records share few keys, each key is kept once with the numbers of its records, and only
//! the keys are sorted. Where most keys are one record's, all are sorted: by their bytes, seven at a time, as numbers
//! beside their places, so that what is moved is small and what is compared lies side by side.
//!
//! Invariant: what comes out is in the order of keys, then ids, whichever way was taken.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::mem;

use crate::id::{Kind, RecordNumber};
use crate::index::grouped;
use crate::model::{IndexKind, Model};
use crate::overlay::Entry;
use crate::posting::Posting;

/// After how many entries it is decided whether their keys are few.
const TRIAL: usize = 1 << 16;

/// Keys are few if at least this many records hold one in the mean.
const RECORDS_PER_KEY_MIN: usize = 2;

type Entries<M> = Vec<Entry<<M as Model>::Key, <M as Model>::Id>>;

/// Takes the keys of records that come in the order of their ids.
pub(crate) struct Collector<M: Model> {
    keeps_postings: bool,
    form: Form<M>,
}

enum Form<M: Model> {
    Entries(Entries<M>),
    Groups { groups: Groups<M>, entries: usize },
}

type Groups<M> = HashMap<ByBytes<M>, Vec<u32>, foldhash::fast::RandomState>;

/// A key that is found by the hash of its bytes.
struct ByBytes<M: Model>(M::Key);

impl<M: Model> Hash for ByBytes<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(M::key_bytes(&self.0).unwrap_or_default());
    }
}

impl<M: Model> PartialEq for ByBytes<M> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<M: Model> Eq for ByBytes<M> {}

/// What an index of a kind is made of, in its order.
pub(crate) enum Collected<M: Model> {
    Entries(Entries<M>),
    Postings(Vec<(M::Key, Posting)>),
}

impl<M: Model> Collector<M> {
    pub(crate) fn new(kind: IndexKind) -> Self {
        let keeps_postings = kind == IndexKind::Postings && M::Id::IS_DENSE;
        let form = if keeps_postings {
            Form::Groups { groups: HashMap::default(), entries: 0 }
        } else {
            Form::Entries(Vec::new())
        };
        Self { keeps_postings, form }
    }

    /// Takes a key that the record holds. No record comes after one with a higher id.
    pub(crate) fn add(&mut self, key: M::Key, id: M::Id) {
        match &mut self.form {
            Form::Groups { groups, entries } => {
                if let Some(number) = id.number()
                    && M::key_bytes(&key).is_some()
                {
                    groups.entry(ByBytes(key)).or_default().push(number.0);
                    *entries += 1;
                    if *entries == TRIAL && groups.len() * RECORDS_PER_KEY_MIN > TRIAL {
                        self.scatter();
                    }
                } else {
                    self.scatter().push(Entry { key, id });
                }
            }
            Form::Entries(entries) => entries.push(Entry { key, id }),
        }
    }

    /// Goes on without groups.
    fn scatter(&mut self) -> &mut Entries<M> {
        if let Form::Groups { groups, .. } = &mut self.form {
            let mut entries = Vec::new();
            for (ByBytes(key), numbers) in mem::take(groups) {
                let ids = numbers.into_iter().map(|number| M::Id::from_number(RecordNumber(number)));
                entries.extend(ids.map(|id| Entry { key: key.clone(), id }));
            }
            entries.sort_unstable_by_key(|entry| entry.id);
            self.form = Form::Entries(entries);
        }
        match &mut self.form {
            Form::Entries(entries) => entries,
            Form::Groups { .. } => unreachable!("there are no groups any more"),
        }
    }

    /// All that came, in order.
    pub(crate) fn finish(self) -> Collected<M> {
        match self.form {
            Form::Groups { groups, .. } => {
                let groups: Vec<_> = groups
                    .into_iter()
                    .map(|(ByBytes(key), numbers)| (key, Posting::of_sorted(&numbers)))
                    .collect();
                Collected::Postings(sorted(groups, |(key, _)| M::key_bytes(key), |(key, _)| key))
            }
            Form::Entries(entries) => {
                let entries = sorted(entries, |entry| M::key_bytes(&entry.key), |entry| entry);
                if self.keeps_postings {
                    Collected::Postings(grouped(entries))
                } else {
                    Collected::Entries(entries)
                }
            }
        }
    }
}

/// The items in the order of what `whole` gives of them, of which bytes, if there are any, are the more significant part;
/// items with equal bytes are in order already.
fn sorted<T: Clone, W: Ord + ?Sized>(
    mut items: Vec<T>,
    bytes: impl Fn(&T) -> Option<&[u8]>,
    whole: impl Fn(&T) -> &W,
) -> Vec<T> {
    let has_bytes = items.first().is_some_and(|item| bytes(item).is_some());
    match u32::try_from(items.len()) {
        Ok(count) if has_bytes => {
            let places = places(count, |place| bytes(&items[place as usize]).unwrap_or_default());
            places.into_iter().map(|place| items[place as usize].clone()).collect()
        }
        _ => {
            items.sort_unstable_by(|left, right| whole(left).cmp(whole(right)));
            items
        }
    }
}

/// How many bytes of a key take part in a [`word`].
const WORD_BYTES: usize = 7;

/// The last byte of the word of a key that goes on behind it.
const GOES_ON: u8 = 8;

/// Up to this many keys with a word in common are compared as they are.
const FEW: usize = 8;

/// The places of the keys in their order; equal keys are in the order of the places.
fn places<'k>(count: u32, bytes: impl Fn(u32) -> &'k [u8]) -> Vec<u32> {
    let mut items: Vec<(u64, u32)> = (0..count).map(|place| (word(bytes(place)), place)).collect();
    items.sort_unstable();
    // Where items are sorted by the word of their keys at an offset, and not yet by what follows.
    let mut open = vec![(0..items.len(), 0)];
    while let Some((range, offset)) = open.pop() {
        let (mut start, next) = (range.start, offset + WORD_BYTES);
        let rest = |place| bytes(place).get(next..).unwrap_or_default();
        for run in items[range].chunk_by_mut(|(left, _), (right, _)| left == right) {
            let end = start + run.len();
            if run.len() > 1 && run[0].0.to_be_bytes()[WORD_BYTES] == GOES_ON {
                if run.len() <= FEW {
                    run.sort_unstable_by(|(_, left), (_, right)| {
                        rest(*left).cmp(rest(*right)).then(left.cmp(right))
                    });
                } else {
                    run.iter_mut().for_each(|(word_here, place)| *word_here = word(rest(*place)));
                    run.sort_unstable();
                    open.push((start..end, next));
                }
            }
            start = end;
        }
    }
    items.into_iter().map(|(_, place)| place).collect()
}

/// The first bytes of a key as a number in their order: a key that ends comes before one that goes on with zeros.
fn word(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first) & !0xff | u64::from(GOES_ON);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    // At most seven bytes are left.
    word[WORD_BYTES] = u8::try_from(bytes.len()).unwrap_or(GOES_ON);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::change::ChangeSet;
    use crate::key_bytes::KeyBytes;
    use crate::model::{IndexIx, KeyChanges, ReferenceChanges, Step, TableIx, TableLayout};
    use crate::root::Root;

    struct Toy;

    impl Model for Toy {
        type Id = RecordNumber;
        type Value = Vec<KeyBytes>;
        type Key = KeyBytes;
        type Delta = ();
        type Meta = Vec<IndexKind>;
        type Note = ();

        fn layout(kinds: &Self::Meta) -> Vec<TableLayout> {
            vec![TableLayout { indexes: kinds.clone() }]
        }

        fn keys(
            _: &Self::Meta,
            _: TableIx,
            _: IndexIx,
            step: &Step<'_, Self>,
            out: &mut KeyChanges<KeyBytes>,
        ) {
            out.removed.extend(step.old.into_iter().flatten().cloned());
            out.added.extend(step.new.into_iter().flatten().cloned());
        }

        fn references(
            _: &Self::Meta,
            _: TableIx,
            _: &Step<'_, Self>,
            _: &mut ReferenceChanges<RecordNumber>,
        ) {
        }

        fn merge((): &mut (), (): ()) {}

        fn key_bytes(key: &KeyBytes) -> Option<&[u8]> {
            Some(key)
        }
    }

    fn expected(holders: &[(KeyBytes, u32)]) -> Vec<(KeyBytes, u32)> {
        let mut sorted = holders.to_vec();
        sorted.sort();
        sorted
    }

    fn collected(holders: &[(KeyBytes, u32)], kind: IndexKind) -> Vec<(KeyBytes, u32)> {
        let mut collector = Collector::<Toy>::new(kind);
        for (key, number) in holders {
            collector.add(key.clone(), RecordNumber(*number));
        }
        match collector.finish() {
            Collected::Entries(entries) => entries.into_iter().map(|Entry { key, id }| (key, id.0)).collect(),
            Collected::Postings(postings) => {
                let all = postings
                    .iter()
                    .flat_map(|(key, posting)| posting.iter().map(move |number| (key.clone(), number.0)));
                all.collect()
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn keys_that_begin_alike_come_in_order(
            // Few different bytes, so that many keys are the beginning of others.
            keys in prop::collection::vec(
                prop::collection::vec(prop::sample::select(vec![0_u8, 1, 255]), 0..24), 0..200,
            ),
            shared in 0..30_usize,
        ) {
            let prefix = vec![7; shared];
            let holders: Vec<_> = keys
                .iter()
                .zip(0..)
                .map(|(key, number)| (KeyBytes::from(&[&prefix[..], key].concat()[..]), number))
                .collect();
            for kind in [IndexKind::Secondary, IndexKind::Postings] {
                assert_eq!(collected(&holders, kind), expected(&holders));
            }
        }
    }

    #[test]
    fn few_and_many_keys_give_the_same_index() {
        let count = u32::try_from(TRIAL).expect("it is small") + 1000;
        for keys in [3, 1000, 40_000, count] {
            let holders: Vec<_> = (0..count)
                .map(|number| {
                    (KeyBytes::from(&(number % keys).wrapping_mul(0x9e37_79b9).to_be_bytes()[..]), number)
                })
                .collect();
            assert_eq!(collected(&holders, IndexKind::Postings), expected(&holders), "{keys} keys");
        }
    }

    #[test]
    fn a_loaded_root_has_what_single_changes_give() {
        let kinds = vec![IndexKind::Postings, IndexKind::Secondary];
        let records: Vec<(RecordNumber, Vec<KeyBytes>)> = (0..2000_u32)
            .map(|number| {
                let keys = [number % 7, number % 300, 1000 + number];
                (RecordNumber(number), keys.map(|key| KeyBytes::from(&key.to_be_bytes()[..])).to_vec())
            })
            .map(|(number, mut keys)| {
                keys.sort();
                keys.dedup();
                (number, keys)
            })
            .collect();
        let meta = std::sync::Arc::new(kinds);
        let shared = records.iter().map(|(id, keys)| (TableIx(0), *id, std::sync::Arc::new(keys.clone())));
        let loaded = Root::<Toy>::load(std::sync::Arc::clone(&meta), 0, shared).expect("no primary index");
        let mut changed = Root::<Toy>::new(meta);
        let mut draft = crate::Draft::new(&changed);
        for (id, keys) in &records {
            draft.put(TableIx(0), *id, std::sync::Arc::new(keys.clone()), ());
        }
        let changes: ChangeSet<Toy> = draft.finish().expect("no primary index");
        changed.apply(&changes);
        for index in [IndexIx(0), IndexIx(1)] {
            let all = |root: &Root<Toy>| -> Vec<_> {
                root.range(TableIx(0), index, ..).map(|(key, id)| (key.clone(), id)).collect()
            };
            assert_eq!(all(&loaded), all(&changed));
        }
    }
}
