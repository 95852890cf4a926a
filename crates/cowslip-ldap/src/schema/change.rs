//! Changes of the schema: all or nothing, without a look at the data.
//!
//! What a change would do to stored entries is answered by a count per element ([`SchemaUse`]). Always allowed: new
//! elements; names, descriptions, extensions; MAY added or taken away; MUST made MAY or taken away; SINGLE-VALUE
//! dropped. Refused while entries use the element: its deletion; other SYNTAX, rules, SUP, USAGE or kind; MUST added;
//! SINGLE-VALUE set. The effect counts, not the text: a subtype that inherits a changed rule is looked at as well.
//! Refused always: what another definition refers to goes, what the server relies on changes.

use std::sync::Arc;

use super::assemble::{Parts, SchemaError};
use super::standard::{CORE_CLASSES, CORE_TYPES};
use super::{
    AttributeType, AttributeTypeId, Definition, DefinitionError, Element, Head, ObjectClass, ObjectClassId,
    Schema,
};

/// Most changes of one call of [`Schema::apply`].
pub const SCHEMA_CHANGES_MAX: usize = 65_536;

/// One change of one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaChange {
    /// A new element.
    Add(Definition),
    /// Another definition of an element that is there, found by its OID.
    Replace(Definition),
    /// An element goes.
    Delete {
        /// Its kind.
        element: Element,
        /// Its OID, or a name.
        oid: String,
    },
}

/// One modification of the subschema entry: values added or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaModification<'a> {
    /// A value is added.
    Add {
        /// Which attribute of the entry.
        element: Element,
        /// The value.
        definition: &'a str,
    },
    /// A value is deleted. Its OID counts (objectIdentifierFirstComponentMatch).
    Delete {
        /// Which attribute of the entry.
        element: Element,
        /// The value, or its OID or name alone.
        definition: &'a str,
    },
}

/// How much the data uses the schema.
pub trait SchemaUse {
    /// How many entries have a value of this type (not counting its subtypes).
    fn attribute_type_entries(&self, id: AttributeTypeId) -> u64;
    /// How many entries have this class, by name or as a superclass.
    fn object_class_entries(&self, id: ObjectClassId) -> u64;
    /// Whether an index or a rule of uniqueness or reference covers this type.
    fn is_indexed(&self, id: AttributeTypeId) -> bool;
}

/// No data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unused;

impl SchemaUse for Unused {
    fn attribute_type_entries(&self, _: AttributeTypeId) -> u64 {
        0
    }

    fn object_class_entries(&self, _: ObjectClassId) -> u64 {
        0
    }

    fn is_indexed(&self, _: AttributeTypeId) -> bool {
        false
    }
}

