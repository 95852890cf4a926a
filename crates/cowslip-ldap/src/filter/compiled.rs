//! Filters under one version of the schema: attributes as numbers, assertions normalised, once for all entries.
//!
//! What the schema can't compare is [`Node::Undefined`]: an unknown attribute or rule, an attribute without the rule that
//! is asked for, an assertion that is not one of the rule's syntax. Or-ed equality terms on one attribute become one
//! sorted set, so that a filter of thousands of names costs each entry a search in that set. Invariants: a tree has at
//! most [`FILTER_DEPTH_MAX`] levels; sets are sorted and without repetitions; a term that an index may answer is a
//! [`Node::Term`], whose test uses the rules of its attribute type.

use std::collections::HashMap;

use memchr::memmem::Finder;

use super::{FILTER_DEPTH_MAX, Filter};
use crate::description::AttributeDescription;
use crate::dn::Dn;
use crate::matching::{MatchingRule, RuleKind, phonetic_key, phonetic_words};
use crate::prep::PieceKind;
use crate::schema::{AttributeType, AttributeTypeId, Schema};
use crate::syntax::Syntax;

/// A filter that can be evaluated.
///
/// ```
/// use cowslip_ldap::{filter::{CompiledFilter, Filter, Node}, schema::Schema};
/// let schema = Schema::standard();
/// let compile = |text: &str| Filter::parse(text).map(|filter| CompiledFilter::new(&filter, &schema));
/// assert!(matches!(compile("(2.5.4.3=Amy)")?.root(), Node::Term { .. }));
/// assert!(matches!(compile("(nosuch=Amy)")?.root(), Node::Undefined));
/// assert!(!compile("(&(cn=Amy)(!(nosuch=x)))")?.can_match());
/// # Ok::<(), cowslip_ldap::filter::FilterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CompiledFilter {
    root: Node,
}

/// A part of a compiled filter.
#[derive(Clone, Debug)]
pub enum Node {
    /// All of these; without any, true.
    And(Vec<Node>),
    /// One of these; without any, false.
    Or(Vec<Node>),
    /// Not this.
    Not(Box<Node>),
    /// Neither true nor false, whatever the entry.
    Undefined,
    /// Some value of an attribute passes a test. Indexes can give candidates.
    Term {
        /// The attribute.
        target: Target,
        /// The test, by the rules of the target's type.
        test: Test,
    },
    /// The same for what only an extensible match can ask: another rule than the type's own, all attributes that a rule
    /// is for, the attributes of the entry's name.
    Extensible {
        /// The attribute; none stands for all that the test's rule applies to.
        target: Option<Target>,
        /// Whether the attributes in the entry's name count, too.
        dn_attributes: bool,
        /// The test.
        test: Test,
    },
}

/// Which values a term is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The attribute type.
    pub kind: AttributeTypeId,
    /// Whether its subtypes count. They do, except where a filter on a type was split because a subtype has rules of
    /// its own.
    pub includes_subtypes: bool,
    /// Options that an attribute must have, normalised; mostly none.
    pub options: String,
}

impl Target {
    /// The types whose values count.
    #[must_use]
    pub fn kinds<'a>(&'a self, schema: &'a Schema) -> &'a [AttributeTypeId] {
        if self.includes_subtypes { schema.subtypes(self.kind) } else { std::slice::from_ref(&self.kind) }
    }
}

/// What is asked of a value. Assertions are in their rule's normalised form.
#[derive(Clone, Debug)]
pub enum Test {
    /// Nothing.
    Present,
    /// It equals one of these.
    Equality {
        /// An equality rule.
        rule: MatchingRule,
        /// At least one, ascending.
        assertions: Vec<Box<[u8]>>,
    },
    /// It has these pieces.
    Substrings {
        /// A substrings rule.
        rule: MatchingRule,
        /// The pieces.
        pieces: Pieces,
    },
    /// It is not less.
    GreaterOrEqual {
        /// An ordering rule.
        rule: MatchingRule,
        /// Than this.
        bound: Box<[u8]>,
    },
    /// It is not greater.
    LessOrEqual {
        /// An ordering rule.
        rule: MatchingRule,
        /// Than this.
        bound: Box<[u8]>,
    },
    /// For each of these keys, it has a word that sounds like it.
    Approximate {
        /// At least one, ascending.
        words: Vec<Box<[u8]>>,
    },
    /// The rule accepts it ([`MatchingRule::accepts`]): less, has the word, has the bits.
    Accepted {
        /// A rule of order, words or bits.
        rule: MatchingRule,
        /// The assertion.
        assertion: Box<[u8]>,
    },
    /// It is a name that leads to this one over any number of entries.
    InChain {
        /// The name.
        dn: Dn,
    },
}

