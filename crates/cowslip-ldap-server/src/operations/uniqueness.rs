//! Values that at most one entry may have.
//!
//! Checked when a draft is finished, for the values that changed and for entries that came under a rule by what changed
//! (a class, a move across the edge of a rule's scope), against the equality indexes. Invariant: what a rule covers was
//! free of duplicates before, because switching a rule on looks at everything first.

use cowslip_engine::{Draft, Root, Touched};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::{AttributeTypeId, ObjectClassId};

use super::refusal::Refusal;
use super::write::shown;
use crate::entry::{EntryNumber, StoredEntry, Value};
use crate::meta::{ENTRIES, IndexForm, Meta, UniqueRule, fixed};
use crate::model::{Directory, number_key};
use crate::tree::Tree;

/// Checks everything that a draft changed against all rules.
///
/// # Errors
/// `constraintViolation` that names the rule, the attribute, the value and the other entry.
pub fn check(draft: &Draft<'_, Directory>) -> Result<(), Refusal> {
    let meta: &Meta = draft.meta();
    for rule in &meta.rules.unique {
        let scope = match &rule.below {
            Some(path) => match draft.resolve(path) {
                Ok(number) => Some(number),
                Err(_) => continue,
            },
            None => None,
        };
        for (number, touched) in draft.touched(ENTRIES) {
            check_touched(draft, meta, rule, scope, *number, touched)?;
        }
    }
    Ok(())
}

/// Checks all entries against one rule, which must have its indexes.
///
/// # Errors
/// As [`check`], for the first pair that is found.
pub fn check_all(root: &Root<Directory>, rule: &UniqueRule) -> Result<(), Refusal> {
    let meta = root.meta();
    let scope = match &rule.below {
        Some(path) => match root.resolve(path) {
            Ok(number) => Some(number),
            Err(_) => return Ok(()),
        },
        None => None,
    };
    for (number, entry) in root.scan(ENTRIES) {
        if scope.is_none_or(|scope| root.is_within(number, scope)) {
            check_entry(root, meta, rule, scope, number, entry)?;
        }
    }
    Ok(())
}

fn check_touched(
    draft: &Draft<'_, Directory>,
    meta: &Meta,
    rule: &UniqueRule,
    scope: Option<EntryNumber>,
    number: EntryNumber,
    touched: Touched<'_, Directory>,
) -> Result<(), Refusal> {
    let Some(entry) = touched.last else { return Ok(()) };
    if scope.is_some_and(|scope| !draft.is_within(number, scope)) {
        return Ok(());
    }
    let Some(before) = touched.first else { return check_entry(draft, meta, rule, scope, number, entry) };
    let came_in = before.parent != entry.parent
        && scope.is_some_and(|scope| !draft.base().is_within(before.parent, scope));
    if came_in {
        return check_subtree(draft, meta, rule, scope, number);
    }
    if !is_covered(meta, rule, entry) {
        return Ok(());
    }
    if !is_covered(meta, rule, before) {
        return check_entry(draft, meta, rule, scope, number, entry);
    }
    for attribute in touched.delta.0.iter().filter(|attribute| rule.kinds.contains(&attribute.kind)) {
        for value in attribute.added.iter().filter_map(Value::text) {
            check_value(draft, meta, rule, scope, (number, attribute.kind), value)?;
        }
    }
    Ok(())
}

/// Checks an entry and all that is below it, because it came into a rule's scope as a whole.
fn check_subtree<T: Tree>(
    tree: &T,
    meta: &Meta,
    rule: &UniqueRule,
    scope: Option<EntryNumber>,
    top: EntryNumber,
) -> Result<(), Refusal> {
    let mut open = vec![top];
    while let Some(number) = open.pop() {
        if let Some(entry) = tree.entry(number) {
            check_entry(tree, meta, rule, scope, number, entry)?;
        }
        open.extend(tree.lookup(fixed::CHILDREN, &number_key(number)));
    }
    Ok(())
}

fn check_entry<T: Tree>(
    tree: &T,
    meta: &Meta,
    rule: &UniqueRule,
    scope: Option<EntryNumber>,
    number: EntryNumber,
    entry: &StoredEntry,
) -> Result<(), Refusal> {
    if !is_covered(meta, rule, entry) {
        return Ok(());
    }
    for (kind, options) in entry.descriptions().filter(|(kind, _)| rule.kinds.contains(kind)) {
        for value in entry.values(kind, options).iter().filter_map(Value::text) {
            check_value(tree, meta, rule, scope, (number, kind), value)?;
        }
    }
    Ok(())
}

fn check_value<T: Tree>(
    tree: &T,
    meta: &Meta,
    rule: &UniqueRule,
    scope: Option<EntryNumber>,
    (number, kind): (EntryNumber, AttributeTypeId),
    value: &[u8],
) -> Result<(), Refusal> {
    for other_kind in &rule.kinds {
        let Some(index) = meta.index(*other_kind, IndexForm::Equality) else { continue };
        let key = meta.value_key(*other_kind, value);
        let others = tree.lookup(index, &key).filter(|other| *other != number);
        for other in others.filter(|other| scope.is_none_or(|scope| tree.is_within(*other, scope))) {
            if tree.entry(other).is_some_and(|entry| is_covered(meta, rule, entry)) {
                let message = format!(
                    "{} {} must be unique ({}), and {} has it",
                    meta.schema.attribute_type(kind).name(),
                    shown(value),
                    rule.name,
                    tree.dn(other)
                );
                return Err(Refusal::new(ResultCode::ConstraintViolation, message));
            }
        }
    }
    Ok(())
}

fn is_covered(meta: &Meta, rule: &UniqueRule, entry: &StoredEntry) -> bool {
    rule.class.is_none_or(|class| has_class(meta, entry, class))
}

/// Whether an entry is of an object class, or of one below it.
pub(crate) fn has_class(meta: &Meta, entry: &StoredEntry, class: ObjectClassId) -> bool {
    meta.classes(entry).any(|held| meta.schema.is_subclass(held, class))
}
