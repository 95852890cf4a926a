//! From a whole file to the changes that lead to it.

use super::standard::{CORE_CLASSES, CORE_TYPES, is_standard};
use super::{
    AttributeTypeDefinition, ClassKind, Definition, Element, ObjectClassDefinition, Schema, SchemaChange,
    SchemaFile, StructureRuleDefinition,
};
use crate::matching::MatchingRule;
use crate::syntax::Syntax;

/// What becomes of elements that a file does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// They stay.
    Keep,
    /// They are deleted, unless they are of the standard.
    Delete,
}

/// What leads from a schema to a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// The changes, for [`Schema::apply`].
    pub changes: Vec<SchemaChange>,
    /// Definitions of the file that are not followed.
    pub kept: Vec<Kept>,
}

/// A definition that is not followed: the schema's stays, or there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Its kind.
    pub element: Element,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: &'static str,
}

impl Schema {
    /// The changes that give this schema a file's definitions. An element of the standard that the file only words
    /// otherwise (description, origin, fewer names) is left alone; so is what the server relies on.
    ///
    /// ```
    /// use cowslip_ldap::schema::{Others, Schema, SchemaFile, Unused};
    /// let schema = Schema::standard();
    /// let file = SchemaFile::parse("attributetype ( 1.3.6.1.4.1.32473.1 NAME 'shoeSize' SUP name )\n")?;
    /// let difference = schema.difference(&file, Others::Keep);
    /// let next = schema.apply(&difference.changes, &Unused)?;
    /// assert!(next.difference(&file, Others::Keep).changes.is_empty());
    /// assert_eq!(next.difference(&SchemaFile::default(), Others::Delete).changes.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn difference(&self, file: &SchemaFile, others: Others) -> Difference {
        let mut out = Difference::default();
        for located in &file.definitions {
            let definition = &located.definition;
            match self.compare(definition) {
                Ok(Some(change)) => out.changes.push(change),
                Ok(None) => {}
                Err(reason) => out.kept.push(Kept {
                    line: located.line,
                    element: definition.element(),
                    name: definition.head().name().to_owned(),
                    reason,
                }),
            }
        }
        if others == Others::Delete {
            self.delete_others(file, &mut out.changes);
        }
        out
    }

    /// The change that a definition asks for, if any; why it is not followed.
    fn compare(&self, definition: &Definition) -> Result<Option<SchemaChange>, &'static str> {
        if self.has_name_of_standard(definition) {
            return Err("the standard has this name under another object identifier");
        }
        let oid = &definition.head().oid;
        let here = match definition {
            Definition::AttributeType(new) => match self.attribute(oid).map(|id| self.attribute_type(id)) {
                Some(old) if old.id.0 < CORE_TYPES && !is_same_type(self, old.definition(), new) => {
                    return Err("the server relies on its own definition");
                }
                Some(old) if is_standard(definition) && is_same_type(self, old.definition(), new) => {
                    return Ok(None);
                }
                old => old.map(|old| old.definition() == new),
            },
            Definition::ObjectClass(new) => match self.object_class(oid).map(|id| self.class(id)) {
                Some(old) if old.id.0 < CORE_CLASSES && !is_same_class(self, old.definition(), new) => {
                    return Err("the server relies on its own definition");
                }
                Some(old) if is_standard(definition) && is_same_class(self, old.definition(), new) => {
                    return Ok(None);
                }
                old => old.map(|old| old.definition() == new),
            },
            Definition::ContentRule(new) => self
                .content_rules()
                .find(|old| old.definition().head.oid == *oid)
                .map(|old| old.definition() == new),
            Definition::Syntax(_) if Syntax::by_oid(oid).is_some() => return Ok(None),
            Definition::MatchingRule(_) if MatchingRule::by_name_or_oid(oid).is_some() => return Ok(None),
            Definition::MatchingRuleUse(_) => return Ok(None),
            Definition::Syntax(_) | Definition::MatchingRule(_) => {
                return Err("syntaxes and matching rules are built in");
            }
            Definition::StructureRule(StructureRuleDefinition { .. }) | Definition::NameForm(_) => {
                return Err("structure rules and name forms are not enforced");
            }
        };
        Ok(match here {
            None => Some(SchemaChange::Add(definition.clone())),
            Some(true) => None,
            Some(false) => Some(SchemaChange::Replace(definition.clone())),
        })
    }

    /// Whether a definition of a new OID has a name that one of the standard has: products have given RFC's names
    /// OIDs of their own. Whoever refers to the element does so by name, so the standard's serves.
    fn has_name_of_standard(&self, definition: &Definition) -> bool {
        let head = definition.head();
        let standard = |definition: Option<Definition>| definition.is_some_and(|it| is_standard(&it));
        match definition {
            Definition::AttributeType(_) if self.attribute(&head.oid).is_none() => {
                head.names.iter().any(|name| {
                    let taken = self.attribute(name).map(|id| self.attribute_type(id).definition().clone());
                    standard(taken.map(Definition::AttributeType))
                })
            }
            Definition::ObjectClass(_) if self.object_class(&head.oid).is_none() => {
                head.names.iter().any(|name| {
                    let taken = self.object_class(name).map(|id| self.class(id).definition().clone());
                    standard(taken.map(Definition::ObjectClass))
                })
            }
            _ => false,
        }
    }

    /// Deletes what is neither in the file nor of the standard: rules first, then classes, then types.
    fn delete_others(&self, file: &SchemaFile, changes: &mut Vec<SchemaChange>) {
        let is_listed = |element: Element, oid: &str| {
            file.definitions.iter().any(|it| {
                it.definition.element() == element && it.definition.head().oid.eq_ignore_ascii_case(oid)
            })
        };
        let rules = self.content_rules().map(|it| Definition::ContentRule(it.definition().clone()));
        let classes = self.object_classes().map(|it| Definition::ObjectClass(it.definition().clone()));
        let types = self.attribute_types().map(|it| Definition::AttributeType(it.definition().clone()));
        for definition in rules.chain(classes).chain(types) {
            let (element, oid) = (definition.element(), &definition.head().oid);
            if !is_listed(element, oid) && !is_standard(&definition) {
                changes.push(SchemaChange::Delete { element, oid: oid.clone() });
            }
        }
    }
}

