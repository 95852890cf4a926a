//! Drafts, change sets and roots against plain maps.
#![allow(missing_docs)]

mod toy;

use std::sync::Arc;

use cowslip_engine::{
    ChangeSet, Draft, IndexBuilder, IndexRefusal, RecordNumber, Root, Strength, TableIx, Uuid,
};
use proptest::prelude::*;
use toy::{
    GROUP, Id, Item, Key, NAME, Plain, REST, TABLES, TAG, TagDelta, Toy, ToyId, WITH_REST, WITHOUT_GROUP,
    WITHOUT_TAG, assert_draft_is, assert_root_is, conflict_of, put,
};

#[derive(Clone, Debug)]
enum Action<I> {
    Put(TableIx, I, Item<I>),
    Tag(TableIx, I, u32),
    Untag(TableIx, I, u32),
    Remove(TableIx, I),
    /// Ask the draft everything.
    Look,
}

#[derive(Clone, Debug)]
struct Transaction<I> {
    actions: Vec<Action<I>>,
    abort: bool,
    /// Drop records that came back to what they were, as a protocol would.
    forget: bool,
    /// Finish without the check, as a client's cache does with what the server says.
    unchecked: bool,
}

fn ids<I: ToyId>() -> Vec<I> {
    // The extremes are ids like any other.
    [0, 1, 2, 3, 4, u128::MAX - 1, u128::MAX].map(I::toy).to_vec()
}

fn any_id<I: ToyId>() -> impl Strategy<Value = I> {
    prop::sample::select(ids())
}

fn any_table() -> impl Strategy<Value = TableIx> {
    prop::sample::select(TABLES.to_vec())
}

fn any_item<I: ToyId>() -> impl Strategy<Value = Item<I>> {
    let strength = prop::sample::select(vec![Strength::Strong, Strength::Weak]);
    let links = prop::collection::vec((any_table(), any_id(), strength), 0..4);
    let tags = prop::collection::btree_set(0_u32..10, 0..5);
    (0_u32..8, prop::option::of(0_u32..4), tags, links).prop_map(|(name, group, tags, links)| Item {
        name,
        group,
        tags: tags.into_iter().collect(),
        links,
    })
}

fn any_action<I: ToyId>() -> impl Strategy<Value = Action<I>> {
    prop_oneof![
        4 => (any_table(), any_id(), any_item()).prop_map(|(table, id, item)| Action::Put(table, id, item)),
        3 => (any_table(), any_id(), 0_u32..10).prop_map(|(table, id, tag)| Action::Tag(table, id, tag)),
        3 => (any_table(), any_id(), 0_u32..10).prop_map(|(table, id, tag)| Action::Untag(table, id, tag)),
        3 => (any_table(), any_id()).prop_map(|(table, id)| Action::Remove(table, id)),
        1 => Just(Action::Look),
    ]
}

fn any_transaction<I: ToyId>() -> impl Strategy<Value = Transaction<I>> {
    let odds = (prop::bool::weighted(0.1), any::<bool>(), prop::bool::weighted(0.05));
    (prop::collection::vec(any_action(), 0..12), odds)
        .prop_map(|(actions, (abort, forget, unchecked))| Transaction { actions, abort, forget, unchecked })
}

fn act<I: ToyId>(draft: &mut Draft<'_, Toy<I>>, plain: &mut Plain<I>, action: Action<I>) {
    match action {
        Action::Put(table, id, item) => {
            put(draft, table, id, item.clone());
            plain.0.insert((table, id), item);
        }
        Action::Tag(table, id, tag) => {
            if let Some(item) = plain.0.get_mut(&(table, id)) {
                let added = item.tags.insert(tag).is_none();
                let delta =
                    TagDelta { added: added.then_some(tag).into_iter().collect(), ..Default::default() };
                draft.put(table, id, Arc::new(item.clone()), delta);
            }
        }
        Action::Untag(table, id, tag) => {
            if let Some(item) = plain.0.get_mut(&(table, id)) {
                let removed = item.tags.remove(&tag);
                let delta = TagDelta { removed: removed.into_iter().collect(), ..Default::default() };
                draft.put(table, id, Arc::new(item.clone()), delta);
            }
        }
        Action::Remove(table, id) => {
            assert_eq!(draft.remove(table, &id), plain.0.remove(&(table, id)).is_some());
            assert!(draft.record(table, &id).is_none());
        }
        Action::Look => assert_draft_is(draft, plain, &ids()),
    }
}

fn forget_unchanged<I: ToyId>(draft: &mut Draft<'_, Toy<I>>) {
    for table in TABLES {
        let unchanged = draft.touched(table).filter(|(_, touched)| touched.first == touched.last);
        let unchanged: Vec<_> = unchanged.map(|(id, _)| *id).collect();
        for id in unchanged {
            assert!(draft.forget(table, &id));
            assert!(!draft.is_touched(table, &id));
        }
    }
}

