//! The configuration that is kept as entries, below `cn=config`: indexes and rules of uniqueness.
//!
//! ```text
//! cn=config
//! ├── cn=index          cn=NAME: cowslipIndex, one for each attribute type: indexForm eq, sub, ord, approx
//! └── cn=uniqueness     cn=NAME: cowslipUniqueRule: uniqueAttribute, uniqueBelow, uniqueClass
//! ```
//!
//! Whoever may write there changes it with an ordinary add, modify or delete. Invariant: the rules and the wanted indexes
//! are a function of these entries and of the schema, so nothing but entries has to be kept.

use std::sync::Arc;

use cowslip_ldap::dn::Dn;
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::{AttributeTypeId, Schema};

use crate::entry::StoredEntry;
use crate::meta::{IndexForm, Meta, UniqueRule, fixed};
use crate::model::number_key;
use crate::operations::Refusal;
use crate::tree::{Path, Tree};

/// The name at the top of the configuration.
pub const CONFIG_DN: &str = "cn=config";

/// Where indexes are configured.
pub const INDEX_DN: &str = "cn=index,cn=config";

/// Where rules of uniqueness are configured.
pub const UNIQUENESS_DN: &str = "cn=uniqueness,cn=config";

/// An index that the configuration asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WantedIndex {
    /// The attribute type.
    pub kind: AttributeTypeId,
    /// What it is made from.
    pub form: IndexForm,
}

/// The indexes that a new directory has besides the fixed ones, as attribute type and forms.
pub const INDEXES_DEFAULT: [(&str, &[IndexForm]); 5] = [
    ("objectClass", &[IndexForm::Equality]),
    ("uid", &[IndexForm::Equality]),
    ("cn", &[IndexForm::Equality, IndexForm::Substring]),
    ("sn", &[IndexForm::Equality, IndexForm::Substring]),
    ("mail", &[IndexForm::Equality]),
];

/// Reads the indexes that are asked for, in ascending order.
///
/// # Errors
/// An entry names an attribute type that the schema does not have, or one without the rule that the form needs.
pub fn wanted_indexes<T: Tree>(tree: &T, meta: &Meta) -> Result<Vec<WantedIndex>, Refusal> {
    // How many entries a class has is asked at each change of the schema.
    let mut wanted = vec![WantedIndex { kind: AttributeTypeId::OBJECT_CLASS, form: IndexForm::Equality }];
    for entry in children(tree, meta, INDEX_DN) {
        let kind = attribute_type(&meta.schema, &text(meta, &entry, "cn").unwrap_or_default())?;
        for form in texts(meta, &entry, "indexForm") {
            let form =
                IndexForm::by_name(&form).ok_or_else(|| refused(format!("indexForm: no form \"{form}\"")))?;
            check_form(&meta.schema, kind, form)?;
            wanted.push(WantedIndex { kind, form });
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    Ok(wanted.into_iter().filter(|index| index.form != IndexForm::Presence).collect())
}

/// Reads the rules of uniqueness, in the order of their names.
///
/// # Errors
/// A rule names an attribute type or class that the schema does not have, or an attribute without an equality index.
pub fn unique_rules<T: Tree>(
    tree: &T,
    meta: &Meta,
    wanted: &[WantedIndex],
) -> Result<Vec<UniqueRule>, Refusal> {
    let mut rules = Vec::new();
    for entry in children(tree, meta, UNIQUENESS_DN) {
        let name = text(meta, &entry, "cn").unwrap_or_default();
        let kinds = texts(meta, &entry, "uniqueAttribute")
            .iter()
            .map(|name| attribute_type(&meta.schema, name))
            .collect::<Result<Vec<_>, _>>()?;
        for kind in &kinds {
            if meta.is_reference(*kind) {
                let name = meta.schema.attribute_type(*kind).name();
                return Err(refused(format!("{name} names entries, which are not compared as values")));
            }
            if !wanted.contains(&WantedIndex { kind: *kind, form: IndexForm::Equality }) {
                let name = meta.schema.attribute_type(*kind).name();
                return Err(refused(format!(
                    "{name} must have an equality index first (cn={name},{INDEX_DN})"
                )));
            }
        }
        let below = text(meta, &entry, "uniqueBelow");
        let below = below
            .map(|dn| {
                let dn =
                    Dn::parse(dn.as_bytes()).map_err(|error| refused(format!("uniqueBelow: {error}")))?;
                Path::new(&dn, meta).map_err(|error| refused(format!("uniqueBelow: {error}")))
            })
            .transpose()?;
        let class = text(meta, &entry, "uniqueClass");
        let class = class
            .map(|name| {
                meta.schema.object_class(&name).ok_or_else(|| refused(format!("no object class {name}")))
            })
            .transpose()?;
        rules.push(UniqueRule { name, kinds, below, class });
    }
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(rules)
}

fn children<T: Tree>(tree: &T, meta: &Meta, dn: &str) -> Vec<Arc<StoredEntry>> {
    let path = Dn::parse(dn.as_bytes()).ok().and_then(|dn| Path::new(&dn, meta).ok());
    let Some(parent) = path.and_then(|path| tree.resolve(&path).ok()) else { return Vec::new() };
    let key = number_key(parent);
    let children = tree.lookup(fixed::CHILDREN, &key);
    children.filter_map(|number| tree.entry(number).map(Arc::clone)).collect()
}

fn texts(meta: &Meta, entry: &StoredEntry, name: &str) -> Vec<String> {
    let attribute = meta.schema.attribute(name).and_then(|kind| entry.attributes.attribute(kind, ""));
    let values = attribute.into_iter().flat_map(|attribute| attribute.values());
    values.map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

fn text(meta: &Meta, entry: &StoredEntry, name: &str) -> Option<String> {
    texts(meta, entry, name).into_iter().next()
}

fn attribute_type(schema: &Schema, name: &str) -> Result<AttributeTypeId, Refusal> {
    schema.attribute(name).ok_or_else(|| refused(format!("the schema has no attribute type {name}")))
}

fn check_form(schema: &Schema, kind: AttributeTypeId, form: IndexForm) -> Result<(), Refusal> {
    let definition = schema.attribute_type(kind);
    let rule = match form {
        IndexForm::Presence => return Ok(()),
        IndexForm::Equality | IndexForm::Approximate => definition.equality,
        IndexForm::Substring => definition.substring,
        IndexForm::Ordering => definition.ordering,
    };
    match rule {
        Some(_) => Ok(()),
        None => Err(refused(format!(
            "{} has no matching rule for an index of form {}",
            definition.name(),
            form.name()
        ))),
    }
}

fn refused(message: String) -> Refusal {
    Refusal::new(ResultCode::ConstraintViolation, message)
}
