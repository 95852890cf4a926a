//! From a filter to candidates.
//!
//! Candidates are always supersets: whoever is not among them does not match. A part of a filter that no index serves
//! has none, which within an *and* is no loss and within an *or* spoils the whole. Invariant: a part that cannot be true
//! has an empty set of candidates, so an unknown attribute never leads to a scan.

use std::fmt::Write;
use std::ops::Bound;

use cowslip_engine::{IndexIx, Posting, Root};
use cowslip_ldap::filter::{Node, Pieces, Target, Test};
use cowslip_ldap::schema::AttributeTypeId;

use super::view::{Context, is_computed};
use crate::key::Key;
use crate::meta::{ENTRIES, IndexForm, fixed};
use crate::model::{ANYTHING, Directory, EDGE, GRAM_BYTES, type_key};
use crate::tree::{Path, Tree};

/// Below so many candidates an *and* is not intersected further: testing them is as cheap.
const FEW: usize = 8;

/// What the planner did, for people.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// One line for each step, indented by depth.
    pub lines: Vec<String>,
}

impl Explanation {
    pub(super) fn note(&mut self, depth: usize, text: impl FnOnce(&mut String)) {
        let mut line = "  ".repeat(depth);
        text(&mut line);
        self.lines.push(line);
    }
}

/// The entries that a filter may match; none if only looking at all of them can tell.
pub fn candidates(root: &Root<Directory>, node: &Node, context: &Context) -> Option<Posting> {
    Planner { root, context, explanation: None }.node(node, 0)
}

/// The same, with what was done on the way.
pub fn explained(
    root: &Root<Directory>,
    node: &Node,
    context: &Context,
    explanation: &mut Explanation,
) -> Option<Posting> {
    Planner { root, context, explanation: Some(explanation) }.node(node, 0)
}

struct Planner<'a> {
    root: &'a Root<Directory>,
    context: &'a Context,
    explanation: Option<&'a mut Explanation>,
}

