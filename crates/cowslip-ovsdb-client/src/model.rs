//! Typed rows: what a Rust type must tell so that a table's rows can be read as values of it and written from them.
//!
//! [`Model`] is what `#[derive(Model)]` implements; a type is free to cover a part of its table's columns. A column's
//! Rust type says what it expects of the schema ([`Shape`]), which is compared once, when the client connects.
//! Invariant: a value that [`FromDatum`] accepts is given back as an equal [`Datum`] by [`IntoDatum`].

use crate::snapshot::RowView;
use cowslip_ovsdb::types::{ColumnType, UNLIMITED};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

// Derived and generated code names these by this module's path, so that its crate needs no other dependency.
pub use cowslip_engine::Uuid;
pub use cowslip_ovsdb::atom::{Atom, AtomicType, Real};
pub use cowslip_ovsdb::datum::Datum;
pub use cowslip_ovsdb_derive::{Model, Scalar};

/// How many members a column's Rust type can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Exactly one.
    One,
    /// None or one.
    Optional,
    /// Any number.
    Many,
}

/// What a column's Rust type expects of the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The type of elements or keys.
    pub key: AtomicType,
    /// The type of a map's values.
    pub value: Option<AtomicType>,
    /// How many members.
    pub count: Count,
}

impl Shape {
    /// Whether every value of a column of this type can be read, and every value of the Rust type has the column's
    /// kind (a `Vec` may still hold more members than the column takes).
    pub fn fits(&self, ty: &ColumnType) -> bool {
        let atoms = ty.key.atomic == self.key && ty.value.as_ref().map(|v| v.atomic) == self.value;
        let count = match self.count {
            Count::One => ty.min == 1 && ty.max == 1,
            Count::Optional => ty.max == 1,
            Count::Many => true,
        };
        atoms && count && ty.max != 0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = match self.count {
            Count::One => "one",
            Count::Optional => "at most one",
            Count::Many => "any number of",
        };
        write!(f, "{count} {}", self.key.name())?;
        match self.value {
            Some(value) => write!(f, " to {}", value.name()),
            None => Ok(()),
        }
    }
}

/// A column that a model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name in the schema.
    pub name: &'static str,
    /// What the field's type expects.
    pub shape: Shape,
    /// Whether a server without the column cannot be used. A missing column that is not required is reported, left
    /// out of monitors and of what is written, and reads as "not supported".
    pub is_required: bool,
}

/// Why a row is no value of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The server lacks the column, or the client does not monitor it.
    #[error("{table}.{column}: not supported by the server, or not monitored")]
    NotSupported {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The value does not have the shape that the field's type expects.
    #[error("{table}.{column}: expected {expected}")]
    Shape {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What was expected.
        expected: Shape,
    },
    /// The row belongs to another table.
    #[error("a row of {found} cannot be read as one of {expected}")]
    Table {
        /// The model's table.
        expected: String,
        /// The row's table.
        found: String,
    },
}

/// A Rust type for the rows of one table.
pub trait Model: Sized {
    /// The table's name in the schema.
    const TABLE: &'static str;

    /// The columns that the type uses, `_uuid` and `_version` not among them.
    fn columns() -> &'static [ColumnSpec];

    /// Reads a row.
    ///
    /// # Errors
    /// A required column is not there, or a value does not fit its field.
    fn from_row(row: &RowView<'_>) -> Result<Self, ModelError>;

    /// The values of the type's columns, in the order of [`columns`](Self::columns).
    fn to_row(&self) -> Vec<(&'static str, Datum)>;

    /// The row's UUID; nil for a value that is not in the database yet.
    fn uuid(&self) -> Uuid;
}

/// A single value: a number, a text, a UUID, a typed reference, an enumeration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a single value of a column",
    label = "not a scalar",
    note = "scalars are i64, f64, bool, String, Uuid, Ref, and types that derive Scalar"
)]
pub trait Scalar: Sized {
    /// The type of atom that it is.
    const ATOMIC: AtomicType;

