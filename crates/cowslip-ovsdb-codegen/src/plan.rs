//! What is to be written: a schema and a selection turned into modules, structs, fields and enums, all named.
//!
//! Invariant: names are given to the whole schema before anything is left out, so that a selection changes none.

use crate::docs;
use crate::names::{self, Scope};
use crate::selection::Selection;
use cowslip_engine::TableIx;
use cowslip_ovsdb::atom::{Atom, AtomicType};
use cowslip_ovsdb::schema::{ColumnIx, ColumnSchema, Schema, TableSchema};
use cowslip_ovsdb::types::{BaseType, ColumnType};
use std::collections::{BTreeMap, BTreeSet};

/// A database's models.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tables: Vec<Table>,
}

/// A table's module.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The table's name in the schema.
    pub(crate) raw: String,
    pub(crate) module: String,
    pub(crate) ty: String,
    /// The name of the type that the derive declares for the table's columns.
    pub(crate) columns: String,
    pub(crate) docs: Vec<String>,
    pub(crate) fields: Vec<Field>,
    pub(crate) enums: Vec<Enum>,
    /// Columns that were not selected, though the server takes no row without them.
    pub(crate) lacks: Vec<String>,
}

/// A column's field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// The column's name in the schema.
    pub(crate) raw: String,
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) docs: Vec<String>,
    pub(crate) initial: Initial,
}

/// What a field holds in a row that is made without a value for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Initial {
    /// The schema forbids the default, so the maker has to say.
    Asked,
    /// The type's own default.
    Usual,
    /// This expression.
    Expression(String),
}

/// A column's enum.
#[derive(Clone, Debug)]
pub(crate) struct Enum {
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    /// What an unrecognized value is kept as.
    pub(crate) raw_ty: &'static str,
    /// The variants' names and values.
    pub(crate) variants: Vec<(String, Atom)>,
    /// The variant of the schema's default, if that is among the values.
    pub(crate) default: Option<usize>,
}

/// Which half of a map column, or whether it is the only part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Only,
    Key,
    Value,
}

/// An enum's place in the schema.
type EnumPlace = (TableIx, ColumnIx, Part);

/// The names of the schema's types and modules.
struct Names {
    types: Vec<String>,
    columns: Vec<String>,
    modules: Vec<String>,
    enums: BTreeMap<EnumPlace, String>,
}

impl Database {
    /// Plans the models of what is selected.
    pub(crate) fn new(schema: &Schema, selection: &Selection) -> Self {
        let planner = Planner { schema, selection, names: Names::new(schema) };
        Database {
            name: schema.name.to_string(),
            version: schema.version.to_string(),
            tables: selection.tables().map(|(table, columns)| planner.table(table, columns)).collect(),
        }
    }
}

impl Names {
    fn new(schema: &Schema) -> Self {
        let wanted = |fold: fn(&str) -> String| -> Vec<(String, String)> {
            schema.tables.iter().map(|table| (table.name.to_string(), fold(&table.name))).collect()
        };
        let mut scope = Scope::without(&names::RESERVED_TYPES);
        let types = scope.settle(&wanted(names::type_name), "");
        let modules = Scope::default().settle(&wanted(names::module), "_");
        let mut places = Vec::new();
        let mut enum_names = Vec::new();
        for (ix, table) in schema.numbered_tables() {
            for (column_ix, column) in table.data_columns() {
                for (part, base) in parts(&column.ty) {
                    if !is_enum(base) {
                        continue;
                    }
                    let suffix = match part {
                        Part::Only => "",
                        Part::Key => "Key",
                        Part::Value => "Value",
                    };
                    let name = names::type_name_part(&column.name) + suffix;
                    places.push((ix, column_ix, part));
                    enum_names.push((String::new(), types[usize::from(ix.0)].clone() + &name));
                }
            }
        }
        let enums = places.into_iter().zip(scope.settle(&enum_names, "")).collect();
        let of_columns: Vec<(String, String)> =
            types.iter().map(|ty| (String::new(), format!("{ty}Columns"))).collect();
        let columns = scope.settle(&of_columns, "");
        Names { types, columns, modules, enums }
    }
}

/// The parts of a type, the value last.
fn parts(ty: &ColumnType) -> impl Iterator<Item = (Part, &BaseType)> {
    let key = if ty.is_map() { Part::Key } else { Part::Only };
    [(key, &ty.key)].into_iter().chain(ty.value.iter().map(|value| (Part::Value, value)))
}

/// Whether values of a type get an enum. A list of booleans says no more than `bool` does, and reals and UUIDs that are
/// listed stay what they are: nobody names them.
fn is_enum(base: &BaseType) -> bool {
    base.choices.is_some() && matches!(base.atomic, AtomicType::String | AtomicType::Integer)
}

struct Planner<'s> {
    schema: &'s Schema,
    selection: &'s Selection,
    names: Names,
}

