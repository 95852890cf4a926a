//! Everything that a database stores, as one value that can be compared.

use serde_json::{Value, json};

use super::compare::sort_rows;
use super::rpc::Session;

/// All rows of all tables with all columns that are stored, that is, without ephemeral ones and `_version`.
pub(crate) fn content(session: &mut Session, schema: &Value) -> Value {
    let name = schema["name"].as_str().expect("a schema has a name");
    let (mut operations, mut tables) = (Vec::new(), Vec::new());
    for (table, definition) in schema["tables"].as_object().into_iter().flatten() {
        let columns = definition["columns"].as_object().into_iter().flatten();
        let kept = columns.filter(|(_, c)| c["ephemeral"] != true).map(|(name, _)| name.as_str());
        let kept: Vec<&str> = kept.chain(["_uuid"]).collect();
        operations.push(json!({"op": "select", "table": table, "where": [], "columns": kept}));
        tables.push(table);
    }
    let mut results = session.must(name, &operations);
    let mut all = json!({});
    for (table, result) in tables.into_iter().zip(results.as_array_mut().into_iter().flatten()) {
        sort_rows(result);
        all[table] = result.take();
    }
    all
}
