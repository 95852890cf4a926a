//! Names and the tree: from a DN to an entry and back.
//!
//! What is below works on a published root and on the draft of a running operation alike. Invariants: the parents of an
//! entry lead to a suffix in finitely many steps, because a move below itself is refused; a path and the key of an entry
//! are made by the same functions, so they meet.

use std::ops::Bound;
use std::sync::Arc;

use cowslip_engine::{Draft, IndexIx, Posting, Referrer, Root};
use cowslip_ldap::dn::{Dn, NormalDn, Rdn};
use cowslip_ldap::schema::Schema;

use crate::entry::{EntryNumber, NO_ENTRY, StoredEntry};
use crate::key::Key;
use crate::meta::{ENTRIES, Meta, fixed};
use crate::model::{Directory, number_key};

/// A version of the tree: a root, or a draft on one.
pub trait Tree {
    /// Schema and rules.
    fn meta(&self) -> &Meta;
    /// An entry by its number.
    fn entry(&self, number: EntryNumber) -> Option<&Arc<StoredEntry>>;
    /// The entries that hold a key.
    fn lookup(&self, index: IndexIx, key: &Key) -> impl Iterator<Item = EntryNumber>;
    /// The keys and entries of an index from a key on.
    fn lookup_from(&self, index: IndexIx, key: &Key) -> impl Iterator<Item = (&Key, EntryNumber)>;
    /// How many entries hold a key.
    fn count(&self, index: IndexIx, key: &Key) -> usize;
    /// The entries that hold the last key of an index.
    fn last_holders(&self, index: IndexIx) -> Vec<EntryNumber>;
    /// Who refers to an entry.
    fn referrers(&self, target: EntryNumber) -> impl Iterator<Item = Referrer<EntryNumber>>;

    /// The entry at the end of a path.
    ///
    /// # Errors
    /// There is none; the last one on the way there, if any.
    fn resolve(&self, path: &Path) -> Result<EntryNumber, Option<EntryNumber>> {
        let mut at = NO_ENTRY;
        for part in &path.parts {
            match self.child(at, part) {
                Some(next) => at = next,
                None => return Err((at != NO_ENTRY).then_some(at)),
            }
        }
        if at == NO_ENTRY { Err(None) } else { Ok(at) }
    }

    /// The child of an entry with this normalised RDN.
    fn child(&self, parent: EntryNumber, rdn: &[u8]) -> Option<EntryNumber> {
        self.lookup(fixed::NAME, &child_key(parent, rdn)).next()
    }

    /// Whether an entry has children.
    fn has_children(&self, number: EntryNumber) -> bool {
        self.lookup(fixed::CHILDREN, &number_key(number)).next().is_some()
    }

    /// The present name of an entry; empty for an entry that is not there.
    fn dn(&self, number: EntryNumber) -> String {
        let mut dn = String::new();
        self.write_dn(number, &mut dn);
        dn
    }

    /// Appends the present name of an entry.
    fn write_dn(&self, number: EntryNumber, out: &mut String) {
        let mut next = number;
        let start = out.len();
        while let Some(entry) = self.entry(next) {
            if out.len() > start {
                out.push(',');
            }
            out.push_str(&entry.rdn);
            next = entry.parent;
        }
    }

    /// The entries from this one up to its suffix, itself first.
    fn lineage(&self, number: EntryNumber) -> impl Iterator<Item = EntryNumber> {
        std::iter::successors(Some(number), |number| self.entry(*number).map(|entry| entry.parent))
            .take_while(|number| *number != NO_ENTRY)
    }

    /// Whether an entry is this ancestor or below it.
    fn is_within(&self, number: EntryNumber, ancestor: EntryNumber) -> bool {
        self.lineage(number).any(|at| at == ancestor)
    }
}

impl Tree for Root<Directory> {
    fn meta(&self) -> &Meta {
        Root::meta(self)
    }

    fn entry(&self, number: EntryNumber) -> Option<&Arc<StoredEntry>> {
        self.record(ENTRIES, &number)
    }

    fn lookup(&self, index: IndexIx, key: &Key) -> impl Iterator<Item = EntryNumber> {
        Root::lookup(self, ENTRIES, index, key)
    }

    fn lookup_from(&self, index: IndexIx, key: &Key) -> impl Iterator<Item = (&Key, EntryNumber)> {
        self.range(ENTRIES, index, (Bound::Included(key.clone()), Bound::Unbounded))
    }

