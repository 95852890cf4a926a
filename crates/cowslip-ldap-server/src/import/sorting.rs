//! Which attributes of a record become attributes, which are what a server otherwise makes, and which are left out.
//!
//! Invariant: no value vanishes without being counted in the report.

use std::collections::HashMap;
use std::sync::Arc;

use cowslip_engine::Uuid;
use cowslip_ldap::entry::Attribute;
use cowslip_ldap::schema::{AttributeTypeId, Schema};
use cowslip_ldap::time::Timestamp;

use super::report::{ImportReport, count};
use crate::entry::Csn;
use crate::operations::Brought;
use crate::operations::prepare::Given;
use crate::search::view::is_computed;

/// By which another server keeps its own books: numbers in its database, its replication, its statistics.
const BOOKKEEPING: [&str; 21] = [
    "entryid",
    "parentid",
    "entryusn",
    "dsEntryDN",
    "nscpEntryDN",
    "nscpEntryWSI",
    "nsParentUniqueId",
    "nsTombstoneCSN",
    "nsRole",
    "ancestorid",
    "tombstoneNumSubordinates",
    "internalCreatorsName",
    "internalModifiersName",
    "lastLoginTime",
    "authTimestamp",
    "pwdLastSuccess",
    "pwdUpdateTime",
    "passwordGraceUserTime",
    "governingStructureRule",
    "collectiveAttributeSubentries",
    "hasNumSubordinates",
];

/// The same, by how their names begin.
const BOOKKEEPING_PREFIXES: [&str; 4] = ["nsds5", "nsds6", "ds6", "nsslapd-"];

/// What says who may do what. Here it is kept and not enforced, which an administrator has to know.
const ACCESS_RULES: [&str; 5] =
    ["aci", "olcAccess", "nsAccountLock", "pwdAccountLockedTime", "accountUnlockTime"];

/// A record's attributes, sorted.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    /// What becomes attributes.
    pub(super) given: Vec<Given<'a>>,
    /// What a server otherwise makes.
    pub(super) brought: Brought,
    /// Whether the entry is one that was deleted and that its server had not forgotten yet.
    pub(super) is_tombstone: bool,
}

/// Names that many entries have in common, each once.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<Box<str>, Arc<str>>);

impl Names {
    fn shared(&mut self, name: &[u8]) -> Option<Arc<str>> {
        let name = std::str::from_utf8(name).ok()?;
        if let Some(known) = self.0.get(name) {
            return Some(Arc::clone(known));
        }
        let shared: Arc<str> = name.into();
        self.0.insert(name.into(), Arc::clone(&shared));
        Some(shared)
    }
}

/// Sorts the attributes of one record.
pub(super) struct Sorter<'s> {
    pub(super) schema: &'s Schema,
    /// Whether what the schema does not have is left out, instead of spoiling the entry.
    pub(super) drops_unknown: bool,
    pub(super) names: &'s mut Names,
    pub(super) report: &'s mut ImportReport,
    /// Where the record is, for the report.
    pub(super) line: u64,
    pub(super) dn: &'s str,
}

