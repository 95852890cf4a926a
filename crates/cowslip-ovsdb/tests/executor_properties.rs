//! Random transactions on a schema with every kind of rule, checked against a model that looks at the whole database.
//!
//! After each transaction the database must be one that the rules allow, the indexes and references of the root must be
//! those of its rows, and the change set must be exactly what differs. A transaction that fails leaves nothing.

use cowslip_engine::{IndexIx, Model, ReferenceChanges, Referrer, Root, Step, Strength, TableIx, Uuid};
use cowslip_ovsdb::executor::{Circumstances, Everything, Execution, Outcome, execute};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::monitor::{Dialect, MonitorSpec, RowChange, UpdateWriter, write_initial};
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::row::{IndexKey, Ovsdb, Row, RowDelta};
use cowslip_ovsdb::schema::Schema;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SCHEMA: &str = r#"{"name":"P","tables":{
 "Root":{"columns":{"name":{"type":"string"},
   "kids":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":"unlimited"}},
   "friends":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":"unlimited"}},
   "named":{"type":{"key":"string","value":{"type":"uuid","refTable":"Kid","refType":"weak"},"min":0,"max":"unlimited"}},
   "both":{"type":{"key":{"type":"uuid","refTable":"Kid"},"value":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":"unlimited"}}},
  "indexes":[["name"]],"isRoot":true},
 "Kid":{"columns":{"name":{"type":"string"},"n":{"type":"integer"},
   "next":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":1}},
   "numbers":{"type":{"key":"integer","min":0,"max":"unlimited"}}},
  "indexes":[["name","n"]]},
 "Must":{"columns":{"w":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":1,"max":"unlimited"}}},
  "isRoot":true,"maxRows":3}}}"#;

/// The rows that transactions choose from, by number.
fn uuid(n: u8) -> String {
    format!("a0000000-0000-4000-8000-0000000000{n:02x}")
}

fn reference(n: u8) -> String {
    format!(r#"["uuid","{}"]"#, uuid(n))
}

fn set(members: &[String]) -> String {
    format!(r#"["set",[{}]]"#, members.join(","))
}

fn pairs(members: &[(String, String)]) -> String {
    let pairs: Vec<String> = members.iter().map(|(k, v)| format!("[{k},{v}]")).collect();
    format!(r#"["map",[{}]]"#, pairs.join(","))
}

fn numbers(range: std::ops::Range<u16>) -> String {
    set(&range.map(|n| n.to_string()).collect::<Vec<_>>())
}

const ROWS: u8 = 6;

fn table() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("Root"), 4 => Just("Kid"), 1 => Just("Must")]
}

/// A column of a table with a value for it, as the member of a row.
fn value(table: &'static str) -> BoxedStrategy<String> {
    let rows = || prop::collection::btree_set(0..ROWS, 0..3).prop_map(|s| s.into_iter().collect::<Vec<_>>());
    let references =
        move || rows().prop_map(|rows| set(&rows.into_iter().map(reference).collect::<Vec<_>>()));
    let name = || (0..3u8).prop_map(|n| format!(r#""name":"n{n}""#));
    match table {
        "Root" => prop_oneof![
            name(),
            references().prop_map(|v| format!(r#""kids":{v}"#)),
            references().prop_map(|v| format!(r#""friends":{v}"#)),
            rows().prop_map(|rows| {
                let named: Vec<_> =
                    rows.iter().map(|n| (format!("\"k{}\"", n % 2), reference(*n))).take(1).collect();
                format!(r#""named":{}"#, pairs(&named))
            }),
            rows().prop_map(|rows| {
                let both: Vec<_> = rows.iter().map(|n| (reference(*n), reference((n + 1) % ROWS))).collect();
                format!(r#""both":{}"#, pairs(&both))
            }),
        ]
        .boxed(),
        "Kid" => prop_oneof![
            name(),
            (0..2u8).prop_map(|n| format!(r#""n":{n}"#)),
            prop::option::of(0..ROWS)
                .prop_map(|n| { format!(r#""next":{}"#, n.map_or_else(|| set(&[]), reference)) }),
            (0..80u16, 0..90u16)
                .prop_map(|(from, count)| format!(r#""numbers":{}"#, numbers(from..from + count))),
        ]
        .boxed(),
        _ => prop::collection::btree_set(0..ROWS, 1..3)
            .prop_map(|rows| format!(r#""w":{}"#, set(&rows.into_iter().map(reference).collect::<Vec<_>>())))
            .boxed(),
    }
}

fn row(table: &'static str) -> BoxedStrategy<String> {
    prop::collection::vec(value(table), 1..4).prop_map(|values| format!("{{{}}}", values.join(","))).boxed()
}

fn condition(table: &'static str) -> BoxedStrategy<String> {
    let by_uuid = (0..ROWS).prop_map(|n| format!(r#"[["_uuid","==",{}]]"#, reference(n)));
    if table == "Must" {
        return prop_oneof![by_uuid, Just("[]".to_string())].boxed();
    }
    let by_name = (0..3u8).prop_map(|n| format!(r#"[["name","==","n{n}"]]"#));
    prop_oneof![6 => by_uuid, 2 => by_name, 1 => Just("[]".to_string())].boxed()
}

fn mutation(table: &'static str) -> BoxedStrategy<String> {
    let row = || (0..ROWS).prop_map(reference);
    let verb = || prop_oneof![Just("insert"), Just("delete")];
    match table {
        "Root" => prop_oneof![
            (verb(), row()).prop_map(|(v, r)| format!(r#"["kids","{v}",{r}]"#)),
            (verb(), row()).prop_map(|(v, r)| format!(r#"["friends","{v}",{r}]"#)),
            row().prop_map(|r| format!(r#"["both","delete",{r}]"#)),
            (row(), row()).prop_map(|(k, v)| format!(r#"["both","insert",["map",[[{k},{v}]]]]"#)),
        ]
        .boxed(),
        "Kid" => prop_oneof![
            Just(r#"["n","+=",1]"#.to_string()),
            (verb(), 0..200u16, 1..70u16).prop_map(|(v, from, count)| {
                format!(r#"["numbers","{v}",{}]"#, numbers(from..from + count))
            }),
            (verb(), row()).prop_map(|(v, r)| format!(r#"["next","{v}",{r}]"#)),
        ]
        .boxed(),
        _ => (verb(), row()).prop_map(|(v, r)| format!(r#"["w","{v}",{r}]"#)).boxed(),
    }
}

fn operation() -> impl Strategy<Value = String> {
    table().prop_flat_map(|table| {
        prop_oneof![
            4 => (0..ROWS, row(table)).prop_map(move |(n, row)| {
                format!(r#"{{"op":"insert","table":"{table}","uuid":"{}","row":{row}}}"#, uuid(n))
            }),
            3 => (condition(table), row(table)).prop_map(move |(condition, row)| {
                format!(r#"{{"op":"update","table":"{table}","where":{condition},"row":{row}}}"#)
            }),
            3 => (condition(table), prop::collection::vec(mutation(table), 1..3)).prop_map(move |(condition, m)| {
                let m = m.join(",");
                format!(r#"{{"op":"mutate","table":"{table}","where":{condition},"mutations":[{m}]}}"#)
            }),
            2 => condition(table).prop_map(move |condition| {
                format!(r#"{{"op":"delete","table":"{table}","where":{condition}}}"#)
            }),
        ]
    })
}

fn run(root: &Root<Ovsdb>, operations: &[String]) -> Outcome {
    let text = format!("[{}]", operations.join(","));
    let json = Json::parse(text.as_bytes()).expect("the generator writes JSON");
    let transaction = Transaction::parse(root.meta(), json.as_array().expect("an array"));
    assert_eq!(
        transaction.fault.as_ref().map(|f| f.kind.tag()).filter(|t| *t == "syntax error"),
        None,
        "{text}"
    );
    let circumstances = Circumstances { owns_lock: &|_| true, read_only: false, waited_ms: 0 };
    match execute(root, &transaction, &Everything, &circumstances) {
        Execution::Done(outcome) => outcome,
        Execution::Waiting { .. } => unreachable!("there is no wait among the operations"),
    }
}

type Rows = BTreeMap<(TableIx, Uuid), Arc<Row>>;

fn rows(root: &Root<Ovsdb>) -> Rows {
    let tables = root.meta().numbered_tables().map(|(table, _)| table);
    tables.flat_map(|table| root.scan(table).map(move |(id, row)| ((table, id), row.clone()))).collect()
}

/// The references of all rows, counted from nothing.
fn all_references(schema: &Schema, rows: &Rows) -> BTreeMap<(TableIx, Referrer<Uuid>), u32> {
    let mut counted = BTreeMap::new();
    for ((table, id), row) in rows {
        let mut changes = ReferenceChanges::default();
        let step = Step { old: None, new: Some(row.as_ref()), delta: &RowDelta::default() };
        Ovsdb::references(schema, *table, &step, &mut changes);
        for (r, count) in changes.changes {
            let referrer =
                Referrer { target: r.target, strength: r.strength, table: *table, source: *id, slot: r.slot };
            *counted.entry((r.table, referrer)).or_insert(0) += count as u32;
        }
    }
    counted
}

/// The rules that must hold after every transaction.
fn check_database(root: &Root<Ovsdb>) {
    let schema = root.meta();
    let rows = rows(root);
    let references = all_references(schema, &rows);
    for (table, referrer) in references.keys() {
        assert!(rows.contains_key(&(*table, referrer.target)), "{referrer:?} dangles");
    }
    let mut kept = BTreeSet::new();
    for (table, r) in references.keys().filter(|(_, r)| r.strength == Strength::Strong) {
        if (*table, r.target) != (r.table, r.source) {
            kept.insert((*table, r.target));
        }
    }
    for ((table, id), row) in &rows {
        let definition = schema.at(*table);
        assert!(definition.is_root || kept.contains(&(*table, *id)), "row {id} is garbage");
        for (column, c) in definition.data_columns() {
            let n = row.data(column).len();
            assert!(n >= c.ty.min as usize && n <= c.ty.max as usize, "{} members in {}", n, c.name);
        }
        let known: Vec<_> = root.referrers(*table, id).collect();
        let counted: Vec<_> = references
            .iter()
            .filter(|((t, r), _)| t == table && r.target == *id)
            .map(|((_, r), n)| (*r, *n))
            .collect();
        assert_eq!(known, counted);
    }
    for (table, definition) in schema.numbered_tables() {
        assert!(definition.max_rows.is_none_or(|max| root.len(table) as u64 <= max));
        for (i, columns) in definition.indexes.iter().enumerate() {
            for (id, row) in root.scan(table) {
                let key: IndexKey = columns.iter().map(|c| row.data(*c)).collect();
                let holders: Vec<Uuid> = root.lookup(table, IndexIx(i as u16), &key).collect();
                assert_eq!(holders, [id], "index {i} of {}", definition.name);
            }
        }
    }
}

/// The change set must lead from the one state to the other and name nothing that is the same in both.
fn check_changes(before: &Rows, after: &Rows, outcome: &Outcome) {
    let mut expected = before.clone();
    for table in outcome.changes.tables() {
        for change in &table.records {
            let place = (table.table, change.id);
            assert_eq!(before.get(&place), change.old.as_ref());
            if let (Some(old), Some(new)) = (&change.old, &change.new) {
                let differing: Vec<_> =
                    change.delta.columns().filter(|c| change.delta.differs(*c, old, new)).collect();
                assert!(!differing.is_empty(), "a change that changes nothing");
                for (i, (o, n)) in old.columns.iter().zip(&new.columns).enumerate() {
                    let column = cowslip_ovsdb::schema::ColumnIx(i as u16);
                    assert_eq!(o != n, differing.contains(&column), "column {i}");
                    assert_eq!(o.with(&change.delta.changes(column, old, new)), *n, "column {i}");
                }
            }
            match &change.new {
                Some(row) => expected.insert(place, row.clone()),
                None => expected.remove(&place),
            };
        }
    }
    assert_eq!(&expected, after);
}

/// A client that applies updates must see what a client that asks anew sees.
fn check_update(before: &Root<Ovsdb>, after: &Root<Ovsdb>, outcome: &Outcome) {
    let requests = r#"{"Root":{"columns":["name","kids","both"],"where":[["name","!=","n1"]]},"Kid":{}}"#;
    let json = Json::parse(requests.as_bytes()).expect("JSON");
    let mut spec = MonitorSpec::from_json(before.meta(), Dialect::Conditional, &json).expect("a monitor");
    // Whole values are easier to apply here than differences; conditions are the same in every dialect.
    spec.dialect = Dialect::Plain;
    let view = |root: &Root<Ovsdb>| {
        let mut text = String::new();
        write_initial(&spec, root, &mut text);
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    let mut text = String::new();
    let mut writer = UpdateWriter::new(after.meta(), spec.dialect, &mut text);
    for changes in outcome.changes.tables() {
        let Some(table) = spec.table(changes.table) else { continue };
        for change in &changes.records {
            let (old, new) = (change.old.as_deref(), change.new.as_deref());
            writer.add(table, &RowChange { id: &change.id, old, new, delta: &change.delta });
        }
    }
    writer.finish();
    let update: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut seen = view(before);
    for (table, rows) in update.as_object().expect("an object") {
        for (id, change) in rows.as_object().expect("an object") {
            let place =
                seen.as_object_mut().expect("an object").entry(table).or_insert(serde_json::json!({}));
            let place = place.as_object_mut().expect("an object");
            match change.get("new") {
                Some(new) => place.insert(id.clone(), serde_json::json!({ "new": new })),
                None => place.remove(id),
            };
        }
    }
    seen.as_object_mut()
        .expect("an object")
        .retain(|_, rows| rows.as_object().is_some_and(|r| !r.is_empty()));
    assert_eq!(seen, view(after));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_transaction_keeps_the_rules(
        transactions in prop::collection::vec(prop::collection::vec(operation(), 1..6), 1..14)
    ) {
        let schema = Arc::new(Schema::parse(SCHEMA.as_bytes()).expect("the schema is good"));
        let mut root = Root::<Ovsdb>::new(schema);
        for operations in transactions {
            let outcome = run(&root, &operations);
            let before = root.clone();
            root.apply(&outcome.changes);
            if outcome.error.is_some() {
                prop_assert!(outcome.changes.is_empty());
            }
            prop_assert!(outcome.is_certain);
            check_changes(&rows(&before), &rows(&root), &outcome);
            check_database(&root);
            check_update(&before, &root, &outcome);
        }
    }
}
