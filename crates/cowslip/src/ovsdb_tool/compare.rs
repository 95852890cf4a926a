//! Whether two schemas mean the same.

use cowslip_ovsdb::schema::{Schema, TableSchema};

/// Whether two schemas agree in everything but the order and the comments of their texts.
pub(super) fn are_equal(a: &Schema, b: &Schema) -> bool {
    a.name == b.name
        && a.version == b.version
        && a.cksum == b.cksum
        && a.tables.len() == b.tables.len()
        && a.tables.iter().zip(&b.tables).all(|(a, b)| are_tables_equal(a, b))
}

/// References hold the numbers of their tables, which are equal if the names of all tables are.
fn are_tables_equal(a: &TableSchema, b: &TableSchema) -> bool {
    let columns = a.columns.iter().zip(&b.columns);
    a.name == b.name
        && a.is_root == b.is_root
        && a.max_rows == b.max_rows
        && a.indexes == b.indexes
        && a.columns.len() == b.columns.len()
        && { columns }.all(|(a, b)| {
            a.name == b.name && a.ty == b.ty && a.mutable == b.mutable && a.persistent == b.persistent
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Schema {
        Schema::parse(text.as_bytes()).expect("the test's schema is good")
    }

    #[test]
    fn order_and_defaults_make_no_difference() {
        let a = schema(
            r#"{"name":"D","tables":{"T":{"columns":{"a":{"type":"integer"},"b":{"type":"string"}}}}}"#,
        );
        let b = schema(
            r#"{"tables":{"T":{"isRoot":true,"columns":{"b":{"type":{"key":"string","min":1,"max":1}},
                "a":{"type":"integer","mutable":true}}}},"name":"D"}"#,
        );
        assert!(are_equal(&a, &b));
        for other in [
            r#"{"name":"E","tables":{"T":{"columns":{"a":{"type":"integer"},"b":{"type":"string"}}}}}"#,
            r#"{"name":"D","tables":{"T":{"columns":{"a":{"type":"real"},"b":{"type":"string"}}}}}"#,
            r#"{"name":"D","tables":{"T":{"columns":{"a":{"type":"integer"}}}}}"#,
            r#"{"name":"D","tables":{"T":{"maxRows":1,"columns":{"a":{"type":"integer"},"b":{"type":"string"}}}}}"#,
        ] {
            assert!(!are_equal(&a, &schema(other)), "{other}");
        }
    }
}
