//! What the journal costs by itself: reading a snapshot of a million records, and appending batches durably.
//!
//! Run with `cargo bench -p cowslip-ldap-server --bench journal`; set `TMPDIR` to a folder on the disk to be measured.
#![allow(missing_docs)]

use std::path::Path;
use std::sync::Arc;

use cowslip_engine::storage::FileSystem;
use cowslip_engine::{
    Commit, Draft, IndexIx, Journal, KeyChanges, Model, RecordNumber, ReferenceChanges, Root, Step, TableIx,
    TableLayout,
};
use cowslip_ldap_server::journal::{
    self, Codec, CodecError, JournalOptions, SnapshotError, SnapshotReader, SnapshotWriter,
};
use divan::Bencher;
use divan::counter::BytesCount;

const RECORDS: u32 = 1_000_000;
/// About what an entry of the benchmark's directory takes.
const RECORD_BYTES: usize = 400;

struct Blobs;

impl Model for Blobs {
    type Id = RecordNumber;
    type Value = Vec<u8>;
    type Key = ();
    type Delta = ();
    type Meta = ();
    type Note = ();

    fn layout((): &()) -> Vec<TableLayout> {
        vec![TableLayout::default()]
    }

    fn keys((): &(), _: TableIx, _: IndexIx, _: &Step<'_, Self>, _: &mut KeyChanges<()>) {}

    fn references((): &(), _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<RecordNumber>) {}

    fn merge((): &mut (), (): ()) {}
}

/// Writes made-up records, and only counts what it reads.
struct Counting;

impl Codec<Blobs> for Counting {
    type State = usize;

    fn encode_commit(&self, commit: &Commit<Blobs>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        for change in commit.changes.tables().iter().flat_map(|table| &table.records) {
            out.extend(change.id.0.to_le_bytes());
            change.new.iter().for_each(|value| out.extend(&***value));
        }
        Ok(())
    }

    fn replay(&self, state: &mut usize, _: u64, record: &[u8]) -> Result<(), CodecError> {
        *state += record.len();
        Ok(())
    }

    fn write_snapshot(&self, _: &Root<Blobs>, snapshot: &mut SnapshotWriter<'_>) -> std::io::Result<()> {
        (0..RECORDS).try_for_each(|id| {
            snapshot.record(|out| {
                out.extend(id.to_le_bytes());
                out.resize(out.len() + RECORD_BYTES - 4, id as u8);
            })
        })
    }

    fn read_snapshot(&self, snapshot: &mut SnapshotReader<'_>) -> Result<usize, SnapshotError> {
        let mut bytes = 0;
        while let Some(record) = snapshot.record()? {
            bytes += record.len();
        }
        Ok(bytes)
    }

    fn finish(&self, state: usize) -> Result<Root<Blobs>, CodecError> {
        divan::black_box(state);
        Ok(Root::new(Arc::new(())))
    }
}

fn create(folder: &Path) {
    journal::create(&FileSystem::new(), folder, &Counting, &Root::<Blobs>::new(Arc::new(())))
        .expect("there is room for a directory");
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn read_a_snapshot_of_a_million(bencher: Bencher<'_, '_>) {
    let parent = tempfile::tempdir().expect("there is room for a folder");
    create(parent.path());
    bencher.counter(BytesCount::new(RECORDS as usize * RECORD_BYTES)).bench_local(|| {
        journal::load(&FileSystem::new(), parent.path(), &Counting).map(|loaded| loaded.position)
    });
}

#[divan::bench(args = [1, 16, 128], sample_count = 200, sample_size = 1)]
fn append_durably(bencher: Bencher<'_, '_>, commits: u32) {
    let parent = tempfile::tempdir().expect("there is room for a folder");
    create(parent.path());
    let storage = Arc::new(FileSystem::new());
    let opened = journal::open(storage, parent.path(), Counting, &JournalOptions::default());
    let mut journal = opened.expect("it was made just now").journal;
    let root = Root::<Blobs>::new(Arc::new(()));
    let batch: Vec<_> = (0..commits).map(|id| commit(&root, id)).collect();
    bencher.counter(commits).bench_local(|| {
        let appended = journal.append(&batch);
        appended.and_then(|positions| {
            let durable = Journal::<Blobs>::make_durable(&mut journal);
            durable.map(|()| positions).map_err(|source| cowslip_engine::AppendError::Unknown { source })
        })
    });
}

/// A commit of about the size that replacing two short values takes.
fn commit(root: &Root<Blobs>, id: u32) -> Commit<Blobs> {
    let mut draft = Draft::new(root);
    draft.put(TableIx(0), RecordNumber(id), Arc::new(vec![7; 120]), ());
    Commit { changes: Arc::new(draft.into_changes()), note: Arc::new(()), root: None }
}

fn main() {
    divan::main();
}
