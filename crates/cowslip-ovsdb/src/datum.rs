//! Data: the value of a column in a row, a set of atoms or a map (RFC 7047 section 5.1, `<value>`).
//!
//! Invariants: the representation is canonical, so equal values are equal member by member *and* variant by variant:
//! no member is [`Datum::EMPTY`], one member of a set is [`Datum::One`], up to [`SMALL_MAX`] members are a sorted slice,
//! more are a persistent tree. A tree shares its structure with the value it was made from, so that inserting one member
//! into 100,000 costs O(log n). Members are sorted and distinct.

use crate::atom::{Atom, tagged};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::symbols::Symbols;
use crate::types::{ColumnType, UNLIMITED};
use imbl::{OrdMap, OrdSet};
use std::cmp::Ordering;
use std::sync::Arc;

/// The most members a set or map may have and still be one sorted slice. Copying 64 atoms costs about as much as one
/// path of the tree that replaces the slice above that.
pub const SMALL_MAX: usize = 64;

/// The value of a column. Cloning never copies members.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Datum {
    /// No member, of a set or of a map: see [`Datum::EMPTY`].
    Empty,
    /// A set of one atom; every scalar is one.
    One(Atom),
    /// A set of 2 to [`SMALL_MAX`] atoms.
    Set(Arc<[Atom]>),
    /// A larger set.
    LargeSet(Box<OrdSet<Atom>>),
    /// A map of 1 to [`SMALL_MAX`] pairs.
    Map(Arc<[(Atom, Atom)]>),
    /// A larger map.
    LargeMap(Box<OrdMap<Atom, Atom>>),
}

/// Whether and how a key is a member of a datum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// It is not.
    Absent,
    /// It is an element of a set.
    Element,
    /// It is a key of a map, with this value.
    Value(Atom),
}

/// One key's membership before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// The key.
    pub key: Atom,
    /// Before.
    pub old: Member,
    /// After.
    pub new: Member,
}

impl Datum {
    /// The empty set, or the empty map.
    pub const EMPTY: Datum = Datum::Empty;

    /// The set of these atoms, which are sorted and distinct.
    fn from_sorted(atoms: Vec<Atom>) -> Self {
        match atoms.len() {
            0 => Datum::Empty,
            1 => atoms.into_iter().next().map_or(Datum::Empty, Datum::One),
            n if n <= SMALL_MAX => Datum::Set(atoms.into()),
            _ => Datum::LargeSet(Box::new(atoms.into_iter().collect())),
        }
    }

    fn from_sorted_pairs(pairs: Vec<(Atom, Atom)>) -> Self {
        match pairs.len() {
            0 => Datum::Empty,
            n if n <= SMALL_MAX => Datum::Map(pairs.into()),
            _ => Datum::LargeMap(Box::new(pairs.into_iter().collect())),
        }
    }

    /// The set of these atoms; repeated ones count once.
    pub fn from_atoms(mut atoms: Vec<Atom>) -> Self {
        atoms.sort();
        atoms.dedup();
        Datum::from_sorted(atoms)
    }

    /// The map of these pairs; of repeated keys the first counts.
    pub fn from_pairs(mut pairs: Vec<(Atom, Atom)>) -> Self {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|b, a| a.0 == b.0);
        Datum::from_sorted_pairs(pairs)
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        match self {
            Datum::Empty => 0,
            Datum::One(_) => 1,
            Datum::Set(atoms) => atoms.len(),
            Datum::LargeSet(set) => set.len(),
            Datum::Map(pairs) => pairs.len(),
            Datum::LargeMap(map) => map.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        matches!(self, Datum::Empty)
    }

    /// Whether the value is a tree, so that comparing it with another one as a whole is to be avoided.
    pub fn is_large(&self) -> bool {
        matches!(self, Datum::LargeSet(_) | Datum::LargeMap(_))
    }

    /// The only atom of a set of one.
    pub fn as_one(&self) -> Option<&Atom> {
        match self {
            Datum::One(atom) => Some(atom),
            _ => None,
        }
    }

