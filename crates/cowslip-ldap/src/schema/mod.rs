//! The schema (RFC 4512): attribute types and object classes by number and by name, all references resolved.
//!
//! A [`Schema`] is one version, immutable; whoever holds it shares it behind one `Arc` and borrows from it. A change
//! makes another version that shares the definitions which did not change.
//! Invariants: an attribute type's number is an index into a table and belongs to one OID for ever, also after the
//! type is deleted; reading locks nothing, counts no references and allocates nothing; supertypes and superclasses
//! have no cycles; rules and syntax of a type are those in force, inherited ones included.

mod assemble;
mod change;
mod check;
mod definition;
mod difference;
mod file;
mod names;
mod parse;
mod publish;
mod resolve;
mod standard;

use std::fmt;
use std::sync::Arc;

pub use assemble::{ATTRIBUTE_TYPES_MAX, Numbers, OBJECT_CLASSES_MAX, SUPERIORS_DEPTH_MAX, SchemaError};
pub use change::{SCHEMA_CHANGES_MAX, SchemaChange, SchemaModification, SchemaUse, Unused};
pub use check::EntryError;
pub use definition::{
    AttributeTypeDefinition, ContentRuleDefinition, Definition, Element, Head, MatchingRuleDefinition,
    MatchingRuleUseDefinition, NameFormDefinition, ObjectClassDefinition, StructureRuleDefinition,
    SyntaxDefinition,
};
pub use difference::{Difference, Kept, Others};
pub use file::{Ignored, Located, SCHEMA_FILE_BYTES_MAX, SchemaFile, SchemaFileError};
pub use parse::{
    DEFINITION_BYTES_MAX, DEFINITION_EXTENSIONS_MAX, DEFINITION_LIST_MAX, DefinitionError, MACROS_MAX,
    Macros, NAME_BYTES_MAX,
};

use crate::matching::MatchingRule;
use crate::syntax::Syntax;
use names::NameTable;

/// The number of an attribute type: dense, small, and of one OID for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeTypeId(pub u32);

/// The number of an object class: dense, small, and of one OID for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectClassId(pub u32);

/// What values of a type are for (RFC 4512 section 4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Usage {
    /// Data of users.
    #[default]
    UserApplications,
    /// Operational, the same on all servers.
    DirectoryOperation,
    /// Operational, shared by some servers.
    DistributedOperation,
    /// Operational, of this server.
    DsaOperation,
}

impl Usage {
    /// The word in definitions.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Usage::UserApplications => "userApplications",
            Usage::DirectoryOperation => "directoryOperation",
            Usage::DistributedOperation => "distributedOperation",
            Usage::DsaOperation => "dSAOperation",
        }
    }

    /// The usage that a word in a definition means, whatever its case.
    #[must_use]
    pub fn by_keyword(word: &str) -> Option<Usage> {
        let all = [
            Usage::UserApplications,
            Usage::DirectoryOperation,
            Usage::DistributedOperation,
            Usage::DsaOperation,
        ];
        all.into_iter().find(|usage| usage.keyword().eq_ignore_ascii_case(word))
    }

    /// Whether values are the server's business: returned for `+`, not for `*`, and not subject to MUST and MAY.
    #[must_use]
    pub const fn is_operational(self) -> bool {
        !matches!(self, Usage::UserApplications)
    }
}

/// The kinds of object classes (RFC 4512 section 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClassKind {
    /// A base for other classes only.
    Abstract,
    /// What an entry is.
    #[default]
    Structural,
    /// What an entry has besides.
    Auxiliary,
}

impl ClassKind {
    /// The word in definitions.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            ClassKind::Abstract => "ABSTRACT",
            ClassKind::Structural => "STRUCTURAL",
            ClassKind::Auxiliary => "AUXILIARY",
        }
    }
}

/// An attribute type, resolved: rules, syntax and bound are those in force, inherited ones included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeType {
    /// The type's number.
    pub id: AttributeTypeId,
    /// Its object identifier in dotted form.
    pub oid: String,
    /// Its names, the preferred one first.
    pub names: Vec<String>,
    /// What it is for, in words.
    pub description: Option<String>,
    /// Its direct supertype.
    pub superior: Option<AttributeTypeId>,
    /// The rule of equality.
    pub equality: Option<MatchingRule>,
    /// The rule of order.
    pub ordering: Option<MatchingRule>,
    /// The rule of substrings.
    pub substring: Option<MatchingRule>,
    /// The syntax of values.
    pub syntax: Syntax,
    /// The length in characters that a server should at least take, if the definition has one. Not enforced.
    pub length_bound: Option<u32>,
    /// `OBSOLETE`.
    pub is_obsolete: bool,
    /// At most one value.
    pub is_single_value: bool,
    /// `COLLECTIVE`.
    pub is_collective: bool,
    /// Users can't change values.
    pub is_no_user_modification: bool,
    /// What values are for.
    pub usage: Usage,
    /// Extensions: a name that begins with `X-`, and its values.
    pub extensions: Vec<(String, Vec<String>)>,
    definition: Arc<AttributeTypeDefinition>,
}

