//! From definitions to a [`Schema`]: numbers given, names made unique, references resolved, rules of RFC 4512 checked.
//!
//! Every version is assembled on the one before it. A definition that is the same allocation as before, and whose
//! supertypes are, keeps its resolved form, so a change costs look-ups for what is unchanged and work for what is not.

use std::collections::HashMap;
use std::sync::Arc;

use super::names::NameTable;
use super::{
    AttributeType, AttributeTypeDefinition, AttributeTypeId, ClassKind, ContentRuleDefinition,
    DefinitionError, Element, Head, ObjectClass, ObjectClassDefinition, ObjectClassId, Schema,
};
use crate::matching::MatchingRule;
use crate::syntax::Syntax;

/// Most attribute types that ever get a number, deleted ones included.
pub const ATTRIBUTE_TYPES_MAX: usize = 65_536;
/// Most object classes that ever get a number, deleted ones included.
pub const OBJECT_CLASSES_MAX: usize = 65_536;
/// Most types (classes) between a type (class) and its furthest supertype (superclass).
pub const SUPERIORS_DEPTH_MAX: usize = 32;

/// Why a schema, or a change of one, is refused. Nothing is changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A definition's text is wrong.
    #[error("not a definition ({element}): {error}")]
    Definition {
        /// The kind of definition that was to be read.
        element: Element,
        /// What is wrong.
        error: DefinitionError,
    },
    /// A name or identifier has characters that it may not have.
    #[error("{element} {name:?}: {part:?} is not a name or identifier")]
    BadName {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
        /// The bad part.
        part: String,
    },
    /// A name or identifier stands for two elements.
    #[error("{element} {name:?}: the name or identifier {taken:?} is that of {by:?}")]
    NameTaken {
        /// Kind of element.
        element: Element,
        /// The element refused.
        name: String,
        /// The name or identifier.
        taken: String,
        /// The element that has it.
        by: String,
    },
    /// A definition refers to an element that does not exist.
    #[error("{element} {name:?}: {keyword} {reference:?} is not defined")]
    UnknownReference {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
        /// The key word of the reference.
        keyword: &'static str,
        /// What it refers to.
        reference: String,
    },
    /// What is to be deleted, or loses the name, is referred to by another definition.
    #[error(
        "{element} {name:?} (or its name {reference:?}) can't go: {keyword} of the {by_element} {by:?} refers to it"
    )]
    ReferredTo {
        /// Kind of element that would go.
        element: Element,
        /// The element.
        name: String,
        /// The spelling of the reference.
        reference: String,
        /// Kind of the element that refers to it.
        by_element: Element,
        /// The element that refers to it.
        by: String,
        /// The key word of the reference.
        keyword: &'static str,
    },
    /// An element is its own ancestor.
    #[error("{element} {name:?}: SUP leads back to itself")]
    Cycle {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
    },
    /// A rule of RFC 4512 about definitions is broken.
    #[error("{element} {name:?}: {rule}")]
    Rule {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
        /// The rule.
        rule: &'static str,
    },
    /// This kind of element, or this feature, is not supported.
    #[error("{element} {name:?}: {what} can't be defined here")]
    Unsupported {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
        /// What isn't supported.
        what: &'static str,
    },
    /// The change would make stored entries wrong.
    #[error("{element} {name:?}: {change} is refused while {entries} entries use it")]
    InUse {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
        /// What would change.
        change: &'static str,
        /// How many entries use the element.
        entries: u64,
    },
    /// An index covers the type.
    #[error("attribute type {name:?}: {change} is refused while it has an index")]
    Indexed {
        /// The type.
        name: String,
        /// What would change.
        change: &'static str,
    },
    /// The server itself relies on the element.
    #[error("{element} {name:?}: the server relies on it, so {change} is refused")]
    Protected {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
        /// What would change.
        change: &'static str,
    },
    /// An element that is to be added is there already.
    #[error("{element} {name:?} is defined already")]
    Exists {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
    },
    /// An element that is to be replaced or deleted is not there.
    #[error("{element} {name:?} is not defined")]
    Missing {
        /// Kind of element.
        element: Element,
        /// The element.
        name: String,
    },
    /// The table of numbers gives one of the first numbers, which never change, to another OID.
    #[error("number {number} belongs to the {element} {expected:?}, not to {found:?}")]
    Number {
        /// Kind of element.
        element: Element,
        /// The number.
        number: u32,
        /// The OID that has it.
        expected: String,
        /// The OID in the table.
        found: String,
    },
    /// A limit.
    #[error("more than {max} {unit}")]
    TooMany {
        /// The limit.
        max: usize,
        /// Of what.
        unit: &'static str,
    },
}