    /// The members in order: each key with its value, if it is a map.
    pub fn members(&self) -> Members<'_> {
        match self {
            Datum::Empty => Members::Slice([].iter()),
            Datum::One(atom) => Members::Slice(std::slice::from_ref(atom).iter()),
            Datum::Set(atoms) => Members::Slice(atoms.iter()),
            Datum::LargeSet(set) => Members::Tree(Box::new(set.iter().map(|a| (a, None)))),
            Datum::Map(pairs) => Members::Pairs(pairs.iter()),
            Datum::LargeMap(map) => Members::Tree(Box::new(map.iter().map(|(k, v)| (k, Some(v))))),
        }
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &Atom> {
        self.members().map(|(key, _)| key)
    }

    /// Whether and how `key` is a member.
    pub fn member(&self, key: &Atom) -> Member {
        match self {
            Datum::Map(_) | Datum::LargeMap(_) => {
                self.value(key).map_or(Member::Absent, |v| Member::Value(v.clone()))
            }
            _ if self.contains(key) => Member::Element,
            _ => Member::Absent,
        }
    }

    /// Whether `key` is an element or a key.
    pub fn contains(&self, key: &Atom) -> bool {
        match self {
            Datum::Empty => false,
            Datum::One(atom) => atom == key,
            Datum::Set(atoms) => atoms.binary_search(key).is_ok(),
            Datum::LargeSet(set) => set.contains(key),
            Datum::Map(_) | Datum::LargeMap(_) => self.value(key).is_some(),
        }
    }

    /// The value of `key` in a map.
    pub fn value(&self, key: &Atom) -> Option<&Atom> {
        match self {
            Datum::Map(pairs) => pairs.binary_search_by(|p| p.0.cmp(key)).ok().map(|at| &pairs[at].1),
            Datum::LargeMap(map) => map.get(key),
            _ => None,
        }
    }

    /// Whether every member of `self` is one of `other` (with the same value, in a map).
    pub fn is_subset_of(&self, other: &Datum) -> bool {
        self.len() <= other.len()
            && self.members().all(|(key, value)| match value {
                None => other.contains(key),
                Some(value) => other.value(key) == Some(value),
            })
    }

    /// Whether no member of `self` is one of `other` (with the same value, in a map).
    pub fn is_disjoint_from(&self, other: &Datum) -> bool {
        !self.members().any(|(key, value)| match value {
            None => other.contains(key),
            Some(value) => other.value(key) == Some(value),
        })
    }

    /// The value after `changes`, which are in the order of their keys, each key once, with their true old state.
    pub fn with(&self, changes: &[MemberChange]) -> Datum {
        match self {
            _ if changes.is_empty() => self.clone(),
            Datum::LargeSet(set) => {
                let mut set = set.as_ref().clone();
                for change in changes {
                    match change.new {
                        Member::Absent => set.remove(&change.key),
                        _ => set.insert(change.key.clone()),
                    };
                }
                if set.len() > SMALL_MAX {
                    Datum::LargeSet(Box::new(set))
                } else {
                    Datum::from_sorted(set.into_iter().collect())
                }
            }
            Datum::LargeMap(map) => {
                let mut map = map.as_ref().clone();
                for change in changes {
                    match &change.new {
                        Member::Value(value) => map.insert(change.key.clone(), value.clone()),
                        _ => map.remove(&change.key),
                    };
                }
                if map.len() > SMALL_MAX {
                    Datum::LargeMap(Box::new(map))
                } else {
                    Datum::from_sorted_pairs(map.into_iter().collect())
                }
            }
            _ => self.merged(changes),
        }
    }

