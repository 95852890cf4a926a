//! Files as other programs, or other versions, write them.

use crate::support::{Change, Db, PATH, content, schema};
use cowslip_engine::Journal;
use cowslip_engine::sim::SimDisk;
use cowslip_engine::storage::{OpenMode, Storage};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb_server::file::log::write_record;
use cowslip_ovsdb_server::file::{self, FileJournal, OpenError};
use std::path::Path;
use std::sync::Arc;

const COW: &str = "00000000-0000-4000-8000-0000000000c1";
const MEADOW: &str = "00000000-0000-4000-8000-0000000000e1";

/// A disk with a file of these records after the schema.
fn disk(records: &[&str]) -> SimDisk {
    let mut bytes = Vec::new();
    write_record(&mut bytes, &mut schema().text().to_string());
    for record in records {
        write_record(&mut bytes, &mut record.replace("$COW", COW).replace("$MEADOW", MEADOW));
    }
    raw(&bytes)
}

fn raw(bytes: &[u8]) -> SimDisk {
    let disk = SimDisk::new();
    let file = disk.open(Path::new(PATH), OpenMode::CreateNew).expect("an empty disk has room");
    file.append(bytes).expect("the disk works");
    disk
}

fn open(disk: &SimDisk) -> Db {
    Db::open(disk).expect("only a bad schema stops the start")
}

/// A column of the only cow, as it travels.
fn column(db: &Db, name: &str) -> String {
    let content = content(&db.root);
    let (_, columns) = content.iter().find(|((table, _), _)| table == "Cow").expect("there is a cow");
    let (_, value) = columns.iter().find(|(column, _)| column == name).expect("it has the column");
    let mut text = String::new();
    let is_map = matches!(value, Datum::Map(_) | Datum::LargeMap(_));
    value.write(&mut text, is_map);
    text
}

const INSERT: &str = r#"{"_date":1,"Cow":{"$COW":{"name":"Rosa","tags":["set",["a","b"]]}},"_is_diff":true}"#;

