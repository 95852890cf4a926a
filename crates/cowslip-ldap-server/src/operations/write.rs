//! Writes as they run in the committer, each on a draft of its own.
//!
//! Invariants: whatever is refused leaves nothing, because its draft is dropped; an entry that is put has passed the
//! schema's rules for its classes and attributes; names that became those of an entry are held as its number when the
//! write ends.

use std::sync::Arc;

use cowslip_engine::{Draft, RecordNumber};
use cowslip_ldap::dn::Dn;
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::AttributeTypeId;

use super::check::{check_classes, check_counts};
use super::integrity::{drop_references, settle_names};
use super::plan::{AddPlan, ChangeKind, ModifyPlan, Plan, PlannedAttribute, RenamePlan};
use super::refusal::Refusal;
use crate::entry::{Attributes, Csn, EntryDelta, EntryEdit, EntryNumber, Incoming, NO_ENTRY, StoredEntry};
use crate::key::Key;
use crate::meta::{ENTRIES, Meta};
use crate::model::Directory;
use crate::tree::{Path, Resolver, Tree, normalized_name};

/// How many entries one operation may change unless told otherwise, its own among them.
pub const CHANGES_PER_OPERATION_MAX_DEFAULT: usize = 100_000;

/// What a write needs to know besides its plan.
#[derive(Debug)]
pub struct Circumstances<'a> {
    /// Who writes.
    pub who: &'a Arc<str>,
    /// When, in microseconds since 1970.
    pub now_us: u64,
    /// The change's number.
    pub csn: Csn,
    /// The last entry number that was given.
    pub last_number: &'a mut u32,
    /// How many entries the operation may change.
    pub changes_max: usize,
}

/// Runs one write on a draft.
///
/// # Errors
/// See [`Refusal`]. The draft must then be dropped.
pub fn run(
    draft: &mut Draft<'_, Directory>,
    plan: &Plan,
    now: &mut Circumstances<'_>,
) -> Result<(), Refusal> {
    match plan {
        Plan::Add(plan) => add(draft, plan, now),
        Plan::Delete(path) => delete(draft, path, now),
        Plan::Modify(plan) => modify(draft, plan, now),
        Plan::Rename(plan) => rename(draft, plan, now),
        Plan::Schema(_) => {
            Err(Refusal::new(ResultCode::UnwillingToPerform, "the schema is not changed like an entry"))
        }
    }
}

/// The entry at a path.
///
/// # Errors
/// `noSuchObject`, with the name of the last entry on the way.
pub fn found<T: Tree>(tree: &T, path: &Path) -> Result<EntryNumber, Refusal> {
    tree.resolve(path).map_err(|last| {
        let matched = last.map(|number| tree.dn(number)).unwrap_or_default();
        Refusal::new(ResultCode::NoSuchObject, "there is no such entry").with_matched(matched)
    })
}

fn add(draft: &mut Draft<'_, Directory>, plan: &AddPlan, now: &mut Circumstances<'_>) -> Result<(), Refusal> {
    if !plan.path.is_ours() {
        return Err(Refusal::new(
            ResultCode::NoSuchObject,
            "the name lies in none of this server's naming contexts",
        ));
    }
    if draft.resolve(&plan.path).is_ok() {
        return Err(Refusal::new(ResultCode::EntryAlreadyExists, "an entry of this name exists"));
    }
    let parent = match plan.path.parent() {
        Some(path) => found(draft, &path)?,
        None => NO_ENTRY,
    };
    if Some(parent) == draft.meta().rules.schema {
        return Err(Refusal::new(ResultCode::UnwillingToPerform, "there is nothing below the schema"));
    }
    let entry = new_entry(draft.meta(), plan, parent, now, |attribute| resolved(draft, attribute))?;
    *now.last_number = now
        .last_number
        .checked_add(1)
        .ok_or_else(|| Refusal::new(ResultCode::AdminLimitExceeded, "all entry numbers are used up"))?;
    let number = RecordNumber(*now.last_number);
    draft.put(ENTRIES, number, Arc::new(entry), EntryDelta::default());
    settle_names(draft, &plan.path, now)
}

