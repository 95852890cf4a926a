//! Mutations: changes of a column's value that depend on the value (RFC 7047 section 5.1, `<mutation>`).

use crate::atom::{Atom, AtomicType, Real};
use crate::condition::column_type;
use crate::datum::{Datum, MemberChange};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::row::RowDelta;
use crate::schema::{Column, ColumnIx, TableSchema};
use crate::symbols::Symbols;
use crate::types::{ColumnType, UNLIMITED};

/// What is done with the column's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutator {
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
    /// `/=`
    Divide,
    /// `%=`
    Remainder,
    /// `insert`
    Insert,
    /// `delete`
    Delete,
}

impl Mutator {
    const ALL: [Mutator; 7] = [
        Mutator::Add,
        Mutator::Subtract,
        Mutator::Multiply,
        Mutator::Divide,
        Mutator::Remainder,
        Mutator::Insert,
        Mutator::Delete,
    ];

    /// The mutator's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Mutator::Add => "+=",
            Mutator::Subtract => "-=",
            Mutator::Multiply => "*=",
            Mutator::Divide => "/=",
            Mutator::Remainder => "%=",
            Mutator::Insert => "insert",
            Mutator::Delete => "delete",
        }
    }

    fn from_name(name: &str) -> Result<Self, Error> {
        let unknown = || Error::new(ErrorKind::UnknownMutator, format!("No mutator named {name}."));
        Self::ALL.into_iter().find(|m| m.name() == name).ok_or_else(unknown)
    }
}

/// One change of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The column.
    pub column: ColumnIx,
    /// What is done.
    pub mutator: Mutator,
    /// With what.
    pub argument: Datum,
}

impl Mutation {
    /// Takes a mutation from a request.
    ///
    /// # Errors
    /// `syntax error`, `unknown column`, `unknown mutator`, or `constraint violation` for an immutable column.
    pub fn from_json(
        table: &TableSchema,
        json: &Json<'_>,
        mut symbols: Option<&mut Symbols>,
    ) -> Result<Self, Error> {
        let Some([Json::Str(name), Json::Str(mutator), argument]) = json.as_array() else {
            return Err(Error::syntax(json, "Parse error in mutation."));
        };
        let Some(column) = table.column(name) else {
            let details = format!("No column {name} in table {}.", table.name);
            return Err(Error::at(json, ErrorKind::UnknownColumn, details));
        };
        let mut ty = column_type(table, column).clone();
        let column = match column {
            Column::Data(column) if table.data(column).mutable => column,
            _ => {
                let details = format!("Cannot mutate immutable column {name} in table {}.", table.name);
                return Err(Error::at(json, ErrorKind::ConstraintViolation, details));
            }
        };
        let mutator = Mutator::from_name(mutator)?;
        let mismatch = |ty: &ColumnType| {
            let details = format!(
                "Type mismatch: \"{}\" operator may not be applied to column {name} of type {}.",
                mutator.name(),
                ty.in_words()
            );
            Error::syntax(json, details)
        };
        let argument = if matches!(mutator, Mutator::Insert | Mutator::Delete) {
            if ty.is_scalar() {
                return Err(mismatch(&ty));
            }
            ty.min = 0;
            if mutator == Mutator::Delete {
                ty.max = UNLIMITED;
            }
            let parsed = Datum::from_json(&ty, argument, symbols.as_deref_mut());
            if parsed.is_err() && ty.is_map() && mutator == Mutator::Delete {
                ty.value = None;
                Datum::from_json(&ty, argument, symbols)?
            } else {
                parsed?
            }
        } else {
            let fits = match ty.key.atomic {
                AtomicType::Integer => true,
                AtomicType::Real => mutator != Mutator::Remainder,
                _ => false,
            };
            if !fits || ty.is_map() {
                return Err(mismatch(&ty));
            }
            Datum::from_json(&ColumnType::scalar(ty.key.atomic), argument, symbols)?
        };
        Ok(Mutation { column, mutator, argument })
    }

