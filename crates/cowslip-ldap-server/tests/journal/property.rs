//! Random scripts, ended by random crashes, several times over.

use std::path::Path;

use cowslip_engine::sim::{Fault, SimDisk};
use cowslip_engine::storage::Storage;
use cowslip_ldap_server::journal::{decode_journal_file, decode_snapshot_file};
use proptest::prelude::*;

use crate::crash::{Act, Run};
use crate::toy::{Change, Db, put};

fn change() -> impl Strategy<Value = Change> {
    let length = prop_oneof![6 => 0..80_usize, 2 => 500..700_usize, 1 => 1000..6000_usize];
    prop_oneof![
        5 => (0..12_u32, length).prop_map(|(id, length)| put(id, length)),
        1 => (0..12_u32).prop_map(|id| (id, None)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let commit = proptest::collection::vec(change(), 1..3);
    prop_oneof![
        8 => proptest::collection::vec(commit, 1..5).prop_map(Act::Append),
        4 => Just(Act::Sync),
        1 => (2..9_u32).prop_map(Act::Meta),
        1 => Just(Act::BeginCompaction),
        2 => Just(Act::RunCompaction),
        2 => Just(Act::FinishCompaction),
        1 => Just(Act::Restart),
    ]
}

fn faults() -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let fault = prop_oneof![Just(Fault::Full), Just(Fault::Failed), Just(Fault::Stop)];
    proptest::collection::vec((8..250_u64, fault), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_durable_is_lost_whatever_happens(
        script in proptest::collection::vec(act(), 1..60),
        faults in faults(),
    ) {
        let disk = SimDisk::new();
        for (step, fault) in &faults {
            disk.inject(*step, *fault);
        }
        let mut run = Run::new(&disk);
        run.play(&script);
        run.check_all_crashes(&format!("{faults:?}"));
    }

    #[test]
    fn any_bytes_are_read_without_harm(
        noise in proptest::collection::vec(any::<u8>(), 0..300),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        snapshot in any::<bool>(),
    ) {
        let decode = |content: &[u8]| {
            // Whether it is accepted is the matter of other tests.
            let _ = decode_journal_file(content);
            let _ = decode_snapshot_file(content);
        };
        decode(&noise);
        let (disk, mut db) = Db::new();
        db.commit(vec![put(1, 100), put(2, 0)]).expect("the disk works");
        db.compact().expect("the disk works");
        db.commit(vec![put(3, 700)]).expect("the disk works");
        let name = if snapshot { "/db/snapshot-00000003" } else { "/db/journal-00000003" };
        let mut content = disk.read(Path::new(name)).expect("the file is there");
        for (place, byte) in changes {
            let place = place.index(content.len().min(400));
            content[place] = byte;
        }
        decode(&content);
    }
}