/// Which OID has which number: the index is the number. To be kept with data that holds numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Numbers {
    /// OIDs of attribute types.
    pub attribute_types: Vec<String>,
    /// OIDs of object classes.
    pub object_classes: Vec<String>,
}

/// The definitions of one version.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    pub(super) attribute_types: Vec<Arc<AttributeTypeDefinition>>,
    pub(super) object_classes: Vec<Arc<ObjectClassDefinition>>,
    pub(super) content_rules: Vec<Arc<ContentRuleDefinition>>,
}

impl Schema {
    /// The table of numbers, deleted elements' included.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers {
            attribute_types: self.attribute_types.iter().map(|it| it.oid.clone()).collect(),
            object_classes: self.object_classes.iter().map(|it| it.oid.clone()).collect(),
        }
    }

    /// This schema with the numbers of a table that was kept; what the table doesn't have gets numbers after it. The
    /// first numbers are the same in every table (see the constants of [`AttributeTypeId`]).
    ///
    /// # Errors
    /// A table that gives one of the first numbers to another OID, that has an OID twice or too many.
    pub fn with_numbers(&self, numbers: &Numbers) -> Result<Schema, SchemaError> {
        numbers_agree(Element::AttributeType, &super::standard::core_type_oids(), &numbers.attribute_types)?;
        numbers_agree(Element::ObjectClass, &super::standard::core_class_oids(), &numbers.object_classes)?;
        Schema::empty(numbers)?.assemble(&self.parts())
    }

    /// A schema without elements in which the numbers are given.
    pub(super) fn empty(numbers: &Numbers) -> Result<Schema, SchemaError> {
        let mut schema = Schema {
            attribute_types: Vec::new(),
            has_attribute_type: vec![false; numbers.attribute_types.len()],
            object_classes: Vec::new(),
            has_object_class: vec![false; numbers.object_classes.len()],
            subtypes: Vec::new(),
            subtype_starts: Vec::new(),
            attribute_names: NameTable::with_capacity(0),
            class_names: NameTable::with_capacity(0),
            content_rules: Vec::new(),
            no_attribute_type: Arc::new(placeholder_type(u32::MAX, "")),
            no_object_class: Arc::new(placeholder_class(u32::MAX, "")),
        };
        distinct(Element::AttributeType, &numbers.attribute_types, ATTRIBUTE_TYPES_MAX)?;
        distinct(Element::ObjectClass, &numbers.object_classes, OBJECT_CLASSES_MAX)?;
        schema.attribute_types.extend(
            (0..).zip(&numbers.attribute_types).map(|(number, oid)| Arc::new(placeholder_type(number, oid))),
        );
        schema.object_classes.extend(
            (0..).zip(&numbers.object_classes).map(|(number, oid)| Arc::new(placeholder_class(number, oid))),
        );
        Ok(schema)
    }

    /// The definitions of this version.
    pub(super) fn parts(&self) -> Parts {
        Parts {
            attribute_types: self.attribute_types().map(|it| Arc::clone(&it.definition)).collect(),
            object_classes: self.object_classes().map(|it| Arc::clone(&it.definition)).collect(),
            content_rules: self.content_rules.iter().map(|it| Arc::clone(&it.definition)).collect(),
        }
    }

    /// The version after this one.
    pub(super) fn assemble(&self, parts: &Parts) -> Result<Schema, SchemaError> {
        let mut next = Schema {
            attribute_types: self.attribute_types.clone(),
            has_attribute_type: vec![false; self.attribute_types.len()],
            object_classes: self.object_classes.clone(),
            has_object_class: vec![false; self.object_classes.len()],
            subtypes: Vec::new(),
            subtype_starts: Vec::new(),
            attribute_names: NameTable::with_capacity(count_names(&parts.attribute_types, |it| &it.head)),
            class_names: NameTable::with_capacity(count_names(&parts.object_classes, |it| &it.head)),
            content_rules: Vec::new(),
            no_attribute_type: Arc::clone(&self.no_attribute_type),
            no_object_class: Arc::clone(&self.no_object_class),
        };
        next.number_types(&parts.attribute_types)?;
        next.number_classes(&parts.object_classes)?;
        next.resolve_types(&parts.attribute_types)?;
        next.collect_subtypes();
        next.resolve_classes(&parts.object_classes)?;
        next.resolve_content_rules(&parts.content_rules)?;
        Ok(next)
    }

    fn number_types(&mut self, definitions: &[Arc<AttributeTypeDefinition>]) -> Result<(), SchemaError> {
        let known = numbers_by_oid(self.attribute_types.iter().map(|it| it.oid.as_str()));
        for (at, definition) in definitions.iter().enumerate() {
            let head = &definition.head;
            let number = match known.get(&head.oid.to_ascii_lowercase()) {
                Some(&number) => number,
                None => {
                    let count = self.attribute_types.len();
                    let number = next_number(count, ATTRIBUTE_TYPES_MAX, "attribute types")?;
                    self.attribute_types.push(Arc::new(placeholder_type(number, &head.oid)));
                    self.has_attribute_type.push(false);
                    number
                }
            };
            let before = definitions[..at].iter().map(|it| &it.head);
            enter_names(Element::AttributeType, &mut self.attribute_names, head, number, before)?;
            self.has_attribute_type[number as usize] = true;
        }
        Ok(())
    }

    fn number_classes(&mut self, definitions: &[Arc<ObjectClassDefinition>]) -> Result<(), SchemaError> {
        let known = numbers_by_oid(self.object_classes.iter().map(|it| it.oid.as_str()));
        for (at, definition) in definitions.iter().enumerate() {
            let head = &definition.head;
            let number = match known.get(&head.oid.to_ascii_lowercase()) {
                Some(&number) => number,
                None => {
                    let count = self.object_classes.len();
                    let number = next_number(count, OBJECT_CLASSES_MAX, "object classes")?;
                    self.object_classes.push(Arc::new(placeholder_class(number, &head.oid)));
                    self.has_object_class.push(false);
                    number
                }
            };
            let before = definitions[..at].iter().map(|it| &it.head);
            enter_names(Element::ObjectClass, &mut self.class_names, head, number, before)?;
            self.has_object_class[number as usize] = true;
        }
        Ok(())
    }
}