/// Runs a transaction; gives its changes unless it was given up or refused.
fn run<I: ToyId>(
    root: &mut Root<Toy<I>>,
    plain: &mut Plain<I>,
    transaction: Transaction<I>,
) -> Option<ChangeSet<Toy<I>>> {
    let before = plain.clone();
    let base = root.clone();
    let mut draft = Draft::new(&base);
    for action in transaction.actions {
        act(&mut draft, plain, action);
    }
    if transaction.forget {
        forget_unchanged(&mut draft);
    }
    assert_draft_is(&draft, plain, &ids());
    if transaction.abort {
        *plain = before;
        return None;
    }
    let changes = if transaction.unchecked {
        draft.into_changes()
    } else {
        let checked = draft.check_unique().map(conflict_of);
        // Unchecked commits may have left conflicts in the base, which are not this draft's.
        if before.conflict().is_none() {
            assert_eq!(checked, plain.conflict());
        }
        match draft.finish() {
            Ok(changes) => changes,
            Err(conflict) => {
                assert_eq!(Some(conflict_of(conflict)), checked);
                *plain = before;
                return None;
            }
        }
    };
    for table in changes.tables() {
        for change in &table.records {
            assert_eq!(change.old.as_deref(), before.0.get(&(table.table, change.id)));
            assert_eq!(change.new.as_deref(), plain.0.get(&(table.table, change.id)));
            if let (Some(old), Some(new)) = (&change.old, &change.new) {
                assert_eq!(change.delta, TagDelta::between(old, new));
            }
        }
    }
    root.apply(&changes);
    root.set_generation(root.generation() + 1);
    Some(changes)
}

/// Runs transactions and compares everything after each, and at the end what was kept and what is made anew.
fn assert_agreement<I: ToyId>(transactions: Vec<Transaction<I>>) {
    let mut root = Root::<Toy<I>>::new(Arc::new(0));
    let mut plain = Plain::default();
    let mut kept = Vec::new();
    for transaction in transactions {
        kept.push((root.clone(), plain.clone()));
        run(&mut root, &mut plain, transaction);
        assert_root_is(&root, &plain, &ids());
    }
    for (snapshot, plain) in &kept {
        assert_root_is(snapshot, plain, &ids());
    }
    for meta in [1, WITHOUT_GROUP, WITH_REST] {
        assert_root_is(&root.rebuilt(Arc::new(meta)), &plain, &ids());
    }
    assert_loads(&root, &plain);
}

/// Loads the records of a root in an order that is not theirs, some of them twice.
fn assert_loads<I: ToyId>(root: &Root<Toy<I>>, plain: &Plain<I>) {
    let all =
        || TABLES.into_iter().flat_map(|table| root.scan(table).map(move |(id, item)| (table, id, item)));
    let outdated = all().map(|(table, id, _)| (table, id, Arc::new(Item::default()))).step_by(2);
    let records = outdated.chain(all().map(|(table, id, item)| (table, id, Arc::clone(item))));
    let mut records: Vec<_> = records.collect();
    let count = all().count();
    records[count.div_ceil(2)..].reverse();
    match Root::load(Arc::new(WITH_REST), 17, records) {
        Ok(loaded) => {
            assert_eq!(plain.conflict(), None);
            assert_eq!(loaded.generation(), 17);
            assert_root_is(&loaded, plain, &ids());
        }
        Err(conflict) => assert_eq!(Some(conflict_of(conflict)), plain.conflict()),
    }
}

/// Runs transactions while indexes are built aside from the root of one of them, and switches these in.
fn assert_switches<I: ToyId>(transactions: Vec<Transaction<I>>, begin: usize) {
    let mut root = Root::<Toy<I>>::new(Arc::new(WITHOUT_TAG));
    let mut plain = Plain::default();
    let meta = Arc::new(WITHOUT_GROUP | WITH_REST);
    let mut built: Vec<IndexBuilder<Toy<I>>> = Vec::new();
    for (at, transaction) in transactions.into_iter().enumerate() {
        if at == begin {
            // One of them replaces an index that is there.
            let places = TABLES.into_iter().flat_map(|table| [NAME, TAG, REST].map(|index| (table, index)));
            let build = |(table, index)| IndexBuilder::build(&root, Arc::clone(&meta), table, index);
            built = places.map(build).collect();
        }
        let changes = run(&mut root, &mut plain, transaction);
        assert_root_is(&root, &plain, &ids());
        for (builder, changes) in built.iter_mut().flat_map(|builder| Some((builder, changes.as_ref()?))) {
            builder.follow(root.generation(), changes);
            builder.follow(root.generation(), changes);
        }
    }
    let (before, needed) = (root.clone(), TABLES.into_iter().any(|table| !root.is_empty(table)));
    if needed {
        let refused = root.with_indexes(Arc::clone(&meta), Vec::new()).expect_err("nothing is built");
        assert!(matches!(refused.reason, IndexRefusal::Missing { .. }));
    }
    let conflicts: Vec<_> = built.iter().filter_map(|builder| builder.conflict().map(conflict_of)).collect();
    assert_eq!(conflicts.first(), plain.conflict().as_ref().filter(|_| !built.is_empty()));
    match root.with_indexes(meta, built) {
        Ok(switched) => assert_root_is(&switched, &plain, &ids()),
        Err(refused) => {
            let is_expected = match refused.reason {
                IndexRefusal::Conflict { index, .. } => index == NAME && plain.conflict().is_some(),
                IndexRefusal::Missing { .. } => needed && refused.indexes.is_empty(),
                _ => false,
            };
            assert!(is_expected, "{refused:?}");
        }
    }
    assert_root_is(&before, &plain, &ids());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn drafts_agree_with_plain_maps(transactions in prop::collection::vec(any_transaction::<Uuid>(), 1..20)) {
        assert_agreement(transactions);
    }

    #[test]
    fn drafts_of_dense_records_agree_with_plain_maps(
        transactions in prop::collection::vec(any_transaction::<RecordNumber>(), 1..20),
    ) {
        assert_agreement(transactions);
    }

    #[test]
    fn indexes_built_aside_agree_with_plain_maps(
        transactions in prop::collection::vec(any_transaction::<Uuid>(), 1..12),
        begin in 0_usize..8,
    ) {
        assert_switches(transactions, begin);
    }

    #[test]
    fn indexes_of_dense_records_built_aside_agree_with_plain_maps(
        transactions in prop::collection::vec(any_transaction::<RecordNumber>(), 1..12),
        begin in 0_usize..8,
    ) {
        assert_switches(transactions, begin);
    }
}