    /// [`Datum::with`] for slices: one pass over both.
    fn merged(&self, changes: &[MemberChange]) -> Datum {
        let is_map = matches!(self, Datum::Map(_))
            || changes.iter().any(|c| matches!(c.new, Member::Value(_)) || matches!(c.old, Member::Value(_)));
        let mut atoms = Vec::new();
        let mut pairs = Vec::new();
        let mut keep = |key: &Atom, value: Option<&Atom>| match value {
            Some(value) => pairs.push((key.clone(), value.clone())),
            None => atoms.push(key.clone()),
        };
        let mut changes = changes.iter().peekable();
        let apply = |change: &MemberChange, keep: &mut dyn FnMut(&Atom, Option<&Atom>)| match &change.new {
            Member::Absent => {}
            Member::Element => keep(&change.key, None),
            Member::Value(value) => keep(&change.key, Some(value)),
        };
        for (key, value) in self.members() {
            while let Some(change) = changes.next_if(|c| c.key < *key) {
                apply(change, &mut keep);
            }
            match changes.next_if(|c| c.key == *key) {
                Some(change) => apply(change, &mut keep),
                None => keep(key, value),
            }
        }
        for change in changes {
            apply(change, &mut keep);
        }
        if is_map { Datum::from_sorted_pairs(pairs) } else { Datum::from_sorted(atoms) }
    }

    /// What a mutation `insert` of `argument` changes: keys that are there already keep what they have.
    pub fn changes_of_insert(&self, argument: &Datum) -> Vec<MemberChange> {
        argument
            .members()
            .filter(|(key, _)| !self.contains(key))
            .map(|(key, value)| MemberChange { key: key.clone(), old: Member::Absent, new: as_member(value) })
            .collect()
    }

    /// What a mutation `delete` of `argument` changes: from a map, a set of keys removes them whatever their values, a
    /// map only the equal pairs.
    pub fn changes_of_delete(&self, argument: &Datum) -> Vec<MemberChange> {
        let mut changes = Vec::new();
        for (key, value) in argument.members() {
            let old = self.member(key);
            let hit = match (&old, value) {
                (Member::Absent, _) => false,
                (Member::Value(have), Some(value)) => have == value,
                _ => true,
            };
            if hit {
                changes.push(MemberChange { key: key.clone(), old, new: Member::Absent });
            }
        }
        changes
    }