/// Enters a definition's names and OID; `before` are the definitions entered before it, for the message.
fn enter_names<'a>(
    element: Element,
    table: &mut NameTable,
    head: &Head,
    number: u32,
    before: impl Iterator<Item = &'a Head>,
) -> Result<(), SchemaError> {
    let name = || head.name().to_owned();
    if !is_identifier(&head.oid) {
        return Err(SchemaError::BadName { element, name: name(), part: head.oid.clone() });
    }
    if let Some(bad) = head.names.iter().find(|it| !is_name(it)) {
        return Err(SchemaError::BadName { element, name: name(), part: bad.clone() });
    }
    let mut before = before;
    for text in std::iter::once(&head.oid).chain(&head.names) {
        match table.insert(text, number) {
            // A definition may give its identifier, or a name twice, among its names: old files do.
            Err(taken) if taken != number => {
                let has = |it: &&Head| {
                    std::iter::once(&it.oid).chain(&it.names).any(|it| it.eq_ignore_ascii_case(text))
                };
                let by = before.find(has).map(|it| it.name().to_owned()).unwrap_or_default();
                return Err(SchemaError::NameTaken { element, name: name(), taken: text.clone(), by });
            }
            _ => {}
        }
    }
    Ok(())
}

/// A dotted OID, or what 389 Directory Server takes for one: `name-oid`.
fn is_identifier(text: &str) -> bool {
    crate::syntax::is_numeric_oid(text.as_bytes())
        || (is_name(text) && text.len() > 4 && text[text.len() - 4..].eq_ignore_ascii_case("-oid"))
}