impl SchemaChange {
    /// Turns modifications of the subschema entry, in order, into changes: a value deleted and one of the same OID
    /// added is a replacement.
    ///
    /// # Errors
    /// A definition that is none.
    pub fn from_modifications(
        modifications: &[SchemaModification<'_>],
    ) -> Result<Vec<SchemaChange>, SchemaError> {
        let mut changes: Vec<SchemaChange> = Vec::with_capacity(modifications.len());
        for modification in modifications {
            match *modification {
                SchemaModification::Add { element, definition } => {
                    let definition = parse(element, definition)?;
                    let oid = definition.head().oid.clone();
                    let deleted = changes.iter_mut().rev().find(|change| match change {
                        SchemaChange::Delete { element: of, oid: deleted } => {
                            *of == element && *deleted == oid
                        }
                        _ => false,
                    });
                    match deleted {
                        Some(change) => *change = SchemaChange::Replace(definition),
                        None => changes.push(SchemaChange::Add(definition)),
                    }
                }
                SchemaModification::Delete { element, definition } => {
                    let text = definition.trim();
                    let oid = match text.starts_with('(') {
                        true => parse_loosely(element, text)?,
                        false => text.to_owned(),
                    };
                    changes.push(SchemaChange::Delete { element, oid });
                }
            }
        }
        Ok(changes)
    }

    /// The value of the subschema entry that a modify deletes to make this change, and the one that it adds: the
    /// reverse of [`from_modifications`](Self::from_modifications).
    #[must_use]
    pub fn values(&self) -> (Option<String>, Option<String>) {
        match self {
            SchemaChange::Add(new) => (None, Some(new.to_string())),
            SchemaChange::Replace(new) => (Some(format!("( {} )", new.head().oid)), Some(new.to_string())),
            SchemaChange::Delete { oid, .. } => (Some(format!("( {oid} )")), None),
        }
    }

    /// The kind of element that changes.
    #[must_use]
    pub fn element(&self) -> Element {
        match self {
            SchemaChange::Add(it) | SchemaChange::Replace(it) => it.element(),
            SchemaChange::Delete { element, .. } => *element,
        }
    }
}

fn parse(element: Element, text: &str) -> Result<Definition, SchemaError> {
    Definition::parse(element, text).map_err(|error| SchemaError::Definition { element, error })
}

/// The OID of a value to delete, of which nothing but the OID need be right.
fn parse_loosely(element: Element, text: &str) -> Result<String, SchemaError> {
    let inner = text.trim_start_matches('(').trim_start();
    let end = inner.find(|c: char| c.is_ascii_whitespace() || c == ')').unwrap_or(inner.len());
    let oid = inner[..end].trim_matches('\'');
    if oid.is_empty() {
        let error = DefinitionError::Missing { keyword: "the object identifier" };
        return Err(SchemaError::Definition { element, error });
    }
    Ok(oid.to_owned())
}

impl Schema {
    /// The version after these changes, in which this version's definitions that did not change are shared.
    ///
    /// ```
    /// use cowslip_ldap::schema::{Definition, Element, Schema, SchemaChange, Unused};
    /// let schema = Schema::standard();
    /// let text = "( 1.3.6.1.4.1.32473.1 NAME 'shoeSize' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )";
    /// let change = SchemaChange::Add(Definition::parse(Element::AttributeType, text)?);
    /// let next = schema.apply(&[change], &Unused)?;
    /// assert!(next.attribute("shoesize").is_some() && schema.attribute("shoesize").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first change that is refused, and why. Nothing has changed then.
    pub fn apply(&self, changes: &[SchemaChange], usage: &dyn SchemaUse) -> Result<Schema, SchemaError> {
        if changes.len() > SCHEMA_CHANGES_MAX {
            return Err(SchemaError::TooMany { max: SCHEMA_CHANGES_MAX, unit: "changes" });
        }
        let mut parts = self.parts();
        for change in changes {
            apply_to_parts(&mut parts, change)?;
        }
        let next = self.assemble(&parts).map_err(|error| self.explain(error))?;
        next.attribute_types.iter().zip(&self.attribute_types).try_for_each(|(new, old)| {
            let is_kept = next.has_attribute_type(old.id);
            self.check_type_change(old, is_kept.then_some(new.as_ref()), usage)
        })?;
        next.object_classes.iter().zip(&self.object_classes).try_for_each(|(new, old)| {
            let is_kept = next.has_object_class(old.id);
            self.check_class_change(old, is_kept.then_some(new.as_ref()), usage)
        })?;
        Ok(next)
    }

    /// An unknown reference that was known before means that something was deleted, or a name of it, too early.
    fn explain(&self, error: SchemaError) -> SchemaError {
        let SchemaError::UnknownReference { element: by_element, name: by, keyword, reference } = &error
        else {
            return error;
        };
        let is_type = matches!(*keyword, "MUST" | "MAY" | "NOT")
            || (*keyword == "SUP" && *by_element == Element::AttributeType);
        let before = if is_type {
            let id = self.attribute(reference);
            id.map(|id| (Element::AttributeType, self.attribute_type(id).name()))
        } else {
            self.object_class(reference).map(|id| (Element::ObjectClass, self.class(id).name()))
        };
        match before {
            Some((element, name)) => SchemaError::ReferredTo {
                element,
                name: name.to_owned(),
                reference: reference.clone(),
                by_element: *by_element,
                by: by.clone(),
                keyword,
            },
            None => error,
        }
    }