    fn count(&self, index: IndexIx, key: &Key) -> usize {
        self.posting(ENTRIES, index, key).map_or(0, Posting::len)
    }

    fn last_holders(&self, index: IndexIx) -> Vec<EntryNumber> {
        let last = self.postings(ENTRIES, index, ..).next_back();
        last.into_iter().flat_map(|(_, holders)| holders.iter()).collect()
    }

    fn referrers(&self, target: EntryNumber) -> impl Iterator<Item = Referrer<EntryNumber>> {
        Root::referrers(self, ENTRIES, &target).map(|(referrer, _)| referrer)
    }
}

impl Tree for Draft<'_, Directory> {
    fn meta(&self) -> &Meta {
        Draft::meta(self)
    }

    fn entry(&self, number: EntryNumber) -> Option<&Arc<StoredEntry>> {
        self.record(ENTRIES, &number)
    }

    fn lookup(&self, index: IndexIx, key: &Key) -> impl Iterator<Item = EntryNumber> {
        Draft::lookup(self, ENTRIES, index, key)
    }

    fn lookup_from(&self, index: IndexIx, key: &Key) -> impl Iterator<Item = (&Key, EntryNumber)> {
        self.range(ENTRIES, index, (Bound::Included(key.clone()), Bound::Unbounded))
    }

    fn count(&self, index: IndexIx, key: &Key) -> usize {
        Tree::lookup(self, index, key).count()
    }

    fn last_holders(&self, index: IndexIx) -> Vec<EntryNumber> {
        let last = self.range(ENTRIES, index, ..).last().map(|(key, _)| key.clone());
        last.map_or_else(Vec::new, |key| Tree::lookup(self, index, &key).collect())
    }

    fn child(&self, parent: EntryNumber, rdn: &[u8]) -> Option<EntryNumber> {
        let key = child_key(parent, rdn);
        // Most names are looked up before anything is changed.
        if self.is_untouched() {
            return Tree::lookup(self.base(), fixed::NAME, &key).next();
        }
        Tree::lookup(self, fixed::NAME, &key).next()
    }

    fn referrers(&self, target: EntryNumber) -> impl Iterator<Item = Referrer<EntryNumber>> {
        Draft::referrers(self, ENTRIES, &target).map(|(referrer, _)| referrer)
    }
}

/// Resolves one path after the other. Names that come together mostly lie below one entry, which is found once.
pub struct Resolver<'a, T> {
    tree: &'a T,
    /// The steps that lead above the last path's entry.
    steps: &'a [Box<[u8]>],
    /// What is there; above nothing is what all suffixes lie in.
    above: Option<EntryNumber>,
}

impl<'a, T: Tree> Resolver<'a, T> {
    /// A resolver in this version of the tree.
    pub fn new(tree: &'a T) -> Self {
        Self { tree, steps: &[], above: Some(NO_ENTRY) }
    }

    /// The entry at the end of a path, if there is one.
    pub fn resolve(&mut self, path: &'a Path) -> Option<EntryNumber> {
        let (last, steps) = path.parts.split_last()?;
        if self.steps != steps {
            self.steps = steps;
            self.above = steps.iter().try_fold(NO_ENTRY, |at, step| self.tree.child(at, step));
        }
        self.tree.child(self.above?, last)
    }
}

/// Where a name leads, normalised: the suffix, then one RDN after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    parts: Vec<Box<[u8]>>,
    /// How many RDNs of the name belong to the suffix; 0 if it lies below none of ours.
    suffix_rdns: usize,
}

impl Path {
    /// The path of a name. A name outside all suffixes has one, too, which leads nowhere.
    ///
    /// # Errors
    /// A part of the name has an unknown attribute type, or a value that its syntax does not allow.
    pub fn new(dn: &Dn, meta: &Meta) -> Result<Self, cowslip_ldap::dn::DnError> {
        let mut parts = Vec::with_capacity(dn.rdns().len());
        for rdn in dn.rdns() {
            parts.push(normalized(rdn, &meta.schema)?);
        }
        Ok(Self::of_parts(parts, meta))
    }

    /// The path of a name in its normalised form (as of `Dn::normalize`); none if the bytes are no such form.
    pub fn from_normalized(bytes: &[u8], meta: &Meta) -> Option<Self> {
        let name = NormalDn::from_bytes(bytes)?;
        Some(Self::of_parts(name.rdns().rev().map(Box::from).collect(), meta))
    }

