//! What a root of the directory holds besides entries: the schema, and what the configuration says about the data.
//!
//! An operation that has its root has all of this in one version, without a lock and without touching a count. The
//! positions of indexes stay what they are while the directory runs: a removed index leaves its slot.

use std::ops::Deref;
use std::sync::Arc;

use cowslip_engine::{IndexIx, IndexKind, TableIx, TableLayout};
use cowslip_ldap::schema::{AttributeTypeId, ObjectClassId, Schema};

use crate::config::WantedIndex;
use crate::entry::{EntryNumber, StoredEntry};
use crate::key::Key;
use crate::tree::{Path, Suffix};

/// The table of all entries.
pub const ENTRIES: TableIx = TableIx(0);

/// The indexes that every directory has.
pub mod fixed {
    use super::IndexIx;

    /// Parent and RDN; unique.
    pub const NAME: IndexIx = IndexIx(0);
    /// The children of an entry.
    pub const CHILDREN: IndexIx = IndexIx(1);
    /// The entries that have an attribute type.
    pub const PRESENCE: IndexIx = IndexIx(2);
    /// `entryUUID`; unique.
    pub const UUID: IndexIx = IndexIx(3);
    /// Names of entries that we don't have, to those that use them.
    pub const UNRESOLVED: IndexIx = IndexIx(4);
    /// `createTimestamp`, in whole seconds.
    pub const CREATED: IndexIx = IndexIx(5);
    /// `modifyTimestamp`, in whole seconds.
    pub const MODIFIED: IndexIx = IndexIx(6);
    /// How many there are; those that the configuration asks for follow.
    pub const COUNT: u16 = 7;
}

/// What an index is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexForm {
    /// Whether there is a value. Every attribute type has this index, without being asked.
    Presence,
    /// The value as the equality rule sees it.
    Equality,
    /// Each three bytes in a row of the value as the substring rule sees it.
    Substring,
    /// The value as the ordering rule sees it.
    Ordering,
    /// How its words sound.
    Approximate,
}

impl IndexForm {
    /// As it is written in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Presence => "pres",
            Self::Equality => "eq",
            Self::Substring => "sub",
            Self::Ordering => "ord",
            Self::Approximate => "approx",
        }
    }

    /// By what is written in the configuration.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Presence, Self::Equality, Self::Substring, Self::Ordering, Self::Approximate];
        all.into_iter().find(|form| form.name().eq_ignore_ascii_case(name))
    }
}

/// One place for an index that the configuration asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSlot {
    /// The attribute type.
    pub kind: AttributeTypeId,
    /// What it is made from.
    pub form: IndexForm,
    /// Whether it was removed; its place is not used again until the next start.
    pub is_absent: bool,
}

/// Values that at most one entry below a name may have.
#[derive(Clone, Debug, PartialEq)]
pub struct UniqueRule {
    /// As messages call it.
    pub name: String,
    /// The attribute types, over all of which a value must be unique.
    pub kinds: Vec<AttributeTypeId>,
    /// Below which entry, itself included; none means everywhere.
    pub below: Option<Path>,
    /// Only entries of this object class are looked at.
    pub class: Option<ObjectClassId>,
}

/// What the configuration says about the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataRules {
    /// The names at the top of the trees that this directory holds.
    pub suffixes: Vec<Suffix>,
    /// The attribute types under referential integrity, in ascending order.
    pub references: Vec<AttributeTypeId>,
    /// The attribute types whose values make the holder a group of those they name, for `memberOf`.
    pub groups: Vec<AttributeTypeId>,
    /// What must be unique.
    pub unique: Vec<UniqueRule>,
    /// The entry at the top of the configuration, if there is one.
    pub config: Option<EntryNumber>,
    /// The entry that holds what was added to the standard schema, if there is one.
    pub schema: Option<EntryNumber>,
}

/// The schema as a root holds it. Operations borrow it; only a change of the schema or of the rules makes another owner.
///
/// With the feature `count-owners` each new owner is counted, so that a test can show that there are none.
#[derive(Debug)]
pub struct SharedSchema(Arc<Schema>);

/// How many owners of a schema there have been besides the first ones.
#[cfg(feature = "count-owners")]
pub static SCHEMA_OWNERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Clone for SharedSchema {
    fn clone(&self) -> Self {
        #[cfg(feature = "count-owners")]
        SCHEMA_OWNERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl From<Arc<Schema>> for SharedSchema {
    fn from(schema: Arc<Schema>) -> Self {
        Self(schema)
    }
}

impl Deref for SharedSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        &self.0
    }
}

/// What a root holds besides entries.
///
/// It begins on cache lines of its own: the count of its owners, which the committer writes once per publication, must
/// not take the line away from all who read.
#[derive(Debug)]
#[repr(align(128))]
pub struct Meta {
    /// The schema.
    pub schema: SharedSchema,
    /// What the configuration says about the data.
    pub rules: Arc<DataRules>,
    /// Differs between any two metas of one run, so that a plan knows whether it was made under this one.
    pub version: u64,
    slots: Vec<IndexSlot>,
    /// The highest entry number that was given when this was read from the journal.
    last_number: u32,
}

