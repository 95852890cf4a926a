//! Column types: what a column's values may be (RFC 7047 section 3.2, `<base-type>` and `<type>`).

use crate::atom::{Atom, AtomicType, Real, out_of_range, tagged};
use crate::datum::Datum;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::members::{Kind, Members};
use crate::number::fifteen_digits;
use cowslip_engine::{Strength, TableIx};
use std::sync::Arc;

/// The limits on one atom of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseType {
    /// The type of the atom.
    pub atomic: AtomicType,
    /// The only values allowed, if there is such a list.
    pub choices: Option<Arc<[Atom]>>,
    /// `minInteger`, inclusive.
    pub min_integer: Option<i64>,
    /// `maxInteger`, inclusive.
    pub max_integer: Option<i64>,
    /// `minReal`, inclusive.
    pub min_real: Option<Real>,
    /// `maxReal`, inclusive.
    pub max_real: Option<Real>,
    /// `minLength`, in characters.
    pub min_length: u32,
    /// `maxLength`, in characters.
    pub max_length: u32,
    /// The table whose rows the UUIDs refer to.
    pub reference: Option<ReferenceType>,
}

/// A reference to rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceType {
    /// The table's name.
    pub table_name: Arc<str>,
    /// The table; set once the whole schema is known.
    pub table: TableIx,
    /// Whether the reference keeps its target alive.
    pub strength: Strength,
}

/// The most atoms, or pairs, that a column without an upper limit may hold.
pub const UNLIMITED: u32 = u32::MAX;

/// The type of a column: a set of `key`, or a map from `key` to `value`, of `min` to `max` members.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnType {
    /// The members, or the keys of the map.
    pub key: BaseType,
    /// The values of the map; a set has none.
    pub value: Option<BaseType>,
    /// The least number of members: 0 or 1.
    pub min: u32,
    /// The largest number of members; [`UNLIMITED`] if there is no limit.
    pub max: u32,
}

impl BaseType {
    /// An unconstrained type.
    pub fn new(atomic: AtomicType) -> Self {
        BaseType {
            atomic,
            choices: None,
            min_integer: None,
            max_integer: None,
            min_real: None,
            max_real: None,
            min_length: 0,
            max_length: u32::MAX,
            reference: None,
        }
    }

    /// Takes a `<base-type>` from a schema.
    ///
    /// # Errors
    /// `syntax error` with the reason.
    pub fn from_json(json: &Json<'_>) -> Result<Self, Error> {
        if let Json::Str(name) = json {
            return Ok(BaseType::new(atomic_from_name(name)?));
        }
        let members = Members::new(json, "ovsdb type");
        let atomic = match members.required("type", Kind::String) {
            Some(name) => atomic_from_name(name.as_str().unwrap_or_default()),
            None => Ok(AtomicType::Integer),
        };
        members.check()?;
        let mut base = BaseType::new(atomic?);
        if let Some(list) = members.optional("enum", Kind::Any) {
            base.choices = Some(choices_from_json(list, base.atomic)?);
        } else {
            base.take_limits(&members, json)?;
        }
        members.finish()?;
        Ok(base)
    }

    fn take_limits(&mut self, members: &Members<'_, '_>, json: &Json<'_>) -> Result<(), Error> {
        match self.atomic {
            AtomicType::Integer => {
                let bound = |name| match members.optional(name, Kind::Integer) {
                    Some(Json::Int(i)) => Some(*i),
                    _ => None,
                };
                (self.min_integer, self.max_integer) = (bound("minInteger"), bound("maxInteger"));
                if self.min_integer > self.max_integer && self.max_integer.is_some() {
                    return Err(Error::syntax(json, "minInteger exceeds maxInteger"));
                }
            }
            AtomicType::Real => {
                let bound = |name| match members.optional(name, Kind::Number) {
                    Some(Json::Int(i)) => Real::new(*i as f64),
                    Some(Json::Real(r)) => Real::new(*r),
                    _ => None,
                };
                (self.min_real, self.max_real) = (bound("minReal"), bound("maxReal"));
                if self.min_real > self.max_real && self.max_real.is_some() {
                    return Err(Error::syntax(json, "minReal exceeds maxReal"));
                }
            }
            AtomicType::String => {
                let bound = |name, absent| match members.optional(name, Kind::Integer) {
                    None => Ok(absent),
                    Some(Json::Int(i)) if (0..=i64::from(u32::MAX)).contains(i) => Ok(*i as u32),
                    Some(_) => Err(Error::new(
                        ErrorKind::Syntax,
                        format!("{name} out of valid range 0 to {}", u32::MAX),
                    )),
                };
                (self.min_length, self.max_length) = (bound("minLength", 0)?, bound("maxLength", u32::MAX)?);
                if self.min_length > self.max_length {
                    return Err(Error::syntax(json, "minLength exceeds maxLength"));
                }
            }
            AtomicType::Uuid => self.take_reference(members)?,
            AtomicType::Boolean => {}
        }
        Ok(())
    }

