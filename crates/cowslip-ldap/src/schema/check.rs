//! Whether an entry's classes and attributes fit (RFC 4512 sections 2.4, 3.3 and 4.1.6).
//!
//! Invariant: nothing is allocated unless something is wrong; work is the number of attributes times that of classes.

use super::{AttributeTypeId, ClassKind, ContentRule, ObjectClass, ObjectClassId, Schema};

/// What is wrong with an entry (objectClassViolation unless said otherwise). Elements are named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// No class says what the entry is.
    #[error("no structural object class")]
    NoStructuralClass,
    /// Two classes say what the entry is, and neither is above the other.
    #[error("{one:?} and {other:?} are both structural, and neither inherits from the other")]
    TwoStructuralClasses {
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
    /// An abstract class without a class that inherits from it.
    #[error("the class {class:?} is abstract, and no class of the entry inherits from it")]
    LoneAbstractClass {
        /// The class.
        class: String,
    },
    /// A class that this version does not have.
    #[error("the class number {number} is not part of the schema")]
    UnknownClass {
        /// Its number.
        number: u32,
    },
    /// A required attribute is missing.
    #[error("the class {class:?} requires the attribute {attribute:?}")]
    MissingAttribute {
        /// The attribute type.
        attribute: String,
        /// The class, or the content rule's class.
        class: String,
    },
    /// An attribute that no class allows.
    #[error("no class of the entry allows the attribute {attribute:?}")]
    AttributeNotAllowed {
        /// The attribute type.
        attribute: String,
    },
    /// An attribute that the content rule excludes.
    #[error("the content rule for {class:?} excludes the attribute {attribute:?}")]
    AttributeExcluded {
        /// The attribute type.
        attribute: String,
        /// The content rule's class.
        class: String,
    },
    /// An auxiliary class that the content rule does not have.
    #[error("the content rule for {class:?} does not allow the auxiliary class {auxiliary:?}")]
    AuxiliaryNotAllowed {
        /// The auxiliary class.
        auxiliary: String,
        /// The content rule's class.
        class: String,
    },
}

impl Schema {
    /// Checks the classes and attributes of an entry; answers its structural class, the value of
    /// `structuralObjectClass`. `attributes` are types that have values, in any order, operational ones as well (they
    /// need no class' permission); superclasses need not be among `classes`.
    ///
    /// ```
    /// use cowslip_ldap::schema::{EntryError, Schema};
    /// let schema = Schema::standard();
    /// let class = |name| schema.object_class(name).expect("a standard class");
    /// let types = |names: &[&str]| names.iter().filter_map(|name| schema.attribute(name)).collect::<Vec<_>>();
    /// let classes = [class("top"), class("person"), class("posixAccount")];
    /// let error = schema.check_entry(&classes, &types(&["objectClass", "cn", "sn"]));
    /// let missing = EntryError::MissingAttribute { attribute: "uid".to_owned(), class: "posixAccount".to_owned() };
    /// assert_eq!(error, Err(missing));
    /// assert_eq!(schema.check_entry(&classes[..2], &types(&["objectClass", "cn", "sn"])), Ok(class("person")));
    /// ```
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_entry(
        &self,
        classes: &[ObjectClassId],
        attributes: &[AttributeTypeId],
    ) -> Result<ObjectClassId, EntryError> {
        let structural = self.structural_class(classes)?;
        let rule = self.content_rule(structural);
        if let Some(rule) = rule {
            self.check_auxiliary(rule, classes)?;
        }
        let has = |id: &AttributeTypeId| attributes.contains(id);
        // The structural class has all that those above it have.
        let lineage = &self.class(structural).lineage;
        let others = || classes.iter().filter(|id| !lineage.contains(id)).map(|id| self.class(*id));
        for class in std::iter::once(self.class(structural)).chain(others()) {
            if let Some(&missing) = class.must.iter().find(|id| !has(id)) {
                return Err(self.missing(missing, self.first_to_require(class, missing)));
            }
        }
        if let Some(&missing) = rule.and_then(|rule| rule.must.iter().find(|id| !has(id))) {
            return Err(self.missing(missing, self.class(structural).name()));
        }
        let is_extensible = classes.iter().any(|&id| self.is_subclass(id, ObjectClassId::EXTENSIBLE_OBJECT));
        for &id in attributes {
            let is_allowed = is_extensible
                || self.class(structural).allows(id)
                || others().any(|class| class.allows(id))
                || self.attribute_type(id).usage.is_operational();
            self.check_allowed(id, rule, is_allowed)?;
        }
        Ok(structural)
    }

