//! Operations as they travel.
//!
//! A row that a transaction inserts has a UUID of the client's choice until the server gives it the real one. It
//! travels as a name made of that UUID, and so do all references to it ([`Names`]).

use cowslip_engine::Uuid;
use cowslip_ovsdb::atom::Atom;
use cowslip_ovsdb::condition::{Clause, Condition};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::{write_int, write_str};
use cowslip_ovsdb::mutation::{Mutation, Mutator};
use cowslip_ovsdb::operation::{Operation, PartialRow};
use cowslip_ovsdb::schema::{Column, Schema, TableSchema};
use std::collections::BTreeSet;

/// The UUIDs that travel as names.
pub(crate) type Names = BTreeSet<Uuid>;

pub(crate) const NO_NAMES: Names = BTreeSet::new();

/// Appends an operation.
pub(crate) fn write_operation(schema: &Schema, operation: &Operation, names: &Names, out: &mut String) {
    out.push_str("{\"op\":\"");
    out.push_str(operation.name());
    out.push('"');
    let table = |table: &cowslip_engine::TableIx, out: &mut String| {
        out.push_str(",\"table\":");
        write_str(out, &schema.at(*table).name);
    };
    match operation {
        Operation::Insert { table: t, uuid, chosen, row } => {
            table(t, out);
            write_identity(uuid, *chosen, names, out);
            out.push_str(",\"row\":");
            write_row(schema.at(*t), row, names, out);
        }
        Operation::Select { table: t, condition, columns, sort } => {
            table(t, out);
            write_where(schema.at(*t), condition, names, out);
            write_columns(schema.at(*t), "columns", columns, out);
            if !sort.is_empty() {
                write_columns(schema.at(*t), "sort", sort, out);
            }
        }
        Operation::Update { table: t, condition, row } => {
            table(t, out);
            write_where(schema.at(*t), condition, names, out);
            out.push_str(",\"row\":");
            write_row(schema.at(*t), row, names, out);
        }
        Operation::Mutate { table: t, condition, mutations } => {
            table(t, out);
            write_where(schema.at(*t), condition, names, out);
            write_mutations(schema.at(*t), mutations, names, out);
        }
        Operation::Delete { table: t, condition } => {
            table(t, out);
            write_where(schema.at(*t), condition, names, out);
        }
        Operation::Wait { table: t, condition, columns, equal, rows, timeout_ms } => {
            table(t, out);
            if let Some(timeout) = timeout_ms {
                out.push_str(",\"timeout\":");
                write_int(out, i64::try_from(*timeout).unwrap_or(i64::MAX));
            }
            write_where(schema.at(*t), condition, names, out);
            write_columns(schema.at(*t), "columns", columns, out);
            write_expected(schema.at(*t), *equal, rows, names, out);
        }
        Operation::Commit { durable } => {
            out.push_str(if *durable { ",\"durable\":true" } else { ",\"durable\":false" });
        }
        Operation::Abort => {}
        Operation::Comment(text) => {
            out.push_str(",\"comment\":");
            write_str(out, text);
        }
        Operation::Assert { lock } => {
            out.push_str(",\"lock\":");
            write_str(out, lock);
        }
    }
    out.push('}');
}

fn write_mutations(table: &TableSchema, mutations: &[Mutation], names: &Names, out: &mut String) {
    out.push_str(",\"mutations\":[");
    for (i, mutation) in mutations.iter().enumerate() {
        out.push_str(if i > 0 { ",[" } else { "[" });
        write_str(out, &table.data(mutation.column).name);
        out.push(',');
        write_str(out, mutation.mutator.name());
        out.push(',');
        // What is inserted into a map is one, even if it is empty; keys to delete are a set.
        let is_inserted = mutation.mutator == Mutator::Insert && table.data(mutation.column).ty.is_map();
        let has_values = is_inserted || mutation.argument.members().next().is_some_and(|(_, v)| v.is_some());
        write_datum(&mutation.argument, has_values, names, out);
        out.push(']');
    }
    out.push(']');
}

