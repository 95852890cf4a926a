//! A schema as JSON in its shortest form: what is a default is left out, scalars are plain names.
//!
//! Servers may keep a schema as its author wrote it. Two texts of one schema are the same in this form, so it is what
//! `get-schema` prints, `needs-conversion` compares and `backup` writes.

use super::error::ClientError;
use super::json::{Value, object, string, strings};
use super::table::datum_json;
use cowslip_engine::Strength;
use cowslip_ovsdb::atom::{Atom, AtomicType};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::schema::{ColumnSchema, Schema, TableSchema};
use cowslip_ovsdb::types::{BaseType, ColumnType, UNLIMITED};

/// A schema with its shortest JSON form.
pub(crate) struct SchemaText {
    /// The schema.
    pub(crate) schema: Schema,
    /// The form.
    pub(crate) json: Value,
}

impl SchemaText {
    /// Takes a schema from a message.
    pub(crate) fn from_json(json: &Json<'_>) -> Result<Self, ClientError> {
        let schema = Schema::from_json(json)?;
        let json = schema_json(&schema, json);
        Ok(SchemaText { schema, json })
    }

    /// Takes a schema from a file.
    pub(crate) fn from_file(path: &str) -> Result<Self, ClientError> {
        let failed = |reason: String| ClientError::File { path: path.to_owned(), reason };
        let text = std::fs::read(path).map_err(|e| failed(super::error::reason(&e)))?;
        let json = Json::parse(&text).map_err(|e| failed(e.to_string()))?;
        SchemaText::from_json(&json)
    }
}

fn schema_json(schema: &Schema, original: &Json<'_>) -> Value {
    let member =
        |json: Option<&Json<'_>>, name: &str| json?.as_object()?.member(name).cloned().map(Json::into_owned);
    let originals = member(Some(original), "tables");
    let tables = schema.tables.iter().map(|table| {
        let original = member(originals.as_ref(), &table.name);
        (&*table.name, table_json(table, original.as_ref()))
    });
    let mut members = vec![("name", string(&schema.name))];
    if !schema.version.is_empty() {
        members.push(("version", string(&schema.version)));
    }
    if !schema.cksum.is_empty() {
        members.push(("cksum", string(&schema.cksum)));
    }
    members.push(("tables", object(tables)));
    object(members)
}

/// Whether the JSON of a table or column says that `name` is `value`. The parsed schema cannot tell a table's word from
/// a column's, nor a root table from one in a schema without any.
fn says(original: Option<&Json<'_>>, name: &str, value: bool) -> bool {
    original.and_then(Json::as_object).and_then(|o| o.member(name)) == Some(&Json::Bool(value))
}

fn table_json(table: &TableSchema, original: Option<&Value>) -> Value {
    let originals =
        original.and_then(Json::as_object).and_then(|o| o.member("columns")).and_then(Json::as_object);
    let columns = table.columns.iter().map(|column| {
        let original = originals.and_then(|o| o.member(&column.name));
        (&*column.name, column_json(column, says(original, "mutable", false)))
    });
    let mut members = vec![("columns", object(columns))];
    if says(original, "mutable", false) {
        members.push(("mutable", Json::Bool(false)));
    }
    if says(original, "isRoot", true) {
        members.push(("isRoot", Json::Bool(true)));
    }
    if let Some(rows) = table.max_rows {
        members.push(("maxRows", Json::Int(i64::try_from(rows).unwrap_or(i64::MAX))));
    }
    if !table.indexes.is_empty() {
        let index = |index: &Vec<_>| strings(index.iter().map(|column| &*table.data(*column).name));
        members.push(("indexes", Json::Array(table.indexes.iter().map(index).collect())));
    }
    object(members)
}

fn column_json(column: &ColumnSchema, frozen: bool) -> Value {
    let mut members = vec![("type", type_json(&column.ty))];
    // A weak reference's column is mutable whatever the schema says.
    if frozen && !column.mutable {
        members.push(("mutable", Json::Bool(false)));
    }
    if !column.persistent {
        members.push(("ephemeral", Json::Bool(true)));
    }
    object(members)
}

/// A column's type.
pub(crate) fn type_json(ty: &ColumnType) -> Value {
    let key = base_json(&ty.key);
    if ty.is_scalar() && key.as_str().is_some() {
        return key;
    }
    let mut members = vec![("key", key)];
    if let Some(value) = &ty.value {
        members.push(("value", base_json(value)));
    }
    if ty.min != 1 {
        members.push(("min", Json::Int(ty.min.into())));
    }
    match ty.max {
        1 => {}
        UNLIMITED => members.push(("max", string("unlimited"))),
        max => members.push(("max", Json::Int(max.into()))),
    }
    object(members)
}

fn base_json(base: &BaseType) -> Value {
    let name = string(base.atomic.name());
    if !base.is_constrained() && base.reference.is_none() {
        return name;
    }
    let mut members = vec![("type", name)];
    let mut limit = |name: &'static str, value: Option<Value>| members.extend(value.map(|v| (name, v)));
    let real = |value| datum_json(&Datum::One(Atom::Real(value)), false);
    limit("enum", base.choices.as_ref().map(|c| datum_json(&Datum::from_atoms(c.to_vec()), false)));
    match base.atomic {
        AtomicType::Integer => {
            limit("minInteger", base.min_integer.map(Json::Int));
            limit("maxInteger", base.max_integer.map(Json::Int));
        }
        AtomicType::Real => {
            limit("minReal", base.min_real.map(real));
            limit("maxReal", base.max_real.map(real));
        }
        AtomicType::String => {
            limit("minLength", (base.min_length > 0).then(|| Json::Int(base.min_length.into())));
            limit("maxLength", (base.max_length < u32::MAX).then(|| Json::Int(base.max_length.into())));
        }
        AtomicType::Uuid => {
            limit("refTable", base.reference.as_ref().map(|r| string(&r.table_name)));
            let weak = base.reference.as_ref().filter(|r| r.strength == Strength::Weak);
            limit("refType", weak.map(|_| string("weak")));
        }
        AtomicType::Boolean => {}
    }
    object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_left_out() {
        let long = br#"{"name":"D","version":"1.0.0","tables":{"T":{"maxRows":3,"isRoot":true,"mutable":false,"indexes":[["a"]],"columns":{
            "a":{"type":{"key":{"type":"string"},"min":1,"max":1},"mutable":true},
            "b":{"type":{"key":{"type":"string","enum":["set",["y","x"]]},"min":0},"mutable":false,"ephemeral":true},
            "c":{"type":{"key":{"type":"uuid","refTable":"T","refType":"weak"},"min":0,"max":"unlimited"},"ephemeral":false},
            "d":{"type":{"key":{"type":"real","minReal":0.5}}}}}}}"#;
        let got = SchemaText::from_json(&Json::parse(long).unwrap()).unwrap();
        assert_eq!(
            got.json.to_sorted_string(),
            r#"{"name":"D","tables":{"T":{"columns":{"a":{"type":"string"},"b":{"ephemeral":true,"mutable":false,"#
                .to_owned()
                + r#""type":{"key":{"enum":["set",["x","y"]],"type":"string"},"min":0}},"#
                + r#""c":{"type":{"key":{"refTable":"T","refType":"weak","type":"uuid"},"max":"unlimited","min":0}},"#
                + r#""d":{"type":{"key":{"minReal":0.5,"type":"real"}}}},"indexes":[["a"]],"isRoot":true,"#
                + r#""maxRows":3,"mutable":false}},"version":"1.0.0"}"#
        );
    }
}