    /// Takes it from an atom; none if the atom is of another type.
    fn from_atom(atom: &Atom) -> Option<Self>;

    /// The atom.
    fn to_atom(&self) -> Atom;
}

/// A type that a column's value can be read as.
#[diagnostic::on_unimplemented(
    message = "no column holds a `{Self}`",
    label = "not a column's value",
    note = "columns hold scalars (i64, f64, bool, String, Uuid, Ref, types that derive Scalar) and Option, Vec, \
            BTreeSet and BTreeMap of them"
)]
pub trait FromDatum: Sized {
    /// What it expects of the column.
    const SHAPE: Shape;

    /// Reads a value; none if it does not have the shape.
    fn from_datum(datum: &Datum) -> Option<Self>;
}

/// A type that can be written as a column's value.
pub trait IntoDatum {
    /// The value.
    fn to_datum(&self) -> Datum;
}

impl<T: Scalar> FromDatum for T {
    const SHAPE: Shape = Shape { key: T::ATOMIC, value: None, count: Count::One };

    fn from_datum(datum: &Datum) -> Option<Self> {
        datum.as_one().and_then(T::from_atom)
    }
}

impl<T: Scalar> IntoDatum for T {
    fn to_datum(&self) -> Datum {
        Datum::One(self.to_atom())
    }
}

impl<T: Scalar> FromDatum for Option<T> {
    const SHAPE: Shape = Shape { key: T::ATOMIC, value: None, count: Count::Optional };

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum.as_one() {
            Some(atom) => T::from_atom(atom).map(Some),
            None => datum.is_empty().then_some(None),
        }
    }
}

impl<T: Scalar> IntoDatum for Option<T> {
    fn to_datum(&self) -> Datum {
        self.as_ref().map_or(Datum::EMPTY, IntoDatum::to_datum)
    }
}

impl<T: Scalar> FromDatum for Vec<T> {
    const SHAPE: Shape = Shape { key: T::ATOMIC, value: None, count: Count::Many };

    fn from_datum(datum: &Datum) -> Option<Self> {
        datum.keys().map(T::from_atom).collect()
    }
}

impl<T: Scalar> IntoDatum for Vec<T> {
    fn to_datum(&self) -> Datum {
        Datum::from_atoms(self.iter().map(Scalar::to_atom).collect())
    }
}

impl<T: Scalar + Ord> FromDatum for BTreeSet<T> {
    const SHAPE: Shape = <Vec<T> as FromDatum>::SHAPE;

    fn from_datum(datum: &Datum) -> Option<Self> {
        datum.keys().map(T::from_atom).collect()
    }
}

impl<T: Scalar + Ord> IntoDatum for BTreeSet<T> {
    fn to_datum(&self) -> Datum {
        Datum::from_atoms(self.iter().map(Scalar::to_atom).collect())
    }
}

impl<K: Scalar + Ord, V: Scalar> FromDatum for BTreeMap<K, V> {
    const SHAPE: Shape = Shape { key: K::ATOMIC, value: Some(V::ATOMIC), count: Count::Many };

    fn from_datum(datum: &Datum) -> Option<Self> {
        datum.members().map(|(key, value)| Some((K::from_atom(key)?, V::from_atom(value?)?))).collect()
    }
}

impl<K: Scalar + Ord, V: Scalar> IntoDatum for BTreeMap<K, V> {
    fn to_datum(&self) -> Datum {
        Datum::from_pairs(self.iter().map(|(k, v)| (k.to_atom(), v.to_atom())).collect())
    }
}

impl IntoDatum for Datum {
    fn to_datum(&self) -> Datum {
        self.clone()
    }
}

impl IntoDatum for str {
    fn to_datum(&self) -> Datum {
        Datum::One(Atom::string(self))
    }
}

impl IntoDatum for &str {
    fn to_datum(&self) -> Datum {
        (**self).to_datum()
    }
}

impl Scalar for i64 {
    const ATOMIC: AtomicType = AtomicType::Integer;

    fn from_atom(atom: &Atom) -> Option<Self> {
        match atom {
            Atom::Integer(value) => Some(*value),
            _ => None,
        }
    }

