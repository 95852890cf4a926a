//! What a transaction may do to rows and columns that are not known.
//!
//! A client's executor runs on a part of the database. An operation on the rest may take references away that nobody here
//! sees, so that rows that are seen are collected, and what goes with them. None of this makes a rule broken or kept for
//! certain: who holds a key, or counts as a row, is only certain in tables that are not touched by it. A server knows
//! everything and asks for none of this.

use super::{Executor, Knowledge, is_new};
use crate::atom::Atom;
use crate::condition::Condition;
use crate::datum::Datum;
use crate::schema::{Column, ColumnIx};
use crate::types::BaseType;
use cowslip_engine::{Strength, TableIx, Uuid};
use std::collections::BTreeSet;

/// What may have changed unseen.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Rows that were there before, with a column that is not known and was mutated: what it refers to now, by what this
    /// transaction gave it before, is not certain.
    pub(super) vague: BTreeSet<(TableIx, Uuid)>,
    /// Non-root tables whose rows, seen or not, may have lost their last strong reference.
    pub(super) shaken: BTreeSet<TableIx>,
    /// Tables of which rows that are not seen may have been deleted.
    pub(super) thinned: BTreeSet<TableIx>,
}

impl<K: Knowledge> Executor<'_, '_, K> {
    /// Notes that columns of the rows of a condition may lose what they refer to.
    pub(super) fn note_lost(
        &mut self,
        table: TableIx,
        condition: &Condition,
        columns: impl Iterator<Item = ColumnIx>,
    ) {
        let named = condition.equal_to(Column::Uuid).and_then(Datum::as_one).and_then(Atom::as_uuid);
        let is_new = named.is_some_and(|id| is_new(&self.draft, table, id));
        let sees_rows = self.sees_rows_of(table, condition);
        for column in columns {
            if !sees_rows || !(is_new || self.knows_column(table, column)) {
                self.shake_targets(table, column);
            }
        }
    }

    /// Notes that the rows of a condition are deleted.
    pub(super) fn note_deleted(&mut self, table: TableIx, condition: &Condition) {
        let schema = self.schema;
        self.note_lost(table, condition, schema.at(table).references.iter().copied());
        if !self.sees_rows_of(table, condition) {
            self.unseen.thinned.insert(table);
        }
    }

    /// Notes that a row may be collected, and with it what its unknown columns refer to.
    pub(super) fn note_collected(&mut self, table: TableIx, id: &Uuid) {
        if is_new(&self.draft, table, id) {
            return;
        }
        let schema = self.schema;
        for column in schema.at(table).references.iter().copied() {
            if !self.knows_column(table, column) {
                self.shake_targets(table, column);
            }
        }
    }

    /// What may be collected takes along what it refers to.
    pub(super) fn spread_collection(&mut self) {
        let schema = self.schema;
        let mut rest: Vec<TableIx> = self.unseen.shaken.iter().copied().collect();
        self.is_certain &= rest.is_empty();
        while let Some(table) = rest.pop() {
            let before = self.unseen.shaken.clone();
            for column in schema.at(table).references.iter().copied() {
                self.shake_targets(table, column);
            }
            rest.extend(self.unseen.shaken.difference(&before).copied());
        }
    }

    /// Whether a column's weak references may have been pruned unseen.
    pub(super) fn may_be_pruned(&self, table: TableIx, column: ColumnIx) -> bool {
        let ty = &self.schema.at(table).data(column).ty;
        let is_weak = |base: &BaseType| {
            base.reference.as_ref().is_some_and(|reference| {
                let unseen = &self.unseen;
                let may_go =
                    unseen.shaken.contains(&reference.table) || unseen.thinned.contains(&reference.table);
                reference.strength == Strength::Weak && may_go
            })
        };
        is_weak(&ty.key) || ty.value.as_ref().is_some_and(is_weak)
    }

    fn sees_rows_of(&self, table: TableIx, condition: &Condition) -> bool {
        let named = condition.equal_to(Column::Uuid).and_then(Datum::as_one).and_then(Atom::as_uuid);
        let is_seen = named.is_some_and(|id| self.draft.record(table, id).is_some());
        is_seen || self.knowledge.has_all_rows(table)
    }

    fn shake_targets(&mut self, table: TableIx, column: ColumnIx) {
        let ty = &self.schema.at(table).data(column).ty;
        for reference in
            [Some(&ty.key), ty.value.as_ref()].into_iter().flatten().filter_map(|b| b.reference.as_ref())
        {
            if reference.strength == Strength::Strong && !self.schema.at(reference.table).is_root {
                self.unseen.shaken.insert(reference.table);
            }
        }
    }
}