    /// What turns `self` into `new`; compares member by member, so it is for values without a recorded difference.
    pub fn changes_to(&self, new: &Datum) -> Vec<MemberChange> {
        let mut changes = Vec::new();
        if self == new {
            return changes;
        }
        let (mut olds, mut news) = (self.members().peekable(), new.members().peekable());
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return changes,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let old = if order.is_le() { olds.next() } else { None };
            let new = if order.is_ge() { news.next() } else { None };
            let Some((key, _)) = old.or(new) else { return changes };
            let change = MemberChange {
                key: key.clone(),
                old: old.map_or(Member::Absent, |(_, v)| as_member(v)),
                new: new.map_or(Member::Absent, |(_, v)| as_member(v)),
            };
            if change.old != change.new {
                changes.push(change);
            }
        }
    }

    /// What a difference as it travels (in `update2` and in files) changes: an element is added if it is absent and
    /// removed if it is present; a pair is removed if it is present as it is, else set.
    pub fn changes_of_difference(&self, difference: &Datum) -> Vec<MemberChange> {
        difference
            .members()
            .map(|(key, value)| {
                let old = self.member(key);
                let new = as_member(value);
                let new = if old == new { Member::Absent } else { new };
                MemberChange { key: key.clone(), old, new }
            })
            .collect()
    }

    /// The difference that `changes` travel as.
    pub fn difference(changes: &[MemberChange]) -> Datum {
        let mut atoms = Vec::new();
        let mut pairs = Vec::new();
        for change in changes {
            let shown = if change.new == Member::Absent { &change.old } else { &change.new };
            match shown {
                Member::Absent => {}
                Member::Element => atoms.push(change.key.clone()),
                Member::Value(value) => pairs.push((change.key.clone(), value.clone())),
            }
        }
        if pairs.is_empty() { Datum::from_atoms(atoms) } else { Datum::from_pairs(pairs) }
    }

    /// Takes a value of type `ty` from a message and checks it.
    ///
    /// # Errors
    /// `syntax error` if it is not of the type, `constraint violation` if it breaks a limit, `ovsdb error` if a member
    /// appears twice.
    pub fn from_json(
        ty: &ColumnType,
        json: &Json<'_>,
        mut symbols: Option<&mut Symbols>,
    ) -> Result<Self, Error> {
        let class = if ty.is_map() { "map" } else { "set" };
        let is_tagged = matches!(json.as_array(), Some([Json::Str(tag), ..]) if tag == "set");
        if !ty.is_map() && !is_tagged {
            let atom = Atom::from_json(ty.key.atomic, json, symbols)?;
            ty.key.check(&atom)?;
            return Ok(Datum::One(atom));
        }
        let elements = tagged(json, class)
            .and_then(Json::as_array)
            .ok_or_else(|| Error::syntax(json, format!("expected [\"{class}\", <array>]")))?;
        check_count(ty, class, elements.len(), json)?;
        let mut atom = |base: &crate::types::BaseType, json: &Json<'_>| {
            let atom = Atom::from_json(base.atomic, json, symbols.as_deref_mut())?;
            base.check(&atom).map(|()| atom)
        };
        let Some(value_type) = &ty.value else {
            let mut atoms = Vec::with_capacity(elements.len());
            for element in elements {
                atoms.push(atom(&ty.key, element)?);
            }
            atoms.sort();
            let repeated = atoms.windows(2).any(|w| w[0] == w[1]);
            return if repeated {
                Err(duplicate("set contains duplicate"))
            } else {
                Ok(Datum::from_sorted(atoms))
            };
        };
        let mut pairs = Vec::with_capacity(elements.len());
        for element in elements {
            let Some([key, value]) = element.as_array() else {
                return Err(Error::syntax(element, "expected 2-element array"));
            };
            pairs.push((atom(&ty.key, key)?, atom(value_type, value)?));
        }
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        let repeated = pairs.windows(2).any(|w| w[0].0 == w[1].0);
        if repeated {
            Err(duplicate("map contains duplicate key"))
        } else {
            Ok(Datum::from_sorted_pairs(pairs))
        }
    }

    /// Checks every member against the limits of `ty`, as for values that did not come from a message.
    ///
    /// # Errors
    /// `constraint violation` with the first limit that is broken.
    pub fn check_members(&self, ty: &ColumnType) -> Result<(), Error> {
        let check_values = ty.value.as_ref().is_some_and(|v| v.is_constrained());
        if !ty.key.is_constrained() && !check_values {
            return Ok(());
        }
        for (key, value) in self.members() {
            ty.key.check(key)?;
            if let (Some(base), Some(value)) = (&ty.value, value) {
                base.check(value)?;
            }
        }
        Ok(())
    }

    /// Appends the value as it travels; `is_map` tells what an empty one is.
    pub fn write(&self, out: &mut String, is_map: bool) {
        if let Datum::One(atom) = self {
            return atom.write(out);
        }
        out.push_str(if is_map { "[\"map\",[" } else { "[\"set\",[" });
        for (i, (key, value)) in self.members().enumerate() {
            if i > 0 {
                out.push(',');
            }
            match value {
                None => key.write(out),
                Some(value) => {
                    out.push('[');
                    key.write(out);
                    out.push(',');
                    value.write(out);
                    out.push(']');
                }
            }
        }
        out.push_str("]]");
    }

    /// The value in words, as the reference server's messages and tools show it.
    pub fn in_words(&self, ty: &ColumnType) -> String {
        let text = self
            .members()
            .map(|(key, value)| match value {
                None => key.to_string(),
                Some(value) => format!("{key}={value}"),
            })
            .collect::<Vec<_>>()
            .join(", ");
        match self {
            _ if ty.is_map() => format!("{{{text}}}"),
            Datum::One(_) if ty.max == 1 => text,
            _ => format!("[{text}]"),
        }
    }
}

fn as_member(value: Option<&Atom>) -> Member {
    value.map_or(Member::Element, |v| Member::Value(v.clone()))
}

fn duplicate(details: &str) -> Error {
    Error::new(ErrorKind::Other, details)
}

