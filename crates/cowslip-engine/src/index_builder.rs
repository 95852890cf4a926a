//! Indexes that are built aside, while commits go on, and switched in by one of them.
//!
//! A builder begins with a snapshot, which takes as long as the database is large, on whatever thread it likes; follows
//! the feed until it is close behind; and is handed to [`Batch::set_meta_with`](crate::Batch::set_meta_with), which makes
//! up for the commits since. Invariant: a builder's content is what its meta says about the records of its generation.

use std::collections::BTreeMap;
use std::fmt;
use std::slice;
use std::sync::Arc;

use crate::change::ChangeSet;
use crate::draft::Conflict;
use crate::feed::{Behind, Feed};
use crate::index::Index;
use crate::loading::load_index;
use crate::model::{IndexIx, IndexKind, KeyChanges, Model, Step, TableIx};
use crate::overlay::{Entry, EntryChange, note_keys};
use crate::root::Root;
use crate::table::RecordMap;

/// How many changed records a builder may be behind when it is switched in: the committer makes up for them while all
/// others wait.
pub const CATCH_UP_RECORDS_MAX: usize = 10_000;

/// An index that is built aside.
///
/// # Example
/// ```
/// # use std::sync::Arc;
/// # use cowslip_engine::*;
/// /// Words, which are indexed by their length once the meta says so.
/// struct Words;
///
/// impl Model for Words {
///     # type Id = RecordNumber;
///     # type Value = String;
///     # type Key = usize;
///     # type Delta = ();
///     type Meta = bool;
///     # type Note = ();
///     fn layout(has_index: &bool) -> Vec<TableLayout> {
///         vec![TableLayout { indexes: if *has_index { vec![IndexKind::Postings] } else { vec![] } }]
///     }
///     # fn keys(_: &bool, _: TableIx, _: IndexIx, step: &Step<'_, Self>, out: &mut KeyChanges<usize>) {
///     #     out.removed.extend(step.old.map(|word| word.len()));
///     #     out.added.extend(step.new.map(|word| word.len()));
///     # }
///     # fn references(_: &bool, _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<RecordNumber>) {}
///     # fn merge(_: &mut (), _: ()) {}
///     // ...
/// }
///
/// let words = ["one", "two", "three"].into_iter().zip(0..);
/// let records = words.map(|(word, at)| (TableIx(0), RecordNumber(at), Arc::new(word.to_owned())));
/// let root = Root::<Words>::load(Arc::new(false), 1, records)?;
///
/// let meta = Arc::new(true);
/// let built = IndexBuilder::build(&root, Arc::clone(&meta), TableIx(0), IndexIx(0));
/// let root = root.with_indexes(meta, vec![built])?;
/// assert_eq!(root.posting(TableIx(0), IndexIx(0), &3).map(Posting::len), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct IndexBuilder<M: Model> {
    meta: Arc<M::Meta>,
    table: TableIx,
    index: IndexIx,
    kind: IndexKind,
    generation: u64,
    content: Index<M::Key, M::Id>,
    /// By how much the entries of a primary index outnumber its keys.
    surplus: usize,
}

impl<M: Model> IndexBuilder<M> {
    /// Builds an index, as `meta` has it, from the records of a root. The cost grows with the table.
    pub fn build(root: &Root<M>, meta: Arc<M::Meta>, table: TableIx, index: IndexIx) -> Self {
        let layout = M::layout(&meta);
        let kind = layout.get(usize::from(table.0)).and_then(|table| table.indexes.get(usize::from(index.0)));
        let kind = kind.copied().unwrap_or(IndexKind::Absent);
        let none = RecordMap::<M>::default();
        let records = root.table(table).map_or(&none, |table| &table.records);
        let loaded = load_index::<M>(&meta, (table, index), kind, records);
        let (content, surplus) = (loaded.content, loaded.surplus);
        Self { meta, table, index, kind, generation: root.generation(), content, surplus }
    }

    /// The table of the index.
    pub fn table(&self) -> TableIx {
        self.table
    }

    /// The place of the index among its table's.
    pub fn index(&self) -> IndexIx {
        self.index
    }

    /// The generation whose records are indexed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Makes up for all commits that were published since; gives the number of changed records that were looked at.
    ///
    /// Call it until the number is small, and then switch the index in.
    ///
    /// # Errors
    /// The commits since are not in the history any more: build again from a newer root.
    pub fn catch_up(&mut self, feed: &Feed<M>) -> Result<usize, Behind> {
        let mut records = 0;
        for entry in feed.since(self.generation)? {
            records += self.follow(entry.generation, &entry.changes);
        }
        Ok(records)
    }

