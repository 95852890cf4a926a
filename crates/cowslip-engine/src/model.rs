//! What a protocol tells the engine about its records.
//!
//! The engine stores values without looking into them. Whatever it must know (the keys a record holds in an index, the
//! records it refers to, how two steps of a change combine) it asks of the [`Model`]. Invariant: for equal arguments a
//! model gives equal answers, because a key that was added from one version of a record is removed by asking about a
//! change away from that version.

use crate::id::RecordId;

/// The position of a table in the model's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableIx(pub u16);

/// The position of an index in its table's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexIx(pub u16);

/// What an index demands of its keys, and how it keeps their records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// At most one record per key, checked when a draft is finished.
    Primary,
    /// Any number of records per key.
    Secondary,
    /// Any number of records per key, as a [`Posting`](crate::Posting) where ids are
    /// [dense numbers](crate::RecordNumber); elsewhere the same as `Secondary`.
    Postings,
    /// No index: the slot of one that was removed, so that the others keep their numbers. It costs nothing and is empty.
    Absent,
}

/// The indexes of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableLayout {
    /// The kind of each index, in the order of [`IndexIx`].
    pub indexes: Vec<IndexKind>,
}

/// How much a reference does for its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// The target must exist, and may live only as long as it is referred to.
    Strong,
    /// The target may vanish; the reference then goes with it.
    Weak,
}

/// One record that refers to another, as it is found from the target's side.
///
/// The order of the fields is the order of the map it lives in (the *target* table's), so that everything that refers
/// to one target, or everything that does so strongly, is one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Referrer<I> {
    /// The record referred to.
    pub target: I,
    /// The strength of the reference.
    pub strength: Strength,
    /// The table of the record that refers.
    pub table: TableIx,
    /// The record that refers.
    pub source: I,
    /// The column or attribute it refers with.
    pub slot: u32,
}

/// One record that another refers to, as it is seen from the source's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference<I> {
    /// The table of the target.
    pub table: TableIx,
    /// The record referred to; it need not exist.
    pub target: I,
    /// The strength of the reference.
    pub strength: Strength,
    /// The column or attribute the source refers with.
    pub slot: u32,
}

/// What a protocol tells the engine about its records.
pub trait Model: Sized + Send + Sync + 'static {
    /// What identifies a record.
    type Id: RecordId;
    /// One version of a record. It is kept behind an `Arc` and never changed.
    type Value: Send + Sync + 'static;
    /// A key in an index. One type serves all indexes of all tables.
    ///
    /// It should be quick to clone: a change to an index that a snapshot shares copies the keys beside it, too.
    type Key: Ord + Clone + Send + Sync + 'static;
    /// The net changes of the large values of one record. The default says that none were noted.
    type Delta: Default + Send + Sync + 'static;
    /// What a root holds besides records: schema, access rules, configuration.
    type Meta: Send + Sync + 'static;
    /// What a commit carries besides its changes, for instance comments for the journal.
    type Note: Send + Sync + 'static;

    /// The tables and their indexes under this meta, in the order of [`TableIx`].
    fn layout(meta: &Self::Meta) -> Vec<TableLayout>;

    /// The keys that a step takes away from and gives to its record in one index.
    ///
    /// A record holds a key at most once, so a key must not be named twice on one side. A key that is named on both
    /// sides is unchanged; naming all old and all new keys is therefore correct, naming only the difference is cheaper.
    fn keys(
        meta: &Self::Meta,
        table: TableIx,
        index: IndexIx,
        step: &Step<'_, Self>,
        out: &mut KeyChanges<Self::Key>,
    );

    /// The references that a step takes away from and gives to its record.
    fn references(
        meta: &Self::Meta,
        table: TableIx,
        step: &Step<'_, Self>,
        out: &mut ReferenceChanges<Self::Id>,
    );

    /// Combines two deltas of one record; `step` happened after `into`.
    fn merge(into: &mut Self::Delta, step: Self::Delta);

    /// The delta between two whole values of one record.
    ///
    /// Asked only for a record that was removed and put again within one draft, where no delta led from the one to the
    /// other. A model without deltas keeps the default.
    fn difference(meta: &Self::Meta, table: TableIx, old: &Self::Value, new: &Self::Value) -> Self::Delta {
        let _ = (meta, table, old, new);
        Self::Delta::default()
    }

    /// The bytes of a key, if their order is that of the keys and different keys have different bytes.
    ///
    /// Many keys at once are grouped and sorted by them, which is quicker than comparing whole keys. A model that gives
    /// the bytes of one key gives those of all. The default has none.
    fn key_bytes(key: &Self::Key) -> Option<&[u8]> {
        let _ = key;
        None
    }

    /// An estimate, in bytes, of the memory that keeping one replaced version of a record costs.
    ///
    /// It bounds the history, so it must be quick; what a large value shares with its next version need not count.
    fn weight(value: &Self::Value) -> usize {
        size_of_val(value)
    }
}

/// One step in the life of a record: inserted (`old` is none), changed, or removed (`new` is none).
pub struct Step<'a, M: Model> {
    /// The record before the step.
    pub old: Option<&'a M::Value>,
    /// The record after the step.
    pub new: Option<&'a M::Value>,
    /// What changed inside large values between `old` and `new`, if both are there.
    pub delta: &'a M::Delta,
}

/// The keys that a step takes from a record and gives to it. A reused buffer.
#[derive(Clone, Debug)]
pub struct KeyChanges<K> {
    /// Keys that the record held before and may hold no more.
    pub removed: Vec<K>,
    /// Keys that the record holds now and may not have held before.
    pub added: Vec<K>,
}

impl<K> KeyChanges<K> {
    /// No changes.
    pub const fn new() -> Self {
        Self { removed: Vec::new(), added: Vec::new() }
    }
}

impl<K> Default for KeyChanges<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// The references that a step takes from a record (`-n`) and gives to it (`+n`). A reused buffer.
#[derive(Clone, Debug)]
pub struct ReferenceChanges<I> {
    /// References and by how much their count changes. One reference may appear several times; the counts add up.
    pub changes: Vec<(Reference<I>, i64)>,
}

impl<I> Default for ReferenceChanges<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I> ReferenceChanges<I> {
    /// No changes.
    pub const fn new() -> Self {
        Self { changes: Vec::new() }
    }

    /// Notes one more occurrence of a reference.
    pub fn add(&mut self, reference: Reference<I>) {
        self.changes.push((reference, 1));
    }

    /// Notes one occurrence less of a reference.
    pub fn remove(&mut self, reference: Reference<I>) {
        self.changes.push((reference, -1));
    }
}