impl DataRules {
    /// The suffixes of users' trees: all but the server's own.
    pub fn contexts(&self) -> impl Iterator<Item = &Suffix> {
        self.suffixes.iter().filter(|suffix| !suffix.is_own)
    }
}

impl Meta {
    /// A meta with these indexes besides the fixed ones.
    pub fn new(
        schema: impl Into<SharedSchema>,
        rules: Arc<DataRules>,
        slots: Vec<IndexSlot>,
        version: u64,
    ) -> Self {
        Self { schema: schema.into(), rules, version, slots, last_number: 0 }
    }

    /// The standard schema and no rules: enough to read what the rules are made from.
    pub fn bare() -> Self {
        Self::new(Arc::new(Schema::standard()), Arc::default(), Vec::new(), 0)
    }

    /// The highest entry number that was given when this was read from the journal; it may be that of a deleted entry.
    pub fn last_number(&self) -> u32 {
        self.last_number
    }

    /// The same with another highest entry number.
    #[must_use]
    pub fn with_last_number(self, last_number: u32) -> Self {
        Self { last_number, ..self }
    }

    /// The same under another schema.
    #[must_use]
    pub fn with_schema(&self, schema: Arc<Schema>) -> Self {
        self.next(schema.into(), Arc::clone(&self.rules), self.slots.clone())
    }

    /// The same with one more index.
    #[must_use]
    pub fn with_slot(&self, slot: IndexSlot) -> Self {
        let mut slots = self.slots.clone();
        slots.push(slot);
        self.next(self.schema.clone(), Arc::clone(&self.rules), slots)
    }

    /// The same with other rules, and without the indexes that nobody wants any more. Those that are new are not in it:
    /// they are built first.
    #[must_use]
    pub fn with_configuration(&self, wanted: &[WantedIndex], unique: Vec<UniqueRule>) -> Self {
        let mut slots = self.slots.clone();
        for slot in &mut slots {
            slot.is_absent |= !wanted.contains(&WantedIndex { kind: slot.kind, form: slot.form });
        }
        let rules = DataRules { unique, ..DataRules::clone(&self.rules) };
        self.next(self.schema.clone(), Arc::new(rules), slots)
    }

    fn next(&self, schema: SharedSchema, rules: Arc<DataRules>, slots: Vec<IndexSlot>) -> Self {
        Self::new(schema, rules, slots, self.version + 1).with_last_number(self.last_number)
    }

    /// The position of the last index.
    pub fn last_index(&self) -> IndexIx {
        IndexIx(fixed::COUNT + u16::try_from(self.slots.len()).unwrap_or(u16::MAX) - 1)
    }

    /// The indexes that the configuration asks for, with their positions.
    pub fn slots(&self) -> impl Iterator<Item = (IndexIx, IndexSlot)> + '_ {
        (fixed::COUNT..).map(IndexIx).zip(self.slots.iter().copied())
    }

    /// The slot at a position.
    pub fn slot(&self, index: IndexIx) -> Option<IndexSlot> {
        self.slots.get(usize::from(index.0.checked_sub(fixed::COUNT)?)).copied()
    }

    /// Where an attribute type is indexed in a form.
    pub fn index(&self, kind: AttributeTypeId, form: IndexForm) -> Option<IndexIx> {
        let found = self.slots().find(|(_, slot)| slot.kind == kind && slot.form == form && !slot.is_absent);
        found.map(|(index, _)| index)
    }

    /// Whether an attribute type is under referential integrity.
    pub fn is_reference(&self, kind: AttributeTypeId) -> bool {
        self.rules.references.binary_search(&kind).is_ok()
    }

    /// The layout of the one table.
    pub(crate) fn layout(&self) -> Vec<TableLayout> {
        let mut indexes = vec![IndexKind::Postings; usize::from(fixed::COUNT)];
        indexes[usize::from(fixed::NAME.0)] = IndexKind::Primary;
        indexes[usize::from(fixed::UUID.0)] = IndexKind::Primary;
        indexes.extend(
            self.slots.iter().map(
                |slot| {
                    if slot.is_absent { IndexKind::Absent } else { IndexKind::Postings }
                },
            ),
        );
        vec![TableLayout { indexes }]
    }

    /// A value as the equality rule of its type sees it: what makes two values the same. Where there is no such rule,
    /// or the value is none of the syntax, its bytes.
    pub fn value_key(&self, kind: AttributeTypeId, value: &[u8]) -> Key {
        let mut normalized = Vec::with_capacity(value.len() + 8);
        match self.schema.attribute_type(kind).equality {
            Some(rule) if rule.normalize(value, &self.schema, &mut normalized).is_ok() => {
                Key::new(&normalized)
            }
            _ => Key::new(value),
        }
    }

    /// The object classes of an entry that the schema knows, as the entry names them.
    pub fn classes<'a>(&'a self, entry: &'a StoredEntry) -> impl Iterator<Item = ObjectClassId> + 'a {
        let attribute = entry.attributes.attribute(AttributeTypeId::OBJECT_CLASS, "");
        let values = attribute.into_iter().flat_map(|attribute| attribute.values());
        values.filter_map(|value| self.schema.object_class(std::str::from_utf8(value).ok()?))
    }
}