impl Sorter<'_> {
    pub(super) fn sort<'a>(&mut self, attributes: &'a [Attribute]) -> Sorted<'a> {
        let mut sorted = Sorted { given: Vec::with_capacity(attributes.len()), ..Sorted::default() };
        for attribute in attributes {
            self.attribute(attribute, &mut sorted);
        }
        sorted
    }

    fn attribute<'a>(&mut self, attribute: &'a Attribute, sorted: &mut Sorted<'a>) {
        let description = &*attribute.description;
        let name = description.split(';').next().unwrap_or_default();
        let kind = self.schema.attribute(name);
        let values = attribute.values.len();
        match kind {
            Some(AttributeTypeId::OBJECT_CLASS) => return self.classes(attribute, sorted),
            Some(kind) if is_brought(kind) => return self.brought(kind, attribute, &mut sorted.brought),
            Some(kind) if is_computed(kind) => {
                let name = self.schema.attribute_type(kind).name();
                return count(&mut self.report.dropped, name, values);
            }
            Some(AttributeTypeId::NS_UNIQUE_ID) => self.unique_id(attribute, &mut sorted.brought),
            _ => {}
        }
        if is_named(&ACCESS_RULES, name) {
            self.report.rule(self.line, self.dn, name, values);
            if kind.is_none() {
                return count(&mut self.report.dropped, name, values);
            }
        } else if is_bookkeeping(name) {
            return count(&mut self.report.dropped, name, values);
        } else if kind.is_none() && self.drops_unknown {
            return count(&mut self.report.unknown, name, values);
        }
        sorted.given.push(given(attribute));
    }

    fn classes<'a>(&mut self, attribute: &'a Attribute, sorted: &mut Sorted<'a>) {
        let mut given = given(attribute);
        sorted.is_tombstone = given.values.iter().any(|value| value.eq_ignore_ascii_case(b"nsTombstone"));
        if self.drops_unknown {
            let (schema, unknown) = (self.schema, &mut self.report.unknown);
            given.values.retain(|value| {
                let name = String::from_utf8_lossy(value);
                let is_known = schema.object_class(&name).is_some();
                if !is_known {
                    count(unknown, &name, 1);
                }
                is_known
            });
        }
        sorted.given.push(given);
    }

    fn brought(&mut self, kind: AttributeTypeId, attribute: &Attribute, brought: &mut Brought) {
        let [value] = &attribute.values[..] else { return self.malformed(kind, attribute.values.len()) };
        let text = || std::str::from_utf8(value).ok();
        let is_taken = match kind {
            AttributeTypeId::ENTRY_UUID => {
                set(&mut brought.uuid, text().and_then(|text| Uuid::parse_str(text).ok()))
            }
            AttributeTypeId::ENTRY_CSN => {
                set(&mut brought.csn, text().and_then(|text| text.parse::<Csn>().ok()))
            }
            AttributeTypeId::CREATE_TIMESTAMP => {
                set(&mut brought.created_us, Timestamp::parse(value).map(Timestamp::micros))
            }
            AttributeTypeId::MODIFY_TIMESTAMP => {
                set(&mut brought.modified_us, Timestamp::parse(value).map(Timestamp::micros))
            }
            AttributeTypeId::CREATORS_NAME => set(&mut brought.creator, self.name(value)),
            _ => set(&mut brought.modifier, self.name(value)),
        };
        if !is_taken {
            self.malformed(kind, 1);
        }
    }

    /// The value if it is a name.
    fn name(&mut self, value: &[u8]) -> Option<Arc<str>> {
        cowslip_ldap::dn::Dn::parse(value).ok().and_then(|_| self.names.shared(value))
    }

    fn malformed(&mut self, kind: AttributeTypeId, values: usize) {
        count(&mut self.report.malformed, self.schema.attribute_type(kind).name(), values);
    }

    /// 389 Directory Server's id is a UUID in groups of another length. Where the entry has no other, it is the UUID.
    fn unique_id(&mut self, attribute: &Attribute, brought: &mut Brought) {
        if brought.uuid.is_some() {
            return;
        }
        let text = attribute.values.first().and_then(|value| std::str::from_utf8(value).ok());
        let digits: String = text.unwrap_or_default().chars().filter(|c| *c != '-').collect();
        match Uuid::parse_str(&digits) {
            Ok(uuid) => brought.uuid = Some(uuid),
            Err(_) => count(&mut self.report.malformed, "nsUniqueId", attribute.values.len()),
        }
    }
}

/// Whether an attribute says what a server makes when it adds an entry.
fn is_brought(kind: AttributeTypeId) -> bool {
    [
        AttributeTypeId::ENTRY_UUID,
        AttributeTypeId::ENTRY_CSN,
        AttributeTypeId::CREATE_TIMESTAMP,
        AttributeTypeId::MODIFY_TIMESTAMP,
        AttributeTypeId::CREATORS_NAME,
        AttributeTypeId::MODIFIERS_NAME,
    ]
    .contains(&kind)
}

/// Whether an attribute is one by which another server keeps its own books.
fn is_bookkeeping(name: &str) -> bool {
    is_named(&BOOKKEEPING, name)
        || BOOKKEEPING_PREFIXES
            .iter()
            .any(|prefix| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))
}

fn is_named(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn given(attribute: &Attribute) -> Given<'_> {
    let values = attribute.values.iter().map(Vec::as_slice).collect();
    Given { description: attribute.description.as_bytes(), values }
}

/// Sets what was read; false if nothing could be.
fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let is_there = value.is_some();
    if is_there {
        *place = value;
    }
    is_there
}

/// Takes out of a record what a client may not send to a server: what the server makes itself, and what
/// [an import](super) leaves out. Counts it in the report.
pub fn for_client(
    attributes: &mut Vec<Attribute>,
    (line, dn): (u64, &str),
    schema: &Schema,
    report: &mut ImportReport,
) {
    attributes.retain(|attribute| {
        let name = attribute.description.split(';').next().unwrap_or_default();
        let values = attribute.values.len();
        let kind = schema.attribute(name);
        let is_own = |kind| {
            is_brought(kind) || is_computed(kind) || schema.attribute_type(kind).is_no_user_modification
        };
        if is_named(&ACCESS_RULES, name) {
            report.rule(line, dn, name, values);
        }
        let is_dropped = kind.is_some_and(is_own) || is_bookkeeping(name);
        if is_dropped {
            count(&mut report.dropped, kind.map_or(name, |kind| schema.attribute_type(kind).name()), values);
        }
        !is_dropped
    });
}
