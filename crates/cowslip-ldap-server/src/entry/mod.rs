//! The stored entry: one version of one entry of the tree.
//!
//! An entry knows its parent and its RDN; its DN is put together when it is read, so that renaming or moving a subtree
//! touches one entry. Attributes that name other entries hold the numbers of those, so that a name that is read is
//! always the present one. Invariants: an attribute (type and options) is in exactly one of the three forms below; a
//! value of an attribute under referential integrity that names an entry of ours is held as its number; a version is
//! never changed once it is published.

use std::sync::Arc;

use cowslip_engine::RecordNumber;
use cowslip_ldap::schema::AttributeTypeId;
use uuid::Uuid;

pub use attributes::{AttributeRef, Attributes, AttributesWriter};
pub use csn::Csn;
pub use delta::{AttributeDelta, EntryDelta, Value};
pub use edit::{EntryEdit, Incoming};
pub use values::{LargeValues, Numbers};

mod attributes;
mod csn;
mod delta;
mod edit;
mod values;

pub(crate) use attributes::{write_bytes, write_number};

/// The number of an entry, never given twice.
pub type EntryNumber = RecordNumber;

/// The parent of the entries at the top of the tree.
pub const NO_ENTRY: EntryNumber = RecordNumber(0);

/// One version of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEntry {
    /// The entry above; [`NO_ENTRY`] for a suffix.
    pub parent: EntryNumber,
    /// The RDN as the client spelled it (RFC 4514); for a suffix its whole DN.
    pub rdn: Arc<str>,
    /// `entryUUID`.
    pub uuid: Uuid,
    /// `createTimestamp`, in microseconds since 1970.
    pub created_us: u64,
    /// `creatorsName`.
    pub creator: Arc<str>,
    /// `modifyTimestamp`, in microseconds since 1970.
    pub modified_us: u64,
    /// `modifiersName`.
    pub modifier: Arc<str>,
    /// `entryCSN`: the change that made this version.
    pub csn: Csn,
    /// The attributes with plain values.
    pub attributes: Attributes,
    /// The others; most entries have none.
    pub special: Option<Arc<Special>>,
}

/// The attributes of an entry that have a form of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Special {
    /// Attributes that name entries, in the order of type and options.
    pub references: Vec<ReferenceAttribute>,
    /// Attributes with very many plain values, in the order of type and options.
    pub large: Vec<LargeAttribute>,
}

/// An attribute under referential integrity.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceAttribute {
    /// The type.
    pub kind: AttributeTypeId,
    /// The options.
    pub options: Box<str>,
    /// The entries that it names.
    pub entries: Numbers,
    /// The names that no entry of ours has, by their normalised form.
    pub names: LargeValues,
}

/// An attribute with very many values.
#[derive(Clone, Debug, PartialEq)]
pub struct LargeAttribute {
    /// The type.
    pub kind: AttributeTypeId,
    /// The options.
    pub options: Box<str>,
    /// The values by their normalised form.
    pub values: LargeValues,
}

impl StoredEntry {
    /// Attributes that name entries.
    pub fn references(&self) -> &[ReferenceAttribute] {
        self.special.as_deref().map_or(&[], |special| &special.references)
    }

    /// Attributes with very many values.
    pub fn large(&self) -> &[LargeAttribute] {
        self.special.as_deref().map_or(&[], |special| &special.large)
    }

    /// The attribute of this type and these options, if it names entries.
    pub fn reference(&self, kind: AttributeTypeId, options: &str) -> Option<&ReferenceAttribute> {
        self.references().iter().find(|attribute| attribute.kind == kind && *attribute.options == *options)
    }

    /// Whether the entry has values of exactly this type, with whatever options.
    pub fn has(&self, kind: AttributeTypeId) -> bool {
        self.attributes.of_type(kind).next().is_some()
            || self.references().iter().any(|attribute| attribute.kind == kind)
            || self.large().iter().any(|attribute| attribute.kind == kind)
    }

    /// The types and options of all attributes, each once, in no particular order.
    pub fn descriptions(&self) -> impl Iterator<Item = (AttributeTypeId, &str)> {
        let plain = self.attributes.iter().map(|attribute| (attribute.kind, attribute.options));
        let references = self.references().iter().map(|attribute| (attribute.kind, &*attribute.options));
        let large = self.large().iter().map(|attribute| (attribute.kind, &*attribute.options));
        plain.chain(references).chain(large)
    }

    /// How many values one attribute has.
    pub fn count(&self, kind: AttributeTypeId, options: &str) -> usize {
        if let Some(attribute) = self.attributes.attribute(kind, options) {
            return attribute.len();
        }
        if let Some(reference) = self.reference(kind, options) {
            return reference.entries.len() + reference.names.len();
        }
        let large = self.large().iter().find(|large| large.kind == kind && *large.options == *options);
        large.map_or(0, |large| large.values.len())
    }

    /// All values of one attribute, as what the journal and the indexes know of them.
    pub fn values(&self, kind: AttributeTypeId, options: &str) -> Vec<Value> {
        let plain = self.attributes.attribute(kind, options);
        let mut values: Vec<Value> = plain.iter().flat_map(AttributeRef::values).map(Value::plain).collect();
        if let Some(reference) = self.reference(kind, options) {
            values.extend(reference.entries.iter().map(Value::Entry));
            values
                .extend(reference.names.iter().map(|(key, text)| Value::Name(key.clone(), Arc::clone(text))));
        }
        let large = self.large().iter().find(|large| large.kind == kind && *large.options == *options);
        values.extend(
            large
                .into_iter()
                .flat_map(|large| large.values.iter())
                .map(|(_, value)| Value::Plain(Arc::clone(value))),
        );
        values
    }

    /// The same with other attributes. The ones that it has are not copied.
    #[must_use]
    pub fn with_attributes(&self, attributes: Attributes, special: Option<Arc<Special>>) -> Self {
        Self {
            parent: self.parent,
            rdn: Arc::clone(&self.rdn),
            uuid: self.uuid,
            created_us: self.created_us,
            creator: Arc::clone(&self.creator),
            modified_us: self.modified_us,
            modifier: Arc::clone(&self.modifier),
            csn: self.csn,
            attributes,
            special,
        }
    }

    /// An estimate of the memory that one version takes, in bytes.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.rdn.len() + self.attributes.bytes()
    }
}