    /// A path of normalised RDNs, the entry's own first.
    fn of_parts(mut parts: Vec<Box<[u8]>>, meta: &Meta) -> Self {
        let suffixes = meta.rules.suffixes.iter().filter(|suffix| {
            let below = parts.len().checked_sub(suffix.rdns.len());
            below.is_some_and(|at| parts[at..] == suffix.rdns[..])
        });
        let suffix_rdns = suffixes.map(|suffix| suffix.rdns.len()).max().unwrap_or(0);
        let top = joined(&parts[parts.len() - suffix_rdns..]);
        parts.truncate(parts.len() - suffix_rdns);
        parts.push(top);
        parts.reverse();
        Self { parts, suffix_rdns }
    }

    /// Whether the name lies in one of our suffixes.
    pub fn is_ours(&self) -> bool {
        self.suffix_rdns > 0
    }

    /// Whether the name is that of a suffix.
    pub fn is_suffix(&self) -> bool {
        self.suffix_rdns > 0 && self.parts.len() == 1
    }

    /// How many RDNs the suffix has in which it lies.
    pub fn suffix_rdns(&self) -> usize {
        self.suffix_rdns
    }

    /// The path without its last step; none for a suffix.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.parts.split_last()?;
        (!above.is_empty()).then(|| Self { parts: above.to_vec(), suffix_rdns: self.suffix_rdns })
    }

    /// The normalised steps, from the suffix on.
    pub fn steps(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| &**part)
    }

    /// The normalised last step.
    pub fn last(&self) -> &[u8] {
        self.parts.last().map_or(&[], |part| part)
    }

    /// Whether another path begins with this one.
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        other.parts.starts_with(&self.parts)
    }

    /// The path as bytes, so that those of names below it begin with them: the key of an unresolved name.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.parts {
            bytes.extend_from_slice(part);
            bytes.push(SEPARATOR);
        }
        bytes
    }
}

/// One of the names at the top of our trees.
#[derive(Clone, Debug, PartialEq)]
pub struct Suffix {
    /// The name.
    pub dn: Dn,
    /// Whether it is the server's: its configuration, its schema.
    pub is_own: bool,
    rdns: Vec<Box<[u8]>>,
}

impl Suffix {
    /// A suffix of this name.
    ///
    /// # Errors
    /// A part of the name has an unknown attribute type, or a value that its syntax does not allow.
    pub fn new(dn: Dn, is_own: bool, schema: &Schema) -> Result<Self, cowslip_ldap::dn::DnError> {
        let rdns = dn.rdns().iter().map(|rdn| normalized(rdn, schema)).collect::<Result<_, _>>()?;
        Ok(Self { dn, is_own, rdns })
    }
}

/// Stands between RDNs that are put together.
const SEPARATOR: u8 = 0xff;

fn joined(rdns: &[Box<[u8]>]) -> Box<[u8]> {
    rdns.join(&SEPARATOR).into_boxed_slice()
}

fn normalized(rdn: &Rdn, schema: &Schema) -> Result<Box<[u8]>, cowslip_ldap::dn::DnError> {
    let mut bytes = Vec::with_capacity(32);
    rdn.normalize(schema, &mut bytes)?;
    Ok(bytes.into_boxed_slice())
}

/// The normalised form of an RDN, or of a suffix's whole name, as it stands in the index of names.
///
/// # Errors
/// A part of the name has an unknown attribute type, or a value that its syntax does not allow.
pub fn normalized_name(dn: &Dn, schema: &Schema) -> Result<Box<[u8]>, cowslip_ldap::dn::DnError> {
    let rdns = dn.rdns().iter().map(|rdn| normalized(rdn, schema)).collect::<Result<Vec<_>, _>>()?;
    Ok(joined(&rdns))
}

/// The key of an entry in the index of names.
pub(crate) fn child_key(parent: EntryNumber, rdn: &[u8]) -> Key {
    let number = parent.0.to_be_bytes();
    // Made for each step of each look-up, and mostly short.
    let mut short = [0; 64];
    let length = number.len() + rdn.len();
    if let Some(bytes) = short.get_mut(..length) {
        bytes[..number.len()].copy_from_slice(&number);
        bytes[number.len()..].copy_from_slice(rdn);
        return Key::new(bytes);
    }
    Key::new(&[&number[..], rdn].concat())
}
