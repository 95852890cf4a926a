//! The database `_Server`, which tells clients what the others are (ovsdb-server(5)).

use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::schema::Schema;
use std::borrow::Cow;

/// Its name.
pub const SERVER_DATABASE: &str = "_Server";

const SCHEMA: &str = r#"{
  "name": "_Server",
  "version": "1.2.0",
  "cksum": "3009684573 744",
  "tables": {
    "Database": {
      "columns": {
        "name": {"type": "string"},
        "model": {"type": {"key": {"type": "string", "enum": ["set", ["clustered", "relay", "standalone"]]}}},
        "connected": {"type": "boolean"},
        "leader": {"type": "boolean"},
        "schema": {"type": {"key": "string", "min": 0}},
        "cid": {"type": {"key": "uuid", "min": 0}},
        "sid": {"type": {"key": "uuid", "min": 0}},
        "index": {"type": {"key": "integer", "min": 0}}
      }
    }
  }
}"#;

/// Its schema.
pub(crate) fn schema() -> Schema {
    Schema::parse(SCHEMA.as_bytes()).expect("the schema of _Server is part of the program")
}

fn text(s: &str) -> Json<'static> {
    Json::Str(Cow::Owned(s.to_string()))
}

fn object(members: Vec<(&'static str, Json<'static>)>) -> Json<'static> {
    let members = members.into_iter().map(|(k, v)| (Cow::Borrowed(k), v)).collect();
    Json::Object(cowslip_ovsdb::json::Object::new(members))
}

/// The operation that makes it forget a database.
pub(crate) fn forget(name: &str) -> Vec<Json<'static>> {
    let by_name = Json::Array(vec![Json::Array(vec![text("name"), text("=="), text(name)])]);
    vec![object(vec![("op", text("delete")), ("table", text("Database")), ("where", by_name)])]
}

/// The operation that makes it tell of a standalone database.
pub(crate) fn describe(name: &str, schema: &Schema) -> Vec<Json<'static>> {
    let row = vec![
        ("name", text(name)),
        ("model", text("standalone")),
        ("connected", Json::Bool(true)),
        ("leader", Json::Bool(true)),
        ("schema", text(schema.text())),
    ];
    vec![object(vec![("op", text("insert")), ("table", text("Database")), ("row", object(row))])]
}