    /// The class that says what an entry is: the most subordinate of its structural classes. An entry without one may
    /// have an auxiliary class that serves as one (`X-STANDALONE 'TRUE'` in its definition, see
    /// [`ObjectClass::is_standalone`]).
    ///
    /// # Errors
    /// None or two such classes, a lone abstract class, a class that this version does not have.
    pub fn structural_class(&self, classes: &[ObjectClassId]) -> Result<ObjectClassId, EntryError> {
        let mut found: Option<ObjectClassId> = None;
        for &id in classes {
            if !self.has_object_class(id) {
                return Err(EntryError::UnknownClass { number: id.0 });
            }
            let class = self.class(id);
            match (class.kind, found) {
                (ClassKind::Structural, None) => found = Some(id),
                (ClassKind::Structural, Some(other)) if self.is_subclass(id, other) => found = Some(id),
                (ClassKind::Structural, Some(other)) if !self.is_subclass(other, id) => {
                    return Err(EntryError::TwoStructuralClasses {
                        one: self.class(other).name().to_owned(),
                        other: class.name().to_owned(),
                    });
                }
                _ => {}
            }
        }
        let standalone = || classes.iter().copied().find(|&id| self.class(id).is_standalone);
        let found = found.or_else(standalone).ok_or(EntryError::NoStructuralClass)?;
        let inherits = |sup| classes.iter().any(|&id| id != sup && self.is_subclass(id, sup));
        let is_lone = |id: &&ObjectClassId| self.class(**id).kind == ClassKind::Abstract && !inherits(**id);
        // `top` comes with every structural class, also with one that is there in place of one.
        match classes.iter().find(|id| is_lone(id) && **id != ObjectClassId::TOP) {
            Some(&id) => Err(EntryError::LoneAbstractClass { class: self.class(id).name().to_owned() }),
            None => Ok(found),
        }
    }

    /// Whether replacing the classes `before` by `after` makes the entry another thing, which a modify may not do
    /// (objectClassModsProhibited). A class that only served as structural may get a structural one beside it.
    ///
    /// # Errors
    /// As [`structural_class`](Self::structural_class), for `after`.
    pub fn is_structural_change(
        &self,
        before: ObjectClassId,
        after: &[ObjectClassId],
    ) -> Result<bool, EntryError> {
        let after = self.structural_class(after)?;
        Ok(after != before && self.class(before).kind == ClassKind::Structural)
    }

    /// The classes with all their superclasses, each once: what `objectClass` of a stored entry holds (RFC 4512
    /// section 3.3).
    #[must_use]
    pub fn with_superclasses(&self, classes: &[ObjectClassId]) -> Vec<ObjectClassId> {
        let mut all: Vec<ObjectClassId> = Vec::with_capacity(classes.len() + 2);
        for &id in classes {
            for &ancestor in &self.class(id).lineage {
                if !all.contains(&ancestor) {
                    all.push(ancestor);
                }
            }
        }
        all
    }

    fn check_auxiliary(&self, rule: &ContentRule, classes: &[ObjectClassId]) -> Result<(), EntryError> {
        let is_foreign = |id: &&ObjectClassId| {
            self.class(**id).kind == ClassKind::Auxiliary
                && !rule.auxiliary.iter().any(|&allowed| self.is_subclass(allowed, **id))
        };
        match classes.iter().find(is_foreign) {
            Some(&id) => Err(EntryError::AuxiliaryNotAllowed {
                auxiliary: self.class(id).name().to_owned(),
                class: self.class(rule.class).name().to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// The highest class in a class' lineage that requires a type, for the message.
    fn first_to_require<'a>(&'a self, class: &'a ObjectClass, id: AttributeTypeId) -> &'a str {
        let mut lineage = class.lineage.iter().rev().map(|id| self.class(*id));
        lineage.find(|above| above.must.contains(&id)).unwrap_or(class).name()
    }

    /// What the content rule, if there is one, adds and takes away.
    fn check_allowed(
        &self,
        id: AttributeTypeId,
        rule: Option<&ContentRule>,
        is_allowed: bool,
    ) -> Result<(), EntryError> {
        if let Some(rule) = rule.filter(|rule| rule.not.binary_search(&id).is_ok()) {
            return Err(EntryError::AttributeExcluded {
                attribute: self.attribute_type(id).name().to_owned(),
                class: self.class(rule.class).name().to_owned(),
            });
        }
        let is_in = |ids: &[AttributeTypeId]| ids.binary_search(&id).is_ok();
        let is_allowed = is_allowed
            || id == AttributeTypeId::OBJECT_CLASS
            || rule.is_some_and(|rule| is_in(&rule.may) || is_in(&rule.must));
        if is_allowed {
            return Ok(());
        }
        Err(EntryError::AttributeNotAllowed { attribute: self.attribute_type(id).name().to_owned() })
    }

    fn missing(&self, id: AttributeTypeId, class: &str) -> EntryError {
        EntryError::MissingAttribute {
            attribute: self.attribute_type(id).name().to_owned(),
            class: class.to_owned(),
        }
    }
}
