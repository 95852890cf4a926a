//! Conditions and changes whose columns and values the compiler checks.
//!
//! A [`Column`] knows its model and its value's type; `#[derive(Model)]` declares a model's columns when it is told
//! `#[ovsdb(columns = "…")]`, and so does generated code. All of it ends as [`Filter`]s and untyped operations.
//!
//! Invariant: what is built here can fail on the server's schema (a column that it lacks, a value out of range), never
//! on the kind of a value.

use crate::error::BuildError;
use crate::filter::Filter;
use crate::model::{FromDatum, IntoDatum, Model, ModelError, Real, Ref, Scalar};
use crate::snapshot::{RowView, Snapshot};
use crate::transaction::{Position, Transaction};
use cowslip_engine::Uuid;
use cowslip_ovsdb::condition::Function;
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::mutation::Mutator;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

/// A column of the model `M` that holds a `T`.
///
/// ```
/// use cowslip_ovsdb_client::model::{Model, Uuid};
/// use std::collections::BTreeSet;
///
/// #[derive(Clone, Debug, Model)]
/// #[ovsdb(table = "Bridge", columns = "BridgeColumns")]
/// struct Bridge {
///     uuid: Uuid,
///     name: String,
///     flood_vlans: BTreeSet<i64>,
/// }
///
/// let some = BridgeColumns::NAME.equal("br0").and(BridgeColumns::FLOOD_VLANS.includes(BTreeSet::from([7])));
/// let set = BridgeColumns::NAME.set("br1");
/// # let _ = (some, set);
/// ```
pub struct Column<M, T> {
    name: &'static str,
    types: PhantomData<fn() -> (M, T)>,
}

/// A value that a function of a column of `T` takes: a `T`, a reference to one, or a text for a `String`.
pub trait Argument<T> {
    /// The value.
    fn into_argument(self) -> Datum;
}

impl<T: IntoDatum> Argument<T> for T {
    fn into_argument(self) -> Datum {
        self.to_datum()
    }
}

impl<T: IntoDatum> Argument<T> for &T {
    fn into_argument(self) -> Datum {
        self.to_datum()
    }
}

impl Argument<String> for &str {
    fn into_argument(self) -> Datum {
        self.to_datum()
    }
}

impl Argument<Option<String>> for &str {
    fn into_argument(self) -> Datum {
        self.to_datum()
    }
}

/// A column that is a number or none: it has an order, and can be reckoned with.
pub trait Numeric {
    /// The number.
    type Number: Scalar;
}

impl Numeric for i64 {
    type Number = i64;
}

impl Numeric for f64 {
    type Number = f64;
}

impl Numeric for Real {
    type Number = Real;
}

impl<T: Numeric> Numeric for Option<T> {
    type Number = T::Number;
}

/// A column that holds any number of members.
pub trait Collection: IntoDatum {}

impl<T: Scalar> Collection for Vec<T> {}
impl<T: Scalar + Ord> Collection for BTreeSet<T> {}
impl<K: Scalar + Ord, V: Scalar> Collection for BTreeMap<K, V> {}

/// Which rows of a model's table: a [`Filter`] whose columns and values the compiler has checked.
pub struct Where<M> {
    filter: Filter,
    model: PhantomData<fn() -> M>,
}

/// A value for a column.
pub struct Assignment<M> {
    column: &'static str,
    value: Datum,
    model: PhantomData<fn() -> M>,
}

/// A change of a column that depends on what it holds.
pub struct Change<M> {
    column: &'static str,
    mutator: Mutator,
    argument: Datum,
    model: PhantomData<fn() -> M>,
}