/// What a `wait` waits for.
fn write_expected(table: &TableSchema, equal: bool, rows: &[PartialRow], names: &Names, out: &mut String) {
    out.push_str(if equal { ",\"until\":\"==\",\"rows\":[" } else { ",\"until\":\"!=\",\"rows\":[" });
    for (i, row) in rows.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_row(table, row, names, out);
    }
    out.push(']');
}

fn write_identity(uuid: &Uuid, chosen: bool, names: &Names, out: &mut String) {
    if chosen {
        out.push_str(",\"uuid\":\"");
        out.push_str(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        out.push('"');
    } else if names.contains(uuid) {
        out.push_str(",\"uuid-name\":\"");
        write_name(uuid, out);
        out.push('"');
    }
}

/// A name that is a valid `<id>`.
fn write_name(uuid: &Uuid, out: &mut String) {
    out.push_str("row");
    let mut buffer = Uuid::encode_buffer();
    out.push_str(uuid.simple().encode_lower(&mut buffer));
}

fn write_columns(table: &TableSchema, member: &str, columns: &[Column], out: &mut String) {
    out.push_str(",\"");
    out.push_str(member);
    out.push_str("\":[");
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_str(out, table.column_name(*column));
    }
    out.push(']');
}

fn write_row(table: &TableSchema, row: &PartialRow, names: &Names, out: &mut String) {
    out.push('{');
    for (i, (column, value)) in row.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_str(out, table.column_name(*column));
        out.push(':');
        write_datum(value, is_map(table, *column), names, out);
    }
    out.push('}');
}

fn is_map(table: &TableSchema, column: Column) -> bool {
    matches!(column, Column::Data(column) if table.data(column).ty.is_map())
}

fn write_where(table: &TableSchema, condition: &Condition, names: &Names, out: &mut String) {
    out.push_str(",\"where\":[");
    for (i, clause) in condition.clauses.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_clause(table, clause, names, out);
    }
    out.push(']');
}

/// Appends a clause.
pub(crate) fn write_clause(table: &TableSchema, clause: &Clause, names: &Names, out: &mut String) {
    match clause {
        Clause::Always(holds) => out.push_str(if *holds { "true" } else { "false" }),
        Clause::Test { column, function, argument } => {
            out.push('[');
            write_str(out, table.column_name(*column));
            out.push_str(",\"");
            out.push_str(function.name());
            out.push_str("\",");
            write_datum(argument, is_map(table, *column), names, out);
            out.push(']');
        }
    }
}

fn write_datum(value: &Datum, is_map: bool, names: &Names, out: &mut String) {
    if names.is_empty() {
        return value.write(out, is_map);
    }
    if let (Some(atom), false) = (value.as_one(), is_map) {
        return write_atom(atom, names, out);
    }
    out.push_str(if is_map { "[\"map\",[" } else { "[\"set\",[" });
    for (i, (key, member)) in value.members().enumerate() {
        if i > 0 {
            out.push(',');
        }
        match member {
            None => write_atom(key, names, out),
            Some(member) => {
                out.push('[');
                write_atom(key, names, out);
                out.push(',');
                write_atom(member, names, out);
                out.push(']');
            }
        }
    }
    out.push_str("]]");
}

