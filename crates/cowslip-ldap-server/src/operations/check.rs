//! The schema's rules for one entry (RFC 4512, sections 2.4 and 2.5), checked against what a change touched.
//!
//! A change that leaves the object classes alone cannot make other attributes forbidden or missing than those it names,
//! so only these are looked at: an entry that lost what it must have, because what that named is deleted, can still be
//! changed elsewhere. Invariant: whoever adds an entry or changes its classes has all of it checked.

use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::{AttributeTypeId, EntryError, ObjectClassId};

use super::refusal::Refusal;
use super::write::shown;
use crate::entry::{Attributes, EntryDelta, StoredEntry, Value};
use crate::meta::Meta;

/// Checks that attributes of one value have no more.
///
/// # Errors
/// `constraintViolation`, with the attribute.
pub(super) fn check_counts(meta: &Meta, entry: &StoredEntry, delta: &EntryDelta) -> Result<(), Refusal> {
    for attribute in &delta.0 {
        let kind = meta.schema.attribute_type(attribute.kind);
        if kind.is_single_value && entry.count(attribute.kind, &attribute.options) > 1 {
            let message = format!("{} has one value at most", kind.name());
            return Err(Refusal::new(ResultCode::ConstraintViolation, message));
        }
    }
    Ok(())
}

/// Checks an entry's classes and attributes, as far as a change touched them.
///
/// # Errors
/// `objectClassViolation` or `objectClassModsProhibited`, with the class and the attribute.
pub(super) fn check_classes(
    meta: &Meta,
    old: Option<&StoredEntry>,
    entry: &StoredEntry,
    delta: &EntryDelta,
) -> Result<(), Refusal> {
    let schema = &meta.schema;
    let has_content_rules = schema.content_rules().next().is_some();
    if old.is_some() && !has_content_rules && !delta.touches(AttributeTypeId::OBJECT_CLASS) {
        return check_touched(meta, entry, delta);
    }
    let classes = named_classes(meta, entry)?;
    if let Some(before) = old.and_then(|old| structural_class(meta, old)) {
        let is_another = schema.is_structural_change(before, &classes).map_err(|error| violation(&error))?;
        if is_another {
            let name = schema.class(before).name();
            let message = format!("what is a {name} cannot become another kind of entry");
            return Err(Refusal::new(ResultCode::ObjectClassModsProhibited, message));
        }
    }
    let attributes: Vec<AttributeTypeId> = entry.descriptions().map(|(kind, _)| kind).collect();
    schema.check_entry(&classes, &attributes).map(drop).map_err(|error| violation(&error))
}

/// Checks the attributes that a change touched against the classes that the entry has.
fn check_touched(meta: &Meta, entry: &StoredEntry, delta: &EntryDelta) -> Result<(), Refusal> {
    let schema = &meta.schema;
    let classes = || meta.classes(entry).map(|class| schema.class(class));
    for attribute in &delta.0 {
        let kind = schema.attribute_type(attribute.kind);
        if !entry.has(attribute.kind) {
            if let Some(class) = classes().find(|class| class.must.binary_search(&kind.id).is_ok()) {
                let (attribute, class) = (kind.name().to_owned(), class.name().to_owned());
                return Err(violation(&EntryError::MissingAttribute { attribute, class }));
            }
            continue;
        }
        let is_allowed = kind.usage.is_operational()
            || classes().any(|class| class.allows(kind.id) || class.id == ObjectClassId::EXTENSIBLE_OBJECT);
        if !is_allowed {
            return Err(violation(&EntryError::AttributeNotAllowed { attribute: kind.name().to_owned() }));
        }
    }
    Ok(())
}

/// Checks all of an entry that is stored: its classes, which attributes it has, how many values, and their syntax.
///
/// # Errors
/// The first thing that the schema does not allow.
pub fn check_stored(meta: &Meta, entry: &StoredEntry) -> Result<(), Refusal> {
    let everything = EntryDelta::between(
        &StoredEntry { attributes: Attributes::default(), special: None, ..entry.clone() },
        entry,
    );
    check_counts(meta, entry, &everything)?;
    for attribute in &everything.0 {
        let kind = meta.schema.attribute_type(attribute.kind);
        for value in attribute.added.iter().filter_map(Value::text) {
            kind.syntax.check(value, &meta.schema).map_err(|error| {
                let message = format!("{}: {} is no value of its syntax: {error}", kind.name(), shown(value));
                Refusal::new(ResultCode::InvalidAttributeSyntax, message)
            })?;
        }
    }
    check_classes(meta, None, entry, &everything)
}

/// The structural class of an entry, if its classes have one.
pub fn structural_class(meta: &Meta, entry: &StoredEntry) -> Option<ObjectClassId> {
    let classes: Vec<ObjectClassId> = meta.classes(entry).collect();
    meta.schema.structural_class(&classes).ok()
}

fn named_classes(meta: &Meta, entry: &StoredEntry) -> Result<Vec<ObjectClassId>, Refusal> {
    let attribute = entry.attributes.attribute(AttributeTypeId::OBJECT_CLASS, "");
    let values = attribute.into_iter().flat_map(|attribute| attribute.values());
    let classes = values.map(|value| {
        let class = std::str::from_utf8(value).ok().and_then(|name| meta.schema.object_class(name));
        class.ok_or_else(|| {
            let message = format!("the schema has no object class {}", shown(value));
            Refusal::new(ResultCode::ObjectClassViolation, message)
        })
    });
    classes.collect()
}

fn violation(error: &EntryError) -> Refusal {
    Refusal::new(ResultCode::ObjectClassViolation, error.to_string())
}
