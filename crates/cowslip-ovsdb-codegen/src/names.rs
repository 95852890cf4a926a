//! Identifiers for what schemas name.
//!
//! Invariants: a name depends on the schema only, never on what is selected from it; two names of one scope get two
//! identifiers; every identifier is one that Rust takes and that its naming lints accept.

use cowslip_ovsdb::atom::Atom;
use std::collections::BTreeSet;

/// Words that no identifier can be; `r#` helps for those that are not in [`NEVER_RAW`]. Sorted.
const KEYWORDS: [&str; 52] = [
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Keywords that cannot be raw identifiers, as they come out of [`snake`].
const NEVER_RAW: [&str; 3] = ["crate", "self", "super"];

/// Types that generated code names, which no table or enum may take.
pub(crate) const RESERVED_TYPES: [&str; 18] = [
    "Atom",
    "BTreeMap",
    "BTreeSet",
    "Clone",
    "Debug",
    "Default",
    "Eq",
    "Hash",
    "Model",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Ref",
    "Self",
    "String",
    "Uuid",
    "Vec",
];

/// The field of every model that holds the row's `_uuid`.
pub(crate) const UUID_FIELD: &str = "uuid";

/// The variant that keeps a value which the schema does not list.
pub(crate) const UNRECOGNIZED: &str = "Unrecognized";

/// One scope's identifiers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    taken: BTreeSet<String>,
}

impl Scope {
    /// A scope in which these are taken.
    pub(crate) fn without(taken: &[&str]) -> Self {
        Scope { taken: taken.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// Gives each of `names`, which are pairs of the raw name and the identifier wanted, one that is free. Names that
    /// are identifiers as they are come first, the others follow in the order given, with `joint` and a number if need
    /// be.
    pub(crate) fn settle(&mut self, names: &[(String, String)], joint: &str) -> Vec<String> {
        let mut settled: Vec<Option<String>> = vec![None; names.len()];
        for is_exact in [true, false] {
            for ((raw, wanted), settled) in names.iter().zip(&mut settled) {
                if settled.is_none() && (raw == wanted) == is_exact {
                    *settled = Some(self.claim(wanted, joint));
                }
            }
        }
        settled.into_iter().flatten().collect()
    }

    fn claim(&mut self, wanted: &str, joint: &str) -> String {
        let numbered = (2u64..).map(|n| format!("{wanted}{joint}{n}"));
        let free = std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !self.taken.contains(name));
        // There are more numbers than names, so one is always free.
        let name = free.unwrap_or_default();
        self.taken.insert(name.clone());
        name
    }
}

/// An identifier in source text: raw if it is a keyword.
pub(crate) fn ident(name: &str) -> String {
    if KEYWORDS.binary_search(&name).is_ok() { format!("r#{name}") } else { name.to_owned() }
}

/// A module's name for a table. It is also a file's name, so it must not be that of a folder's own file.
pub(crate) fn module(table: &str) -> String {
    let name = collapse(&table.to_ascii_lowercase());
    let is_special = ["lib", "main"].contains(&name.as_str());
    if is_special || KEYWORDS.binary_search(&name.as_str()).is_ok() { name + "_table" } else { name }
}

/// A field's name for a column: `aB` is `a_b`.
pub(crate) fn field(column: &str) -> String {
    let name = snake(column);
    if NEVER_RAW.contains(&name.as_str()) { name + "_column" } else { name }
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut last = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && (last.is_ascii_lowercase() || last.is_ascii_digit()) {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
        last = c;
    }
    collapse(&snake)
}

/// Without underscores at the end, and never two in a row, as the lint on such names wants.
fn collapse(name: &str) -> String {
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    words.join("_")
}

/// A type's name: `Open_vSwitch` is `OpenVSwitch`, `DHCP_Options` is `DhcpOptions`.
pub(crate) fn type_name(name: &str) -> String {
    let camel = camel(name.split('_'));
    if RESERVED_TYPES.contains(&camel.as_str()) { camel + "Row" } else { camel }
}

/// A part of the name of an enum, which also has the table's.
pub(crate) fn type_name_part(column: &str) -> String {
    camel(column.split('_'))
}

/// A variant's name for a value that a schema lists.
pub(crate) fn variant(value: &Atom) -> String {
    let text = match value {
        Atom::Integer(i) if *i < 0 => format!("minus {}", i.unsigned_abs()),
        Atom::String(text) if text.is_empty() => "empty".to_owned(),
        Atom::String(text) => words_of(text),
        other => other.to_string(),
    };
    let mut name = camel(text.split(' '));
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'V');
    }
    if name == "Self" { name + "Value" } else { name }
}