impl Planner<'_> {
    fn node(&mut self, node: &Node, depth: usize) -> Option<Posting> {
        match node {
            Node::And(parts) => self.and(parts, depth),
            Node::Or(parts) => self.or(parts, depth),
            Node::Undefined => {
                self.note(depth, |line| line.push_str("undefined: nothing"));
                Some(Posting::default())
            }
            Node::Term { target, test } => self.term(target, test, depth),
            Node::Extensible { target: Some(target), dn_attributes: false, test } => {
                let is_own = self.is_own_rule(target.kind, test);
                if is_own {
                    self.term(target, test, depth)
                } else {
                    self.unindexed(depth, "a rule of its own")
                }
            }
            Node::Not(_) => self.unindexed(depth, "not"),
            Node::Extensible { .. } => self.unindexed(depth, "attributes of the name, or all attributes"),
        }
    }

    fn unindexed(&mut self, depth: usize, what: &str) -> Option<Posting> {
        self.note(depth, |line| {
            let _ = write!(line, "{what}: no index");
        });
        None
    }

    fn note(&mut self, depth: usize, text: impl FnOnce(&mut String)) {
        if let Some(explanation) = &mut self.explanation {
            explanation.note(depth, text);
        }
    }

    fn is_own_rule(&self, kind: AttributeTypeId, test: &Test) -> bool {
        let kind = self.root.meta().schema.attribute_type(kind);
        match test {
            Test::Equality { rule, .. } => kind.equality == Some(*rule),
            Test::Substrings { rule, .. } => kind.substring == Some(*rule),
            Test::InChain { .. } => true,
            _ => false,
        }
    }

    fn and(&mut self, parts: &[Node], depth: usize) -> Option<Posting> {
        self.note(depth, |line| line.push_str("and"));
        let mut found: Vec<Posting> = Vec::with_capacity(parts.len());
        for part in parts {
            if let Some(candidates) = self.node(part, depth + 1) {
                let is_few = candidates.len() <= FEW;
                found.push(candidates);
                if is_few {
                    break;
                }
            }
        }
        found.sort_by_key(Posting::len);
        let mut found = found.into_iter();
        let mut both = found.next()?;
        for other in found {
            if both.len() <= FEW {
                break;
            }
            both = both.and(&other);
        }
        self.note(depth, |line| {
            let _ = write!(line, "= {} candidates", both.len());
        });
        Some(both)
    }

    fn or(&mut self, parts: &[Node], depth: usize) -> Option<Posting> {
        self.note(depth, |line| line.push_str("or"));
        let mut either = Posting::default();
        for part in parts {
            either.add(&self.node(part, depth + 1)?);
        }
        self.note(depth, |line| {
            let _ = write!(line, "= {} candidates", either.len());
        });
        Some(either)
    }

    fn term(&mut self, target: &Target, test: &Test, depth: usize) -> Option<Posting> {
        let root = self.root;
        let schema = &root.meta().schema;
        let mut all: Option<Posting> = None;
        for kind in target.kinds(schema) {
            let found = self.kind(*kind, test);
            self.note(depth, |line| {
                let name = schema.attribute_type(*kind).name();
                let _ = match &found {
                    Some(found) => write!(line, "{name}, {}: {} candidates", form(test).name(), found.len()),
                    None => write!(line, "{name}, {}: no index", form(test).name()),
                };
            });
            let found = found?;
            match &mut all {
                Some(all) => all.add(&found),
                None => all = Some(found),
            }
        }
        Some(all.unwrap_or_default())
    }

    /// The candidates among entries that have exactly this type.
    fn kind(&self, kind: AttributeTypeId, test: &Test) -> Option<Posting> {
        let meta = self.root.meta();
        if let Test::InChain { dn } = test {
            let mut name = Vec::new();
            dn.normalize(&meta.schema, &mut name).ok()?;
            let Some(target) = self.context.resolve(self.root, &name) else {
                return Some(Posting::default());
            };
            if kind != AttributeTypeId::MEMBER_OF && !meta.is_reference(kind) {
                // Nothing knows who holds the name of whom.
                return (!is_computed(kind)).then(|| self.posting(fixed::PRESENCE, &type_key(kind)));
            }
            let chain = match kind {
                AttributeTypeId::MEMBER_OF => self.context.members(self.root, target),
                _ => self.context.chain(self.root, kind, target),
            };
            return Some(Posting::clone(&chain));
        }
        if is_computed(kind) {
            return self.computed(kind, test);
        }
        // Whoever has no value of the type matches nothing but its absence.
        let present = self.posting(fixed::PRESENCE, &type_key(kind));
        if present.is_empty() {
            return Some(present);
        }
        match test {
            Test::Present => Some(present),
            Test::Equality { assertions, .. } if meta.is_reference(kind) => {
                Some(self.referring(kind, assertions))
            }
            Test::Equality { assertions, .. } => {
                let index = meta.index(kind, IndexForm::Equality)?;
                Some(self.any_of(index, assertions))
            }
            Test::Substrings { pieces, .. } => self.pieces(meta.index(kind, IndexForm::Substring)?, pieces),
            Test::GreaterOrEqual { bound, .. } => {
                let index = meta.index(kind, IndexForm::Ordering)?;
                Some(self.range(index, Bound::Included(Key::least(bound)), Bound::Unbounded))
            }
            Test::LessOrEqual { bound, .. } => {
                let index = meta.index(kind, IndexForm::Ordering)?;
                Some(self.range(index, Bound::Unbounded, Bound::Included(Key::most(bound))))
            }
            Test::Approximate { words } => {
                let index = meta.index(kind, IndexForm::Approximate)?;
                let mut all: Option<Posting> = None;
                for word in words {
                    let found = self.posting(index, &Key::new(word));
                    all = Some(all.map_or_else(|| found.clone(), |all| all.and(&found)));
                }
                let mut all = all?;
                all.add(&self.posting(index, &Key::new(ANYTHING)));
                Some(all)
            }
            _ => None,
        }
    }

    fn computed(&self, kind: AttributeTypeId, test: &Test) -> Option<Posting> {
        match (kind, test) {
            (AttributeTypeId::MEMBER_OF, Test::Equality { assertions, .. }) => {
                let mut all = Posting::default();
                for name in assertions {
                    if let Some(group) = self.context.resolve(self.root, name) {
                        all.add(&self.context.members(self.root, group));
                    }
                }
                Some(all)
            }
            (AttributeTypeId::ENTRY_DN, Test::Equality { assertions, .. }) => {
                Some(assertions.iter().filter_map(|name| self.context.resolve(self.root, name)).collect())
            }
            (AttributeTypeId::ENTRY_UUID, Test::Equality { assertions, .. }) => {
                let found = assertions.iter().flat_map(|uuid| {
                    Root::lookup(self.root, ENTRIES, fixed::UUID, &Key::new(uuid)).collect::<Vec<_>>()
                });
                Some(found.collect())
            }
            (AttributeTypeId::CREATE_TIMESTAMP, _) => self.times(fixed::CREATED, test),
            (AttributeTypeId::MODIFY_TIMESTAMP, _) => self.times(fixed::MODIFIED, test),
            _ => None,
        }
    }

    /// Times are indexed by the second, so a bound within a second takes all of it.
    fn times(&self, index: IndexIx, test: &Test) -> Option<Posting> {
        let floor = |bound: &[u8]| {
            let mut upto = self.root.postings(ENTRIES, index, ..=Key::new(bound));
            upto.next_back().map_or_else(|| Key::new(bound), |(key, _)| key.clone())
        };
        match test {
            Test::Equality { assertions, .. } => Some(self.any_of(
                index,
                &assertions.iter().map(|time| floor(time).bytes().into()).collect::<Vec<_>>(),
            )),
            Test::GreaterOrEqual { bound, .. } => {
                Some(self.range(index, Bound::Included(floor(bound)), Bound::Unbounded))
            }
            Test::LessOrEqual { bound, .. } => {
                Some(self.range(index, Bound::Unbounded, Bound::Included(Key::most(bound))))
            }
            _ => None,
        }
    }

    /// The entries that refer to these names.
    fn referring(&self, kind: AttributeTypeId, names: &[Box<[u8]>]) -> Posting {
        let mut all = Posting::default();
        for name in names {
            if let Some(target) = self.context.resolve(self.root, name) {
                let sources = Tree::referrers(self.root, target).filter(|referrer| referrer.slot == kind.0);
                all.add(&sources.map(|referrer| referrer.source).collect());
            }
            let path = Path::from_normalized(name, self.root.meta());
            let key = path.map_or_else(|| Key::new(name), |path| Key::new(&path.bytes()));
            all.add(&self.posting(fixed::UNRESOLVED, &key));
        }
        all
    }

    fn any_of(&self, index: IndexIx, keys: &[Box<[u8]>]) -> Posting {
        let mut keys = keys.iter();
        let mut all = keys.next().map(|key| self.posting(index, &Key::new(key))).unwrap_or_default();
        keys.for_each(|key| all.add(&self.posting(index, &Key::new(key))));
        all
    }

    fn range(&self, index: IndexIx, start: Bound<Key>, end: Bound<Key>) -> Posting {
        let mut all = Posting::default();
        self.root.postings(ENTRIES, index, (start, end)).for_each(|(_, posting)| all.add(posting));
        all
    }

    /// The entries with all grams of all pieces; none if no piece is long enough for one.
    fn pieces(&self, index: IndexIx, pieces: &Pieces) -> Option<Posting> {
        let mut all: Option<Posting> = None;
        let initial = [&[EDGE], &*pieces.initial].concat();
        let last = [&*pieces.last, &[EDGE]].concat();
        let ends = [(&initial, pieces.initial.is_empty()), (&last, pieces.last.is_empty())];
        let ends = ends.into_iter().filter(|(_, is_empty)| !is_empty).map(|(piece, _)| piece.as_slice());
        for piece in ends.chain(pieces.any.iter().map(|piece| piece.bytes())) {
            for gram in piece.windows(GRAM_BYTES) {
                if all.as_ref().is_some_and(|all| all.len() <= FEW) {
                    break;
                }
                let found = self.posting(index, &Key::new(gram));
                all = Some(all.map_or_else(|| found.clone(), |all| all.and(&found)));
            }
        }
        if all.is_none() && !pieces.initial.is_empty() {
            // Too short for a gram: all grams that begin like it.
            let mut found = Posting::default();
            let from = self.root.postings(ENTRIES, index, Key::new(&initial)..);
            let matching = from.take_while(|(key, _)| key.bytes().starts_with(&initial));
            matching.for_each(|(_, posting)| found.add(posting));
            all = Some(found);
        }
        let mut all = all?;
        all.add(&self.posting(index, &Key::new(ANYTHING)));
        Some(all)
    }

    fn posting(&self, index: IndexIx, key: &Key) -> Posting {
        self.root.posting(ENTRIES, index, key).cloned().unwrap_or_default()
    }
}

fn form(test: &Test) -> IndexForm {
    match test {
        Test::Present => IndexForm::Presence,
        Test::Substrings { .. } => IndexForm::Substring,
        Test::GreaterOrEqual { .. } | Test::LessOrEqual { .. } | Test::Accepted { .. } => IndexForm::Ordering,
        Test::Approximate { .. } => IndexForm::Approximate,
        Test::Equality { .. } | Test::InChain { .. } => IndexForm::Equality,
    }
}
