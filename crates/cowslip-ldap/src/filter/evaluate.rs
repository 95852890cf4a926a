//! Evaluation of a compiled filter for an entry, in three values (RFC 4511 section 4.5.1.7).
//!
//! Values are normalised into one buffer that is used again, so evaluation allocates nothing for ASCII values. What the
//! asking user may not search is Undefined, whether the entry has it or not, so that neither a filter nor its negation
//! gives it away.

use std::ops::ControlFlow;

use super::compiled::{CompiledFilter, Node, Pieces, Target, Test};
use crate::description::has_options;
use crate::dn::Dn;
use crate::matching::{phonetic_key, phonetic_words};
use crate::schema::{AttributeTypeId, Schema};

/// The value of a filter for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// The filter matches.
    True,
    /// It doesn't.
    False,
    /// There is no way to tell. An entry is returned for `True` alone.
    Undefined,
}

impl Truth {
    /// Whether the filter matches.
    #[must_use]
    pub const fn is_true(self) -> bool {
        matches!(self, Truth::True)
    }
}

impl std::ops::Not for Truth {
    type Output = Truth;

    fn not(self) -> Truth {
        match self {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            Truth::Undefined => Truth::Undefined,
        }
    }
}

impl From<bool> for Truth {
    fn from(is_true: bool) -> Truth {
        if is_true { Truth::True } else { Truth::False }
    }
}

/// What is called with the options and each value of an attribute; it breaks when it has seen enough.
pub type VisitValue<'a> = &'a mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>;

/// What is called with each attribute type; it breaks when it has seen enough.
pub type VisitKind<'a> = &'a mut dyn FnMut(AttributeTypeId) -> ControlFlow<()>;

/// What is called with type and value of each assertion in a name; it breaks when it has seen enough.
pub type VisitAva<'a> = &'a mut dyn FnMut(AttributeTypeId, &[u8]) -> ControlFlow<()>;

/// An entry as a filter sees it, for one user.
///
/// Options of attributes are normalised texts ([`crate::description`]). An implementation gives computed attributes
/// (`memberOf`, `entryDN`, …) like all others.
pub trait EntryView {
    /// The version of the schema under which the filter was compiled and the entry is read.
    fn schema(&self) -> &Schema;