    fn check_type_change(
        &self,
        old: &AttributeType,
        new: Option<&AttributeType>,
        usage: &dyn SchemaUse,
    ) -> Result<(), SchemaError> {
        if !self.has_attribute_type(old.id) || new.is_some_and(|new| std::ptr::eq(new, old)) {
            return Ok(());
        }
        let element = Element::AttributeType;
        let name = || old.name().to_owned();
        let is_core = old.id.0 < CORE_TYPES;
        if let Some(change) = type_change(old, new) {
            if is_core {
                return Err(SchemaError::Protected { element, name: name(), change });
            }
            // Dropping SINGLE-VALUE is listed for what the server relies on only.
            if change == SINGLE_VALUE_DROPPED {
                return Ok(());
            }
            let entries = usage.attribute_type_entries(old.id);
            if entries > 0 {
                return Err(SchemaError::InUse { element, name: name(), change, entries });
            }
            if usage.is_indexed(old.id) {
                return Err(SchemaError::Indexed { name: name(), change });
            }
        }
        if new.and_then(|new| lost_name(&old.names, &new.names)).is_none() {
            return Ok(());
        }
        // Names of entries and the configuration spell the type out.
        let change = "taking a name away";
        let entries = usage.attribute_type_entries(old.id);
        match () {
            () if is_core => Err(SchemaError::Protected { element, name: name(), change }),
            () if entries > 0 => Err(SchemaError::InUse { element, name: name(), change, entries }),
            () if usage.is_indexed(old.id) => Err(SchemaError::Indexed { name: name(), change }),
            () => Ok(()),
        }
    }

    fn check_class_change(
        &self,
        old: &ObjectClass,
        new: Option<&ObjectClass>,
        usage: &dyn SchemaUse,
    ) -> Result<(), SchemaError> {
        if !self.has_object_class(old.id) || new.is_some_and(|new| std::ptr::eq(new, old)) {
            return Ok(());
        }
        let element = Element::ObjectClass;
        let name = || old.name().to_owned();
        let is_core = old.id.0 < CORE_CLASSES;
        if let Some(change) = class_change(old, new) {
            if is_core {
                return Err(SchemaError::Protected { element, name: name(), change });
            }
            let entries = usage.object_class_entries(old.id);
            if entries > 0 {
                return Err(SchemaError::InUse { element, name: name(), change, entries });
            }
        }
        let loses_name = |new: &ObjectClass| lost_name(&old.names, &new.names).is_some();
        if !is_core && new.is_some_and(loses_name) {
            // Entries spell their classes out.
            let entries = usage.object_class_entries(old.id);
            if entries > 0 {
                return Err(SchemaError::InUse {
                    element,
                    name: name(),
                    change: "taking a name away",
                    entries,
                });
            }
        }
        let is_less = |new: &ObjectClass| loses_name(new) || old.may.iter().any(|id| !new.allows(*id));
        if is_core && new.is_some_and(is_less) {
            let change = "taking a name or an attribute away";
            return Err(SchemaError::Protected { element, name: name(), change });
        }
        Ok(())
    }
}

const SINGLE_VALUE_DROPPED: &str = "dropping SINGLE-VALUE";

/// What would change for values of a type, worst first.
fn type_change(old: &AttributeType, new: Option<&AttributeType>) -> Option<&'static str> {
    let Some(new) = new else { return Some("deletion") };
    Some(match () {
        () if old.syntax != new.syntax => "a change of SYNTAX",
        () if old.equality != new.equality => "a change of EQUALITY",
        () if old.ordering != new.ordering => "a change of ORDERING",
        () if old.substring != new.substring => "a change of SUBSTR",
        () if old.superior != new.superior => "a change of SUP",
        () if old.usage != new.usage => "a change of USAGE",
        () if !old.is_single_value && new.is_single_value => "setting SINGLE-VALUE",
        () if old.is_no_user_modification != new.is_no_user_modification => {
            "a change of NO-USER-MODIFICATION"
        }
        () if old.is_single_value && !new.is_single_value => SINGLE_VALUE_DROPPED,
        () => return None,
    })
}

/// What would change for entries of a class.
fn class_change(old: &ObjectClass, new: Option<&ObjectClass>) -> Option<&'static str> {
    let Some(new) = new else { return Some("deletion") };
    Some(match () {
        () if old.kind != new.kind => "a change of kind",
        () if old.lineage != new.lineage => "a change of SUP",
        () if new.must.iter().any(|id| old.must.binary_search(id).is_err()) => "adding to MUST",
        () if old.is_standalone && !new.is_standalone => "dropping X-STANDALONE",
        () => return None,
    })
}