/// Why rows cannot be given as models.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The server lacks a column of the condition, or the column cannot have the value.
    #[error(transparent)]
    Condition(#[from] BuildError),
    /// A row does not fit the model.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl<M, T> Column<M, T> {
    /// The column of this name.
    pub const fn new(name: &'static str) -> Self {
        Column { name, types: PhantomData }
    }

    /// Its name in the schema.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    fn test(&self, function: Function, argument: Datum) -> Where<M> {
        Where { filter: Filter::all().test(self.name, function, &argument), model: PhantomData }
    }

    fn change(&self, mutator: Mutator, argument: Datum) -> Change<M> {
        Change { column: self.name, mutator, argument, model: PhantomData }
    }

    /// It has this value.
    pub fn equal(&self, value: impl Argument<T>) -> Where<M> {
        self.test(Function::Equal, value.into_argument())
    }

    /// It has another value.
    pub fn not_equal(&self, value: impl Argument<T>) -> Where<M> {
        self.test(Function::NotEqual, value.into_argument())
    }

    /// It has all of these members.
    pub fn includes(&self, members: impl Argument<T>) -> Where<M> {
        self.test(Function::Includes, members.into_argument())
    }

    /// It has none of these members.
    pub fn excludes(&self, members: impl Argument<T>) -> Where<M> {
        self.test(Function::Excludes, members.into_argument())
    }

    /// Gives it this value.
    pub fn set(&self, value: impl Argument<T>) -> Assignment<M> {
        Assignment { column: self.name, value: value.into_argument(), model: PhantomData }
    }
}

impl<M: Model, T: FromDatum> Column<M, T> {
    /// Its value in a row, without the rest of the model.
    ///
    /// # Errors
    /// The row is one of another table, the column is not known, or its value has another shape.
    pub fn read(&self, row: &RowView<'_>) -> Result<T, ModelError> {
        if *row.table().name != *M::TABLE {
            let found = row.table().name.to_string();
            return Err(ModelError::Table { expected: M::TABLE.to_string(), found });
        }
        row.value(self.name)
    }
}

/// Rows whose column is empty meet none of the comparisons.
impl<M, T: Numeric> Column<M, T> {
    /// It is less.
    pub fn less(&self, than: T::Number) -> Where<M> {
        self.test(Function::Less, than.to_datum())
    }

    /// It is not greater.
    pub fn less_or_equal(&self, than: T::Number) -> Where<M> {
        self.test(Function::LessOrEqual, than.to_datum())
    }

    /// It is greater.
    pub fn greater(&self, than: T::Number) -> Where<M> {
        self.test(Function::Greater, than.to_datum())
    }

    /// It is not less.
    pub fn greater_or_equal(&self, than: T::Number) -> Where<M> {
        self.test(Function::GreaterOrEqual, than.to_datum())
    }

    /// Adds to it.
    pub fn add(&self, number: T::Number) -> Change<M> {
        self.change(Mutator::Add, number.to_datum())
    }

    /// Subtracts from it.
    pub fn subtract(&self, number: T::Number) -> Change<M> {
        self.change(Mutator::Subtract, number.to_datum())
    }

    /// Multiplies it.
    pub fn multiply(&self, number: T::Number) -> Change<M> {
        self.change(Mutator::Multiply, number.to_datum())
    }

    /// Divides it; by zero is the server's "domain error".
    pub fn divide(&self, number: T::Number) -> Change<M> {
        self.change(Mutator::Divide, number.to_datum())
    }
}

impl<M, T: Collection> Column<M, T> {
    /// Adds members. A map's key that is there keeps its value.
    pub fn insert(&self, members: impl Argument<T>) -> Change<M> {
        self.change(Mutator::Insert, members.into_argument())
    }

    /// Takes members away; of a map, those whose values are these, too.
    pub fn delete(&self, members: impl Argument<T>) -> Change<M> {
        self.change(Mutator::Delete, members.into_argument())
    }
}

impl<M, K: Scalar + Ord, V: Scalar> Column<M, BTreeMap<K, V>> {
    /// Takes keys away, whatever their values are.
    pub fn delete_keys(&self, keys: impl Argument<BTreeSet<K>>) -> Change<M> {
        self.change(Mutator::Delete, keys.into_argument())
    }

