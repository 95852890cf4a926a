//! Rows, and what the engine needs to know of them.
//!
//! A row holds a value for each data column of its table. A step from one version of a row to the next comes with a
//! [`RowDelta`]: the columns that may differ, and for large values the members that do. It is made once, by the
//! operation that changes the row; references, indexes, the journal and the monitors all read it.
//!
//! Invariant: a column that a delta does not name is equal before and after.

pub use crate::key::IndexKey;

use crate::atom::{Atom, AtomicType};
use crate::datum::{Datum, Member, MemberChange};
use crate::schema::{Column, ColumnIx, Schema};
use crate::types::{BaseType, ColumnType};
use cowslip_engine::{
    IndexIx, IndexKind, KeyChanges, Model, Reference, ReferenceChanges, Step, TableIx, TableLayout, Uuid,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// A row without its UUID, which is its key in the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `_version`: another one after each change.
    pub version: Uuid,
    /// The values of the data columns, by their numbers.
    pub columns: Box<[Datum]>,
}

/// The type of `_uuid` and `_version`.
pub static UUID_TYPE: LazyLock<ColumnType> = LazyLock::new(|| ColumnType::scalar(AtomicType::Uuid));

impl Row {
    /// The value of a data column.
    pub fn data(&self, column: ColumnIx) -> &Datum {
        &self.columns[usize::from(column.0)]
    }

    /// The value of any column of the row that `id` names.
    pub fn value(&self, id: &Uuid, column: Column) -> Cow<'_, Datum> {
        match column {
            Column::Uuid => Cow::Owned(Datum::One(Atom::Uuid(*id))),
            Column::Version => Cow::Owned(Datum::One(Atom::Uuid(self.version))),
            Column::Data(column) => Cow::Borrowed(self.data(column)),
        }
    }
}

/// What may differ between two versions of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowDelta {
    /// Columns that are to be compared as a whole.
    whole: Columns,
    /// Columns whose members' changes are known.
    members: Vec<(ColumnIx, MemberChanges)>,
}

/// A set of columns that takes no memory of its own for most tables.
#[derive(Clone, Debug, Default, PartialEq)]
struct Columns {
    /// The columns below [`Columns::LOW`], a bit for each.
    low: u64,
    /// The others.
    high: BTreeSet<ColumnIx>,
}

impl Columns {
    const LOW: u16 = u64::BITS as u16;

    fn insert(&mut self, column: ColumnIx) {
        match column.0 < Self::LOW {
            true => self.low |= 1 << column.0,
            false => drop(self.high.insert(column)),
        }
    }

    fn contains(&self, column: ColumnIx) -> bool {
        match column.0 < Self::LOW {
            true => self.low >> column.0 & 1 == 1,
            false => self.high.contains(&column),
        }
    }

    fn iter(&self) -> impl Iterator<Item = ColumnIx> {
        let mut rest = self.low;
        let low = std::iter::from_fn(move || {
            let lowest = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (lowest < u64::BITS).then_some(ColumnIx(lowest as u16))
        });
        low.chain(self.high.iter().copied())
    }

    fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }
}

/// Each changed member, before and after.
type MemberChanges = BTreeMap<Atom, (Member, Member)>;

impl RowDelta {
    /// Notes that a column may differ.
    pub fn touch(&mut self, column: ColumnIx) {
        self.members.retain(|(c, _)| *c != column);
        self.whole.insert(column);
    }

    /// Notes how a column's members change, after what was noted before.
    pub fn change(&mut self, column: ColumnIx, changes: Vec<MemberChange>) {
        if self.whole.contains(column) {
            return;
        }
        let at = match self.members.iter().position(|(c, _)| *c == column) {
            Some(at) => at,
            None => {
                self.members.push((column, BTreeMap::new()));
                self.members.len() - 1
            }
        };
        let known = &mut self.members[at].1;
        for MemberChange { key, old, new } in changes {
            let first = known.remove(&key).map_or(old, |(first, _)| first);
            if first != new {
                known.insert(key, (first, new));
            }
        }
    }

    /// The columns that may differ.
    pub fn columns(&self) -> impl Iterator<Item = ColumnIx> {
        self.whole.iter().chain(self.members.iter().map(|(c, _)| *c))
    }

    /// Whether no column may differ.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.members.is_empty()
    }

    /// Whether a column may differ.
    pub fn touches(&self, column: ColumnIx) -> bool {
        self.whole.contains(column) || self.members.iter().any(|(c, _)| *c == column)
    }

    /// Whether the column really differs between the two versions of the row that the delta lies between.
    pub fn differs(&self, column: ColumnIx, old: &Row, new: &Row) -> bool {
        match self.members.iter().find(|(c, _)| *c == column) {
            Some((_, changes)) => !changes.is_empty(),
            None => self.whole.contains(column) && old.data(column) != new.data(column),
        }
    }

    /// How the members of a column differ.
    pub fn changes(&self, column: ColumnIx, old: &Row, new: &Row) -> Vec<MemberChange> {
        match self.members.iter().find(|(c, _)| *c == column) {
            Some((_, changes)) => changes
                .iter()
                .map(|(key, (old, new))| MemberChange {
                    key: key.clone(),
                    old: old.clone(),
                    new: new.clone(),
                })
                .collect(),
            None if self.whole.contains(column) => old.data(column).changes_to(new.data(column)),
            None => Vec::new(),
        }
    }
}