impl AttributeType {
    /// The name that answers use: the first one, else the OID.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().unwrap_or(&self.oid)
    }

    /// The definition as written, which the subschema entry publishes.
    #[must_use]
    pub fn definition(&self) -> &AttributeTypeDefinition {
        &self.definition
    }
}

/// An object class, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectClass {
    /// The class' number.
    pub id: ObjectClassId,
    /// Its object identifier in dotted form.
    pub oid: String,
    /// Its names, the preferred one first.
    pub names: Vec<String>,
    /// What it is for, in words.
    pub description: Option<String>,
    /// Its kind.
    pub kind: ClassKind,
    /// Its direct superclasses; a structural class without any has `top`.
    pub superiors: Vec<ObjectClassId>,
    /// Itself and all superclasses, each once, itself first.
    pub lineage: Vec<ObjectClassId>,
    /// Types that entries must have, of superclasses too; ascending.
    pub must: Vec<AttributeTypeId>,
    /// Types that entries may have and need not, of superclasses too; ascending.
    pub may: Vec<AttributeTypeId>,
    /// `OBSOLETE`.
    pub is_obsolete: bool,
    /// `X-STANDALONE 'TRUE'` on an auxiliary class: an entry without a structural class may have this one in its
    /// place. RFC 2307 has `posixGroup` structural, its successor auxiliary; so both kinds of group are taken.
    pub is_standalone: bool,
    /// Extensions: a name that begins with `X-`, and its values.
    pub extensions: Vec<(String, Vec<String>)>,
    definition: Arc<ObjectClassDefinition>,
}

impl ObjectClass {
    /// The name that answers use: the first one, else the OID.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().unwrap_or(&self.oid)
    }

    /// The definition as written, which the subschema entry publishes.
    #[must_use]
    pub fn definition(&self) -> &ObjectClassDefinition {
        &self.definition
    }

    /// Whether entries of this class may have the type, MUST included.
    #[must_use]
    pub fn allows(&self, id: AttributeTypeId) -> bool {
        self.may.binary_search(&id).is_ok() || self.must.binary_search(&id).is_ok()
    }
}

/// A DIT content rule, resolved: what entries of one structural class may have besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentRule {
    /// The structural class that the rule is for.
    pub class: ObjectClassId,
    /// Auxiliary classes that entries may have; ascending.
    pub auxiliary: Vec<ObjectClassId>,
    /// Types that entries must have besides the classes'; ascending.
    pub must: Vec<AttributeTypeId>,
    /// Types that entries may have besides the classes'; ascending.
    pub may: Vec<AttributeTypeId>,
    /// Types that entries may not have although a class allows them; ascending.
    pub not: Vec<AttributeTypeId>,
    definition: Arc<ContentRuleDefinition>,
}

impl ContentRule {
    /// The definition as written, which the subschema entry publishes.
    #[must_use]
    pub fn definition(&self) -> &ContentRuleDefinition {
        &self.definition
    }
}

/// One version of the schema.
///
/// ```
/// use cowslip_ldap::schema::Schema;
/// let schema = Schema::standard();
/// let cn = schema.attribute("CommonName").expect("RFC 4519 section 2.3");
/// let name = schema.attribute("2.5.4.41").expect("RFC 4519 section 2.18");
/// assert!(schema.is_subtype(cn, name) && schema.subtypes(name).contains(&cn));
/// assert_eq!(schema.attribute_type(cn).name(), "cn");
/// ```
pub struct Schema {
    /// By number; also types that were deleted.
    attribute_types: Vec<Arc<AttributeType>>,
    /// By number; whether the type is part of this version.
    has_attribute_type: Vec<bool>,
    /// By number; also classes that were deleted.
    object_classes: Vec<Arc<ObjectClass>>,
    /// By number; whether the class is part of this version.
    has_object_class: Vec<bool>,
    /// Each type followed by its subtypes.
    subtypes: Vec<AttributeTypeId>,
    /// By number: where a type's run in `subtypes` begins; one more at the end.
    subtype_starts: Vec<u32>,
    attribute_names: NameTable,
    class_names: NameTable,
    /// Ascending by class.
    content_rules: Vec<Arc<ContentRule>>,
    /// What answers for a number that was never given.
    no_attribute_type: Arc<AttributeType>,
    no_object_class: Arc<ObjectClass>,
}