/// Whether a file's definition says of a standard type what ours says, in other words or in fewer.
fn is_same_type(schema: &Schema, ours: &AttributeTypeDefinition, theirs: &AttributeTypeDefinition) -> bool {
    let syntax_of = |it: &AttributeTypeDefinition| it.syntax.clone();
    let rule = |name: &Option<String>| name.as_deref().and_then(MatchingRule::by_name_or_oid);
    // What a file leaves to the supertype, or gives although the supertype has it, is no difference.
    let is_like = |ours: &Option<String>, theirs: &Option<String>| {
        theirs.is_none() || ours.is_none() || rule(ours) == rule(theirs)
    };
    let superior =
        |it: &AttributeTypeDefinition| it.superior.as_deref().and_then(|name| schema.attribute(name));
    has_only_our_names(&ours.head.names, &theirs.head.names)
        && is_like(&ours.equality, &theirs.equality)
        && is_like(&ours.ordering, &theirs.ordering)
        && is_like(&ours.substring, &theirs.substring)
        && superior(ours) == superior(theirs)
        && (syntax_of(ours) == syntax_of(theirs) || theirs.syntax.is_none() || ours.syntax.is_none())
        && ours.is_single_value == theirs.is_single_value
        && ours.usage == theirs.usage
}

fn is_same_class(schema: &Schema, ours: &ObjectClassDefinition, theirs: &ObjectClassDefinition) -> bool {
    let types = |names: &[String]| {
        let mut ids: Vec<_> = names.iter().map(|name| schema.attribute(name)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let superiors = |it: &ObjectClassDefinition| {
        let mut ids: Vec<_> = it.superiors.iter().filter_map(|name| schema.object_class(name)).collect();
        ids.retain(|id| it.kind != ClassKind::Structural || *id != super::ObjectClassId::TOP);
        ids
    };
    has_only_our_names(&ours.head.names, &theirs.head.names)
        && ours.kind == theirs.kind
        && superiors(ours) == superiors(theirs)
        && types(&ours.must) == types(&theirs.must)
        && types(&ours.may) == types(&theirs.may)
}

fn has_only_our_names(ours: &[String], theirs: &[String]) -> bool {
    theirs.iter().all(|name| ours.iter().any(|our| our.eq_ignore_ascii_case(name)))
}
