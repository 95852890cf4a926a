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
        "model": {"type": {"key": {"type": "string", "enum": ["set", ["standalone", "clustered", "relay"]]}}},
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

/// The operations that make the rows tell of a standalone database.
pub(crate) fn describe(name: &str, schema: Option<&str>) -> Vec<Json<'static>> {
    let text = |s: &str| Json::Str(Cow::Owned(s.to_string()));
    let object = |members: Vec<(&'static str, Json<'static>)>| {
        let members = members.into_iter().map(|(k, v)| (Cow::Borrowed(k), v)).collect();
        Json::Object(cowslip_ovsdb::json::Object::new(members))
    };
    let mut row = vec![
        ("name", text(name)),
        ("model", text("standalone")),
        ("connected", Json::Bool(true)),
        ("leader", Json::Bool(true)),
    ];
    if let Some(schema) = schema {
        row.push(("schema", text(schema)));
    }
    let by_name = Json::Array(vec![Json::Array(vec![text("name"), text("=="), text(name)])]);
    vec![
        object(vec![("op", text("delete")), ("table", text("Database")), ("where", by_name)]),
        object(vec![("op", text("insert")), ("table", text("Database")), ("row", object(row))]),
    ]
}