impl Schema {
    /// The number of the attribute type with this name (ASCII case ignored) or dotted OID. Allocates nothing.
    #[must_use]
    #[inline]
    pub fn attribute(&self, name: &str) -> Option<AttributeTypeId> {
        self.attribute_names.find(name.as_bytes()).map(AttributeTypeId)
    }

    /// The attribute type with this number. A deleted type's definition stays readable; a number that was never given
    /// has a nameless type of octets.
    #[must_use]
    #[inline]
    pub fn attribute_type(&self, id: AttributeTypeId) -> &AttributeType {
        self.attribute_types.get(id.0 as usize).unwrap_or(&self.no_attribute_type)
    }

    /// Whether the type is part of this version, not deleted or unknown.
    #[must_use]
    pub fn has_attribute_type(&self, id: AttributeTypeId) -> bool {
        self.has_attribute_type.get(id.0 as usize).copied().unwrap_or(false)
    }

    /// The number of the object class with this name (ASCII case ignored) or dotted OID. Allocates nothing.
    #[must_use]
    #[inline]
    pub fn object_class(&self, name: &str) -> Option<ObjectClassId> {
        self.class_names.find(name.as_bytes()).map(ObjectClassId)
    }

    /// The object class with this number. A deleted class' definition stays readable; a number that was never given
    /// has a nameless auxiliary class that allows nothing.
    #[must_use]
    #[inline]
    pub fn class(&self, id: ObjectClassId) -> &ObjectClass {
        self.object_classes.get(id.0 as usize).unwrap_or(&self.no_object_class)
    }

    /// Whether the class is part of this version, not deleted or unknown.
    #[must_use]
    pub fn has_object_class(&self, id: ObjectClassId) -> bool {
        self.has_object_class.get(id.0 as usize).copied().unwrap_or(false)
    }

    /// The type itself, then all that have it as supertype, directly or not.
    #[must_use]
    pub fn subtypes(&self, id: AttributeTypeId) -> &[AttributeTypeId] {
        let at = id.0 as usize;
        match (self.subtype_starts.get(at), self.subtype_starts.get(at + 1)) {
            (Some(&start), Some(&end)) => &self.subtypes[start as usize..end as usize],
            _ => &[],
        }
    }

    /// Whether `sub` is `sup` or has it as supertype, directly or not.
    #[must_use]
    #[inline]
    pub fn is_subtype(&self, sub: AttributeTypeId, sup: AttributeTypeId) -> bool {
        let mut at = Some(sub);
        while let Some(id) = at {
            if id == sup {
                return true;
            }
            at = self.attribute_type(id).superior;
        }
        false
    }

    /// Whether `sub` is `sup` or has it as superclass, directly or not.
    #[must_use]
    pub fn is_subclass(&self, sub: ObjectClassId, sup: ObjectClassId) -> bool {
        self.class(sub).lineage.contains(&sup)
    }

    /// The types of this version, by number.
    pub fn attribute_types(&self) -> impl Iterator<Item = &AttributeType> {
        self.attribute_types
            .iter()
            .zip(&self.has_attribute_type)
            .filter_map(|(it, &has)| has.then_some(it.as_ref()))
    }

    /// The classes of this version, by number.
    pub fn object_classes(&self) -> impl Iterator<Item = &ObjectClass> {
        self.object_classes
            .iter()
            .zip(&self.has_object_class)
            .filter_map(|(it, &has)| has.then_some(it.as_ref()))
    }

    /// The content rules of this version, by class.
    pub fn content_rules(&self) -> impl Iterator<Item = &ContentRule> {
        self.content_rules.iter().map(AsRef::as_ref)
    }

    /// The content rule for a structural class.
    #[must_use]
    pub fn content_rule(&self, class: ObjectClassId) -> Option<&ContentRule> {
        let at = self.content_rules.binary_search_by_key(&class, |rule| rule.class).ok()?;
        self.content_rules.get(at).map(AsRef::as_ref)
    }

    /// One more than the largest number given to a type: the size of a table by type number.
    #[must_use]
    pub fn attribute_type_count(&self) -> usize {
        self.attribute_types.len()
    }

    /// One more than the largest number given to a class: the size of a table by class number.
    #[must_use]
    pub fn object_class_count(&self) -> usize {
        self.object_classes.len()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("attribute_types", &self.attribute_types().count())
            .field("object_classes", &self.object_classes().count())
            .field("content_rules", &self.content_rules.len())
            .finish()
    }
}
