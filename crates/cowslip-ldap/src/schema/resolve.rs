//! References between definitions followed: supertypes, superclasses, rules, syntaxes, MUST and MAY.
//!
//! Invariants: no chain is longer than [`SUPERIORS_DEPTH_MAX`], so none has a cycle; what is unchanged keeps its
//! allocation, which is how a change knows what it touches.

use std::sync::Arc;

use super::assemble::{SUPERIORS_DEPTH_MAX, SchemaError};
use super::{
    AttributeType, AttributeTypeDefinition, AttributeTypeId, ClassKind, ContentRule, ContentRuleDefinition,
    Element, Head, ObjectClass, ObjectClassDefinition, ObjectClassId, Schema,
};
use crate::matching::{MatchingRule, RuleKind};
use crate::syntax::Syntax;

/// How far an element's resolution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    /// Resolved; whether it is the allocation of the version before.
    Done {
        is_same: bool,
    },
}

impl Schema {
    /// Resolves all types. Numbers and names are there.
    pub(super) fn resolve_types(
        &mut self,
        definitions: &[Arc<AttributeTypeDefinition>],
    ) -> Result<(), SchemaError> {
        let mut by_number: Vec<Option<&Arc<AttributeTypeDefinition>>> =
            vec![None; self.attribute_types.len()];
        for definition in definitions {
            if let Some(id) = self.attribute(&definition.head.oid) {
                by_number[id.0 as usize] = Some(definition);
            }
        }
        let mut progress = vec![Progress::Waiting; by_number.len()];
        let mut chain: Vec<(AttributeTypeId, &Arc<AttributeTypeDefinition>, Option<AttributeTypeId>)> =
            Vec::new();
        for definition in definitions {
            let mut next = self.attribute(&definition.head.oid);
            // Up to the first supertype that is resolved, then down again.
            while let Some(id) = next.filter(|id| progress[id.0 as usize] == Progress::Waiting) {
                let Some(definition) = by_number[id.0 as usize] else { break };
                if chain.len() >= SUPERIORS_DEPTH_MAX || chain.iter().any(|&(seen, ..)| seen == id) {
                    let name = definition.head.name().to_owned();
                    return Err(SchemaError::Cycle { element: Element::AttributeType, name });
                }
                next = match &definition.superior {
                    Some(name) => Some(
                        self.attribute(name)
                            .ok_or_else(|| unknown(Element::AttributeType, &definition.head, "SUP", name))?,
                    ),
                    None => None,
                };
                chain.push((id, definition, next));
            }
            while let Some((id, definition, superior)) = chain.pop() {
                let at = id.0 as usize;
                let is_superior_same =
                    superior.is_none_or(|id| progress[id.0 as usize] == (Progress::Done { is_same: true }));
                let before = &self.attribute_types[at];
                let is_same = Arc::ptr_eq(&before.definition, definition)
                    && before.superior == superior
                    && is_superior_same;
                if !is_same {
                    let resolved = self.resolve_type(id, definition, superior)?;
                    self.attribute_types[at] = Arc::new(resolved);
                }
                progress[at] = Progress::Done { is_same };
            }
        }
        Ok(())
    }

    fn resolve_type(
        &self,
        id: AttributeTypeId,
        definition: &Arc<AttributeTypeDefinition>,
        superior: Option<AttributeTypeId>,
    ) -> Result<AttributeType, SchemaError> {
        let head = &definition.head;
        let element = Element::AttributeType;
        let parent = superior.map(|id| self.attribute_type(id));
        let rule =
            |keyword, name: &Option<String>, inherited: Option<MatchingRule>, fits: fn(RuleKind) -> bool| {
                let Some(name) = name else { return Ok(inherited) };
                let rule = MatchingRule::by_name_or_oid(name)
                    .ok_or_else(|| unknown(element, head, keyword, name))?;
                if fits(rule.kind()) {
                    return Ok(Some(rule));
                }
                Err(broken(
                    element,
                    head,
                    "a matching rule of another kind stands after EQUALITY, ORDERING or SUBSTR",
                ))
            };
        let is_equality = |kind| matches!(kind, RuleKind::Equality);
        let equality =
            rule("EQUALITY", &definition.equality, parent.and_then(|it| it.equality), is_equality)?;
        let is_ordering = |kind| matches!(kind, RuleKind::Ordering);
        let ordering =
            rule("ORDERING", &definition.ordering, parent.and_then(|it| it.ordering), is_ordering)?;
        let is_substring = |kind| matches!(kind, RuleKind::Substring);
        let substring =
            rule("SUBSTR", &definition.substring, parent.and_then(|it| it.substring), is_substring)?;
        let syntax = match (&definition.syntax, parent) {
            (Some(oid), _) => Syntax::by_oid(oid).ok_or_else(|| unknown(element, head, "SYNTAX", oid))?,
            (None, Some(parent)) => parent.syntax,
            (None, None) => return Err(broken(element, head, "a type without SUP must have a SYNTAX")),
        };
        check_type(definition, syntax, parent)?;
        Ok(AttributeType {
            id,
            oid: head.oid.clone(),
            names: head.names.clone(),
            description: head.description.clone(),
            superior,
            equality,
            ordering,
            substring,
            syntax,
            length_bound: definition.length_bound.or_else(|| parent.and_then(|it| it.length_bound)),
            is_obsolete: head.is_obsolete,
            is_single_value: definition.is_single_value,
            is_collective: definition.is_collective,
            is_no_user_modification: definition.is_no_user_modification,
            usage: definition.usage,
            extensions: head.extensions.clone(),
            definition: Arc::clone(definition),
        })
    }

