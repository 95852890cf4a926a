//! Conditions by name: which rows an operation, a monitor or a look-up is about.
//!
//! What holds is decided by the executor's own code, so that the client and the server never differ.

use crate::error::BuildError;
use crate::model::IntoDatum;
use cowslip_engine::{TableIx, Uuid};
use cowslip_ovsdb::atom::{Atom, AtomicType};
use cowslip_ovsdb::condition::{Clause, Condition, Function, column_type};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::schema::{Column, Schema, TableSchema};
use cowslip_ovsdb::types::{ColumnType, UNLIMITED};

/// Requirements on a row, by the names of columns. In operations and look-ups, all must hold.
///
/// ```
/// use cowslip_ovsdb_client::Filter;
/// let filter = Filter::all().equal("name", "br0").includes("external_ids", &std::collections::BTreeMap::from([
///     ("owner".to_string(), "me".to_string()),
/// ]));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    clauses: Vec<FilterClause>,
}

#[derive(Clone, Debug, PartialEq)]
enum FilterClause {
    Always(bool),
    Test { column: String, function: Function, argument: Datum },
}

impl Filter {
    /// Every row.
    pub fn all() -> Self {
        Filter::default()
    }

    /// No row: as a monitor's filter, when rows are to be let in later.
    pub fn none() -> Self {
        Filter { clauses: vec![FilterClause::Always(false)] }
    }

    /// The row with this UUID.
    pub fn uuid(uuid: Uuid) -> Self {
        Filter::all().test("_uuid", Function::Equal, &uuid)
    }

    /// Adds a requirement.
    #[must_use]
    pub fn test(mut self, column: &str, function: Function, argument: &(impl IntoDatum + ?Sized)) -> Self {
        let argument = argument.to_datum();
        self.clauses.push(FilterClause::Test { column: column.to_string(), function, argument });
        self
    }

    /// The column has this value.
    #[must_use]
    pub fn equal(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::Equal, value)
    }

    /// The column has another value.
    #[must_use]
    pub fn not_equal(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::NotEqual, value)
    }

    /// The column has all of these members.
    #[must_use]
    pub fn includes(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::Includes, value)
    }

    /// The column has none of these members.
    #[must_use]
    pub fn excludes(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::Excludes, value)
    }

    /// The condition, by numbers.
    pub(crate) fn resolve(&self, schema: &Schema, table: TableIx) -> Result<Condition, BuildError> {
        let definition = schema.at(table);
        let clauses = self.clauses.iter().map(|clause| match clause {
            FilterClause::Always(holds) => Ok(Clause::Always(*holds)),
            FilterClause::Test { column, function, argument } => {
                let name = column;
                let column = column_of(definition, name)?;
                let ty = function
                    .argument_type(column_type(definition, column))
                    .ok_or_else(|| value_error(definition, name, "this column has no order"))?;
                check(definition, name, &ty, argument)?;
                Ok(Clause::Test { column, function: *function, argument: argument.clone() })
            }
        });
        Ok(Condition { clauses: clauses.collect::<Result<_, BuildError>>()? })
    }
}

/// The number of a table.
pub(crate) fn table_of(schema: &Schema, table: &str) -> Result<TableIx, BuildError> {
    schema.table(table).ok_or_else(|| BuildError::Table { table: table.to_string() })
}

/// The number of a column.
pub(crate) fn column_of(definition: &TableSchema, column: &str) -> Result<Column, BuildError> {
    definition
        .column(column)
        .ok_or_else(|| BuildError::Column { table: definition.name.to_string(), column: column.to_string() })
}

fn value_error(definition: &TableSchema, column: &str, reason: impl Into<String>) -> BuildError {
    let table = definition.name.to_string();
    BuildError::Value { table, column: column.to_string(), reason: reason.into() }
}

/// Whether a value could have come in a message for a column of this type.
pub(crate) fn check(
    definition: &TableSchema,
    column: &str,
    ty: &ColumnType,
    value: &Datum,
) -> Result<(), BuildError> {
    let count = value.len();
    if count < ty.min as usize || (ty.max != UNLIMITED && count > ty.max as usize) {
        let reason = format!("{count} members where {} are allowed", crate::model::count_in_words(ty));
        return Err(value_error(definition, column, reason));
    }
    let is = |atom: &Atom, kind: AtomicType| atomic_type(atom) == kind;
    for (key, member) in value.members() {
        let fits = is(key, ty.key.atomic)
            && match (&ty.value, member) {
                (Some(base), Some(member)) => is(member, base.atomic),
                (None, None) => true,
                _ => false,
            };
        if !fits {
            return Err(value_error(definition, column, format!("expected {}", ty.in_words())));
        }
    }
    value.check_members(ty).map_err(|error| value_error(definition, column, error.to_string()))
}

fn atomic_type(atom: &Atom) -> AtomicType {
    match atom {
        Atom::Integer(_) => AtomicType::Integer,
        Atom::Real(_) => AtomicType::Real,
        Atom::Boolean(_) => AtomicType::Boolean,
        Atom::String(_) => AtomicType::String,
        Atom::Uuid(_) => AtomicType::Uuid,
    }
}
