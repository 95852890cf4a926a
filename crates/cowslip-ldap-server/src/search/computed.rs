//! The entries that are computed as a whole: the server's own (RFC 4512, section 5.1) and the schema's (section 4.2).

use std::ops::ControlFlow;

use cowslip_ldap::dn::Dn;
use cowslip_ldap::filter::{EntryView, Truth, VisitAva, VisitKind, VisitValue};
use cowslip_ldap::schema::{AttributeTypeId, Element, Schema};
use cowslip_ldap::{oids, time::Timestamp};

use crate::meta::Meta;
use crate::schema_entry::SCHEMA_DN;
use crate::tree::Tree;

/// An entry that is computed as a whole.
pub(super) struct Computed<'a> {
    pub(super) dn: &'static str,
    pub(super) attributes: Vec<(AttributeTypeId, Vec<Vec<u8>>)>,
    pub(super) schema: &'a Schema,
}

/// What the server says of itself.
#[derive(Clone, Copy, Debug)]
pub struct RootDse {
    /// The program's version.
    pub version: &'static str,
}

impl Default for RootDse {
    fn default() -> Self {
        Self { version: env!("CARGO_PKG_VERSION") }
    }
}

type Attributes = Vec<(AttributeTypeId, Vec<Vec<u8>>)>;

fn texts(values: &[&str]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.as_bytes().to_vec()).collect()
}

/// The attributes of the root DSE. Only what works is listed.
pub fn root_dse(meta: &Meta, server: &RootDse) -> Attributes {
    let contexts: Vec<String> = meta.rules.contexts().map(|suffix| suffix.dn.to_string()).collect();
    let named = contexts.iter().map(|context| context.as_bytes().to_vec()).collect();
    let mut attributes = vec![
        (AttributeTypeId::OBJECT_CLASS, texts(&["top"])),
        (AttributeTypeId::NAMING_CONTEXTS, named),
        (AttributeTypeId::SUBSCHEMA_SUBENTRY, texts(&[SCHEMA_DN])),
        (AttributeTypeId::SUPPORTED_LDAP_VERSION, texts(&["3"])),
        (AttributeTypeId::SUPPORTED_CONTROL, texts(&[oids::MANAGE_DSA_IT])),
        (AttributeTypeId::SUPPORTED_EXTENSION, texts(&[oids::CANCEL, oids::WHO_AM_I])),
        (
            AttributeTypeId::SUPPORTED_FEATURES,
            texts(&[
                oids::MODIFY_INCREMENT,
                oids::ALL_OPERATIONAL_ATTRIBUTES,
                oids::OBJECT_CLASS_ATTRIBUTES,
                oids::TRUE_FALSE_FILTERS,
                oids::LANGUAGE_TAGS,
                oids::LANGUAGE_RANGES,
            ]),
        ),
        (AttributeTypeId::VENDOR_NAME, texts(&["Cowslip"])),
        (AttributeTypeId::VENDOR_VERSION, texts(&[server.version])),
    ];
    if let Some(first) = contexts.first() {
        attributes.push((AttributeTypeId::DEFAULT_NAMING_CONTEXT, texts(&[first])));
    }
    attributes
}

/// The attributes of the schema's entry.
pub fn subschema<T: Tree>(tree: &T) -> Attributes {
    let meta = tree.meta();
    let published = |element| meta.schema.published(element).into_iter().map(String::into_bytes).collect();
    let mut attributes = vec![
        (AttributeTypeId::OBJECT_CLASS, texts(&["top", "subentry", "subschema", "extensibleObject"])),
        (AttributeTypeId::CN, texts(&["schema"])),
        (AttributeTypeId::ENTRY_DN, texts(&[SCHEMA_DN])),
        (AttributeTypeId::SUBSCHEMA_SUBENTRY, texts(&[SCHEMA_DN])),
        (AttributeTypeId::ATTRIBUTE_TYPES, published(Element::AttributeType)),
        (AttributeTypeId::OBJECT_CLASSES, published(Element::ObjectClass)),
        (AttributeTypeId::LDAP_SYNTAXES, published(Element::Syntax)),
        (AttributeTypeId::MATCHING_RULES, published(Element::MatchingRule)),
        (AttributeTypeId::MATCHING_RULE_USE, published(Element::MatchingRuleUse)),
        (AttributeTypeId::DIT_CONTENT_RULES, published(Element::ContentRule)),
    ];
    if let Some(entry) = meta.rules.schema.and_then(|number| tree.entry(number)) {
        let time = |us| Timestamp::from_micros(us).to_string();
        let stamps = [
            (AttributeTypeId::CREATE_TIMESTAMP, time(entry.created_us)),
            (AttributeTypeId::MODIFY_TIMESTAMP, time(entry.modified_us)),
            (AttributeTypeId::ENTRY_UUID, entry.uuid.to_string()),
            (AttributeTypeId::ENTRY_CSN, entry.csn.to_string()),
        ];
        attributes.extend(stamps.map(|(kind, text)| (kind, vec![text.into_bytes()])));
    }
    attributes.retain(|(_, values): &(_, Vec<Vec<u8>>)| !values.is_empty());
    attributes
}

impl EntryView for Computed<'_> {
    fn schema(&self) -> &Schema {
        self.schema
    }

    fn values(&self, kind: AttributeTypeId, visit: VisitValue<'_>) -> ControlFlow<()> {
        let found = self.attributes.iter().filter(|(held, _)| *held == kind);
        found.flat_map(|(_, values)| values).try_for_each(|value| visit("", value))
    }

    fn kinds(&self, visit: VisitKind<'_>) -> ControlFlow<()> {
        self.attributes.iter().map(|(kind, _)| *kind).try_for_each(visit)
    }

    fn name_values(&self, visit: VisitAva<'_>) -> ControlFlow<()> {
        let dn = Dn::parse(self.dn.as_bytes()).unwrap_or_default();
        for ava in dn.rdns().iter().flat_map(|rdn| rdn.avas()) {
            if let Some(kind) = self.schema.attribute(ava.attribute()) {
                visit(kind, ava.value())?;
            }
        }
        ControlFlow::Continue(())
    }

    fn is_in_chain(&self, _: AttributeTypeId, _: &Dn) -> Truth {
        Truth::False
    }
}