    /// Lays out each type's run of subtypes.
    pub(super) fn collect_subtypes(&mut self) {
        let count = self.attribute_types.len();
        let mut below: Vec<Vec<AttributeTypeId>> = vec![Vec::new(); count];
        for (number, has) in (0..).zip(&self.has_attribute_type) {
            let mut above = if *has { self.attribute_type(AttributeTypeId(number)).superior } else { None };
            while let Some(id) = above {
                below[id.0 as usize].push(AttributeTypeId(number));
                above = self.attribute_type(id).superior;
            }
        }
        self.subtypes = Vec::with_capacity(count * 2);
        self.subtype_starts = Vec::with_capacity(count + 1);
        for (number, below) in (0..).zip(&below) {
            self.subtype_starts.push(length(&self.subtypes));
            self.subtypes.push(AttributeTypeId(number));
            self.subtypes.extend_from_slice(below);
        }
        self.subtype_starts.push(length(&self.subtypes));
    }

    /// Resolves all classes. Numbers, names and types are there.
    pub(super) fn resolve_classes(
        &mut self,
        definitions: &[Arc<ObjectClassDefinition>],
    ) -> Result<(), SchemaError> {
        let element = Element::ObjectClass;
        let mut is_done = vec![false; self.object_classes.len()];
        // Superclasses first: each round resolves what it can, and a level of inheritance needs at most one round.
        let mut waiting: Vec<&Arc<ObjectClassDefinition>> = definitions.iter().collect();
        for _ in 0..SUPERIORS_DEPTH_MAX {
            let mut later = Vec::new();
            for definition in waiting {
                let superiors = self.superiors(definition)?;
                if superiors.iter().any(|id| !is_done[id.0 as usize]) {
                    later.push(definition);
                    continue;
                }
                let Some(id) = self.object_class(&definition.head.oid) else { continue };
                let resolved = self.resolve_class(id, definition, superiors)?;
                let place = &mut self.object_classes[id.0 as usize];
                if **place != resolved || !Arc::ptr_eq(&place.definition, definition) {
                    *place = Arc::new(resolved);
                }
                is_done[id.0 as usize] = true;
            }
            if later.is_empty() {
                return Ok(());
            }
            waiting = later;
        }
        let name = waiting.first().map(|it| it.head.name().to_owned()).unwrap_or_default();
        Err(SchemaError::Cycle { element, name })
    }

    /// The direct superclasses; a structural class that names none has `top` (RFC 4512 section 2.4.2).
    fn superiors(&self, definition: &ObjectClassDefinition) -> Result<Vec<ObjectClassId>, SchemaError> {
        let names = &definition.superiors;
        if names.is_empty() && definition.kind == ClassKind::Structural {
            return Ok(self.object_class("top").into_iter().collect());
        }
        names.iter().map(|name| self.class_reference(&definition.head, "SUP", name)).collect()
    }

    fn resolve_class(
        &self,
        id: ObjectClassId,
        definition: &Arc<ObjectClassDefinition>,
        superiors: Vec<ObjectClassId>,
    ) -> Result<ObjectClass, SchemaError> {
        let head = &definition.head;
        let mut lineage = vec![id];
        let mut must = self.type_references(Element::ObjectClass, head, "MUST", &definition.must)?;
        let mut may = self.type_references(Element::ObjectClass, head, "MAY", &definition.may)?;
        for superior in superiors.iter().map(|&id| self.class(id)) {
            if !can_inherit(definition.kind, superior.kind) {
                return Err(broken(
                    Element::ObjectClass,
                    head,
                    "an abstract class inherits from abstract ones, a structural one not from auxiliary ones, an \
                     auxiliary one not from structural ones (RFC 4512, 2.4)",
                ));
            }
            for &ancestor in &superior.lineage {
                if !lineage.contains(&ancestor) {
                    lineage.push(ancestor);
                }
            }
            must.extend_from_slice(&superior.must);
            may.extend_from_slice(&superior.may);
        }
        sort(&mut must);
        sort(&mut may);
        may.retain(|id| must.binary_search(id).is_err());
        Ok(ObjectClass {
            id,
            oid: head.oid.clone(),
            names: head.names.clone(),
            description: head.description.clone(),
            kind: definition.kind,
            superiors,
            lineage,
            must,
            may,
            is_obsolete: head.is_obsolete,
            is_standalone: definition.kind == ClassKind::Auxiliary && is_marked(head, "X-STANDALONE"),
            extensions: head.extensions.clone(),
            definition: Arc::clone(definition),
        })
    }