/// The pieces of a substrings assertion, normalised.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// What the value begins with; may be empty.
    pub initial: Box<[u8]>,
    /// What follows, in this order.
    pub any: Vec<Piece>,
    /// What the value ends with; may be empty.
    pub last: Box<[u8]>,
}

/// A piece that is looked for anywhere.
#[derive(Clone, Debug)]
pub struct Piece(Finder<'static>);

impl Piece {
    /// The piece's octets.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.needle()
    }

    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        self.0.find(text)
    }
}

impl CompiledFilter {
    /// Compiles a filter. Whatever can't be compared becomes Undefined, so this can't fail.
    #[must_use]
    pub fn new(filter: &Filter, schema: &Schema) -> Self {
        Self { root: Compiler { schema }.node(filter, 0) }
    }

    /// The tree.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether there may be an entry for which the filter is true. If not, there is no need to look.
    #[must_use]
    pub fn can_match(&self) -> bool {
        self.root.can_be().0
    }
}

impl Node {
    /// Whether this may be true, and whether it may be false.
    fn can_be(&self) -> (bool, bool) {
        match self {
            Node::And(parts) => {
                parts.iter().map(Node::can_be).fold((true, false), |a, b| (a.0 && b.0, a.1 || b.1))
            }
            Node::Or(parts) => {
                parts.iter().map(Node::can_be).fold((false, true), |a, b| (a.0 || b.0, a.1 && b.1))
            }
            Node::Not(part) => {
                let (can_be_true, can_be_false) = part.can_be();
                (can_be_false, can_be_true)
            }
            Node::Undefined => (false, false),
            Node::Term { .. } | Node::Extensible { .. } => (true, true),
        }
    }
}

struct Compiler<'a> {
    schema: &'a Schema,
}