/// The entry that an add makes, if the schema lets it. `values` gives an attribute's values with the entries that they
/// name.
///
/// # Errors
/// `constraintViolation` or `objectClassViolation`.
pub(crate) fn new_entry(
    meta: &Meta,
    plan: &AddPlan,
    parent: EntryNumber,
    now: &Circumstances<'_>,
    values: impl Fn(&PlannedAttribute) -> Vec<Incoming>,
) -> Result<StoredEntry, Refusal> {
    let none = Attributes::default();
    let mut edit = EntryEdit::of(&none, None, |kind, value: &[u8]| meta.value_key(kind, value));
    for attribute in &plan.attributes {
        let is_reference = meta.is_reference(attribute.kind);
        edit.replace(attribute.kind, &attribute.options, is_reference, &values(attribute));
    }
    let (attributes, special, delta) = edit.finish().unwrap_or_default();
    let brought = &plan.brought;
    let entry = StoredEntry {
        parent,
        rdn: Arc::clone(&plan.rdn),
        uuid: brought.uuid.unwrap_or_else(cowslip_engine::Uuid::new_v4),
        created_us: brought.created_us.unwrap_or(now.now_us),
        creator: Arc::clone(brought.creator.as_ref().unwrap_or(now.who)),
        modified_us: brought.modified_us.unwrap_or(now.now_us),
        modifier: Arc::clone(brought.modifier.as_ref().unwrap_or(now.who)),
        csn: brought.csn.unwrap_or(now.csn),
        attributes,
        special,
    };
    check_counts(meta, &entry, &delta)?;
    check_classes(meta, None, &entry, &delta)?;
    Ok(entry)
}

/// Refuses what would take the server's own entries away, or change the schema past its rules, whatever their spelling.
fn check_own(draft: &Draft<'_, Directory>, number: EntryNumber) -> Result<(), Refusal> {
    let rules = &draft.meta().rules;
    if Some(number) == rules.schema || Some(number) == rules.config {
        return Err(Refusal::new(ResultCode::UnwillingToPerform, "the server needs this entry as it is"));
    }
    Ok(())
}

fn delete(draft: &mut Draft<'_, Directory>, path: &Path, now: &mut Circumstances<'_>) -> Result<(), Refusal> {
    let number = found(draft, path)?;
    check_own(draft, number)?;
    if draft.has_children(number) {
        return Err(Refusal::new(ResultCode::NotAllowedOnNonLeaf, "the entry has entries below it"));
    }
    drop_references(draft, number, now)?;
    draft.remove(ENTRIES, &number);
    Ok(())
}

fn modify(
    draft: &mut Draft<'_, Directory>,
    plan: &ModifyPlan,
    now: &mut Circumstances<'_>,
) -> Result<(), Refusal> {
    let number = found(draft, &plan.path)?;
    let meta: &Meta = draft.meta();
    if Some(number) == meta.rules.schema {
        let message = "the schema is changed under the name cn=schema";
        return Err(Refusal::new(ResultCode::UnwillingToPerform, message));
    }
    let Some(old) = draft.entry(number).map(Arc::clone) else { return Ok(()) };
    let mut edit = EntryEdit::new(&old, |kind, value: &[u8]| meta.value_key(kind, value));
    for (change, attribute) in &plan.changes {
        let values = resolved(draft, attribute);
        apply(&mut edit, meta, *change, attribute, &values)?;
    }
    check_rdn(meta, &old, plan, &mut edit)?;
    let Some((attributes, special, delta)) = edit.finish() else { return Ok(()) };
    let entry = old.with_attributes(attributes, special);
    put_changed(draft, number, old, entry, delta, now)
}

/// Puts a changed version of an entry, if the schema lets it.
fn put_changed(
    draft: &mut Draft<'_, Directory>,
    number: EntryNumber,
    old: Arc<StoredEntry>,
    mut entry: StoredEntry,
    delta: EntryDelta,
    now: &Circumstances<'_>,
) -> Result<(), Refusal> {
    let meta: &Meta = draft.meta();
    entry.modified_us = now.now_us;
    entry.modifier = Arc::clone(now.who);
    entry.csn = now.csn;
    check_counts(meta, &entry, &delta)?;
    check_classes(meta, Some(&old), &entry, &delta)?;
    draft.replace(ENTRIES, number, old, Arc::new(entry), delta);
    Ok(())
}