#[test]
fn a_key_may_move_between_records_within_one_draft() {
    let mut root = Root::<Toy>::new(Arc::new(0));
    let (first, second) = (Id::from_u128(1), Id::from_u128(2));
    let named = |name| Item { name, ..Item::default() };
    let mut draft = Draft::new(&root);
    put(&mut draft, TABLES[0], first, named(1));
    put(&mut draft, TABLES[0], second, named(2));
    let changes = draft.finish().unwrap();
    root.apply(&changes);

    let mut draft = Draft::new(&root);
    put(&mut draft, TABLES[0], first, named(2));
    assert_eq!(conflict_of(draft.check_unique().unwrap()), (TABLES[0], 2, vec![first, second]));
    put(&mut draft, TABLES[0], second, named(1));
    assert!(draft.check_unique().is_none());
    let changes = draft.finish().unwrap();
    root.apply(&changes);
    assert_eq!(root.lookup(TABLES[0], NAME, &Key(1)).collect::<Vec<_>>(), [second]);
}

#[test]
fn what_was_inserted_and_removed_leaves_nothing() {
    let root = Root::<Toy>::new(Arc::new(0));
    let id = Id::from_u128(1);
    let mut draft = Draft::new(&root);
    let item = Item { group: Some(1), links: vec![(TABLES[1], id, Strength::Strong)], ..Default::default() };
    put(&mut draft, TABLES[0], id, item);
    assert!(draft.has_referrer(TABLES[1], &id, Some(Strength::Strong)));
    assert!(draft.remove(TABLES[0], &id));
    assert!(!draft.remove(TABLES[0], &id));
    assert!(draft.was_deleted_here(TABLES[0], &id));
    assert!(draft.finish().unwrap().is_empty());
}

#[test]
fn empty_and_inverted_ranges_give_nothing() {
    let mut root = Root::<Toy>::new(Arc::new(0));
    let mut draft = Draft::new(&root);
    put(&mut draft, TABLES[0], Id::from_u128(1), Item { group: Some(3), ..Default::default() });
    let start = std::ops::Bound::Excluded(Key(3));
    assert_eq!(draft.range(TABLES[0], GROUP, Key(5)..Key(2)).count(), 0);
    assert_eq!(draft.range(TABLES[0], GROUP, (start.clone(), start.clone())).count(), 0);
    assert_eq!(draft.range(TABLES[0], GROUP, Key(3)..=Key(3)).count(), 1);
    let changes = draft.finish().unwrap();
    root.apply(&changes);
    assert_eq!(root.range(TABLES[0], GROUP, Key(5)..Key(2)).count(), 0);
    assert_eq!(root.range(TABLES[0], GROUP, (start.clone(), start)).count(), 0);
    assert_eq!(root.range(TABLES[0], GROUP, Key(3)..=Key(3)).count(), 1);
}

#[test]
fn a_table_or_index_that_is_not_there_is_empty() {
    let root = Root::<Toy>::new(Arc::new(0));
    let (table, id) = (TableIx(99), Id::from_u128(1));
    assert_eq!(root.len(table), 0);
    assert!(root.record(table, &id).is_none());
    assert_eq!(root.lookup(table, TAG, &Key(0)).count(), 0);
    let draft = Draft::new(&root);
    assert_eq!(draft.scan(table).count(), 0);
    assert_eq!(draft.lookup(TABLES[0], cowslip_engine::IndexIx(99), &Key(0)).count(), 0);
    assert!(!draft.has_referrer(table, &id, None));
}