    /// Gives `visit` the options and each value of the attributes of exactly this type, subtypes not included.
    fn values(&self, kind: AttributeTypeId, visit: VisitValue<'_>) -> ControlFlow<()>;

    /// Gives `visit` each attribute type that the entry has, operational and computed ones included.
    fn kinds(&self, visit: VisitKind<'_>) -> ControlFlow<()>;

    /// Gives `visit` type and value of each assertion in the entry's name, those of the entries above included.
    fn name_values(&self, visit: VisitAva<'_>) -> ControlFlow<()>;

    /// Whether the entry has an attribute of exactly this type with at least these options.
    fn has(&self, kind: AttributeTypeId, options: &str) -> bool {
        let mut visit = |held: &str, _: &[u8]| {
            if has_options(held, options) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.values(kind, &mut visit).is_break()
    }

    /// Whether an attribute of exactly this type with at least these options has the value whose normalised form by the
    /// type's equality rule this is; none if the view can't tell faster than by going through the values, which is then
    /// done.
    fn holds(&self, kind: AttributeTypeId, options: &str, normalized: &[u8]) -> Option<bool> {
        let _ = (kind, options, normalized);
        None
    }

    /// Whether the asking user may search attributes of this type in this entry.
    fn is_searchable(&self, kind: AttributeTypeId) -> bool {
        let _ = kind;
        true
    }

    /// Whether a value of exactly this type leads to the entry with this name, directly or over entries that have such
    /// values themselves.
    fn is_in_chain(&self, kind: AttributeTypeId, dn: &Dn) -> Truth {
        let _ = (kind, dn);
        Truth::Undefined
    }
}

/// Room for normalised values, to be used for one entry after the other.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    value: Vec<u8>,
    heard: Vec<bool>,
}

impl CompiledFilter {
    /// The filter's value for an entry.
    pub fn evaluate<V: EntryView + ?Sized>(&self, entry: &V, scratch: &mut Scratch) -> Truth {
        node(self.root(), entry, scratch)
    }
}

fn node<V: EntryView + ?Sized>(part: &Node, entry: &V, scratch: &mut Scratch) -> Truth {
    match part {
        Node::And(parts) => {
            let mut truth = Truth::True;
            for part in parts {
                match node(part, entry, scratch) {
                    Truth::True => {}
                    Truth::False => return Truth::False,
                    Truth::Undefined => truth = Truth::Undefined,
                }
            }
            truth
        }
        Node::Or(parts) => {
            let mut truth = Truth::False;
            for part in parts {
                match node(part, entry, scratch) {
                    Truth::True => return Truth::True,
                    Truth::False => {}
                    Truth::Undefined => truth = Truth::Undefined,
                }
            }
            truth
        }
        Node::Not(part) => !node(part, entry, scratch),
        Node::Undefined => Truth::Undefined,
        Node::Term { target, test } => term(target, test, entry, scratch),
        Node::Extensible { target, dn_attributes, test } => {
            let mut found = match target {
                Some(target) => term(target, test, entry, scratch),
                None => any_kind(test, entry, scratch),
            };
            if *dn_attributes && found != Truth::True {
                found = or(found, name(target.as_ref(), test, entry, scratch));
            }
            found
        }
    }
}

fn or(one: Truth, other: Truth) -> Truth {
    match (one, other) {
        (Truth::True, _) | (_, Truth::True) => Truth::True,
        (Truth::Undefined, _) | (_, Truth::Undefined) => Truth::Undefined,
        _ => Truth::False,
    }
}

fn term<V: EntryView + ?Sized>(target: &Target, test: &Test, entry: &V, scratch: &mut Scratch) -> Truth {
    let mut truth = Truth::False;
    for kind in target.kinds(entry.schema()) {
        let found = if entry.is_searchable(*kind) {
            one_kind(*kind, &target.options, test, entry, scratch)
        } else {
            Truth::Undefined
        };
        match found {
            Truth::True => return Truth::True,
            Truth::False => {}
            Truth::Undefined => truth = Truth::Undefined,
        }
    }
    truth
}

/// The test on the values of exactly one type.
fn one_kind<V: EntryView + ?Sized>(
    kind: AttributeTypeId,
    options: &str,
    test: &Test,
    entry: &V,
    scratch: &mut Scratch,
) -> Truth {
    match test {
        Test::Present => return Truth::from(entry.has(kind, options)),
        Test::InChain { dn } => return entry.is_in_chain(kind, dn),
        Test::Equality { rule, assertions }
            if entry.schema().attribute_type(kind).equality == Some(*rule) =>
        {
            // Either the view tells for all assertions or for none.
            let held = |assertion: &[u8]| entry.holds(kind, options, assertion);
            match assertions.first().and_then(|first| held(first)) {
                Some(true) => return Truth::True,
                Some(false) => {
                    let others = &assertions[1..];
                    return Truth::from(others.iter().any(|assertion| held(assertion) == Some(true)));
                }
                None => {}
            }
        }
        _ => {}
    }
    let schema = entry.schema();
    let mut visit = |held: &str, value: &[u8]| {
        let passes = has_options(held, options) && test.accepts(value, schema, scratch);
        if passes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    Truth::from(entry.values(kind, &mut visit).is_break())
}

/// The test on the values of all types that its rule is for.
fn any_kind<V: EntryView + ?Sized>(test: &Test, entry: &V, scratch: &mut Scratch) -> Truth {
    let mut truth = Truth::False;
    let mut visit = |kind: AttributeTypeId| {
        if test.applies_to(kind, entry.schema()) {
            let found = if entry.is_searchable(kind) {
                one_kind(kind, "", test, entry, scratch)
            } else {
                // Not Undefined: that would show, by the negation, which entries have such an attribute.
                Truth::False
            };
            truth = or(truth, found);
        }
        if truth == Truth::True { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let _ = entry.kinds(&mut visit);
    truth
}

/// The test on the values in the entry's name.
fn name<V: EntryView + ?Sized>(
    target: Option<&Target>,
    test: &Test,
    entry: &V,
    scratch: &mut Scratch,
) -> Truth {
    let schema = entry.schema();
    let is_asked = |kind| match target {
        Some(target) => target.options.is_empty() && schema.is_subtype(kind, target.kind),
        None => test.applies_to(kind, schema),
    };
    let mut visit = |kind: AttributeTypeId, value: &[u8]| {
        let passes = is_asked(kind) && entry.is_searchable(kind) && test.accepts(value, schema, scratch);
        if passes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    Truth::from(entry.name_values(&mut visit).is_break())
}

impl Test {
    /// Whether the test's rule can be applied to attributes of this type.
    fn applies_to(&self, kind: AttributeTypeId, schema: &Schema) -> bool {
        let kind = schema.attribute_type(kind);
        match self {
            Test::Equality { rule, .. }
            | Test::Substrings { rule, .. }
            | Test::GreaterOrEqual { rule, .. }
            | Test::LessOrEqual { rule, .. }
            | Test::Accepted { rule, .. } => {
                let own = [kind.equality, kind.ordering, kind.substring];
                own.contains(&Some(*rule)) || rule.applies_to(kind.syntax)
            }
            Test::InChain { .. } => kind.syntax == crate::syntax::Syntax::Dn,
            Test::Present | Test::Approximate { .. } => true,
        }
    }

    /// Whether a value passes. One that its rule can't normalise doesn't.
    fn accepts(&self, value: &[u8], schema: &Schema, scratch: &mut Scratch) -> bool {
        let normalized = &mut scratch.value;
        normalized.clear();
        match self {
            Test::Present => true,
            Test::Equality { rule, assertions } => {
                let is_value = rule.normalize(value, schema, normalized).is_ok();
                is_value
                    && match assertions.as_slice() {
                        [assertion] => **assertion == **normalized,
                        many => many.binary_search_by(|assertion| (**assertion).cmp(normalized)).is_ok(),
                    }
            }
            Test::Substrings { rule, pieces } => {
                rule.normalize_for_substrings(value, schema, normalized).is_ok() && pieces.are_in(normalized)
            }
            Test::GreaterOrEqual { rule, bound } => {
                rule.normalize(value, schema, normalized).is_ok() && **normalized >= **bound
            }
            Test::LessOrEqual { rule, bound } => {
                rule.normalize(value, schema, normalized).is_ok() && **normalized <= **bound
            }
            Test::Accepted { rule, assertion } => {
                rule.normalize(value, schema, normalized).is_ok() && rule.accepts(normalized, assertion)
            }
            Test::Approximate { words } => sounds_like(value, words, scratch),
            Test::InChain { .. } => false,
        }
    }
}

impl Pieces {
    /// Whether a prepared value has the pieces, in their order and without overlap. Each is taken where it is found
    /// first, which leaves the most for those that follow.
    fn are_in(&self, value: &[u8]) -> bool {
        let rest = value.strip_prefix(&*self.initial).and_then(|rest| rest.strip_suffix(&*self.last));
        let Some(mut rest) = rest else { return false };
        self.any.iter().all(|piece| {
            let end = piece.find(rest).map(|at| at + piece.bytes().len());
            rest = &rest[end.unwrap_or_default()..];
            end.is_some()
        })
    }
}

/// Whether the value has, for each of the sorted keys, a word with that key.
fn sounds_like(value: &[u8], words: &[Box<[u8]>], scratch: &mut Scratch) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let Scratch { value: key, heard } = scratch;
    heard.clear();
    heard.resize(words.len(), false);
    let mut missing = words.len();
    for word in phonetic_words(text) {
        key.clear();
        phonetic_key(word, key);
        if let Ok(place) = words.binary_search_by(|known| (**known).cmp(key)) {
            missing -= usize::from(!std::mem::replace(&mut heard[place], true));
            if missing == 0 {
                return true;
            }
        }
    }
    false
}