fn apply(
    edit: &mut EntryEdit<'_, impl Fn(AttributeTypeId, &[u8]) -> Key>,
    meta: &Meta,
    change: ChangeKind,
    attribute: &PlannedAttribute,
    values: &[Incoming],
) -> Result<(), Refusal> {
    let PlannedAttribute { kind, options, .. } = attribute;
    let is_reference = meta.is_reference(*kind);
    let name = || meta.schema.attribute_type(*kind).name().to_owned();
    match change {
        ChangeKind::Add => {
            for value in values {
                if !edit.add(*kind, options, is_reference, value) {
                    let message = format!("{} has the value {} already", name(), shown(&value.text));
                    return Err(Refusal::new(ResultCode::AttributeOrValueExists, message));
                }
            }
        }
        ChangeKind::Delete if values.is_empty() => {
            if !edit.clear(*kind, options, is_reference) {
                return Err(Refusal::new(ResultCode::NoSuchAttribute, format!("there is no {}", name())));
            }
        }
        ChangeKind::Delete => {
            for value in values {
                if !edit.remove(*kind, options, is_reference, value) {
                    let message = format!("{} has no value {}", name(), shown(&value.text));
                    return Err(Refusal::new(ResultCode::NoSuchAttribute, message));
                }
            }
        }
        ChangeKind::Replace => edit.replace(*kind, options, is_reference, values),
        ChangeKind::Increment => increment(edit, meta, attribute, values)?,
    }
    Ok(())
}

/// RFC 4525: adds one number to each value.
fn increment(
    edit: &mut EntryEdit<'_, impl Fn(AttributeTypeId, &[u8]) -> Key>,
    meta: &Meta,
    attribute: &PlannedAttribute,
    values: &[Incoming],
) -> Result<(), Refusal> {
    let PlannedAttribute { kind, options, .. } = attribute;
    let name = meta.schema.attribute_type(*kind).name();
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<i128>().ok());
    let [by] = values else {
        return Err(Refusal::new(ResultCode::ProtocolError, "an increment takes exactly one value"));
    };
    let by = number(&by.text).ok_or_else(|| {
        Refusal::new(ResultCode::ConstraintViolation, format!("{} is no number to add", shown(&by.text)))
    })?;
    let held = edit.plain_values(*kind, options);
    if held.is_empty() {
        return Err(Refusal::new(ResultCode::NoSuchAttribute, format!("there is no {name}")));
    }
    let mut sums = Vec::with_capacity(held.len());
    for value in held {
        let sum = number(&value).and_then(|value| value.checked_add(by)).ok_or_else(|| {
            let message = format!("{name}: {} plus {by} cannot be computed", shown(&value));
            Refusal::new(ResultCode::ConstraintViolation, message)
        })?;
        let text: Arc<[u8]> = sum.to_string().into_bytes().into();
        let key = meta.value_key(*kind, &text);
        sums.push(Incoming { text, key, target: None });
    }
    edit.replace(*kind, options, false, &sums);
    Ok(())
}

/// The values of the RDN must stay (RFC 4511, section 4.6).
fn check_rdn(
    meta: &Meta,
    old: &StoredEntry,
    plan: &ModifyPlan,
    edit: &mut EntryEdit<'_, impl Fn(AttributeTypeId, &[u8]) -> Key>,
) -> Result<(), Refusal> {
    let mut taking = plan.changes.iter().filter(|(change, _)| *change != ChangeKind::Add);
    // Most changes touch no type of the name, which is found out without taking the name apart.
    if !taking.any(|(_, attribute)| may_name(meta, &old.rdn, attribute.kind)) {
        return Ok(());
    }
    for (kind, value) in rdn_values(meta, &old.rdn) {
        let is_touched = plan.changes.iter().any(|(_, attribute)| attribute.kind == kind);
        if is_touched && !edit.contains(kind, "", meta.is_reference(kind), &value) {
            let message = format!("{} names the entry", meta.schema.attribute_type(kind).name());
            return Err(Refusal::new(ResultCode::NotAllowedOnRdn, message));
        }
    }
    Ok(())
}

/// Whether a name may have a value of a type: false only if all its types are others.
fn may_name(meta: &Meta, name: &str, kind: AttributeTypeId) -> bool {
    match name.split_once('=') {
        Some((first, rest)) if !rest.contains(['+', ',', ';', '\\', '"']) => {
            meta.schema.attribute(first.trim()).is_none_or(|named| named == kind)
        }
        _ => true,
    }
}

/// The values that the first RDN of a name holds.
fn rdn_values(meta: &Meta, name: &str) -> Vec<(AttributeTypeId, Incoming)> {
    let dn = Dn::parse(name.as_bytes()).ok();
    let avas = dn.iter().flat_map(|dn| dn.rdns().first()).flat_map(|rdn| rdn.avas());
    let values = avas.filter_map(|ava| {
        let kind = meta.schema.attribute(ava.attribute())?;
        let text: Arc<[u8]> = ava.value().into();
        Some((kind, Incoming { key: meta.value_key(kind, &text), text, target: None }))
    });
    values.collect()
}

