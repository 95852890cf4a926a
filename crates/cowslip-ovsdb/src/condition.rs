//! Conditions: which rows an operation or a monitor is about (RFC 7047 section 5.1, `<condition>`; boolean clauses and
//! order comparisons of optional scalars as in the reference server).

use crate::atom::{Atom, AtomicType};
use crate::datum::Datum;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::row::{Row, UUID_TYPE};
use crate::schema::{Column, TableSchema};
use crate::symbols::Symbols;
use crate::types::{ColumnType, UNLIMITED};
use cowslip_engine::Uuid;

/// The most clauses of one condition.
pub const CLAUSES_MAX: usize = 1_000_000;

/// What a clause asks of a column's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `includes`
    Includes,
    /// `excludes`
    Excludes,
}

impl Function {
    const ALL: [Function; 8] = [
        Function::Equal,
        Function::NotEqual,
        Function::Less,
        Function::LessOrEqual,
        Function::Greater,
        Function::GreaterOrEqual,
        Function::Includes,
        Function::Excludes,
    ];

    /// The function's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Function::Equal => "==",
            Function::NotEqual => "!=",
            Function::Less => "<",
            Function::LessOrEqual => "<=",
            Function::Greater => ">",
            Function::GreaterOrEqual => ">=",
            Function::Includes => "includes",
            Function::Excludes => "excludes",
        }
    }

    /// What the function's argument may be for a column of type `ty`; none if it does not apply to the column.
    pub fn argument_type(self, ty: &ColumnType) -> Option<ColumnType> {
        let mut ty = ty.clone();
        match self {
            Function::Equal | Function::NotEqual => {}
            Function::Includes if !ty.is_scalar() => ty.min = 0,
            Function::Excludes if !ty.is_scalar() => (ty.min, ty.max) = (0, UNLIMITED),
            Function::Includes | Function::Excludes => {}
            _ => {
                let is_number = matches!(ty.key.atomic, AtomicType::Integer | AtomicType::Real);
                if !is_number || !(ty.is_scalar() || ty.is_optional()) {
                    return None;
                }
                ty.min = 1;
            }
        }
        Some(ty)
    }

    fn from_name(name: &str) -> Result<Self, Error> {
        let unknown = || Error::new(ErrorKind::UnknownFunction, format!("No function named {name}."));
        Self::ALL.into_iter().find(|f| f.name() == name).ok_or_else(unknown)
    }
}

/// One requirement on a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    /// `true` or `false`, whatever the row.
    Always(bool),
    /// A function of a column and an argument.
    Test {
        /// The column.
        column: Column,
        /// The function.
        function: Function,
        /// The argument.
        argument: Datum,
    },
}

/// Requirements: all of them (in operations) or one of them (in monitors).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// The clauses in the order of the request.
    pub clauses: Vec<Clause>,
}

/// The type of a column, `_uuid` and `_version` included.
pub fn column_type(table: &TableSchema, column: Column) -> &ColumnType {
    match column {
        Column::Uuid | Column::Version => &UUID_TYPE,
        Column::Data(column) => &table.data(column).ty,
    }
}

impl Clause {
    /// Takes a clause from a request.
    ///
    /// # Errors
    /// `syntax error`, `unknown column` or `unknown function`, and what the argument breaks.
    pub fn from_json(
        table: &TableSchema,
        json: &Json<'_>,
        symbols: Option<&mut Symbols>,
    ) -> Result<Self, Error> {
        if let Json::Bool(value) = json {
            return Ok(Clause::Always(*value));
        }
        let Some([Json::Str(column_name), Json::Str(function), argument]) = json.as_array() else {
            return Err(Error::syntax(json, "Parse error in condition."));
        };
        let Some(column) = table.column(column_name) else {
            let details = format!("No column {column_name} in table {}.", table.name);
            return Err(Error::at(json, ErrorKind::UnknownColumn, details));
        };
        let ty = column_type(table, column);
        let function = Function::from_name(function)?;
        let Some(ty) = function.argument_type(ty) else {
            let details = format!(
                "Type mismatch: \"{}\" operator may not be applied to column {column_name} of type {}.",
                function.name(),
                ty.in_words()
            );
            return Err(Error::syntax(json, details));
        };
        let argument = Datum::from_json(&ty, argument, symbols)?;
        Ok(Clause::Test { column, function, argument })
    }

    /// Whether the row that `id` names meets the clause.
    pub fn holds(&self, id: &Uuid, row: &Row) -> bool {
        let Clause::Test { column, function, argument } = self else {
            return matches!(self, Clause::Always(true));
        };
        let value = row.value(id, *column);
        match function {
            Function::Equal => *value == *argument,
            Function::NotEqual => *value != *argument,
            Function::Includes => argument.is_subset_of(&value),
            Function::Excludes => argument.is_disjoint_from(&value),
            _ => {
                // An optional value that is absent is neither below nor above anything.
                let (Some(value), Some(argument)) = (value.as_one(), argument.as_one()) else { return false };
                match function {
                    Function::Less => value < argument,
                    Function::LessOrEqual => value <= argument,
                    Function::Greater => value > argument,
                    _ => value >= argument,
                }
            }
        }
    }

    /// The column that the clause looks at.
    pub fn column(&self) -> Option<Column> {
        match self {
            Clause::Always(_) => None,
            Clause::Test { column, .. } => Some(*column),
        }
    }
}

impl Condition {
    /// Takes a condition from a request.
    ///
    /// # Errors
    /// The first clause that is at fault.
    pub fn from_json(
        table: &TableSchema,
        json: &Json<'_>,
        mut symbols: Option<&mut Symbols>,
    ) -> Result<Self, Error> {
        let clauses = json.as_array().ok_or_else(|| Error::syntax(json, "array expected"))?;
        if clauses.len() > CLAUSES_MAX {
            let details = format!("a condition may have at most {CLAUSES_MAX} clauses");
            return Err(Error::new(ErrorKind::ResourcesExhausted, details));
        }
        let clauses = clauses
            .iter()
            .map(|clause| Clause::from_json(table, clause, symbols.as_deref_mut()))
            .collect::<Result<_, _>>()?;
        Ok(Condition { clauses })
    }

    /// Whether a row meets all clauses, as operations ask.
    pub fn all_hold(&self, id: &Uuid, row: &Row) -> bool {
        self.clauses.iter().all(|clause| clause.holds(id, row))
    }

    /// Whether a row meets one of the clauses, or there is none, as monitors ask.
    pub fn any_holds(&self, id: &Uuid, row: &Row) -> bool {
        self.clauses.is_empty() || self.clauses.iter().any(|clause| clause.holds(id, row))
    }

    /// The argument that a column must equal, if a clause says so.
    pub fn equal_to(&self, wanted: Column) -> Option<&Datum> {
        self.clauses.iter().find_map(|clause| match clause {
            Clause::Test { column, function: Function::Equal, argument } if *column == wanted => {
                Some(argument)
            }
            _ => None,
        })
    }

    /// The value that a map column must have for a key, if a clause says that it includes that pair.
    pub fn included_value(&self, wanted: Column, key: &Atom) -> Option<&Atom> {
        self.clauses.iter().find_map(|clause| match clause {
            Clause::Test { column, function: Function::Includes | Function::Equal, argument }
                if *column == wanted =>
            {
                argument.value(key)
            }
            _ => None,
        })
    }

    /// Whether all columns that the clauses look at are known.
    pub fn looks_only_at(&self, mut is_known: impl FnMut(Column) -> bool) -> bool {
        self.clauses.iter().filter_map(Clause::column).all(&mut is_known)
    }
}