/// The words of a text. Letters beyond ASCII are spelled as their numbers; so is a text's every character, if none is a
/// letter or digit.
fn words_of(text: &str) -> String {
    let spell_all = !text.chars().any(char::is_alphanumeric);
    let mut words = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            words.push(c);
        } else if spell_all || c.is_alphanumeric() {
            words.push_str(&format!(" u{:x} ", u32::from(c)));
        } else {
            words.push(' ');
        }
    }
    words
}

/// Words put together, each with a capital. Words in capitals are lowered after the first letter; an underscore parts
/// digits that would else become another number.
fn camel<'n>(words: impl Iterator<Item = &'n str>) -> String {
    let mut name = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        let is_shouted = word.len() > 1 && !word.contains(|c: char| c.is_ascii_lowercase());
        let word = if is_shouted { word.to_ascii_lowercase() } else { word.to_owned() };
        let parts_digits =
            name.ends_with(|c: char| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_digit());
        if parts_digits {
            name.push('_');
        }
        let mut chars = word.chars();
        name.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        name.push_str(chars.as_str());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn tables_become_types_and_modules() {
        for (table, ty, module_name) in [
            ("Logical_Switch", "LogicalSwitch", "logical_switch"),
            ("Open_vSwitch", "OpenVSwitch", "open_vswitch"),
            ("DHCP_Options", "DhcpOptions", "dhcp_options"),
            ("IPv6_RA", "IPv6Ra", "ipv6_ra"),
            ("QoS", "QoS", "qos"),
            ("sFlow", "SFlow", "sflow"),
            ("A", "A", "a"),
            ("String", "StringRow", "string"),
            ("Mod", "Mod", "mod_table"),
            ("Main", "Main", "main_table"),
            ("a__b_", "AB", "a_b"),
        ] {
            assert_eq!((type_name(table).as_str(), module(table).as_str()), (ty, module_name), "{table}");
        }
    }

    #[test]
    fn columns_become_fields() {
        for (column, name) in [
            ("a_b", "a_b"),
            ("aB", "a_b"),
            ("type", "r#type"),
            ("Self", "self_column"),
            ("crate", "crate_column"),
            ("gen", "r#gen"),
            ("IPv6", "ipv6"),
        ] {
            assert_eq!(ident(&field(column)), name, "{column}");
        }
    }

    #[test]
    fn values_become_variants() {
        for (value, name) in [
            ("", "Empty"),
            ("802.1ad", "V802_1ad"),
            ("dot1q-tunnel", "Dot1qTunnel"),
            ("a b", "AB"),
            ("é", "Ue9"),
            ("+", "U2b"),
            ("self", "SelfValue"),
            ("TCP", "Tcp"),
        ] {
            assert_eq!(variant(&Atom::string(value)), name, "{value}");
        }
        assert_eq!(variant(&Atom::Integer(7)), "V7");
        assert_eq!(variant(&Atom::Integer(i64::MIN)), "Minus9223372036854775808");
    }

    #[test]
    fn a_name_that_needs_no_change_keeps_it_wherever_it_stands() {
        let pairs = |raws: &[&str]| -> Vec<(String, String)> {
            raws.iter().map(|raw| ((*raw).to_owned(), field(raw))).collect()
        };
        let mut scope = Scope::without(&["uuid"]);
        assert_eq!(
            scope.settle(&pairs(&["aB", "a_B", "a_b", "uuid"]), "_"),
            ["a_b_2", "a_b_3", "a_b", "uuid_2"]
        );
    }
}
