//! Postings against plain sets.
#![allow(missing_docs)]

use std::collections::BTreeSet;

use cowslip_engine::{Posting, RecordNumber};
use proptest::prelude::*;

/// Numbers from a start, so many, so far apart: with these a few steps reach every form and lead back.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u32,
    count: u32,
    step: u32,
}

impl Run {
    fn numbers(self) -> impl Iterator<Item = u32> {
        (0..self.count).filter_map(move |at| self.start.checked_add(at * self.step))
    }
}

#[derive(Clone, Debug)]
enum Action {
    Insert(Run),
    Remove(Run),
    /// Keep a clone to the end.
    Keep,
    And(Run),
    Or(Run),
    AndNot(Run),
    /// What was kept last, combined with what there is.
    WithKept(Combination),
}

#[derive(Clone, Copy, Debug)]
enum Combination {
    And,
    Or,
    AndNot,
    Add,
}

fn any_run() -> impl Strategy<Value = Run> {
    let start = prop_oneof![
        4 => 0_u32..20,
        2 => 65_500_u32..65_560,
        2 => 0_u32..200_000,
        1 => any::<u32>(),
        1 => Just(u32::MAX - 5),
    ];
    let count = prop_oneof![5 => 0_u32..5, 2 => 100_u32..300, 2 => 2_000_u32..6_000, 1 => Just(20_000_u32)];
    let step = prop::sample::select(vec![1_u32, 1, 1, 2, 3, 17, 1_000]);
    (start, count, step).prop_map(|(start, count, step)| Run { start, count, step })
}

fn any_action() -> impl Strategy<Value = Action> {
    let combination =
        prop::sample::select(vec![Combination::And, Combination::Or, Combination::AndNot, Combination::Add]);
    prop_oneof![
        4 => any_run().prop_map(Action::Insert),
        3 => any_run().prop_map(Action::Remove),
        1 => Just(Action::Keep),
        1 => any_run().prop_map(Action::And),
        2 => any_run().prop_map(Action::Or),
        2 => any_run().prop_map(Action::AndNot),
        2 => combination.prop_map(Action::WithKept),
    ]
}

type Plain = BTreeSet<u32>;

fn posting(numbers: &Plain) -> Posting {
    numbers.iter().copied().map(RecordNumber).collect()
}

fn combined(combination: Combination, left: &Posting, right: &Posting) -> Posting {
    match combination {
        Combination::And => left.and(right),
        Combination::Or => left.or(right),
        Combination::AndNot => left.and_not(right),
        Combination::Add => {
            let mut sum = left.clone();
            sum.add(right);
            sum
        }
    }
}

fn plain_combined(combination: Combination, left: &Plain, right: &Plain) -> Plain {
    match combination {
        Combination::And => left & right,
        Combination::Or | Combination::Add => left | right,
        Combination::AndNot => left - right,
    }
}

fn act(found: &mut Posting, plain: &mut Plain, kept: &mut Vec<(Posting, Plain)>, action: Action) {
    match action {
        Action::Insert(run) => {
            for number in run.numbers() {
                assert_eq!(found.insert(RecordNumber(number)), plain.insert(number));
            }
        }
        Action::Remove(run) => {
            for number in run.numbers() {
                assert_eq!(found.remove(RecordNumber(number)), plain.remove(&number));
            }
        }
        Action::Keep => kept.push((found.clone(), plain.clone())),
        Action::And(run) => combine(found, plain, Combination::And, &run.numbers().collect()),
        Action::Or(run) => combine(found, plain, Combination::Or, &run.numbers().collect()),
        Action::AndNot(run) => combine(found, plain, Combination::AndNot, &run.numbers().collect()),
        Action::WithKept(combination) => {
            if let Some((posting, numbers)) = kept.last() {
                *found = combined(combination, posting, found);
                *plain = plain_combined(combination, numbers, plain);
            }
        }
    }
}

fn combine(found: &mut Posting, plain: &mut Plain, combination: Combination, other: &Plain) {
    *found = combined(combination, found, &posting(other));
    *plain = plain_combined(combination, plain, other);
}

fn assert_same(found: &Posting, plain: &Plain) {
    assert_eq!(found.len(), plain.len());
    assert_eq!(found.is_empty(), plain.is_empty());
    assert!(found.iter().map(|number| number.0).eq(plain.iter().copied()));
    assert!(found.iter().rev().map(|number| number.0).eq(plain.iter().rev().copied()));
    assert_eq!(*found, posting(plain));
    for probe in [0, 1, 3, 64, 255, 4_095, 65_535, 65_536, 131_072, u32::MAX - 1, u32::MAX] {
        assert_eq!(found.contains(RecordNumber(probe)), plain.contains(&probe));
        let after = found.iter_from(RecordNumber(probe)).map(|number| number.0);
        assert!(after.eq(plain.range(probe..).copied()));
        let backwards = found.iter_from(RecordNumber(probe)).rev().map(|number| number.0);
        assert!(backwards.eq(plain.range(probe..).rev().copied()));
    }
    // From both ends in turn, until they meet.
    let (mut walk, mut expected) = (found.iter(), plain.iter());
    loop {
        let (front, back) = (walk.next(), walk.next_back());
        assert_eq!(front.map(|number| number.0), expected.next().copied());
        assert_eq!(back.map(|number| number.0), expected.next_back().copied());
        if front.is_none() && back.is_none() {
            break;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn postings_agree_with_plain_sets(actions in prop::collection::vec(any_action(), 1..12)) {
        let (mut found, mut plain) = (Posting::new(), Plain::new());
        let mut kept = Vec::new();
        for action in actions {
            act(&mut found, &mut plain, &mut kept, action);
            assert_same(&found, &plain);
        }
        for (found, plain) in &kept {
            assert_same(found, plain);
        }
    }
}

#[test]
fn a_posting_is_as_small_as_a_slice() {
    // One for each key of an index: most of them hold a single number.
    assert_eq!(size_of::<Posting>(), 16);
}