#[test]
fn differences_and_whole_values_are_both_applied() {
    let whole = disk(&[INSERT, r#"{"Cow":{"$COW":{"tags":"b","pair":5,"weight":2}}}"#]);
    let difference = disk(&[INSERT, r#"{"_is_diff":true,"Cow":{"$COW":{"tags":"b","pair":5,"weight":2}}}"#]);
    for (disk, tags, pair) in [(whole, r#""b""#, "5"), (difference, r#""a""#, r#"["set",[0,5]]"#)] {
        let db = open(&disk);
        assert!(db.report.damage.is_none());
        assert_eq!((column(&db, "tags"), column(&db, "pair")), (tags.to_owned(), pair.to_owned()));
        assert_eq!(column(&db, "weight"), "2");
    }
}

#[test]
fn a_difference_may_be_longer_than_the_column() {
    let pair = r#"{"_is_diff":true,"Cow":{"$COW":{"pair":["set",[0,1,2]]}}}"#;
    let db = open(&disk(&[INSERT, pair]));
    assert!(db.report.damage.is_none());
    assert_eq!(column(&db, "pair"), r#"["set",[1,2]]"#);
    // But what it leaves must fit.
    let db = open(&disk(&[INSERT, pair, r#"{"_is_diff":true,"Cow":{"$COW":{"pair":7}}}"#]));
    assert!(db.report.damage.expect("three members are too many").fault.to_string().contains("3 members"));
}

#[test]
fn records_that_make_no_sense_end_the_reading() {
    for (record, reason) in [
        (r#"{"_date":1"#, "not JSON"),
        ("[]", "an object of tables"),
        (r#"{"_future":1}"#, "\"_future\""),
        (r#"{"Pig":{}}"#, "no table named Pig"),
        (r#"{"Cow":[]}"#, "an object of rows"),
        (r#"{"Cow":{"c1":{}}}"#, "\"c1\" is not a valid UUID"),
        (r#"{"Cow":{"$COW":3}}"#, "an object of columns"),
        (r#"{"Cow":{"$COW":{"wings":2}}}"#, "no column wings"),
        (r#"{"Cow":{"$COW":{"_uuid":2}}}"#, "no column _uuid"),
        (r#"{"Cow":{"$COW":{"name":2}}}"#, "column name of table Cow"),
        (r#"{"Meadow":{"$COW":null}}"#, "does not exist"),
        (r#"{"Cow":{"$MEADOW":{"name":"Rosa"}}}"#, "agree in an index"),
        (r#"{"name":"Farm","tables":{}, "version":"x"}"#, "a schema inside the file is bad"),
    ] {
        let disk = disk(&[INSERT, record, r#"{"Cow":{"$COW":null}}"#]);
        let mut db = open(&disk);
        assert_eq!(content(&db.root).len(), 1, "{record}: the records before it count");
        let damage = db.report.damage.take().unwrap_or_else(|| panic!("{record} is taken"));
        assert!(damage.fault.to_string().contains(reason), "{record}: {}", damage.fault);
        assert_eq!(damage.intact_records, 2, "{record}");
        db.commit(&[Change::Insert { cow: 1 }]).expect("the disk works");
        drop(db);
        let db = open(&disk);
        assert!(db.report.damage.is_none());
        assert_eq!(content(&db.root).len(), 2);
    }
}

#[test]
fn only_a_bad_schema_stops_the_start() {
    let mut clustered = b"OVSDB CLUSTER 3 ".to_vec();
    clustered.extend_from_slice(&b"0".repeat(40));
    clustered.extend_from_slice(b"\n{}\n");
    let mut no_schema = Vec::new();
    write_record(&mut no_schema, &mut "{}".to_owned());
    let open = |bytes: &[u8]| Db::open(&raw(bytes)).err().expect("there is no schema");
    assert!(matches!(open(b""), OpenError::NoSchema { source: None, .. }));
    assert!(matches!(open(b"junk\n"), OpenError::NoSchema { source: Some(_), .. }));
    assert!(matches!(open(&no_schema), OpenError::BadSchema { .. }));
    let error = open(&clustered);
    assert!(matches!(error, OpenError::Clustered { .. }));
    assert!(error.to_string().contains("ovsdb-tool cluster-to-standalone"));
}

/// An older server wrote a conversion into the running file.
#[test]
fn a_schema_inside_the_file_converts_what_came_before() {
    let next = crate::support::next_schema();
    let rename = r#"{"Cow":{"$COW":{"horns":2,"weight":["set",[1,2]]}}}"#;
    let disk = disk(&[INSERT, next.text(), rename]);
    let db = open(&disk);
    assert!(db.report.damage.is_none(), "{:?}", db.report.damage);
    assert_eq!(&*db.root.meta().version, "2.0.0");
    assert_eq!(column(&db, "tags"), r#"["set",["a","b"]]"#);
    assert_eq!(
        (column(&db, "horns"), column(&db, "weight")),
        ("2".to_owned(), r#"["set",[1,2]]"#.to_owned())
    );
}

/// Open vSwitch 3.1 leaves some, depending on the order of operations.
#[test]
fn weak_references_to_missing_rows_are_taken_out_once() {
    let graze = r#"{"Cow":{"$COW":{"name":"Rosa","meadows":["uuid","$MEADOW"]}}}"#;
    let disk = disk(&[r#"{"Meadow":{"$MEADOW":{}}}"#, graze, r#"{"Meadow":{"$MEADOW":null}}"#]);
    let mut db = open(&disk);
    assert_eq!(db.report.pruned_references, 1);
    assert_eq!(column(&db, "meadows"), r#"["set",[]]"#);
    // The first write makes it last, and comes on top of it.
    db.commit(&[Change::Fence { meadow: 1, size: None }]).expect("the disk works");
    let position = db.journal.position();
    let before = content(&db.root);
    drop(db);
    let db = open(&disk);
    assert_eq!(db.report.pruned_references, 0);
    assert_eq!(content(&db.root), before);
    assert_eq!(db.journal.position(), position);
}

#[test]
fn weak_references_stay_out_through_a_compaction() {
    let graze = r#"{"Cow":{"$COW":{"name":"Rosa","meadows":["uuid","$MEADOW"]}}}"#;
    let disk = disk(&[graze]);
    let mut db = open(&disk);
    let compaction = db.journal.begin_compaction(Arc::new(db.root.clone())).expect("the disk works");
    db.commit(&[Change::Insert { cow: 2 }]).expect("the disk works");
    db.journal.finish_compaction(FileJournal::run_compaction(compaction)).expect("the disk works");
    let before = content(&db.root);
    drop(db);
    let db = open(&disk);
    assert_eq!(db.report.pruned_references, 0);
    assert_eq!(content(&db.root), before);
}

#[test]
fn reading_needs_no_lock_and_changes_nothing() {
    let disk = disk(&[INSERT, "{"]);
    let db = open(&disk);
    let steps = disk.steps();
    let loaded = file::load(&disk, Path::new(PATH)).expect("the file is good");
    assert_eq!(content(&loaded.root), content(&db.root));
    assert!(loaded.report.damage.is_some());
    assert_eq!(disk.steps(), steps);
}