    /// Gives keys these values, whether they are there or not.
    pub fn upsert(&self, pairs: &BTreeMap<K, V>) -> [Change<M>; 2] {
        let keys = Datum::from_atoms(pairs.keys().map(Scalar::to_atom).collect());
        [self.change(Mutator::Delete, keys), self.change(Mutator::Insert, pairs.to_datum())]
    }
}

impl<M> Where<M> {
    /// Every row.
    pub fn all() -> Self {
        Where { filter: Filter::all(), model: PhantomData }
    }

    /// The row that a reference is to.
    pub fn row(row: Ref<M>) -> Self {
        Column::<M, Uuid>::new("_uuid").equal(row.uuid())
    }

    /// The rows that meet the other's requirements, too.
    #[must_use]
    pub fn and(self, other: Where<M>) -> Self {
        Where { filter: self.filter.and(other.filter), model: PhantomData }
    }

    /// The rows that meet the other's requirements instead, too. Look-ups and monitors understand it; for operations see
    /// [`alternatives`](Self::alternatives).
    #[must_use]
    pub fn or(self, other: Where<M>) -> Self {
        Where { filter: self.filter.or(other.filter), model: PhantomData }
    }

    /// Conditions without an "or", one for each operation: see [`Filter::alternatives`].
    pub fn alternatives(&self) -> Vec<Self> {
        let alternatives = self.filter.alternatives().into_iter();
        alternatives.map(|filter| Where { filter, model: PhantomData }).collect()
    }

    /// The same, without the model.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
}

impl<M> From<Where<M>> for Filter {
    fn from(rows: Where<M>) -> Filter {
        rows.filter
    }
}

impl Snapshot {
    /// The rows that meet a condition, as models, found by the best index there is.
    ///
    /// # Errors
    /// The server lacks a column of the condition, or a row does not fit the model.
    pub fn find_models<M: Model>(&self, rows: &Where<M>) -> Result<Vec<M>, FindError> {
        let found = self.list(M::TABLE, rows.filter())?;
        Ok(found.iter().map(M::from_row).collect::<Result<_, _>>()?)
    }
}

impl Transaction {
    /// Sets columns of the rows that meet a condition.
    pub fn update_rows<M: Model>(
        &mut self,
        rows: &Where<M>,
        values: impl IntoIterator<Item = Assignment<M>>,
    ) -> Position {
        let values = values.into_iter().map(|assignment| (assignment.column, assignment.value));
        self.update(M::TABLE, rows.filter(), values)
    }

    /// Changes columns of the rows that meet a condition, in order.
    pub fn change_rows<M: Model>(
        &mut self,
        rows: &Where<M>,
        changes: impl IntoIterator<Item = Change<M>>,
    ) -> Position {
        let changes = changes.into_iter().map(|change| (change.column, change.mutator, change.argument));
        self.mutate(M::TABLE, rows.filter(), changes)
    }

    /// Deletes the rows that meet a condition.
    pub fn delete_rows<M: Model>(&mut self, rows: &Where<M>) -> Position {
        self.delete(M::TABLE, rows.filter())
    }
}

// By hand, because deriving would ask the same of the model.

impl<M, T> Clone for Column<M, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, T> Copy for Column<M, T> {}

impl<M, T> fmt::Debug for Column<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column({})", self.name)
    }
}

impl<M> Clone for Where<M> {
    fn clone(&self) -> Self {
        Where { filter: self.filter.clone(), model: PhantomData }
    }
}

impl<M> fmt::Debug for Where<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Where").field(&self.filter).finish()
    }
}

impl<M> fmt::Debug for Assignment<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Assignment").field(&self.column).field(&self.value).finish()
    }
}

impl<M> fmt::Debug for Change<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Change").field(&self.column).field(&self.mutator).field(&self.argument).finish()
    }
}