fn write_atom(atom: &Atom, names: &Names, out: &mut String) {
    match atom {
        Atom::Uuid(uuid) if names.contains(uuid) => {
            out.push_str("[\"named-uuid\",\"");
            write_name(uuid, out);
            out.push_str("\"]");
        }
        _ => atom.write(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_ovsdb::json::Json;
    use cowslip_ovsdb::operation::Transaction;
    use std::sync::Arc;

    const SCHEMA: &str = r#"{"name":"T","tables":{"T":{"columns":{"n":{"type":"integer"},
        "s":{"type":{"key":"string","min":0,"max":"unlimited"}},"r":{"type":{"key":"real","min":0,"max":1}},
        "m":{"type":{"key":"string","value":"integer","min":0,"max":"unlimited"}},
        "self":{"type":{"key":{"type":"uuid","refTable":"T"},"min":0,"max":"unlimited"}}}}}}"#;

    /// Operations that travel as they were taken.
    const SAME: [&str; 14] = [
        r#"{"op":"insert","table":"T","row":{"n":1,"s":["set",["a","b"]],"m":["map",[["k",1]]]}}"#,
        r#"{"op":"insert","table":"T","uuid":"00000000-0000-4000-8000-000000000001","row":{"s":["set",[]],"m":["map",[]]}}"#,
        r#"{"op":"update","table":"T","where":[["n","<",5],true],"row":{"r":["set",[]],"s":"one"}}"#,
        r#"{"op":"mutate","table":"T","where":[],"mutations":[["n","+=",1],["s","insert",["set",["a","b"]]]]}"#,
        r#"{"op":"mutate","table":"T","where":[],"mutations":[["m","insert",["map",[]]],["m","insert",["map",[["k",1]]]]]}"#,
        r#"{"op":"mutate","table":"T","where":[],"mutations":[["m","delete","k"],["m","delete",["map",[["k",1]]]],["m","delete",["set",[]]]]}"#,
        r#"{"op":"delete","table":"T","where":[["m","includes",["map",[]]],["m","excludes",["map",[["k",1]]]]]}"#,
        r#"{"op":"select","table":"T","where":[false],"columns":["_uuid","n"]}"#,
        r#"{"op":"wait","table":"T","timeout":0,"where":[],"columns":["m","n"],"until":"==","rows":[{"m":["map",[]],"n":1}]}"#,
        r#"{"op":"wait","table":"T","where":[],"columns":["n"],"until":"!=","rows":[]}"#,
        r#"{"op":"commit","durable":true}"#,
        r#"{"op":"abort"}"#,
        r#"{"op":"comment","comment":"\"quoted\""}"#,
        r#"{"op":"assert","lock":"l"}"#,
    ];

    fn schema() -> Arc<Schema> {
        Arc::new(Schema::parse(SCHEMA.as_bytes()).expect("the test's schema is one"))
    }

    fn parsed(schema: &Arc<Schema>, text: &str) -> Transaction {
        let json = Json::parse(text.as_bytes()).expect("the test's text is JSON");
        let transaction = Transaction::parse(schema, json.as_array().expect("operations"));
        assert!(transaction.fault.is_none(), "{text}: {:?}", transaction.fault);
        transaction
    }

    #[test]
    fn operations_travel_as_they_are() {
        let schema = schema();
        for text in SAME {
            let operations = parsed(&schema, &format!("[{text}]")).operations;
            let mut out = String::new();
            write_operation(&schema, &operations[0], &NO_NAMES, &mut out);
            assert_eq!(out, text);
            // Another transaction's names change nothing.
            out.clear();
            write_operation(&schema, &operations[0], &Names::from([Uuid::from_u128(9)]), &mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn new_rows_travel_by_name_wherever_they_stand() {
        let schema = schema();
        let text = r#"[{"op":"insert","table":"T","uuid-name":"a","row":{"self":["named-uuid","a"]}},
            {"op":"mutate","table":"T","where":[["_uuid","==",["named-uuid","a"]]],
             "mutations":[["self","insert",["set",[["named-uuid","a"]]]]]}]"#;
        let operations = parsed(&schema, text).operations;
        let Operation::Insert { uuid, .. } = &operations[0] else { panic!("an insert: {operations:?}") };
        let names = Names::from([*uuid]);
        let mut out = String::new();
        for operation in &operations {
            write_operation(&schema, operation, &names, &mut out);
        }
        let name = format!("row{}", uuid.simple());
        assert!(!out.contains(&uuid.hyphenated().to_string()), "{out}");
        assert_eq!(out.matches(&name).count(), 4, "{out}");
        assert_eq!(out.matches(&format!("[\"named-uuid\",\"{name}\"]")).count(), 3, "{out}");
    }
}