    fn to_atom(&self) -> Atom {
        Atom::Integer(*self)
    }
}

/// OVSDB knows no infinities and no NaN: these are written as zero.
impl Scalar for f64 {
    const ATOMIC: AtomicType = AtomicType::Real;

    fn from_atom(atom: &Atom) -> Option<Self> {
        match atom {
            Atom::Real(value) => Some(value.get()),
            _ => None,
        }
    }

    fn to_atom(&self) -> Atom {
        Atom::Real(Real::new(*self).unwrap_or(Real::ZERO))
    }
}

/// A real with an order, for sets of reals and for maps that have them as keys.
impl Scalar for Real {
    const ATOMIC: AtomicType = AtomicType::Real;

    fn from_atom(atom: &Atom) -> Option<Self> {
        match atom {
            Atom::Real(value) => Some(*value),
            _ => None,
        }
    }

    fn to_atom(&self) -> Atom {
        Atom::Real(*self)
    }
}

impl Scalar for bool {
    const ATOMIC: AtomicType = AtomicType::Boolean;

    fn from_atom(atom: &Atom) -> Option<Self> {
        match atom {
            Atom::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    fn to_atom(&self) -> Atom {
        Atom::Boolean(*self)
    }
}

impl Scalar for String {
    const ATOMIC: AtomicType = AtomicType::String;

    fn from_atom(atom: &Atom) -> Option<Self> {
        match atom {
            Atom::String(text) => Some(text.to_string()),
            _ => None,
        }
    }

    fn to_atom(&self) -> Atom {
        Atom::string(self.as_str())
    }
}

/// Shares the text with the cache.
impl Scalar for std::sync::Arc<str> {
    const ATOMIC: AtomicType = AtomicType::String;

    fn from_atom(atom: &Atom) -> Option<Self> {
        match atom {
            Atom::String(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn to_atom(&self) -> Atom {
        Atom::String(self.clone())
    }
}

impl Scalar for Uuid {
    const ATOMIC: AtomicType = AtomicType::Uuid;

    fn from_atom(atom: &Atom) -> Option<Self> {
        atom.as_uuid().copied()
    }

    fn to_atom(&self) -> Atom {
        Atom::Uuid(*self)
    }
}

/// The UUID of a row of `T`'s table.
pub struct Ref<T> {
    uuid: Uuid,
    table: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// A reference to the row with this UUID.
    pub const fn new(uuid: Uuid) -> Self {
        Ref { uuid, table: PhantomData }
    }

    /// The row's UUID.
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.uuid == other.uuid
    }
}

impl<T> Eq for Ref<T> {}

impl<T> PartialOrd for Ref<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ref<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.uuid.cmp(&other.uuid)
    }
}

impl<T> Hash for Ref<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uuid.hash(state);
    }
}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ref({})", self.uuid)
    }
}

impl<T> fmt::Display for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uuid.fmt(f)
    }
}

impl<T> From<Uuid> for Ref<T> {
    fn from(uuid: Uuid) -> Self {
        Ref::new(uuid)
    }
}

/// Refers to no row, like a column without a value.
impl<T> Default for Ref<T> {
    fn default() -> Self {
        Ref::new(Uuid::nil())
    }
}

impl<T> Scalar for Ref<T> {
    const ATOMIC: AtomicType = AtomicType::Uuid;

    fn from_atom(atom: &Atom) -> Option<Self> {
        atom.as_uuid().copied().map(Ref::new)
    }

    fn to_atom(&self) -> Atom {
        Atom::Uuid(self.uuid)
    }
}

/// The number of members that a column takes, in words, for reports of mismatches.
pub(crate) fn count_in_words(ty: &ColumnType) -> String {
    match (ty.min, ty.max) {
        (1, 1) => "exactly one".to_string(),
        (0, 1) => "at most one".to_string(),
        (0, UNLIMITED) => "any number".to_string(),
        (min, UNLIMITED) => format!("at least {min}"),
        (min, max) => format!("{min} to {max}"),
    }
}