    fn take_reference(&mut self, members: &Members<'_, '_>) -> Result<(), Error> {
        let Some(table) = members.optional("refTable", Kind::Id) else { return Ok(()) };
        let strength = match members.optional("refType", Kind::Id).and_then(Json::as_str) {
            None | Some("strong") => Strength::Strong,
            Some("weak") => Strength::Weak,
            Some(_) => {
                members.raise("Type mismatch for member 'refType'.");
                Strength::Strong
            }
        };
        let table_name = Arc::from(table.as_str().unwrap_or_default());
        self.reference = Some(ReferenceType { table_name, table: TableIx(u16::MAX), strength });
        Ok(())
    }

    /// Checks an atom of this type's atomic type against the limits.
    ///
    /// # Errors
    /// `constraint violation` with the limit that is broken.
    pub fn check(&self, atom: &Atom) -> Result<(), Error> {
        if let Some(choices) = &self.choices {
            if choices.binary_search(atom).is_ok() {
                return Ok(());
            }
            let list = choices.iter().map(Atom::to_string).collect::<Vec<_>>().join(", ");
            let list = if choices.len() > 1 { format!("[{list}]") } else { list };
            return Err(Error::new(
                ErrorKind::ConstraintViolation,
                format!("{atom} is not one of the allowed values ({list})"),
            ));
        }
        match atom {
            Atom::Integer(i) => {
                if self.min_integer.is_some_and(|min| *i < min)
                    || self.max_integer.is_some_and(|max| *i > max)
                {
                    let show = |limit: Option<i64>| limit.map(|l| l.to_string());
                    return Err(out_of_range(&i.to_string(), show(self.min_integer), show(self.max_integer)));
                }
            }
            Atom::Real(r) => {
                if self.min_real.is_some_and(|min| *r < min) || self.max_real.is_some_and(|max| *r > max) {
                    let show = |limit: Option<Real>| limit.map(|l| fifteen_digits(l.get()));
                    return Err(out_of_range(
                        &fifteen_digits(r.get()),
                        show(self.min_real),
                        show(self.max_real),
                    ));
                }
            }
            Atom::String(s) => self.check_length(s)?,
            Atom::Boolean(_) | Atom::Uuid(_) => {}
        }
        Ok(())
    }

    fn check_length(&self, text: &str) -> Result<(), Error> {
        if self.min_length == 0 && self.max_length == u32::MAX {
            return Ok(());
        }
        let length = text.chars().count() as u64;
        let complain = |relation: &str, limit: u32| {
            Err(Error::new(
                ErrorKind::ConstraintViolation,
                format!("\"{text}\" length {length} is {relation} allowed length {limit}"),
            ))
        };
        if length < u64::from(self.min_length) {
            complain("less than minimum", self.min_length)
        } else if length > u64::from(self.max_length) {
            complain("greater than maximum", self.max_length)
        } else {
            Ok(())
        }
    }

    /// The same atomic type without limits.
    pub fn unconstrained(&self) -> Self {
        BaseType { reference: self.reference.clone(), ..BaseType::new(self.atomic) }
    }

    /// Whether there is any limit on the atoms.
    pub fn is_constrained(&self) -> bool {
        self.choices.is_some()
            || self.min_integer.is_some()
            || self.max_integer.is_some()
            || self.min_real.is_some()
            || self.max_real.is_some()
            || self.min_length > 0
            || self.max_length < u32::MAX
    }
}

fn atomic_from_name(name: &str) -> Result<AtomicType, Error> {
    AtomicType::from_name(name)
        .ok_or_else(|| Error::syntax(&Json::Str(name.into()), format!("\"{name}\" is not an atomic-type")))
}

