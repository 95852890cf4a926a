//! Takes an object apart member by member and reports what is missing, of the wrong type or left over, in the
//! reference server's words.

use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use std::cell::RefCell;

/// What a member may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// An integer.
    Integer,
    /// An integer or a real.
    Number,
    /// Any string.
    String,
    /// A string that is an `<id>` (RFC 7047 section 3.1).
    Id,
    /// An array.
    Array,
    /// An object.
    Object,
    /// An object or a string.
    StringOrObject,
    /// Any value.
    Any,
}

/// Whether a text is an `<id>`: a letter or underscore, then letters, digits and underscores.
pub fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl Kind {
    fn fits(self, json: &Json<'_>) -> bool {
        match (self, json) {
            (Kind::Any, _)
            | (Kind::Bool, Json::Bool(_))
            | (Kind::Integer | Kind::Number, Json::Int(_))
            | (Kind::Number, Json::Real(_))
            | (Kind::String | Kind::StringOrObject, Json::Str(_))
            | (Kind::Array, Json::Array(_))
            | (Kind::Object | Kind::StringOrObject, Json::Object(_)) => true,
            (Kind::Id, Json::Str(s)) => is_id(s),
            _ => false,
        }
    }
}

/// An object being taken apart. The first fault found is the one reported, by [`Members::check`] or
/// [`Members::finish`].
pub struct Members<'j, 'a> {
    whole: &'j Json<'a>,
    name: String,
    object: Option<&'j Object<'a>>,
    used: RefCell<Vec<&'static str>>,
    fault: RefCell<Option<Error>>,
}

impl<'j, 'a> Members<'j, 'a> {
    /// Begins with `json`; `name` says in messages what is being parsed.
    pub fn new(json: &'j Json<'a>, name: impl Into<String>) -> Self {
        let members = Members {
            whole: json,
            name: name.into(),
            object: json.as_object(),
            used: RefCell::default(),
            fault: RefCell::default(),
        };
        if members.object.is_none() {
            members.raise("Object expected.");
        }
        members
    }

    /// The value being taken apart.
    pub fn whole(&self) -> &'j Json<'a> {
        self.whole
    }

    /// Records a fault of the object, unless there is one already.
    pub fn raise(&self, reason: impl AsRef<str>) {
        let mut fault = self.fault.borrow_mut();
        if fault.is_none() {
            let details = format!("Parsing {} failed: {}", self.name, reason.as_ref());
            // What is no object at all is not shown, as in the reference server.
            let syntax = self.object.map(|_| self.whole.to_sorted_string());
            *fault = Some(Error { kind: ErrorKind::Syntax, details, syntax });
        }
    }

    /// A member that must be there.
    pub fn required(&self, name: &'static str, kind: Kind) -> Option<&'j Json<'a>> {
        self.take(name, kind, true)
    }

    /// A member that may be left out.
    pub fn optional(&self, name: &'static str, kind: Kind) -> Option<&'j Json<'a>> {
        self.take(name, kind, false)
    }

    fn take(&self, name: &'static str, kind: Kind, required: bool) -> Option<&'j Json<'a>> {
        match self.object?.member(name) {
            None => {
                if required {
                    self.raise(format!("Required '{name}' member is missing."));
                }
                None
            }
            Some(value) => {
                self.used.borrow_mut().push(name);
                if kind.fits(value) {
                    Some(value)
                } else {
                    self.raise(format!("Type mismatch for member '{name}'."));
                    None
                }
            }
        }
    }

    /// The fault so far.
    ///
    /// # Errors
    /// The first fault recorded.
    pub fn check(&self) -> Result<(), Error> {
        match &*self.fault.borrow() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// Ends the parsing: members that nobody asked for are faults, too.
    ///
    /// # Errors
    /// The first fault recorded.
    pub fn finish(self) -> Result<(), Error> {
        let used = self.used.borrow();
        let mut unused =
            self.object.into_iter().flat_map(Object::iter).filter(|(name, _)| !used.contains(name));
        if let Some((name, _)) = unused.next() {
            match unused.count() {
                0 => self.raise(format!("Member '{name}' is present but not allowed here.")),
                n => {
                    let s = if n > 1 { "s" } else { "" };
                    self.raise(format!(
                        "Member '{name}' and {n} other member{s} are present but not allowed here."
                    ));
                }
            }
        }
        self.check()
    }
}
