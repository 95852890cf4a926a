//! Search filters (RFC 4511 section 4.5.1.7): as they are asked, as text (RFC 4515), and compiled for evaluation.
//!
//! A [`Filter`] is what the client sent, nothing looked up. [`CompiledFilter`] is the same under one version of the
//! schema: attribute numbers and normalised assertions, or Undefined where the schema knows no way to compare.
//! Invariants: filters read from text or from a message have at most [`FILTER_DEPTH_MAX`] levels of and, or and not and
//! at most [`FILTER_TERMS_MAX`] parts, so recursion over one is bounded; reading them needs no recursion.

mod compiled;
mod evaluate;
mod text;

pub use compiled::{CompiledFilter, Node, Piece, Pieces, Target, Test};
pub use evaluate::{EntryView, Scratch, Truth, VisitAva, VisitKind, VisitValue};
pub use text::FilterError;

/// Most levels of and, or, not around a term. What people and tools write stays far below; each level takes a stack frame
/// of an evaluation.
pub const FILTER_DEPTH_MAX: usize = 64;

/// Most parts of a filter: each and, or, not and each term counts one.
pub const FILTER_TERMS_MAX: usize = 65_536;

/// A search filter as the client sent it.
///
/// Attributes are the text of attribute descriptions, values are octets without escapes.
///
/// ```
/// use cowslip_ldap::filter::Filter;
/// let filter = Filter::parse("(&(objectClass=person)(!(cn=Am*)))")?;
/// assert_eq!(filter.to_string(), "(&(objectClass=person)(!(cn=Am*)))");
/// # Ok::<(), cowslip_ldap::filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of these; without any, true (RFC 4526).
    And(Vec<Filter>),
    /// One of these; without any, false (RFC 4526).
    Or(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
    /// `attribute=value`: by the attribute's equality rule.
    Equality {
        /// The attribute description.
        attribute: String,
        /// The assertion value.
        value: Vec<u8>,
    },
    /// `attribute=initial*any*last`: by the attribute's substring rule. At least one piece is there.
    Substrings {
        /// The attribute description.
        attribute: String,
        /// What the value begins with.
        initial: Option<Vec<u8>>,
        /// What follows somewhere, in this order and without overlap.
        any: Vec<Vec<u8>>,
        /// What the value ends with.
        last: Option<Vec<u8>>,
    },
    /// `attribute>=value`: by the attribute's ordering rule.
    GreaterOrEqual {
        /// The attribute description.
        attribute: String,
        /// The assertion value.
        value: Vec<u8>,
    },
    /// `attribute<=value`: by the attribute's ordering rule.
    LessOrEqual {
        /// The attribute description.
        attribute: String,
        /// The assertion value.
        value: Vec<u8>,
    },
    /// `attribute~=value`: sounds alike.
    Approximate {
        /// The attribute description.
        attribute: String,
        /// The assertion value.
        value: Vec<u8>,
    },
    /// `attribute=*`: is there.
    Present(
        /// The attribute description.
        String,
    ),
    /// `attribute:dn:rule:=value` (RFC 4511 section 4.5.1.7.7). Attribute or rule is there.
    Extensible {
        /// The matching rule's name or object identifier; without it, the attribute's equality rule.
        rule: Option<String>,
        /// The attribute description; without it, all attributes that the rule is for.
        attribute: Option<String>,
        /// The assertion value.
        value: Vec<u8>,
        /// Whether the attributes in the entry's name count as attributes of the entry.
        dn_attributes: bool,
    },
}
