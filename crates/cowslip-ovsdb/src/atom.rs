//! Atoms: the scalars that columns are made of (RFC 7047 sections 3.1 and 5.1).

use crate::error::{Error, ErrorKind};
use crate::json::{Json, write_int, write_str};
use crate::number;
use crate::symbols::Symbols;
use cowslip_engine::Uuid;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The type of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomicType {
    /// A 64-bit signed integer.
    Integer,
    /// A finite double.
    Real,
    /// `true` or `false`.
    Boolean,
    /// UTF-8 text without NUL.
    String,
    /// A UUID, which may refer to a row.
    Uuid,
}

impl AtomicType {
    /// The type's name in schemas.
    pub fn name(self) -> &'static str {
        match self {
            AtomicType::Integer => "integer",
            AtomicType::Real => "real",
            AtomicType::Boolean => "boolean",
            AtomicType::String => "string",
            AtomicType::Uuid => "uuid",
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Integer, Self::Real, Self::Boolean, Self::String, Self::Uuid]
            .into_iter()
            .find(|t| t.name() == name)
    }

    /// The value that a column without a value has.
    pub fn default_atom(self) -> Atom {
        match self {
            AtomicType::Integer => Atom::Integer(0),
            AtomicType::Real => Atom::Real(Real::ZERO),
            AtomicType::Boolean => Atom::Boolean(false),
            AtomicType::String => Atom::String(Arc::from("")),
            AtomicType::Uuid => Atom::Uuid(Uuid::nil()),
        }
    }
}

/// A finite double with a total order; there is one zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Real(f64);

impl Real {
    /// Zero.
    pub const ZERO: Real = Real(0.0);

    /// The value, unless it is infinite or not a number.
    pub fn new(value: f64) -> Option<Self> {
        // Adding zero turns the negative zero into the positive one.
        value.is_finite().then_some(Real(value + 0.0))
    }

    /// The double.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Eq for Real {}

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A scalar. Cloning never copies text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    /// An integer.
    Integer(i64),
    /// A real.
    Real(Real),
    /// A boolean.
    Boolean(bool),
    /// A string.
    String(Arc<str>),
    /// A UUID.
    Uuid(Uuid),
}

impl Atom {
    /// A string atom.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Atom::String(text.into())
    }

    /// Takes an atom of type `kind` from a message; `symbols` knows the transaction's `named-uuid`s, where there may be
    /// some.
    ///
    /// # Errors
    /// `syntax error` if the value is not of the type.
    pub fn from_json(
        kind: AtomicType,
        json: &Json<'_>,
        symbols: Option<&mut Symbols>,
    ) -> Result<Self, Error> {
        match (kind, json) {
            (AtomicType::Integer, Json::Int(i)) => Ok(Atom::Integer(*i)),
            (AtomicType::Real, Json::Int(i)) => Ok(Atom::Real(Real(*i as f64))),
            (AtomicType::Real, Json::Real(r)) => Real::new(*r)
                .map(Atom::Real)
                .ok_or_else(|| Error::syntax(json, "real number is out of range")),
            (AtomicType::Boolean, Json::Bool(b)) => Ok(Atom::Boolean(*b)),
            (AtomicType::String, Json::Str(s)) => Ok(Atom::String(Arc::from(s.as_ref()))),
            (AtomicType::Uuid, _) => uuid_from_json(json, symbols).map(Atom::Uuid),
            _ => Err(Error::syntax(json, format!("expected {}", kind.name()))),
        }
    }

    /// Appends the atom as it travels.
    pub fn write(&self, out: &mut String) {
        match self {
            Atom::Integer(i) => write_int(out, *i),
            Atom::Real(r) => number::write_real(out, r.0),
            Atom::Boolean(b) => out.push_str(if *b { "true" } else { "false" }),
            Atom::String(s) => write_str(out, s),
            Atom::Uuid(u) => write_uuid(out, u),
        }
    }

    /// The UUID, if it is one.
    pub fn as_uuid(&self) -> Option<&Uuid> {
        match self {
            Atom::Uuid(u) => Some(u),
            _ => None,
        }
    }
}

/// The form of `ovsdb-client` and of error messages: strings bare where they are words, else quoted.
impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Integer(i) => write!(f, "{i}"),
            Atom::Real(r) => f.write_str(&number::fifteen_digits(r.0)),
            Atom::Boolean(b) => write!(f, "{b}"),
            Atom::Uuid(u) => write!(f, "{}", u.hyphenated()),
            Atom::String(s) => {
                if is_bare(s) {
                    f.write_str(s)
                } else {
                    let mut quoted = String::new();
                    write_str(&mut quoted, s);
                    f.write_str(&quoted)
                }
            }
        }
    }
}

/// Whether a string can stand without quotes: a word, not mistaken for a UUID or a boolean.
fn is_bare(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        && text != "true"
        && text != "false"
        && parse_uuid(text).is_none()
}

/// Appends `["uuid","…"]`.
pub fn write_uuid(out: &mut String, uuid: &Uuid) {
    out.push_str("[\"uuid\",\"");
    out.push_str(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    out.push_str("\"]");
}

/// A UUID in its one textual form, in either case.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    // The `uuid` crate also takes forms without hyphens, in braces and as URN; OVSDB does not.
    if text.len() == 36 { Uuid::try_parse(text).ok() } else { None }
}

/// The inner value of `["<class>", inner]`, if `json` is that.
pub(crate) fn tagged<'j, 'a>(json: &'j Json<'a>, class: &str) -> Option<&'j Json<'a>> {
    match json.as_array() {
        Some([Json::Str(tag), inner]) if tag == class => Some(inner),
        _ => None,
    }
}

fn uuid_from_json(json: &Json<'_>, symbols: Option<&mut Symbols>) -> Result<Uuid, Error> {
    if let Some(Json::Str(text)) = tagged(json, "uuid") {
        return parse_uuid(text)
            .ok_or_else(|| Error::syntax(json, format!("\"{text}\" is not a valid UUID")));
    }
    if let (Some(Json::Str(name)), Some(symbols)) = (tagged(json, "named-uuid"), symbols) {
        if !crate::members::is_id(name) {
            return Err(Error::syntax(json, "named-uuid string is not a valid <id>"));
        }
        return Ok(symbols.refer(name));
    }
    Err(Error::syntax(json, "expected [\"uuid\", <string>]"))
}

/// The error of a value outside its range.
pub(crate) fn out_of_range(value: &str, min: Option<String>, max: Option<String>) -> Error {
    let details = match (min, max) {
        (Some(min), Some(max)) => format!("{value} is not in the valid range {min} to {max} (inclusive)"),
        (Some(min), None) => format!("{value} is less than minimum allowed value {min}"),
        (None, Some(max)) => format!("{value} is greater than maximum allowed value {max}"),
        (None, None) => format!("{value} is out of range"),
    };
    Error::new(ErrorKind::ConstraintViolation, details)
}
