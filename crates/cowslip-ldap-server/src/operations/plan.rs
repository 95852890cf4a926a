//! Writes as the committer gets them: names turned into numbers, values checked and normalised.
//!
//! A plan is made by the worker that read the request, under the schema of the root that it held; if the schema is
//! another when the plan's turn comes, it is made again from the request. So the committer does only what needs the
//! state before it. Invariant: whatever in a request depends on the schema alone was checked when its plan exists.

use std::sync::Arc;

use cowslip_engine::Uuid;
use cowslip_ldap::schema::{AttributeTypeId, Element, SchemaChange, SchemaModification};

use crate::entry::{Csn, Incoming};
use crate::tree::Path;

/// One write.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Add an entry (RFC 4511, section 4.7).
    Add(AddPlan),
    /// Delete an entry (section 4.8).
    Delete(Path),
    /// Change the attributes of an entry (section 4.6).
    Modify(ModifyPlan),
    /// Rename or move an entry with all that is below it (section 4.9).
    Rename(RenamePlan),
    /// Change the schema: a modify of `cn=schema` (RFC 4512, section 4.4).
    Schema(SchemaPlan),
}

/// A value of a request.
#[derive(Clone, Debug)]
pub struct PlannedValue {
    /// The value and its normalised form.
    pub incoming: Incoming,
    /// Where it leads, if the attribute is under referential integrity and the value is the name of an entry.
    pub path: Option<Path>,
}

/// An attribute of a request.
#[derive(Clone, Debug)]
pub struct PlannedAttribute {
    /// The type.
    pub kind: AttributeTypeId,
    /// The options in lower case, sorted, joined by `;`.
    pub options: Box<str>,
    /// The values, no two of them equal.
    pub values: Vec<PlannedValue>,
}

/// An entry to be added.
#[derive(Clone, Debug)]
pub struct AddPlan {
    /// Its name.
    pub path: Path,
    /// Its RDN as the client spelled it; for a suffix the whole name.
    pub rdn: Arc<str>,
    /// Its attributes, those of the RDN among them.
    pub attributes: Vec<PlannedAttribute>,
    /// What an import brings along.
    pub brought: Brought,
}

/// What an import brings along that a server otherwise makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Brought {
    /// `entryUUID`.
    pub uuid: Option<Uuid>,
    /// `createTimestamp`, in microseconds since 1970.
    pub created_us: Option<u64>,
    /// `creatorsName`.
    pub creator: Option<Arc<str>>,
    /// `modifyTimestamp`, in microseconds since 1970.
    pub modified_us: Option<u64>,
    /// `modifiersName`.
    pub modifier: Option<Arc<str>>,
    /// `entryCSN`.
    pub csn: Option<Csn>,
}

/// Changes to the attributes of an entry, in their order.
#[derive(Clone, Debug)]
pub struct ModifyPlan {
    /// The entry's name.
    pub path: Path,
    /// The changes.
    pub changes: Vec<(ChangeKind, PlannedAttribute)>,
}

/// What to do with an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Give it more values.
    Add,
    /// Take values from it; none named means all.
    Delete,
    /// Give it these values and no others.
    Replace,
    /// Add to its values (RFC 4525).
    Increment,
}

/// A new name for an entry.
#[derive(Clone, Debug)]
pub struct RenamePlan {
    /// The entry's name.
    pub path: Path,
    /// The new RDN as the client spelled it.
    pub rdn: Arc<str>,
    /// The new RDN, normalised.
    pub key: Box<[u8]>,
    /// The values of the new RDN.
    pub values: Vec<PlannedAttribute>,
    /// Whether values that only the old RDN has are taken away.
    pub deletes_old: bool,
    /// The new parent; none means the present one.
    pub superior: Option<Path>,
}

/// Definitions that are added to the schema or deleted from it, in their order.
#[derive(Clone, Debug, Default)]
pub struct SchemaPlan {
    /// Whether it is added, of which kind it is, and its text.
    pub definitions: Vec<(bool, Element, String)>,
}

impl SchemaPlan {
    /// The plan that makes these changes.
    pub fn of(changes: &[SchemaChange]) -> Self {
        let mut plan = Self::default();
        for change in changes {
            let (deleted, added) = change.values();
            let deleted = deleted.map(|text| (false, change.element(), text));
            let added = added.map(|text| (true, change.element(), text));
            plan.definitions.extend(deleted.into_iter().chain(added));
        }
        plan
    }

    /// The changes as the schema takes them.
    pub fn modifications(&self) -> impl Iterator<Item = SchemaModification<'_>> {
        self.definitions.iter().map(|(is_added, element, definition)| {
            let (element, definition) = (*element, definition.as_str());
            if *is_added {
                SchemaModification::Add { element, definition }
            } else {
                SchemaModification::Delete { element, definition }
            }
        })
    }
}
