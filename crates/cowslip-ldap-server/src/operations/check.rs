//! The schema's rules for one entry (RFC 4512, section 2.4 and 2.5), checked against what a change touched.
//!
//! A change that leaves the object classes alone cannot make other attributes forbidden or missing than those it names,
//! so only these are looked at. Invariant: whoever adds an entry or changes its classes checks all of it.

use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::{AttributeTypeId, ClassKind, ObjectClassId};

use super::refusal::Refusal;
use super::write::shown;
use crate::entry::{EntryDelta, StoredEntry};
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
    let touches_classes = delta.touches(AttributeTypeId::OBJECT_CLASS);
    if old.is_some() && !touches_classes {
        let classes: Vec<ObjectClassId> = meta.classes(entry).collect();
        let rules = Rules::new(meta, &classes);
        for attribute in &delta.0 {
            if entry.has(attribute.kind) {
                rules.check_allowed(attribute.kind)?;
            } else {
                rules.check_not_needed(attribute.kind)?;
            }
        }
        return Ok(());
    }
    let classes = named_classes(meta, entry)?;
    let structural = structural(meta, &classes)?;
    if let Some(old) = old {
        let old_classes: Vec<_> = meta.classes(old).collect();
        if self::structural(meta, &old_classes).is_ok_and(|before| before != structural) {
            let name = meta.schema.class(structural).name();
            let message = format!("the structural class of an entry cannot become {name}");
            return Err(Refusal::new(ResultCode::ObjectClassModsProhibited, message));
        }
    }
    let rules = Rules::new(meta, &classes);
    rules.check_auxiliary()?;
    for (kind, _) in entry.descriptions() {
        rules.check_allowed(kind)?;
    }
    rules.check_needed(entry)
}

/// The structural class of an entry: the most subordinate one of the one chain that its structural classes form.
///
/// # Errors
/// `objectClassViolation`: there is none, or there are several chains.
pub(super) fn structural(meta: &Meta, classes: &[ObjectClassId]) -> Result<ObjectClassId, Refusal> {
    let kinds = classes.iter().filter(|class| meta.schema.class(**class).kind == ClassKind::Structural);
    let mut lowest: Option<ObjectClassId> = None;
    for class in kinds.copied() {
        match lowest {
            None => lowest = Some(class),
            Some(held) if meta.schema.is_subclass(held, class) => {}
            Some(held) if meta.schema.is_subclass(class, held) => lowest = Some(class),
            Some(held) => {
                let names = (meta.schema.class(held).name(), meta.schema.class(class).name());
                let message = format!(
                    "{} and {} are both structural, and neither is below the other",
                    names.0, names.1
                );
                return Err(violation(message));
            }
        }
    }
    lowest.ok_or_else(|| violation("the entry has no structural object class".to_owned()))
}

/// The structural class of an entry, if its classes have one.
pub fn structural_class(meta: &Meta, entry: &StoredEntry) -> Option<ObjectClassId> {
    let classes: Vec<ObjectClassId> = meta.classes(entry).collect();
    structural(meta, &classes).ok()
}

fn named_classes(meta: &Meta, entry: &StoredEntry) -> Result<Vec<ObjectClassId>, Refusal> {
    let attribute = entry.attributes.attribute(AttributeTypeId::OBJECT_CLASS, "");
    let values = attribute.into_iter().flat_map(|attribute| attribute.values());
    let classes = values.map(|value| {
        let class = std::str::from_utf8(value).ok().and_then(|name| meta.schema.object_class(name));
        class.ok_or_else(|| violation(format!("the schema has no object class {}", shown(value))))
    });
    let classes = classes.collect::<Result<Vec<_>, _>>()?;
    if classes.is_empty() {
        return Err(violation("the entry has no objectClass".to_owned()));
    }
    Ok(classes)
}

/// What an entry of some classes may and must have.
struct Rules<'a> {
    meta: &'a Meta,
    classes: &'a [ObjectClassId],
    allows_all: bool,
    structural: Option<ObjectClassId>,
}

impl<'a> Rules<'a> {
    fn new(meta: &'a Meta, classes: &'a [ObjectClassId]) -> Self {
        let allows_all = classes.contains(&ObjectClassId::EXTENSIBLE_OBJECT);
        let has_content_rules = meta.schema.content_rules().next().is_some();
        let structural = if has_content_rules { structural(meta, classes).ok() } else { None };
        Self { meta, classes, allows_all, structural }
    }

    fn check_auxiliary(&self) -> Result<(), Refusal> {
        let Some(rule) = self.structural.and_then(|class| self.meta.schema.content_rule(class)) else {
            return Ok(());
        };
        let kinds = self.classes.iter().map(|class| self.meta.schema.class(*class));
        for class in kinds.filter(|class| class.kind == ClassKind::Auxiliary) {
            if rule.auxiliary.binary_search(&class.id).is_err() {
                let of = self.meta.schema.class(rule.class).name();
                return Err(violation(format!(
                    "the content rule of {of} does not allow the class {}",
                    class.name()
                )));
            }
        }
        Ok(())
    }

    fn check_allowed(&self, kind: AttributeTypeId) -> Result<(), Refusal> {
        let schema = &self.meta.schema;
        let definition = schema.attribute_type(kind);
        let rule = self.structural.and_then(|class| schema.content_rule(class));
        let is_forbidden = rule.is_some_and(|rule| rule.not.binary_search(&kind).is_ok());
        let is_allowed = definition.usage.is_operational()
            || kind == AttributeTypeId::OBJECT_CLASS
            || self.allows_all
            || self.classes.iter().any(|class| schema.class(*class).allows(kind))
            || rule.is_some_and(|rule| {
                rule.may.binary_search(&kind).is_ok() || rule.must.binary_search(&kind).is_ok()
            });
        if is_allowed && !is_forbidden {
            return Ok(());
        }
        Err(violation(format!("no object class of the entry allows {}", definition.name())))
    }

    fn check_not_needed(&self, kind: AttributeTypeId) -> Result<(), Refusal> {
        let schema = &self.meta.schema;
        let needs = self.classes.iter().find(|class| schema.class(**class).must.binary_search(&kind).is_ok());
        let rule = self.structural.and_then(|class| schema.content_rule(class));
        let by_rule = rule.filter(|rule| rule.must.binary_search(&kind).is_ok()).map(|rule| rule.class);
        match needs.copied().or(by_rule) {
            None => Ok(()),
            Some(class) => Err(self.missing(class, kind)),
        }
    }

    fn check_needed(&self, entry: &StoredEntry) -> Result<(), Refusal> {
        let schema = &self.meta.schema;
        let rule = self.structural.and_then(|class| schema.content_rule(class));
        let by_rule = rule.into_iter().flat_map(|rule| rule.must.iter().map(|kind| (rule.class, *kind)));
        let by_class = self
            .classes
            .iter()
            .flat_map(|class| schema.class(*class).must.iter().map(|kind| (*class, *kind)));
        for (class, kind) in by_class.chain(by_rule) {
            if !schema.subtypes(kind).iter().any(|kind| entry.has(*kind)) {
                return Err(self.missing(class, kind));
            }
        }
        Ok(())
    }

    fn missing(&self, class: ObjectClassId, kind: AttributeTypeId) -> Refusal {
        let names = (self.meta.schema.class(class).name(), self.meta.schema.attribute_type(kind).name());
        violation(format!("an entry of class {} must have {}", names.0, names.1))
    }
}

fn violation(message: String) -> Refusal {
    Refusal::new(ResultCode::ObjectClassViolation, message)
}