/// The engine's view of an OVSDB database.
#[derive(Debug)]
pub struct Ovsdb;

/// What a transaction's record says besides its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The comments, one to a line.
    pub comment: Option<String>,
}

impl Model for Ovsdb {
    type Id = Uuid;
    type Value = Row;
    type Key = IndexKey;
    type Delta = RowDelta;
    type Meta = Schema;
    type Note = Note;

    fn layout(schema: &Schema) -> Vec<TableLayout> {
        let layout = |t: &crate::schema::TableSchema| {
            let declared = std::iter::repeat_n(IndexKind::Primary, t.indexes.len());
            TableLayout { indexes: declared.chain(t.client_indexes.iter().map(|i| i.kind)).collect() }
        };
        schema.tables.iter().map(layout).collect()
    }

    fn keys(
        schema: &Schema,
        table: TableIx,
        index: IndexIx,
        step: &Step<'_, Self>,
        out: &mut KeyChanges<IndexKey>,
    ) {
        let table = schema.at(table);
        let may_differ = |column: ColumnIx| match (step.old, step.new) {
            (Some(old), Some(new)) => step.delta.differs(column, old, new),
            _ => true,
        };
        if table.key_parts_any(index, may_differ) {
            let key = |row: &Row| table.key_of(index, row);
            let (old, new) = (step.old.and_then(key), step.new.and_then(key));
            if old != new {
                out.removed.extend(old);
                out.added.extend(new);
            }
        }
    }

    fn references(schema: &Schema, table: TableIx, step: &Step<'_, Self>, out: &mut ReferenceChanges<Uuid>) {
        let table = schema.at(table);
        for &column in &table.references {
            let ty = &table.data(column).ty;
            match (step.old, step.new) {
                (Some(old), Some(new)) => {
                    if step.delta.touches(column) {
                        for change in step.delta.changes(column, old, new) {
                            count_member(ty, column, &change.key, &change.old, -1, out);
                            count_member(ty, column, &change.key, &change.new, 1, out);
                        }
                    }
                }
                (Some(row), None) => count_row(ty, column, row, -1, out),
                (None, Some(row)) => count_row(ty, column, row, 1, out),
                (None, None) => {}
            }
        }
    }

    fn merge(into: &mut RowDelta, step: RowDelta) {
        if into.is_empty() {
            *into = step;
            return;
        }
        for column in step.whole.iter() {
            into.touch(column);
        }
        for (column, changes) in step.members {
            let changes =
                changes.into_iter().map(|(key, (old, new))| MemberChange { key, old, new }).collect();
            into.change(column, changes);
        }
    }

    fn difference(schema: &Schema, table: TableIx, _old: &Row, _new: &Row) -> RowDelta {
        let mut delta = RowDelta::default();
        schema.at(table).data_columns().for_each(|(column, _)| delta.touch(column));
        delta
    }

    fn weight(row: &Row) -> usize {
        /// What an atom of text or a member of a larger value takes besides its place in the row, roughly.
        const MEMBER_BYTES: usize = 48;
        let members: usize = row.columns.iter().map(|d| d.len()).sum();
        size_of::<Row>() + row.columns.len() * size_of::<Datum>() + members * MEMBER_BYTES
    }
}

fn count_row(ty: &ColumnType, column: ColumnIx, row: &Row, by: i64, out: &mut ReferenceChanges<Uuid>) {
    for (key, value) in row.data(column).members() {
        count_atom(&ty.key, column, key, by, out);
        if let (Some(base), Some(value)) = (&ty.value, value) {
            count_atom(base, column, value, by, out);
        }
    }
}

fn count_member(
    ty: &ColumnType,
    column: ColumnIx,
    key: &Atom,
    member: &Member,
    by: i64,
    out: &mut ReferenceChanges<Uuid>,
) {
    if *member == Member::Absent {
        return;
    }
    count_atom(&ty.key, column, key, by, out);
    if let (Some(base), Member::Value(value)) = (&ty.value, member) {
        count_atom(base, column, value, by, out);
    }
}

fn count_atom(base: &BaseType, column: ColumnIx, atom: &Atom, by: i64, out: &mut ReferenceChanges<Uuid>) {
    if let (Some(reference), Some(target)) = (&base.reference, atom.as_uuid()) {
        let reference = Reference {
            table: reference.table,
            target: *target,
            strength: reference.strength,
            slot: column.slot(),
        };
        out.changes.push((reference, by));
    }
}