/// The sorted values of an `enum`, given as a set or as one atom.
fn choices_from_json(json: &Json<'_>, atomic: AtomicType) -> Result<Arc<[Atom]>, Error> {
    let one = std::slice::from_ref(json);
    let elements = match tagged(json, "set") {
        Some(inner) => inner.as_array().ok_or_else(|| Error::syntax(json, "expected [\"set\", <array>]"))?,
        None => one,
    };
    let mut choices = Vec::with_capacity(elements.len());
    for element in elements {
        choices.push(Atom::from_json(atomic, element, None)?);
    }
    if choices.is_empty() {
        return Err(Error::syntax(json, "set must have 1 to 4294967295 members but 0 are present"));
    }
    choices.sort();
    if choices.windows(2).any(|w| w[0] == w[1]) {
        return Err(Error::new(ErrorKind::Other, "set contains duplicate"));
    }
    Ok(choices.into())
}

impl ColumnType {
    /// A column of exactly one atom.
    pub fn scalar(atomic: AtomicType) -> Self {
        ColumnType { key: BaseType::new(atomic), value: None, min: 1, max: 1 }
    }

    /// Takes a `<type>` from a schema.
    ///
    /// # Errors
    /// `syntax error` with the reason.
    pub fn from_json(json: &Json<'_>) -> Result<Self, Error> {
        if let Json::Str(name) = json {
            return Ok(ColumnType::scalar(atomic_from_name(name)?));
        }
        let members = Members::new(json, "ovsdb type");
        let key = members.required("key", Kind::StringOrObject);
        let value = members.optional("value", Kind::StringOrObject);
        let min = members.optional("min", Kind::Integer);
        let max = members.optional("max", Kind::Any);
        members.finish()?;
        let key =
            key.map(BaseType::from_json).transpose()?.unwrap_or_else(|| BaseType::new(AtomicType::Integer));
        let value = value.map(BaseType::from_json).transpose()?;
        let bound = |json: Option<&Json<'_>>| match json {
            None => Some(1),
            Some(Json::Int(i)) => u32::try_from(*i).ok(),
            Some(Json::Str(s)) if s == "unlimited" => Some(UNLIMITED),
            Some(_) => None,
        };
        let (Some(min), Some(max)) = (bound(min), bound(max)) else {
            return Err(Error::syntax(json, "bad min or max value"));
        };
        if min > 1 || max == 0 || min > max {
            return Err(Error::syntax(json, "ovsdb type fails constraint checks"));
        }
        Ok(ColumnType { key, value, min, max })
    }

    /// Whether a value is a map.
    pub fn is_map(&self) -> bool {
        self.value.is_some()
    }

    /// Whether a value is exactly one atom.
    pub fn is_scalar(&self) -> bool {
        self.min == 1 && self.max == 1 && self.value.is_none()
    }

    /// Whether a value is at most one atom.
    pub fn is_optional(&self) -> bool {
        self.min == 0 && self.max == 1 && self.value.is_none()
    }

    /// Whether a value is a set, optional values included.
    pub fn is_set(&self) -> bool {
        self.value.is_none() && !self.is_scalar()
    }

    /// Whether changes of the column travel as a difference: the column holds more than one member.
    pub fn has_differences(&self) -> bool {
        self.max > 1
    }

    /// Whether any UUID of the column refers to rows.
    pub fn is_reference(&self) -> bool {
        self.key.reference.is_some() || self.value.as_ref().is_some_and(|v| v.reference.is_some())
    }

    /// The value of a column that was not given one.
    pub fn default_datum(&self) -> Datum {
        if self.min == 0 {
            return Datum::EMPTY;
        }
        let key = self.key.atomic.default_atom();
        match &self.value {
            None => Datum::One(key),
            Some(value) => Datum::from_pairs(vec![(key, value.atomic.default_atom())]),
        }
    }

    /// The type in words, as in the reference server's messages.
    pub fn in_words(&self) -> String {
        let key = self.key.atomic.name();
        if self.is_scalar() {
            return key.to_string();
        }
        let class = if self.is_map() { "map" } else { "set" };
        let count = match (self.min, self.max) {
            (0, UNLIMITED) => String::new(),
            (min, UNLIMITED) => format!(" {min} or more"),
            (0, max) => format!(" up to {max}"),
            (min, max) => format!(" {min} to {max}"),
        };
        match &self.value {
            None => format!("{class} of{count} {key}s"),
            Some(value) => format!("{class} of{count} ({key}, {}) pairs", value.atomic.name()),
        }
    }
}
