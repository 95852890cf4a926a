//! Doc comments: what a schema says of a table or column, in words.

use cowslip_engine::Strength;
use cowslip_ovsdb::atom::{Atom, AtomicType};
use cowslip_ovsdb::schema::{ColumnSchema, Schema, TableSchema};
use cowslip_ovsdb::types::{BaseType, ColumnType, UNLIMITED};

/// What is to be known of a table's rows, in paragraphs.
pub(crate) fn table(schema: &Schema, table: &TableSchema) -> Vec<String> {
    let mut paragraphs = vec![format!("A row of the table {} of {}.", code(&table.name), code(&schema.name))];
    if !table.is_root {
        paragraphs.push("It lives as long as a strong reference to it does.".to_owned());
    }
    match table.max_rows {
        Some(1) => paragraphs.push("The table holds at most one row.".to_owned()),
        Some(max) => paragraphs.push(format!("The table holds at most {max} rows.")),
        None => {}
    }
    for index in &table.indexes {
        let columns: Vec<String> = index.iter().map(|column| code(&table.data(*column).name)).collect();
        paragraphs.push(format!("No two rows are equal in {}.", listed(&columns, "and")));
    }
    paragraphs
}

/// What a column holds, in paragraphs.
pub(crate) fn column(column: &ColumnSchema) -> Vec<String> {
    let mut paragraphs = vec![value(&column.ty)];
    if !column.mutable {
        paragraphs.push("Given when the row is inserted, never changed.".to_owned());
    }
    if !column.persistent {
        paragraphs.push("Forgotten when the server restarts.".to_owned());
    }
    paragraphs
}

/// A value as the docs show it.
pub(crate) fn atom(atom: &Atom) -> String {
    match atom {
        Atom::String(text) => code(&format!("{text:?}")),
        other => code(&other.to_string()),
    }
}

fn value(ty: &ColumnType) -> String {
    let key = base(&ty.key);
    if ty.is_scalar() {
        return capital(&key) + ".";
    }
    if ty.is_optional() {
        return format!("None, or {key}.");
    }
    let size = match (ty.min, ty.max) {
        (0, UNLIMITED) => "any size".to_owned(),
        (0, 1) => "at most one member".to_owned(),
        (1, 1) => "one member".to_owned(),
        (1, UNLIMITED) => "at least one member".to_owned(),
        (0, max) => format!("up to {max} members"),
        (min, max) => format!("{min} to {max} members"),
    };
    match &ty.value {
        None => format!("Set of {size}, each {key}."),
        Some(value) => format!("Map of {size}, from {key} to {}.", base(value)),
    }
}

fn base(base: &BaseType) -> String {
    if let Some(choices) = &base.choices {
        let choices: Vec<String> = choices.iter().map(atom).collect();
        return if choices.len() == 1 { choices.concat() } else { format!("one of {}", choices.join(", ")) };
    }
    let range = |min: Option<Atom>, max: Option<Atom>| match (min, max) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(" from {min} up"),
        (None, Some(max)) => format!(" up to {max}"),
        (None, None) => String::new(),
    };
    match base.atomic {
        AtomicType::Integer => {
            let (min, max) = (base.min_integer.map(Atom::Integer), base.max_integer.map(Atom::Integer));
            format!("an integer{}", range(min, max))
        }
        AtomicType::Real => {
            format!("a real number{}", range(base.min_real.map(Atom::Real), base.max_real.map(Atom::Real)))
        }
        AtomicType::Boolean => "a boolean".to_owned(),
        AtomicType::String => match (base.min_length, base.max_length) {
            (0, u32::MAX) => "a string".to_owned(),
            (min, u32::MAX) => format!("a string of at least {min} characters"),
            (min, max) if min == max => format!("a string of {max} characters"),
            (min, max) => format!("a string of {min} to {max} characters"),
        },
        AtomicType::Uuid => match &base.reference {
            None => "a UUID".to_owned(),
            Some(reference) => {
                let strength = match reference.strength {
                    Strength::Strong => "strong",
                    Strength::Weak => "weak",
                };
                format!("a {strength} reference to a row of {}", code(&reference.table_name))
            }
        },
    }
}

/// Text between backticks, of which there are more than in the text.
fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