/// A short descriptor (RFC 4512 section 1.4); `_` too, since products' schemas have it.
fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn count_names<T>(definitions: &[Arc<T>], head: fn(&T) -> &Head) -> usize {
    definitions.iter().map(|it| 1 + head(it).names.len()).sum()
}

fn numbers_by_oid<'a>(oids: impl Iterator<Item = &'a str>) -> HashMap<String, u32> {
    (0..).zip(oids).map(|(number, oid)| (oid.to_ascii_lowercase(), number)).collect()
}

fn next_number(count: usize, max: usize, unit: &'static str) -> Result<u32, SchemaError> {
    match u32::try_from(count) {
        Ok(number) if count < max => Ok(number),
        _ => Err(SchemaError::TooMany { max, unit }),
    }
}

fn distinct(element: Element, oids: &[String], max: usize) -> Result<(), SchemaError> {
    if oids.len() > max {
        return Err(SchemaError::TooMany { max, unit: "numbers" });
    }
    let mut first: HashMap<String, u32> = HashMap::with_capacity(oids.len());
    for (number, oid) in (0..).zip(oids) {
        if first.insert(oid.to_ascii_lowercase(), number).is_some() {
            return Err(SchemaError::NameTaken {
                element,
                name: oid.clone(),
                taken: format!("number {number}"),
                by: oid.clone(),
            });
        }
    }
    Ok(())
}

/// The numbers that never change are those of the standard's first elements.
fn numbers_agree(element: Element, core: &[String], table: &[String]) -> Result<(), SchemaError> {
    let unequal = (0..).zip(core.iter().zip(table)).find(|(_, (core, found))| core != found);
    match unequal {
        Some((number, (core, found))) => {
            Err(SchemaError::Number { element, number, expected: core.clone(), found: found.clone() })
        }
        // A shorter table would give these numbers away.
        None if table.len() < core.len() && !table.is_empty() => {
            let number = table.len();
            Err(SchemaError::Number {
                element,
                number: u32::try_from(number).unwrap_or(u32::MAX),
                expected: core[number].clone(),
                found: String::new(),
            })
        }
        None => Ok(()),
    }
}

/// What answers for the number of an OID that this version doesn't define: octets of users.
fn placeholder_type(number: u32, oid: &str) -> AttributeType {
    let head = Head { oid: oid.to_owned(), ..Head::default() };
    AttributeType {
        id: AttributeTypeId(number),
        oid: oid.to_owned(),
        names: Vec::new(),
        description: None,
        superior: None,
        equality: Some(MatchingRule::OctetStringMatch),
        ordering: None,
        substring: None,
        syntax: Syntax::OctetString,
        length_bound: None,
        is_obsolete: true,
        is_single_value: false,
        is_collective: false,
        is_no_user_modification: false,
        usage: super::Usage::UserApplications,
        extensions: Vec::new(),
        definition: Arc::new(AttributeTypeDefinition {
            head,
            syntax: Some(Syntax::OctetString.oid().to_owned()),
            ..AttributeTypeDefinition::default()
        }),
    }
}

fn placeholder_class(number: u32, oid: &str) -> ObjectClass {
    let head = Head { oid: oid.to_owned(), ..Head::default() };
    ObjectClass {
        id: ObjectClassId(number),
        oid: oid.to_owned(),
        names: Vec::new(),
        description: None,
        kind: ClassKind::Auxiliary,
        superiors: Vec::new(),
        lineage: vec![ObjectClassId(number)],
        must: Vec::new(),
        may: Vec::new(),
        is_obsolete: true,
        is_standalone: false,
        extensions: Vec::new(),
        definition: Arc::new(ObjectClassDefinition { head, ..ObjectClassDefinition::default() }),
    }
}