    /// What becomes of the column's value; none if it stays as it is.
    ///
    /// # Errors
    /// `domain error`, `range error`, or `constraint violation` if the result breaks a limit.
    pub(crate) fn of(&self, table: &TableSchema, value: &Datum) -> Result<Option<Mutated>, Error> {
        let ty = &table.data(self.column).ty;
        let changes = match self.mutator {
            Mutator::Insert => value.changes_of_insert(&self.argument),
            Mutator::Delete => value.changes_of_delete(&self.argument),
            _ => {
                let result = self.arithmetic(value, ty)?;
                return Ok((result != *value).then_some(Mutated { value: result, changes: None }));
            }
        };
        let mutated =
            (!changes.is_empty()).then(|| Mutated { value: value.with(&changes), changes: Some(changes) });
        let n = mutated.as_ref().map_or(value.len(), |mutated| mutated.value.len());
        if n < ty.min as usize || (ty.max != UNLIMITED && n > ty.max as usize) {
            let details = format!("Attempted to store {n} elements in {}.", ty.in_words());
            return Err(Error::new(ErrorKind::ConstraintViolation, details));
        }
        Ok(mutated)
    }

    fn arithmetic(&self, value: &Datum, ty: &ColumnType) -> Result<Datum, Error> {
        let Some(operand) = self.argument.as_one() else { return Ok(value.clone()) };
        let results =
            value.keys().map(|atom| self.calculate(atom, operand)).collect::<Result<Vec<_>, _>>()?;
        let count = results.len();
        let result = Datum::from_atoms(results);
        if result.len() < count {
            let details = format!("Result of \"{}\" operation contains duplicates.", self.mutator.name());
            return Err(Error::new(ErrorKind::ConstraintViolation, details));
        }
        result.check_members(ty)?;
        Ok(result)
    }

    fn calculate(&self, atom: &Atom, operand: &Atom) -> Result<Atom, Error> {
        let by_zero = || Error::new(ErrorKind::Domain, "Division by zero.");
        let result = match (atom, operand) {
            (Atom::Integer(a), Atom::Integer(b)) => match self.mutator {
                Mutator::Add => a.checked_add(*b),
                Mutator::Subtract => a.checked_sub(*b),
                Mutator::Multiply => a.checked_mul(*b),
                Mutator::Divide if *b == 0 => return Err(by_zero()),
                Mutator::Divide => a.checked_div(*b),
                _ if *b == 0 => return Err(by_zero()),
                _ => a.checked_rem(*b),
            }
            .map(Atom::Integer),
            (Atom::Real(a), Atom::Real(b)) => Real::new(match self.mutator {
                Mutator::Add => a.get() + b.get(),
                Mutator::Subtract => a.get() - b.get(),
                Mutator::Multiply => a.get() * b.get(),
                _ if b.get() == 0.0 => return Err(by_zero()),
                _ => a.get() / b.get(),
            })
            .map(Atom::Real),
            _ => None,
        };
        result.ok_or_else(|| {
            let details = format!("Result of \"{}\" operation is out of range.", self.mutator.name());
            Error::new(ErrorKind::Range, details)
        })
    }
}

/// A column's value after a change.
pub(crate) struct Mutated {
    value: Datum,
    /// The members that changed, unless it may be all of them.
    changes: Option<Vec<MemberChange>>,
}

impl Mutated {
    /// Puts the value in its place and notes what changed: member by member for large values, as a whole for small ones,
    /// which are compared faster than their changes are kept.
    pub(crate) fn store(self, column: ColumnIx, place: &mut Datum, delta: &mut RowDelta) {
        match self.changes {
            Some(changes) if place.is_large() || self.value.is_large() => delta.change(column, changes),
            _ => delta.touch(column),
        }
        *place = self.value;
    }
}

/// Applies `changes` to a column's value and notes them.
pub(crate) fn replace_members(
    column: ColumnIx,
    value: &mut Datum,
    changes: Vec<MemberChange>,
    delta: &mut RowDelta,
) {
    if !changes.is_empty() {
        let new = value.with(&changes);
        Mutated { value: new, changes: Some(changes) }.store(column, value, delta);
    }
}