impl Planner<'_> {
    fn table(&self, ix: TableIx, chosen: &BTreeSet<ColumnIx>) -> Table {
        let table = self.schema.at(ix);
        let wanted: Vec<(String, String)> =
            table.columns.iter().map(|c| (c.name.to_string(), names::field(&c.name))).collect();
        let field_names = Scope::without(&[names::UUID_FIELD]).settle(&wanted, "_");
        let mut fields = Vec::with_capacity(chosen.len());
        let mut lacks = Vec::new();
        for ((column_ix, column), name) in table.data_columns().zip(field_names) {
            if chosen.contains(&column_ix) {
                fields.push(self.field(ix, column_ix, column, name));
            } else if needs_value(&column.ty) {
                lacks.push(column.name.to_string());
            }
        }
        let enums = chosen.iter().flat_map(|column| self.enums(ix, *column, table)).collect();
        Table {
            raw: table.name.to_string(),
            module: self.names.modules[usize::from(ix.0)].clone(),
            ty: self.names.types[usize::from(ix.0)].clone(),
            columns: self.names.columns[usize::from(ix.0)].clone(),
            docs: docs::table(self.schema, table),
            fields,
            enums,
            lacks,
        }
    }

    fn field(&self, table: TableIx, ix: ColumnIx, column: &ColumnSchema, name: String) -> Field {
        let ty = &column.ty;
        let one = |base: &BaseType, part| self.base(base, (table, ix, part));
        // Sets and the keys of maps need an order, which the bare double has not.
        let member = |base: &BaseType, part| match base.atomic {
            AtomicType::Real => "Real".to_owned(),
            _ => one(base, part),
        };
        let spelled = match &ty.value {
            Some(value) => {
                format!("BTreeMap<{}, {}>", member(&ty.key, Part::Key), one(value, Part::Value))
            }
            None if ty.is_scalar() => one(&ty.key, Part::Only),
            None if ty.is_optional() => format!("Option<{}>", one(&ty.key, Part::Only)),
            None => format!("BTreeSet<{}>", member(&ty.key, Part::Only)),
        };
        let initial = if needs_value(ty) {
            Initial::Asked
        } else if ty.min == 0 || ty.is_scalar() {
            Initial::Usual
        } else {
            Initial::Expression(one_default(&spelled))
        };
        Field { raw: column.name.to_string(), name, ty: spelled, docs: docs::column(column), initial }
    }

    /// The Rust type of one atom.
    fn base(&self, base: &BaseType, place: EnumPlace) -> String {
        if let Some(name) = self.names.enums.get(&place) {
            return name.clone();
        }
        match (base.atomic, &base.reference) {
            (AtomicType::Integer, _) => "i64".to_owned(),
            (AtomicType::Real, _) => "f64".to_owned(),
            (AtomicType::Boolean, _) => "bool".to_owned(),
            (AtomicType::String, _) => "String".to_owned(),
            (AtomicType::Uuid, Some(reference)) if self.selection.has(reference.table) => {
                format!("Ref<super::{}>", self.names.types[usize::from(reference.table.0)])
            }
            (AtomicType::Uuid, _) => "Uuid".to_owned(),
        }
    }

    fn enums(&self, ix: TableIx, column_ix: ColumnIx, table: &TableSchema) -> Vec<Enum> {
        let column = table.data(column_ix);
        let mut enums = Vec::new();
        for (part, base) in parts(&column.ty) {
            let (Some(name), Some(choices)) =
                (self.names.enums.get(&(ix, column_ix, part)), base.choices.as_deref())
            else {
                continue;
            };
            let what = match part {
                Part::Only => "A value",
                Part::Key => "A key",
                Part::Value => "A value of a key",
            };
            let wanted: Vec<(String, String)> =
                choices.iter().map(|choice| (String::new(), names::variant(choice))).collect();
            let variants = Scope::without(&[names::UNRECOGNIZED]).settle(&wanted, "");
            let usual = base.atomic.default_atom();
            enums.push(Enum {
                name: name.clone(),
                docs: vec![format!("{what} of the column `{}` of the table `{}`.", column.name, table.name)],
                raw_ty: if base.atomic == AtomicType::Integer { "i64" } else { "String" },
                default: choices.iter().position(|choice| *choice == usual),
                variants: variants.into_iter().zip(choices.iter().cloned()).collect(),
            });
        }
        enums
    }
}

/// Whether the default of a column breaks the schema, so that an insertion has to give a value.
fn needs_value(ty: &ColumnType) -> bool {
    let is_refused = |base: &BaseType| {
        // The nil UUID refers to no row: an error for a strong reference; a weak one is removed, which leaves too few.
        base.reference.is_some() || base.check(&base.atomic.default_atom()).is_err()
    };
    ty.min > 0 && parts(ty).any(|(_, base)| is_refused(base))
}

/// A collection that holds the default of its members; a pair of such has a default, too.
fn one_default(ty: &str) -> String {
    let collection = ty.split('<').next().unwrap_or_default();
    // A real in a set is a type without a default of its own.
    let (key, value) = if ty.contains("<Real") { ("Real::ZERO", ", Default::default()") } else { ("", "") };
    match (key, collection) {
        ("", _) => format!("{collection}::from([Default::default()])"),
        (key, "BTreeSet") => format!("{collection}::from([{key}])"),
        (key, _) => format!("{collection}::from([({key}{value})])"),
    }
}