fn lost_name<'a>(old: &'a [String], new: &[String]) -> Option<&'a String> {
    old.iter().find(|old| !new.iter().any(|new| new.eq_ignore_ascii_case(old)))
}

fn apply_to_parts(parts: &mut Parts, change: &SchemaChange) -> Result<(), SchemaError> {
    match change {
        SchemaChange::Add(Definition::AttributeType(it)) => {
            add(&mut parts.attribute_types, it, |it| &it.head, change)
        }
        SchemaChange::Add(Definition::ObjectClass(it)) => {
            add(&mut parts.object_classes, it, |it| &it.head, change)
        }
        SchemaChange::Add(Definition::ContentRule(it)) => {
            add(&mut parts.content_rules, it, |it| &it.head, change)
        }
        SchemaChange::Replace(Definition::AttributeType(it)) => {
            replace(&mut parts.attribute_types, it, |it| &it.head, change)
        }
        SchemaChange::Replace(Definition::ObjectClass(it)) => {
            replace(&mut parts.object_classes, it, |it| &it.head, change)
        }
        SchemaChange::Replace(Definition::ContentRule(it)) => {
            replace(&mut parts.content_rules, it, |it| &it.head, change)
        }
        SchemaChange::Delete { element: Element::AttributeType, oid } => {
            delete(&mut parts.attribute_types, oid, |it| &it.head, change)
        }
        SchemaChange::Delete { element: Element::ObjectClass, oid } => {
            delete(&mut parts.object_classes, oid, |it| &it.head, change)
        }
        SchemaChange::Delete { element: Element::ContentRule, oid } => {
            delete(&mut parts.content_rules, oid, |it| &it.head, change)
        }
        SchemaChange::Add(it) | SchemaChange::Replace(it) => Err(unsupported(it.element(), it.head().name())),
        SchemaChange::Delete { element, oid } => Err(unsupported(*element, oid)),
    }
}

/// Syntaxes and rules are code; structure rules and name forms are not enforced, so none is taken.
fn unsupported(element: Element, name: &str) -> SchemaError {
    let what = match element {
        Element::Syntax | Element::MatchingRule | Element::MatchingRuleUse => {
            "syntaxes and matching rules are built in: another one"
        }
        _ => "structure rules and name forms are not enforced: one",
    };
    SchemaError::Unsupported { element, name: name.to_owned(), what }
}

fn position<T>(items: &[Arc<T>], oid: &str, head: fn(&T) -> &Head) -> Option<usize> {
    items.iter().position(|it| head(it).oid.eq_ignore_ascii_case(oid)).or_else(|| {
        items.iter().position(|it| head(it).names.iter().any(|name| name.eq_ignore_ascii_case(oid)))
    })
}

fn add<T: Clone>(
    items: &mut Vec<Arc<T>>,
    item: &T,
    head: fn(&T) -> &Head,
    change: &SchemaChange,
) -> Result<(), SchemaError> {
    if items.iter().any(|it| head(it).oid.eq_ignore_ascii_case(&head(item).oid)) {
        let name = head(item).name().to_owned();
        return Err(SchemaError::Exists { element: change.element(), name });
    }
    items.push(Arc::new(item.clone()));
    Ok(())
}

fn replace<T: Clone + PartialEq>(
    items: &mut [Arc<T>],
    item: &T,
    head: fn(&T) -> &Head,
    change: &SchemaChange,
) -> Result<(), SchemaError> {
    let place = items.iter_mut().find(|it| head(it).oid.eq_ignore_ascii_case(&head(item).oid));
    match place {
        Some(place) if **place == *item => Ok(()),
        Some(place) => {
            *place = Arc::new(item.clone());
            Ok(())
        }
        None => Err(SchemaError::Missing { element: change.element(), name: head(item).name().to_owned() }),
    }
}

fn delete<T>(
    items: &mut Vec<Arc<T>>,
    oid: &str,
    head: fn(&T) -> &Head,
    change: &SchemaChange,
) -> Result<(), SchemaError> {
    match position(items, oid, head) {
        Some(at) => {
            items.remove(at);
            Ok(())
        }
        None => Err(SchemaError::Missing { element: change.element(), name: oid.to_owned() }),
    }
}