fn check_count(ty: &ColumnType, class: &str, n: usize, json: &Json<'_>) -> Result<(), Error> {
    let fits = n >= ty.min as usize && (ty.max == UNLIMITED || n <= ty.max as usize);
    if fits {
        return Ok(());
    }
    let details = if ty.min == 1 && ty.max == 1 {
        format!("{class} must have exactly one member but {n} are present")
    } else {
        format!("{class} must have {} to {} members but {n} are present", ty.min, ty.max)
    };
    Err(Error::syntax(json, details))
}

/// The members of a [`Datum`] in order: each key with its value, if it is a map.
pub enum Members<'d> {
    /// Of a small set.
    Slice(std::slice::Iter<'d, Atom>),
    /// Of a small map.
    Pairs(std::slice::Iter<'d, (Atom, Atom)>),
    /// Of a tree.
    Tree(Box<dyn Iterator<Item = (&'d Atom, Option<&'d Atom>)> + 'd>),
}

impl<'d> Iterator for Members<'d> {
    type Item = (&'d Atom, Option<&'d Atom>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Members::Slice(atoms) => atoms.next().map(|a| (a, None)),
            Members::Pairs(pairs) => pairs.next().map(|(k, v)| (k, Some(v))),
            Members::Tree(members) => members.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Members::Slice(atoms) => atoms.size_hint(),
            Members::Pairs(pairs) => pairs.size_hint(),
            Members::Tree(members) => members.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn set(range: std::ops::Range<i64>) -> Datum {
        Datum::from_atoms(range.map(Atom::Integer).collect())
    }

    #[test]
    fn sizes_are_canonical() {
        assert!(matches!(set(0..0), Datum::Empty));
        assert!(matches!(set(0..1), Datum::One(_)));
        assert!(matches!(set(0..64), Datum::Set(_)));
        assert!(matches!(set(0..65), Datum::LargeSet(_)));
        let shrunk = set(0..65).with(&set(0..65).changes_of_delete(&set(0..1)));
        assert_eq!(shrunk, set(1..65));
        let one = shrunk.with(&shrunk.changes_of_delete(&set(2..65)));
        assert_eq!(one, Datum::One(Atom::Integer(1)));
    }

    #[test]
    fn changes_lead_from_old_to_new() {
        let ranges = [0..0, 0..1, 0..3, 2..9, 0..64, 1..65, 0..70, 60..200];
        for old in &ranges {
            for new in &ranges {
                let (old, new) = (set(old.clone()), set(new.clone()));
                let changes = old.changes_to(&new);
                assert_eq!(old.with(&changes), new);
                let difference = Datum::difference(&changes);
                assert_eq!(old.changes_of_difference(&difference), changes);
                let keys = |d: &Datum| d.keys().cloned().collect::<BTreeSet<_>>();
                let want: Vec<_> = keys(&old).symmetric_difference(&keys(&new)).cloned().collect();
                assert_eq!(changes.iter().map(|c| c.key.clone()).collect::<Vec<_>>(), want);
            }
        }
    }

    #[test]
    fn maps_keep_values_on_insert_and_delete_by_key_or_pair() {
        let map = |pairs: &[(&str, &str)]| {
            Datum::from_pairs(pairs.iter().map(|(k, v)| (Atom::string(*k), Atom::string(*v))).collect())
        };
        let old = map(&[("a", "1"), ("b", "2")]);
        let inserted = old.with(&old.changes_of_insert(&map(&[("a", "9"), ("c", "3")])));
        assert_eq!(inserted, map(&[("a", "1"), ("b", "2"), ("c", "3")]));
        let by_pair = old.with(&old.changes_of_delete(&map(&[("a", "9"), ("b", "2")])));
        assert_eq!(by_pair, map(&[("a", "1")]));
        let by_key = old.with(&old.changes_of_delete(&Datum::One(Atom::string("a"))));
        assert_eq!(by_key, map(&[("b", "2")]));
        assert_eq!(by_key.with(&by_key.changes_of_delete(&Datum::One(Atom::string("b")))), Datum::EMPTY);
    }
}