impl Compiler<'_> {
    fn node(&self, filter: &Filter, depth: usize) -> Node {
        if depth > FILTER_DEPTH_MAX {
            return Node::Undefined;
        }
        match filter {
            Filter::And(parts) => {
                let mut parts: Vec<Node> = parts.iter().map(|part| self.node(part, depth + 1)).collect();
                if parts.len() == 1 { parts.remove(0) } else { Node::And(parts) }
            }
            Filter::Or(parts) => {
                let parts = parts.iter().map(|part| self.node(part, depth + 1)).collect();
                let mut parts = joined(parts);
                if parts.len() == 1 { parts.remove(0) } else { Node::Or(parts) }
            }
            Filter::Not(part) => match self.node(part, depth + 1) {
                Node::Undefined => Node::Undefined,
                part => Node::Not(Box::new(part)),
            },
            Filter::Present(attribute) => match self.target(attribute) {
                Some(target) => Node::Term { target, test: Test::Present },
                None => Node::Undefined,
            },
            Filter::Equality { attribute, value } => {
                self.term(attribute, |kind| self.equality(kind.equality?, value))
            }
            Filter::Substrings { attribute, initial, any, last } => self.term(attribute, |kind| {
                self.substrings(
                    kind.substring?,
                    initial.as_deref(),
                    any.iter().map(Vec::as_slice),
                    last.as_deref(),
                )
            }),
            Filter::GreaterOrEqual { attribute, value } => self.term(attribute, |kind| {
                let rule = kind.ordering?;
                Some(Test::GreaterOrEqual { rule, bound: self.assertion(rule, value)? })
            }),
            Filter::LessOrEqual { attribute, value } => self.term(attribute, |kind| {
                let rule = kind.ordering?;
                Some(Test::LessOrEqual { rule, bound: self.assertion(rule, value)? })
            }),
            Filter::Approximate { attribute, value } => {
                self.term(attribute, |kind| self.approximate(kind, value))
            }
            Filter::Extensible { rule, attribute, value, dn_attributes } => self
                .extensible(rule.as_deref(), attribute.as_deref(), value, *dn_attributes)
                .unwrap_or(Node::Undefined),
        }
    }

    /// The attribute that a description names, if the schema knows it.
    fn target(&self, attribute: &str) -> Option<Target> {
        let description = AttributeDescription::parse(attribute).ok()?;
        let kind = self.schema.attribute(description.attribute())?;
        Some(Target { kind, includes_subtypes: true, options: description.normalized_options() })
    }

    /// A term on an attribute. RFC 4511 sections 4.5.1.7.1 to 4.5.1.7.6 speak of the rules of "the attribute type or
    /// subtype": where a subtype has rules of its own, the term becomes an or of one term for each subtype.
    fn term(&self, attribute: &str, test: impl Fn(&AttributeType) -> Option<Test>) -> Node {
        let Some(target) = self.target(attribute) else { return Node::Undefined };
        let rules = |kind: AttributeTypeId| {
            let kind = self.schema.attribute_type(kind);
            (kind.equality, kind.ordering, kind.substring)
        };
        let kinds = target.kinds(self.schema);
        if kinds.iter().all(|kind| rules(*kind) == rules(target.kind)) {
            let test = test(self.schema.attribute_type(target.kind));
            return test.map_or(Node::Undefined, |test| Node::Term { target, test });
        }
        let split = kinds.iter().map(|kind| {
            let target = Target { kind: *kind, includes_subtypes: false, options: target.options.clone() };
            test(self.schema.attribute_type(*kind))
                .map_or(Node::Undefined, |test| Node::Term { target, test })
        });
        Node::Or(split.collect())
    }

    fn assertion(&self, rule: MatchingRule, value: &[u8]) -> Option<Box<[u8]>> {
        let mut normalized = Vec::with_capacity(value.len() + 8);
        rule.normalize_assertion(value, self.schema, &mut normalized).ok()?;
        Some(normalized.into_boxed_slice())
    }

    fn equality(&self, rule: MatchingRule, value: &[u8]) -> Option<Test> {
        Some(Test::Equality { rule, assertions: vec![self.assertion(rule, value)?] })
    }

    fn substrings<'v>(
        &self,
        rule: MatchingRule,
        initial: Option<&[u8]>,
        any: impl Iterator<Item = &'v [u8]>,
        last: Option<&[u8]>,
    ) -> Option<Test> {
        let piece = |piece: &[u8], at| {
            let mut normalized = Vec::with_capacity(piece.len() + 2);
            rule.normalize_piece(piece, at, self.schema, &mut normalized).ok()?;
            Some(normalized.into_boxed_slice())
        };
        let initial = initial.map_or(Some(Box::default()), |initial| piece(initial, PieceKind::Initial))?;
        let finder = |any| Some(Piece(Finder::new(&piece(any, PieceKind::Any)?).into_owned()));
        let any = any.map(finder).collect::<Option<_>>()?;
        let last = last.map_or(Some(Box::default()), |last| piece(last, PieceKind::Final))?;
        Some(Test::Substrings { rule, pieces: Pieces { initial, any, last } })
    }

    /// By sound for text, by equality for everything else and for assertions without a word.
    fn approximate(&self, kind: &AttributeType, value: &[u8]) -> Option<Test> {
        let is_text = matches!(
            kind.syntax,
            Syntax::DirectoryString | Syntax::Ia5String | Syntax::PrintableString | Syntax::CountryString
        );
        let text = std::str::from_utf8(value).ok().filter(|_| is_text).unwrap_or_default();
        let key = |word| {
            let mut key = Vec::new();
            phonetic_key(word, &mut key);
            key.into_boxed_slice()
        };
        let mut words: Vec<Box<[u8]>> = phonetic_words(text).map(key).collect();
        words.sort_unstable();
        words.dedup();
        if words.is_empty() {
            self.equality(kind.equality?, value)
        } else {
            Some(Test::Approximate { words })
        }
    }

    fn extensible(
        &self,
        rule: Option<&str>,
        attribute: Option<&str>,
        value: &[u8],
        dn_attributes: bool,
    ) -> Option<Node> {
        let rule = match rule {
            Some(name) => Some(MatchingRule::by_name_or_oid(name)?),
            None => None,
        };
        let Some(attribute) = attribute else {
            return Some(Node::Extensible { target: None, dn_attributes, test: self.test(rule?, value)? });
        };
        let target = self.target(attribute)?;
        let kind = self.schema.attribute_type(target.kind);
        let is_own = |rule| kind.equality == Some(rule) || kind.substring == Some(rule);
        if !dn_attributes && rule.is_none_or(is_own) {
            let test = |kind: &AttributeType| self.test(rule.or(kind.equality)?, value);
            return Some(self.term(attribute, test));
        }
        let rule = rule.or(kind.equality)?;
        let is_applicable = is_own(rule) || kind.ordering == Some(rule) || rule.applies_to(kind.syntax);
        let test = self.test(rule, value).filter(|_| is_applicable)?;
        Some(Node::Extensible { target: Some(target), dn_attributes, test })
    }

    /// The test of an extensible match by this rule.
    fn test(&self, rule: MatchingRule, value: &[u8]) -> Option<Test> {
        match rule.kind() {
            RuleKind::Equality => self.equality(rule, value),
            RuleKind::Ordering | RuleKind::Word | RuleKind::BitAnd | RuleKind::BitOr => {
                Some(Test::Accepted { rule, assertion: self.assertion(rule, value)? })
            }
            RuleKind::Substring => {
                let pieces = substring_assertion(value)?;
                let (last, others) = pieces.split_last()?;
                let (initial, any) = others.split_first()?;
                let given = |piece: &'_ Vec<u8>| Some(piece.clone()).filter(|piece| !piece.is_empty());
                let any = any.iter().map(Vec::as_slice).filter(|piece| !piece.is_empty());
                self.substrings(rule, given(initial).as_deref(), any, given(last).as_deref())
            }
            RuleKind::InChain => {
                let dn = Dn::parse(value).ok()?;
                dn.normalize(self.schema, &mut Vec::new()).ok()?;
                Some(Test::InChain { dn })
            }
        }
    }
}

