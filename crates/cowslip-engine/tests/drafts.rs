//! Drafts, change sets and roots against plain maps.
#![allow(missing_docs)]

mod toy;

use std::sync::Arc;

use cowslip_engine::{Draft, Id, Root, Strength, TableIx};
use proptest::prelude::*;
use toy::{
    GROUP, Item, Key, NAME, Plain, TABLES, TAG, TagDelta, Toy, assert_draft_is, assert_root_is, conflict_of,
    put,
};

#[derive(Clone, Debug)]
enum Action {
    Put(TableIx, Id, Item),
    Tag(TableIx, Id, u32),
    Untag(TableIx, Id, u32),
    Remove(TableIx, Id),
    /// Ask the draft everything.
    Look,
}

#[derive(Clone, Debug)]
struct Transaction {
    actions: Vec<Action>,
    abort: bool,
    /// Drop records that came back to what they were, as a protocol would.
    forget: bool,
    /// Finish without the check, as a client's cache does with what the server says.
    unchecked: bool,
}

fn ids() -> Vec<Id> {
    // The extremes are ids like any other.
    [0, 1, 2, 3, 4, u128::MAX - 1, u128::MAX].map(Id::from_u128).to_vec()
}

fn any_id() -> impl Strategy<Value = Id> {
    prop::sample::select(ids())
}

fn any_table() -> impl Strategy<Value = TableIx> {
    prop::sample::select(TABLES.to_vec())
}

fn any_item() -> impl Strategy<Value = Item> {
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

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (any_table(), any_id(), any_item()).prop_map(|(table, id, item)| Action::Put(table, id, item)),
        3 => (any_table(), any_id(), 0_u32..10).prop_map(|(table, id, tag)| Action::Tag(table, id, tag)),
        3 => (any_table(), any_id(), 0_u32..10).prop_map(|(table, id, tag)| Action::Untag(table, id, tag)),
        3 => (any_table(), any_id()).prop_map(|(table, id)| Action::Remove(table, id)),
        1 => Just(Action::Look),
    ]
}

fn any_transaction() -> impl Strategy<Value = Transaction> {
    let odds = (prop::bool::weighted(0.1), any::<bool>(), prop::bool::weighted(0.05));
    (prop::collection::vec(any_action(), 0..12), odds)
        .prop_map(|(actions, (abort, forget, unchecked))| Transaction { actions, abort, forget, unchecked })
}

fn act(draft: &mut Draft<'_, Toy>, plain: &mut Plain, action: Action) {
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

fn forget_unchanged(draft: &mut Draft<'_, Toy>) {
    for table in TABLES {
        let unchanged = draft.touched(table).filter(|(_, touched)| touched.first == touched.last);
        let unchanged: Vec<_> = unchanged.map(|(id, _)| *id).collect();
        for id in unchanged {
            assert!(draft.forget(table, &id));
            assert!(!draft.is_touched(table, &id));
        }
    }
}

fn run(root: &mut Root<Toy>, plain: &mut Plain, transaction: Transaction) {
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
        return;
    }
    if transaction.unchecked {
        return root.apply(&draft.into_changes());
    }
    let checked = draft.check_unique().map(conflict_of);
    // Unchecked commits may have left conflicts in the base, which are not this draft's.
    if before.conflict().is_none() {
        assert_eq!(checked, plain.conflict());
    }
    let changes = match draft.finish() {
        Ok(changes) => changes,
        Err(conflict) => {
            assert_eq!(Some(conflict_of(conflict)), checked);
            *plain = before;
            return;
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
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn drafts_agree_with_plain_maps(transactions in prop::collection::vec(any_transaction(), 1..20)) {
        let mut root = Root::<Toy>::new(Arc::new(0));
        let mut plain = Plain::default();
        let mut kept = Vec::new();
        for transaction in transactions {
            kept.push((root.clone(), plain.clone()));
            run(&mut root, &mut plain, transaction);
            assert_root_is(&root, &plain, &ids());
        }
        // Snapshots are as they were, and a root made anew from its records has the same indexes.
        for (snapshot, plain) in &kept {
            assert_root_is(snapshot, plain, &ids());
        }
        assert_root_is(&root.rebuilt(Arc::new(1)), &plain, &ids());
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