    /// Resolves all content rules. Types and classes are there.
    pub(super) fn resolve_content_rules(
        &mut self,
        definitions: &[Arc<ContentRuleDefinition>],
    ) -> Result<(), SchemaError> {
        let element = Element::ContentRule;
        let mut rules: Vec<Arc<ContentRule>> = Vec::with_capacity(definitions.len());
        for definition in definitions {
            let head = &definition.head;
            let Some(class) = self.object_class(&head.oid) else {
                return Err(unknown(element, head, "the class", &head.oid));
            };
            if self.class(class).kind != ClassKind::Structural {
                return Err(broken(element, head, "a content rule is for a structural class"));
            }
            let mut auxiliary = Vec::with_capacity(definition.auxiliary.len());
            for name in &definition.auxiliary {
                let id = self.object_class(name).ok_or_else(|| unknown(element, head, "AUX", name))?;
                if self.class(id).kind != ClassKind::Auxiliary {
                    return Err(broken(element, head, "only auxiliary classes stand after AUX"));
                }
                auxiliary.push(id);
            }
            auxiliary.sort_unstable();
            let types = |keyword, names| {
                let mut ids = self.type_references(element, head, keyword, names)?;
                sort(&mut ids);
                Ok::<_, SchemaError>(ids)
            };
            let (must, may) = (types("MUST", &definition.must)?, types("MAY", &definition.may)?);
            let not = types("NOT", &definition.not)?;
            let required = |id: &AttributeTypeId| {
                must.binary_search(id).is_ok() || self.class(class).must.binary_search(id).is_ok()
            };
            if not.iter().any(required) {
                return Err(broken(element, head, "a type that entries must have stands after NOT"));
            }
            rules.push(Arc::new(ContentRule {
                class,
                auxiliary,
                must,
                may,
                not,
                definition: Arc::clone(definition),
            }));
        }
        rules.sort_by_key(|rule| rule.class);
        if let Some(twice) = rules.windows(2).find(|pair| pair[0].class == pair[1].class) {
            let name = twice[1].definition.head.name().to_owned();
            return Err(SchemaError::Exists { element, name });
        }
        self.content_rules = rules;
        Ok(())
    }

    fn class_reference(
        &self,
        head: &Head,
        keyword: &'static str,
        name: &str,
    ) -> Result<ObjectClassId, SchemaError> {
        self.object_class(name).ok_or_else(|| unknown(Element::ObjectClass, head, keyword, name))
    }

    fn type_references(
        &self,
        element: Element,
        head: &Head,
        keyword: &'static str,
        names: &[String],
    ) -> Result<Vec<AttributeTypeId>, SchemaError> {
        names
            .iter()
            .map(|name| self.attribute(name).ok_or_else(|| unknown(element, head, keyword, name)))
            .collect()
    }
}

/// The rules of RFC 4512 section 2.5 and 4.1.2 for one type.
fn check_type(
    definition: &AttributeTypeDefinition,
    syntax: Syntax,
    parent: Option<&AttributeType>,
) -> Result<(), SchemaError> {
    let head = &definition.head;
    let element = Element::AttributeType;
    if definition.is_collective {
        let name = head.name().to_owned();
        return Err(SchemaError::Unsupported { element, name, what: "a collective attribute" });
    }
    if syntax.is_assertion_only() {
        return Err(broken(element, head, "the SYNTAX is one of assertions, not of values"));
    }
    if parent.is_some_and(|parent| parent.usage != definition.usage) {
        return Err(broken(element, head, "the USAGE is not that of the supertype (RFC 4512, 2.5.1)"));
    }
    Ok(())
}

fn can_inherit(kind: ClassKind, superior: ClassKind) -> bool {
    match kind {
        ClassKind::Abstract => superior == ClassKind::Abstract,
        ClassKind::Structural => superior != ClassKind::Auxiliary,
        ClassKind::Auxiliary => superior != ClassKind::Structural,
    }
}

/// Whether an extension is there with the value TRUE.
fn is_marked(head: &Head, extension: &str) -> bool {
    let is_true = |values: &[String]| values.iter().any(|value| value.eq_ignore_ascii_case("TRUE"));
    head.extensions.iter().any(|(name, values)| name == extension && is_true(values))
}

fn unknown(element: Element, head: &Head, keyword: &'static str, reference: &str) -> SchemaError {
    SchemaError::UnknownReference {
        element,
        name: head.name().to_owned(),
        keyword,
        reference: reference.to_owned(),
    }
}

fn broken(element: Element, head: &Head, rule: &'static str) -> SchemaError {
    SchemaError::Rule { element, name: head.name().to_owned(), rule }
}

fn sort(ids: &mut Vec<AttributeTypeId>) {
    ids.sort_unstable();
    ids.dedup();
}

fn length(ids: &[AttributeTypeId]) -> u32 {
    u32::try_from(ids.len()).unwrap_or(u32::MAX)
}