/// Takes the text of a substrings assertion apart (RFC 4517 section 3.3.30): at least two pieces, the first and the last
/// of which may be empty. `\2A` and `\5C` stand for star and backslash.
fn substring_assertion(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut pieces = vec![Vec::new()];
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'*' => pieces.push(Vec::new()),
            b'\\' => {
                let escaped = match after.get(..2)? {
                    b"2A" | b"2a" => b'*',
                    b"5C" | b"5c" => b'\\',
                    _ => return None,
                };
                pieces.last_mut()?.push(escaped);
                rest = &after[2..];
            }
            byte => pieces.last_mut()?.push(*byte),
        }
    }
    let is_any = pieces.len() > 1 && pieces.iter().any(|piece| !piece.is_empty());
    is_any.then_some(pieces)
}

/// Parts of an or in which equality terms on one target are one term, and Undefined stands once.
fn joined(parts: Vec<Node>) -> Vec<Node> {
    if parts.len() < 2 {
        return parts;
    }
    let mut places: HashMap<(Target, MatchingRule), usize> = HashMap::new();
    let mut result: Vec<Node> = Vec::with_capacity(parts.len().min(16));
    let mut has_undefined = false;
    for part in parts {
        match part {
            Node::Undefined if std::mem::replace(&mut has_undefined, true) => {}
            Node::Term { target, test: Test::Equality { rule, assertions } } => {
                let key = (target, rule);
                match places.get(&key).and_then(|place| result.get_mut(*place)) {
                    Some(Node::Term { test: Test::Equality { assertions: all, .. }, .. }) => {
                        all.extend(assertions)
                    }
                    _ => {
                        let target = key.0.clone();
                        places.insert(key, result.len());
                        result.push(Node::Term { target, test: Test::Equality { rule, assertions } });
                    }
                }
            }
            other => result.push(other),
        }
    }
    for place in places.into_values() {
        if let Some(Node::Term { test: Test::Equality { assertions, .. }, .. }) = result.get_mut(place) {
            assertions.sort_unstable();
            assertions.dedup();
        }
    }
    result
}