fn rename(
    draft: &mut Draft<'_, Directory>,
    plan: &RenamePlan,
    now: &mut Circumstances<'_>,
) -> Result<(), Refusal> {
    let number = found(draft, &plan.path)?;
    let Some(old) = draft.entry(number).map(Arc::clone) else { return Ok(()) };
    if old.parent == NO_ENTRY {
        return Err(Refusal::new(
            ResultCode::UnwillingToPerform,
            "the top of a naming context keeps its name",
        ));
    }
    let parent = match &plan.superior {
        Some(path) => found(draft, path)?,
        None => old.parent,
    };
    if draft.is_within(parent, number) {
        return Err(Refusal::new(ResultCode::UnwillingToPerform, "an entry cannot be moved below itself"));
    }
    if draft.lineage(parent).last() != draft.lineage(number).last() {
        let message = "the new superior lies in another naming context";
        return Err(Refusal::new(ResultCode::AffectsMultipleDsas, message));
    }
    if draft.child(parent, &plan.key).is_some_and(|there| there != number) {
        return Err(Refusal::new(ResultCode::EntryAlreadyExists, "an entry of the new name exists"));
    }
    let meta: &Meta = draft.meta();
    let mut edit = EntryEdit::new(&old, |kind, value: &[u8]| meta.value_key(kind, value));
    rename_values(&mut edit, meta, &old, plan);
    let is_same = (parent, &plan.rdn) == (old.parent, &old.rdn);
    let (attributes, special, delta) = match edit.finish() {
        Some(changed) => changed,
        None if is_same => return Ok(()),
        None => (old.attributes.clone(), old.special.clone(), EntryDelta::default()),
    };
    let mut entry = old.with_attributes(attributes, special);
    entry.parent = parent;
    entry.rdn = Arc::clone(&plan.rdn);
    put_changed(draft, number, Arc::clone(&old), entry, delta, now)?;
    let is_renamed = old.parent != parent || !is_same_name(meta, &old.rdn, &plan.key);
    if is_renamed { super::integrity::settle_names_below(draft, number, now) } else { Ok(()) }
}

/// Gives the entry the values of its new RDN and takes those of the old one, where that is asked for.
fn rename_values(
    edit: &mut EntryEdit<'_, impl Fn(AttributeTypeId, &[u8]) -> Key>,
    meta: &Meta,
    old: &StoredEntry,
    plan: &RenamePlan,
) {
    let new: Vec<(AttributeTypeId, &Incoming)> = plan
        .values
        .iter()
        .flat_map(|attribute| attribute.values.iter().map(|value| (attribute.kind, &value.incoming)))
        .collect();
    for (kind, value) in rdn_values(meta, &old.rdn) {
        let respelled = new.iter().find(|(new_kind, new)| *new_kind == kind && new.key == value.key);
        // An equal value in a new spelling takes the place of the old one, whatever is asked for: they are one value.
        let goes = respelled.map_or(plan.deletes_old, |(_, new)| new.text != value.text);
        if goes {
            edit.remove(kind, "", meta.is_reference(kind), &value);
        }
    }
    for (kind, value) in new {
        edit.add(kind, "", meta.is_reference(kind), value);
    }
}

fn is_same_name(meta: &Meta, rdn: &str, key: &[u8]) -> bool {
    let dn = Dn::parse(rdn.as_bytes()).ok();
    dn.and_then(|dn| normalized_name(&dn, &meta.schema).ok()).is_some_and(|old| *old == *key)
}

/// The values of an attribute with the entries that they name now.
fn resolved<T: Tree>(tree: &T, attribute: &PlannedAttribute) -> Vec<Incoming> {
    let mut resolver = Resolver::new(tree);
    let mut values = Vec::with_capacity(attribute.values.len());
    for value in &attribute.values {
        let target = value.path.as_ref().and_then(|path| resolver.resolve(path));
        values.push(Incoming { target, ..value.incoming.clone() });
    }
    values
}

/// A value for a message: cut, and without what a terminal would obey.
pub(crate) fn shown(value: &[u8]) -> String {
    let cut = &value[..value.len().min(64)];
    format!("\"{}\"{}", cut.escape_ascii(), if cut.len() < value.len() { "…" } else { "" })
}