    /// Makes up for the commit that led to `generation`; gives the number of changed records that were looked at.
    ///
    /// Commits come in their order and without gaps; one that is indexed already changes nothing.
    pub fn follow(&mut self, generation: u64, changes: &ChangeSet<M>) -> usize {
        if generation <= self.generation {
            return 0;
        }
        debug_assert_eq!(generation, self.generation + 1, "commits come without gaps");
        self.generation = generation;
        let Some(changes) = changes.table(self.table).filter(|_| self.kind != IndexKind::Absent) else {
            return 0;
        };
        let (mut keys, mut entries) = (KeyChanges::new(), BTreeMap::new());
        for change in &changes.records {
            let step = Step { old: change.old.as_deref(), new: change.new.as_deref(), delta: &change.delta };
            M::keys(&self.meta, self.table, self.index, &step, &mut keys);
            note_keys(&mut entries, change.id, &mut keys);
        }
        let changed: Vec<_> = entries.into_iter().map(|(entry, net)| (entry, net > 0)).collect();
        if self.kind == IndexKind::Primary {
            changed.iter().for_each(|change| self.change_counted(change));
        } else {
            self.content.apply(&changed);
        }
        changes.records.len()
    }

    /// Changes one entry of a primary index and counts the keys that several records hold.
    fn change_counted(&mut self, change: &EntryChange<M::Key, M::Id>) {
        let (Entry { key, .. }, is_taken) = change;
        if *is_taken {
            self.surplus += usize::from(self.content.lookup(key).next().is_some());
        }
        self.content.apply(slice::from_ref(change));
        if !is_taken {
            self.surplus -= usize::from(self.content.lookup(key).next().is_some());
        }
    }

    /// The first key of a primary index that several records hold. The cost grows with the index.
    pub fn conflict(&self) -> Option<Conflict<M>> {
        if self.surplus == 0 {
            return None;
        }
        let mut entries =
            self.content.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).peekable();
        while let Some((key, _)) = entries.next() {
            if entries.peek().is_some_and(|(next, _)| *next == key) {
                let (table, index, ids) = (self.table, self.index, self.content.lookup(key).collect());
                return Some(Conflict { table, index, key: key.clone(), ids });
            }
        }
        None
    }

    /// Whether several records hold one key of a primary index.
    pub(crate) fn has_conflict(&self) -> bool {
        self.surplus > 0
    }

    pub(crate) fn kind(&self) -> IndexKind {
        self.kind
    }

    pub(crate) fn into_content(self) -> Index<M::Key, M::Id> {
        self.content
    }
}

impl<M: Model> fmt::Debug for IndexBuilder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, index, kind, generation, .. } = self;
        f.debug_struct("IndexBuilder")
            .field("table", table)
            .field("index", index)
            .field("kind", kind)
            .field("generation", generation)
            .finish_non_exhaustive()
    }
}

/// Why indexes were not switched in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexRefusal {
    /// The new layout has an index that the old one has not, or of another kind, and it was not built.
    Missing {
        /// Its table.
        table: TableIx,
        /// The index.
        index: IndexIx,
    },
    /// An index was built that the new layout has not, or as one of another kind.
    Unknown {
        /// Its table.
        table: TableIx,
        /// The index.
        index: IndexIx,
    },
    /// The new layout has fewer tables than the old one, or fewer indexes in one of them.
    Shrunk,
    /// Several records hold one key of a primary index: see [`IndexBuilder::conflict`].
    Conflict {
        /// Its table.
        table: TableIx,
        /// The index.
        index: IndexIx,
    },
    /// An index is more than [`CATCH_UP_RECORDS_MAX`] changed records behind: let it catch up and try again.
    TooFar,
    /// An index is of another generation, and the changes in between are not known: build it again.
    Stale,
}

impl fmt::Display for IndexRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { table, index } => {
                write!(f, "index {} of table {} was not built", index.0, table.0)
            }
            Self::Unknown { table, index } => {
                write!(f, "there is to be no such index {} of table {}", index.0, table.0)
            }
            Self::Shrunk => f.write_str("the new layout has fewer tables or indexes"),
            Self::Conflict { table, index } => {
                write!(f, "several records hold one key of primary index {} of table {}", index.0, table.0)
            }
            Self::TooFar => f.write_str("an index is too far behind"),
            Self::Stale => f.write_str("an index was built from records too old"),
        }
    }
}

impl std::error::Error for IndexRefusal {}

/// Indexes that were not switched in, as they are now.
pub struct RefusedIndexes<M: Model> {
    /// Why not.
    pub reason: IndexRefusal,
    /// The indexes, in the order they came.
    pub indexes: Vec<IndexBuilder<M>>,
}

impl<M: Model> fmt::Debug for RefusedIndexes<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, indexes } = self;
        f.debug_struct("RefusedIndexes").field("reason", reason).field("indexes", indexes).finish()
    }
}

impl<M: Model> fmt::Display for RefusedIndexes<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<M: Model> std::error::Error for RefusedIndexes<M> {}
