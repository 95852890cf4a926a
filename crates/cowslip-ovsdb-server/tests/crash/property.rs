//! Whatever changes are accepted: after a restart, with or without compactions in between, the content is the same.

use crate::support::{Change, Db, content};
use cowslip_engine::Journal;
use cowslip_engine::sim::SimDisk;
use cowslip_ovsdb_server::file::FileJournal;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Act {
    Transact(Vec<Change>),
    Compact,
    Reopen,
    Crash,
}

fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::MAX),
        Just(5e-324),
        Just(-0.0),
        Just(0.1 + 0.2),
        any::<f64>().prop_filter("columns hold finite reals", |weight| weight.is_finite()),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let cow = 0..4u8;
    prop_oneof![
        4 => cow.clone().prop_map(|cow| Change::Insert { cow }),
        1 => (cow.clone(), 0..5u8).prop_map(|(cow, name)| Change::Rename { cow, name }),
        2 => (cow.clone(), weight()).prop_map(|(cow, weight)| Change::Weigh { cow, weight }),
        3 => (cow.clone(), vec(0..6u16, 0..4), any::<bool>())
            .prop_map(|(cow, tags, present)| Change::Tag { cow, tags, present }),
        1 => (cow.clone(), 0..40u16, any::<bool>())
            .prop_map(|(cow, from, present)| Change::Tag { cow, tags: (from..from + 90).collect(), present }),
        3 => (cow.clone(), 0..3u8, option::of(0..3u8))
            .prop_map(|(cow, key, value)| Change::Note { cow, key, value }),
        3 => (cow.clone(), vec(0..3i64, 1..3)).prop_map(|(cow, pair)| Change::Pair { cow, pair }),
        1 => (cow.clone(), 0..3u8).prop_map(|(cow, mood)| Change::Mood { cow, mood }),
        3 => (cow.clone(), 0..3u8, any::<bool>())
            .prop_map(|(cow, meadow, present)| Change::Graze { cow, meadow, present }),
        1 => cow.prop_map(|cow| Change::Delete { cow }),
        2 => (0..3u8, option::of(0..3i64)).prop_map(|(meadow, size)| Change::Fence { meadow, size }),
        1 => (0..3u8).prop_map(|meadow| Change::Plough { meadow }),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => vec(change(), 1..6).prop_map(Act::Transact),
        1 => Just(Act::Compact),
        1 => Just(Act::Reopen),
        1 => Just(Act::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_restart_equals_memory(acts in vec(act(), 1..40)) {
        let mut disk = SimDisk::new();
        Db::create(&disk).expect("the disk works");
        let mut db = Db::open(&disk).expect("the file is good");
        // Whether the last commit wrote a record, to a file that this run opened and did not compact.
        let (mut is_named, mut is_compacted) = (true, false);
        for act in acts.iter().chain([&Act::Reopen]) {
            match act {
                Act::Transact(changes) => {
                    let bytes = db.journal.file_bytes();
                    if db.commit(changes).expect("the disk works") {
                        is_named = db.journal.file_bytes() > bytes;
                    }
                }
                Act::Compact => {
                    let compaction = db.journal.begin_compaction(Arc::new(db.root.clone())).expect("none is running");
                    let compacted = FileJournal::run_compaction(compaction);
                    db.journal.finish_compaction(compacted).expect("the disk works");
                    is_compacted = true;
                }
                Act::Reopen | Act::Crash => {
                    let before = content(&db.root);
                    let position = db.journal.position();
                    if matches!(act, Act::Crash) {
                        db.journal.make_durable().expect("the disk works");
                        drop(db);
                        disk = disk.crash(|| false);
                    } else {
                        drop(db);
                    }
                    db = Db::open(&disk).expect("the file is good");
                    prop_assert!(db.report.damage.is_none());
                    prop_assert_eq!(content(&db.root), before);
                    prop_assert!(!is_named || is_compacted || db.journal.position() == position);
                    (is_named, is_compacted) = (true, false);
                }
            }
        }
    }
}
