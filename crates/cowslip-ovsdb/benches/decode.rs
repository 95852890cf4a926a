//! Decoding messages: our borrowing tree against `serde_json::Value`, and each on to values of columns.
//!
//! The question was whether to decode straight into values. With a tree whose strings are slices of the message, the
//! tree costs less than half of what `serde_json::Value` costs, and the step from tree to values is what any decoder has
//! to do anyway (sorting, checking, sharing strings), so the tree stayed. Figures: ARCHITECTURE.md.

use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::schema::Schema;
use std::sync::Arc;

fn main() {
    divan::main();
}

const SCHEMA: &str = r#"{"name":"D","tables":{"Port":{"isRoot":true,"columns":{
 "name":{"type":"string"},"tag":{"type":{"key":"integer","min":0,"max":1}},
 "addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
 "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;

/// A transaction of `n` inserts, as controllers send them.
fn transaction(n: usize) -> String {
    let inserts: Vec<String> = (0..n)
        .map(|i| {
            format!(
                r#"{{"op":"insert","table":"Port","row":{{"name":"port-{i}","tag":{},"addresses":["set",["02:00:00:00:00:01 10.0.0.{}","unknown"]],"external_ids":["map",[["owner","bench"],["pod","namespace/pod-{i}"]]]}}}}"#,
                i % 4096,
                i % 250
            )
        })
        .collect();
    format!(r#"{{"id":1,"method":"transact","params":["D",{}]}}"#, inserts.join(","))
}

const SIZES: [usize; 3] = [1, 100, 10_000];

#[divan::bench(args = SIZES)]
fn tree_of_ours(bencher: divan::Bencher<'_, '_>, n: usize) {
    let text = transaction(n);
    bencher
        .counter(divan::counter::BytesCount::of_str(&text))
        .bench(|| Json::parse(divan::black_box(text.as_bytes())).map(|json| json.is_finite()));
}

#[divan::bench(args = SIZES)]
fn tree_of_serde_json(bencher: divan::Bencher<'_, '_>, n: usize) {
    let text = transaction(n);
    bencher.counter(divan::counter::BytesCount::of_str(&text)).bench(|| {
        serde_json::from_slice::<serde_json::Value>(divan::black_box(text.as_bytes())).map(|v| v.is_object())
    });
}

#[divan::bench(args = SIZES)]
fn tree_and_operations(bencher: divan::Bencher<'_, '_>, n: usize) {
    let text = transaction(n);
    let schema = Arc::new(Schema::parse(SCHEMA.as_bytes()).expect("the schema is good"));
    bencher.counter(divan::counter::BytesCount::of_str(&text)).bench(|| {
        let json = Json::parse(divan::black_box(text.as_bytes())).expect("JSON");
        let params =
            json.as_object().and_then(|o| o.member("params")).and_then(Json::as_array).expect("params");
        Transaction::parse(&schema, &params[1..])
    });
}
