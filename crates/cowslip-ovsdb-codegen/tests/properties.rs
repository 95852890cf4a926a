//! Whatever a schema calls its tables, columns and values, the output is Rust without two items of one name.

use cowslip_ovsdb_codegen::Generator;
use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use syn::{Fields, Item};

/// Names that are likely to become one identifier, or to be none.
fn name() -> impl Strategy<Value = String> {
    let likely = [
        "type",
        "Type",
        "TYPE",
        "self",
        "Self",
        "SELF",
        "super",
        "crate",
        "mod",
        "lib",
        "main",
        "uuid",
        "Uuid",
        "a_b",
        "aB",
        "AB",
        "A_B",
        "a__b",
        "ab_",
        "AB2",
        "a_b_2",
        "Ref",
        "String",
        "Option",
        "Model",
        "Scalar",
        "gen",
        "Unrecognized",
    ];
    prop_oneof![prop::sample::select(likely.to_vec()).prop_map(str::to_owned), "[a-zA-Z][a-zA-Z0-9_]{0,4}"]
}

/// Values that are likely to become one variant.
fn value() -> impl Strategy<Value = String> {
    let likely = [
        "", " ", "a", "A", "a b", "a-b", "a_b", "é", "É", "\"", "\\", "`", "*/", "1", "1.1", "11", "self",
        "\n",
    ];
    prop_oneof![prop::sample::select(likely.to_vec()).prop_map(str::to_owned), "\\PC{0,4}"]
}

/// The JSON of a column's type.
fn column(tables: Vec<String>) -> impl Strategy<Value = String> {
    let base = prop_oneof![
        prop::sample::select(vec!["integer", "real", "boolean", "string", "uuid"])
            .prop_map(|t| format!(r#""{t}""#)),
        btree_set(value(), 1..5).prop_map(|values| {
            let values: Vec<String> = values.iter().map(|value| json_text(value)).collect();
            format!(r#"{{"type":"string","enum":["set",[{}]]}}"#, values.join(","))
        }),
        btree_set(-20i64..20, 1..5).prop_map(|values| {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!(r#"{{"type":"integer","enum":["set",[{}]]}}"#, values.join(","))
        }),
        (prop::sample::select(tables), any::<bool>()).prop_map(|(table, is_weak)| {
            let strength = if is_weak { "weak" } else { "strong" };
            format!(r#"{{"type":"uuid","refTable":"{table}","refType":"{strength}"}}"#)
        }),
    ];
    (base.clone(), prop::option::of(base), 0..2, prop::sample::select(vec!["1", "2", "\"unlimited\""]))
        .prop_map(|(key, value, min, max)| {
            let value = value.map(|value| format!(r#","value":{value}"#)).unwrap_or_default();
            format!(r#"{{"type":{{"key":{key}{value},"min":{min},"max":{max}}}}}"#)
        })
}

/// A string as JSON has it.
fn json_text(text: &str) -> String {
    let mut quoted = String::new();
    cowslip_ovsdb::json::write_str(&mut quoted, text);
    quoted
}

fn schema() -> impl Strategy<Value = String> {
    let tables = btree_set(name(), 1..6).prop_map(|tables| tables.into_iter().collect::<Vec<String>>());
    let tables = tables.prop_flat_map(|tables| {
        let columns = btree_map(name(), column(tables.clone()), 1..6);
        let columns = prop::collection::vec(columns, tables.len());
        (Just(tables), columns)
    });
    tables.prop_map(|(tables, columns)| {
        let table = |(table, columns): (String, BTreeMap<String, String>)| {
            let columns: Vec<String> =
                columns.iter().map(|(name, column)| format!(r#""{name}":{column}"#)).collect();
            format!(r#""{table}":{{"columns":{{{}}}}}"#, columns.join(","))
        };
        let tables: Vec<String> = tables.into_iter().zip(columns).map(table).collect();
        format!(r#"{{"name":"D","tables":{{{}}}}}"#, tables.join(","))
    })
}

/// Checks that no name is in a list twice.
fn distinct<'n>(names: impl IntoIterator<Item = &'n syn::Ident>) -> BTreeSet<String> {
    let names: Vec<String> = names.into_iter().map(ToString::to_string).collect();
    let set: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(set.len(), names.len(), "{names:?}");
    set
}

/// The names after `columns =`.
fn columns_types(text: &str) -> Vec<syn::Ident> {
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#[ovsdb(columns = \"")?.strip_suffix("\")]"));
    names.map(|name| syn::parse_str(name).expect("an identifier")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn output_is_rust_without_two_items_of_one_name(schema in schema()) {
        let generator = Generator::new(schema.as_bytes()).expect("a good schema");
        let models = generator.generate().expect("models");
        let text = models.single_file();
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let modules: Vec<_> = file.items.iter().filter_map(|item| match item {
            Item::Mod(module) => Some((&module.ident, module.content.as_ref().map(|(_, items)| items.as_slice())?)),
            _ => None,
        }).collect();
        distinct(modules.iter().map(|(name, _)| *name));
        // What the derive declares for its columns counts, too.
        let declared: Vec<syn::Ident> = columns_types(&text);
        let mut types: Vec<&syn::Ident> = declared.iter().collect();
        for item in modules.iter().flat_map(|(_, items)| *items) {
            match item {
                Item::Struct(item) => {
                    types.push(&item.ident);
                    if let Fields::Named(fields) = &item.fields {
                        distinct(fields.named.iter().filter_map(|field| field.ident.as_ref()));
                    }
                }
                Item::Enum(item) => {
                    types.push(&item.ident);
                    distinct(item.variants.iter().map(|variant| &variant.ident));
                }
                _ => {}
            }
        }
        distinct(types);
        for file in models.files() {
            syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{error}\n{}", file.text));
        }
    }
}
