//! The rules that hold at the end of a transaction, in the order in which the reference server applies them:
//! changes that change nothing are dropped; strong references must lead to rows; rows of non-root tables that nothing
//! refers to strongly are collected; `maxRows`; weak references to rows that are gone are pruned, and columns must not
//! fall below their minimum by that; index values must be unique.
//!
//! Each rule looks at what the transaction touched and at nothing else. A row's reference to itself does not keep it; a
//! cycle of two does. Pruning does not depend on the order of operations.

use super::{Executor, Knowledge};
use crate::atom::Atom;
use crate::datum::{Datum, Member, MemberChange};
use crate::error::{Error, ErrorKind};
use crate::mutation::replace_members;
use crate::row::{Ovsdb, Row, RowDelta};
use crate::schema::{ColumnIx, KeyPart, TableSchema};
use crate::types::BaseType;
use cowslip_engine::{
    Conflict, Model, Reference, ReferenceChanges, Referrer, Step, Strength, TableIx, Touched, Uuid,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Weak references to prune: by source table, row and column, the rows that are gone.
type Dangling = BTreeMap<(TableIx, Uuid, ColumnIx), BTreeSet<Uuid>>;

/// Rows of non-root tables that may have lost their last strong reference.
type Candidates = BTreeSet<(TableIx, Uuid)>;

impl<K: Knowledge> Executor<'_, '_, K> {
    /// Applies the rules; the draft then holds what the transaction changes.
    ///
    /// # Errors
    /// The first rule that is broken for certain.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.drop_unchanged();
        let mut candidates = Candidates::new();
        let mut dangling = Dangling::new();
        self.follow_references(&mut candidates, &mut dangling)?;
        self.check_deleted()?;
        let mut is_first_round = true;
        // Pruning a pair of a map can take a strong reference away, hence the rounds.
        while is_first_round || !candidates.is_empty() {
            self.collect(&mut candidates, &mut dangling);
            if !K::COMPLETE {
                self.spread_collection();
            }
            if is_first_round {
                self.check_row_counts()?;
                is_first_round = false;
            }
            self.find_dangling_to_deleted(&mut dangling);
            self.prune(std::mem::take(&mut dangling), &mut candidates)?;
        }
        self.drop_unchanged();
        let conflict = match K::COMPLETE {
            true => self.draft.check_unique(),
            false => self.certain_conflict(),
        };
        let Some(conflict) = conflict else { return Ok(()) };
        let error = self.duplicate(&conflict);
        self.conflict = Some(conflict);
        Err(error)
    }

    /// The first conflict between rows that hold their key for certain.
    fn certain_conflict(&mut self) -> Option<Conflict<Ovsdb>> {
        let mut pruned = BTreeSet::new();
        for (table, id) in &self.doubtful {
            let weak = self.draft.referrers(*table, id).filter(|(r, _)| r.strength == Strength::Weak);
            pruned.extend(weak.map(|(referrer, _)| (referrer.table, referrer.source)));
        }
        self.doubtful.append(&mut pruned);
        let mut is_any = false;
        let certain = self.draft.conflicts().find(|conflict| {
            is_any = true;
            let holds = |id: &&Uuid| !self.doubtful.contains(&(conflict.table, **id));
            let parts = self.schema.at(conflict.table).key_parts(conflict.index);
            let is_shaken = self.unseen.shaken.contains(&conflict.table)
                || parts.iter().any(|part| self.may_be_pruned(conflict.table, part.column()));
            self.sees_right && !is_shaken && conflict.ids.iter().filter(holds).count() > 1
        });
        self.is_certain &= certain.is_some() || !is_any;
        certain
    }

    /// Drops changed rows that are as they were.
    fn drop_unchanged(&mut self) {
        for (table, id) in std::mem::take(&mut self.suspects) {
            let is_changed = self.draft.touched_record(table, &id).is_none_or(|t| match (t.first, t.last) {
                (Some(first), Some(last)) => t.delta.columns().any(|c| t.delta.differs(c, first, last)),
                _ => true,
            });
            if !is_changed {
                self.draft.forget(table, &id);
            }
        }
    }

    /// Looks at each reference that the transaction added or took away, and at each row that it inserted.
    fn follow_references(
        &mut self,
        candidates: &mut Candidates,
        dangling: &mut Dangling,
    ) -> Result<(), Error> {
        let mut is_certain = true;
        let mut changes = ReferenceChanges::default();
        let mut doubtful = Vec::new();
        for table in self.draft.touched_tables() {
            let definition = self.schema.at(table);
            for (id, touched) in self.draft.touched(table) {
                if touched.first.is_none() && touched.last.is_some() && !definition.is_root {
                    candidates.insert((table, *id));
                }
                if definition.references.is_empty() {
                    continue;
                }
                changes.changes.clear();
                Ovsdb::references(self.schema, table, &step(touched), &mut changes);
                for (reference, count) in &changes.changes {
                    match (reference.strength, *count > 0) {
                        (Strength::Strong, false) => {
                            candidates.insert((reference.table, reference.target));
                        }
                        _ if *count < 0
                            || self.draft.record(reference.table, &reference.target).is_some() => {}
                        _ if !K::COMPLETE
                            && (!self.knowledge.has_all_rows(reference.table)
                                || self.unseen.vague.contains(&(table, *id))) =>
                        {
                            is_certain = false;
                            doubtful.push((table, *id));
                        }
                        (Strength::Strong, _) => return Err(self.missing_target(table, id, reference)),
                        (Strength::Weak, _) => {
                            let place = (table, *id, ColumnIx::from_slot(reference.slot));
                            dangling.entry(place).or_default().insert(reference.target);
                        }
                    }
                }
            }
        }
        candidates.retain(|(table, _)| !self.schema.at(*table).is_root);
        self.is_certain &= is_certain;
        self.doubtful.extend(doubtful);
        Ok(())
    }

    fn missing_target(&self, table: TableIx, id: &Uuid, reference: &Reference<Uuid>) -> Error {
        let source = self.schema.at(table);
        let details = format!(
            "Table {} column {} row {id} references nonexistent row {} in table {}.",
            source.name,
            source.data(ColumnIx::from_slot(reference.slot)).name,
            reference.target,
            self.schema.at(reference.table).name
        );
        Error::new(ErrorKind::ReferentialIntegrity, details)
    }

    /// No row may go that another one refers to strongly.
    fn check_deleted(&self) -> Result<(), Error> {
        for table in self.draft.touched_tables() {
            for (id, touched) in self.draft.touched(table) {
                if touched.first.is_none() || touched.last.is_some() {
                    continue;
                }
                let strong =
                    self.draft.referrers(table, id).take_while(|(r, _)| r.strength == Strength::Strong);
                let is_certain =
                    |r: &Referrer<Uuid>| K::COMPLETE || !self.unseen.vague.contains(&(r.table, r.source));
                let strong = strong.filter(|(referrer, _)| is_certain(referrer));
                let count: u64 = strong.map(|(_, count)| u64::from(count)).sum();
                if count > 0 {
                    let details = format!(
                        "cannot delete {} row {id} because of {count} remaining reference(s)",
                        self.schema.at(table).name
                    );
                    return Err(Error::new(ErrorKind::ReferentialIntegrity, details));
                }
            }
        }
        Ok(())
    }

    /// Deletes the candidates that nothing but themselves refers to strongly, and what only they kept.
    fn collect(&mut self, candidates: &mut Candidates, dangling: &mut Dangling) {
        while let Some((table, id)) = candidates.pop_first() {
            let Some(row) = self.draft.record(table, &id).cloned() else { continue };
            let is_kept = self
                .draft
                .referrers(table, &id)
                .take_while(|(referrer, _)| referrer.strength == Strength::Strong)
                .any(|(referrer, _)| {
                    let source = (referrer.table, referrer.source);
                    let is_certain = !self.doubtful.contains(&source) && !self.unseen.vague.contains(&source);
                    source != (table, id) && (K::COMPLETE || is_certain)
                });
            if is_kept {
                continue;
            }
            let mut changes = ReferenceChanges::default();
            let gone = Step { old: Some(row.as_ref()), new: None, delta: &RowDelta::default() };
            Ovsdb::references(self.schema, table, &gone, &mut changes);
            if !K::COMPLETE {
                self.note_collected(table, &id);
            }
            if !K::COMPLETE && (self.has_strong_referrer(table, &id) || !self.knows_all_referrers(table)) {
                self.is_certain = false;
                if self.doubtful.insert((table, id)) {
                    candidates.extend(self.strongly_held(&changes));
                }
                continue;
            }
            self.draft.remove(table, &id);
            candidates.extend(self.strongly_held(&changes));
            dangling.retain(|(source_table, source, _), _| (*source_table, *source) != (table, id));
        }
    }

    /// The rows of non-root tables among the targets of strong references.
    fn strongly_held(&self, references: &ReferenceChanges<Uuid>) -> Vec<(TableIx, Uuid)> {
        let strong = references.changes.iter().map(|(reference, _)| reference).filter(|reference| {
            reference.strength == Strength::Strong && !self.schema.at(reference.table).is_root
        });
        strong.map(|reference| (reference.table, reference.target)).collect()
    }

    /// Whether another row refers strongly to this one.
    fn has_strong_referrer(&self, table: TableIx, id: &Uuid) -> bool {
        let referrers = self.draft.referrers(table, id);
        let mut strong = referrers.take_while(|(referrer, _)| referrer.strength == Strength::Strong);
        strong.any(|(referrer, _)| (referrer.table, referrer.source) != (table, *id))
    }

    /// Whether every row and column that can refer strongly to a table's rows is known.
    fn knows_all_referrers(&self, target: TableIx) -> bool {
        self.schema.numbered_tables().all(|(table, definition)| {
            let refers = |base: Option<&BaseType>| {
                base.and_then(|b| b.reference.as_ref()).is_some_and(|r| r.table == target)
            };
            definition.references.iter().all(|&column| {
                let ty = &definition.data(column).ty;
                !(refers(Some(&ty.key)) || refers(ty.value.as_ref()))
                    || (self.knowledge.has_all_rows(table) && self.knowledge.has_column(table, column))
            })
        })
    }

    fn check_row_counts(&self) -> Result<(), Error> {
        for table in self.draft.touched_tables() {
            let definition = self.schema.at(table);
            let (Some(max), count) = (definition.max_rows, self.draft.len(table) as u64) else { continue };
            if count > max && (K::COMPLETE || self.is_certain) {
                let details = format!(
                    "transaction causes \"{}\" table to contain {count} rows, \
                     greater than the schema-defined limit of {max} row(s)",
                    definition.name
                );
                return Err(Error::new(ErrorKind::ConstraintViolation, details));
            }
        }
        Ok(())
    }

    /// Adds the weak references to rows that this transaction deleted.
    fn find_dangling_to_deleted(&self, dangling: &mut Dangling) {
        for table in self.draft.touched_tables() {
            for (id, touched) in self.draft.touched(table) {
                if touched.last.is_some() {
                    continue;
                }
                for (referrer, _) in self.draft.referrers(table, id) {
                    if referrer.strength == Strength::Weak {
                        let place = (referrer.table, referrer.source, ColumnIx::from_slot(referrer.slot));
                        dangling.entry(place).or_default().insert(*id);
                    }
                }
            }
        }
    }

    /// Takes weak references to rows that are gone out of their columns.
    fn prune(&mut self, dangling: Dangling, candidates: &mut Candidates) -> Result<(), Error> {
        for ((table, id, column), targets) in dangling {
            let Some(row) = self.draft.record(table, &id).cloned() else { continue };
            let definition = self.schema.at(table);
            let ty = &definition.data(column).ty;
            let is_gone = |base: &BaseType, atom: &Atom| {
                let (Some(reference), Some(target)) = (&base.reference, atom.as_uuid()) else { return false };
                reference.strength == Strength::Weak
                    && targets.contains(target)
                    && self.draft.record(reference.table, target).is_none()
            };
            let old = row.data(column);
            let changes = match &ty.value {
                None => pruned_elements(old, &targets, |atom| is_gone(&ty.key, atom)),
                Some(value_type) => pruned_pairs(old, |k, v| is_gone(&ty.key, k) || is_gone(value_type, v)),
            };
            if changes.is_empty() {
                continue;
            }
            let pruned = changes.len();
            let has_nil = changes.iter().any(|c| c.key == Atom::Uuid(Uuid::nil()));
            let mut new = row.as_ref().clone();
            let mut delta = RowDelta::default();
            replace_members(column, &mut new.columns[usize::from(column.0)], changes, &mut delta);
            if new.data(column).len() < ty.min as usize {
                if !K::COMPLETE
                    && (self.doubtful.contains(&(table, id)) || self.unseen.shaken.contains(&table))
                {
                    // The row may be collected before anybody looks at its weak references.
                    self.is_certain = false;
                    continue;
                }
                return Err(self.emptied(table, &id, column, pruned, has_nil));
            }
            let mut references = ReferenceChanges::default();
            let change = Step { old: Some(row.as_ref()), new: Some(&new), delta: &delta };
            Ovsdb::references(self.schema, table, &change, &mut references);
            for (reference, count) in references.changes {
                let is_root = self.schema.at(reference.table).is_root;
                if count < 0 && reference.strength == Strength::Strong && !is_root {
                    candidates.insert((reference.table, reference.target));
                }
            }
            self.modify(table, (id, row), new, delta);
        }
        Ok(())
    }

    /// The error of a column that pruning would leave below its minimum.
    fn emptied(&self, table: TableIx, id: &Uuid, column: ColumnIx, pruned: usize, has_nil: bool) -> Error {
        let definition = self.schema.at(table);
        let (table_name, column) = (&definition.name, &definition.data(column).name);
        let is_new = self.draft.touched_record(table, id).is_some_and(|t| t.first.is_none());
        let origin = if is_new { " (inserted within this transaction)" } else { "" };
        let details = if has_nil {
            format!(
                "Weak reference column \"{column}\" in \"{table_name}\" row {id}{origin} contained all-zeros UUID \
                 (probably as the default value for this column) but deleting this value caused a constraint \
                 volation because this column is not allowed to be empty."
            )
        } else {
            format!(
                "Deletion of {pruned} weak reference(s) to deleted (or never-existing) rows from column \"{column}\" \
                 in \"{table_name}\" row {id}{origin} caused this column to become empty, but constraints on this \
                 column disallow an empty column."
            )
        };
        Error::new(ErrorKind::ConstraintViolation, details)
    }

    /// The error of two rows with the same index values.
    fn duplicate(&self, conflict: &Conflict<Ovsdb>) -> Error {
        let definition = self.schema.at(conflict.table);
        let parts = definition.key_parts(conflict.index);
        let names: Vec<String> = parts.iter().map(|part| name_of(definition, part)).collect();
        let noun = if names.len() == 1 { "column" } else { "columns" };
        let names = format!("{noun} {}", enumeration(&names));
        let mut rows: Vec<&Uuid> = conflict.ids.iter().collect();
        rows.sort_by(|a, b| self.reported_order(conflict.table, a, b));
        let mut details = format!(
            "Transaction causes multiple rows in \"{}\" table to have identical values ({}) for index on {names}.",
            definition.name,
            in_words(definition, &parts, &conflict.key.values())
        );
        for (id, place) in rows.into_iter().zip(["First", "Second"]) {
            let history = match self.draft.touched_record(conflict.table, id) {
                None => {
                    "existed in the database before this transaction and was not modified by the transaction"
                        .to_string()
                }
                Some(Touched { first: None, .. }) => "was inserted by this transaction".to_string(),
                Some(Touched { first: Some(first), .. }) => match definition.key_of(conflict.index, first) {
                    Some(before) if before == conflict.key => {
                        "existed in the database before this transaction, which modified some of the row's \
                             columns but not any columns in this index"
                            .to_string()
                    }
                    Some(before) => {
                        let before = in_words(definition, &parts, &before.values());
                        format!("had the following index values before the transaction: {before}")
                    }
                    None => "was not in the index before the transaction".to_string(),
                },
            };
            details.push_str(&format!("  {place} row, with UUID {id}, {history}."));
        }
        Error::new(ErrorKind::ConstraintViolation, details)
    }

    /// The order in which two rows with one key are named: one that was left alone first, then by their values, the
    /// larger first, so that the message does not depend on the random UUIDs.
    fn reported_order(&self, table: TableIx, a: &Uuid, b: &Uuid) -> Ordering {
        let values = |id: &Uuid| self.draft.record(table, id).map(|row| row.columns.clone());
        let is_touched = |id: &Uuid| self.draft.is_touched(table, id);
        is_touched(a).cmp(&is_touched(b)).then_with(|| values(b).cmp(&values(a))).then(a.cmp(b))
    }
}

fn step<'a>(touched: Touched<'a, Ovsdb>) -> Step<'a, Ovsdb> {
    let row = |row: Option<&'a std::sync::Arc<Row>>| row.map(|r| r.as_ref());
    Step { old: row(touched.first), new: row(touched.last), delta: touched.delta }
}

fn pruned_elements(
    old: &Datum,
    targets: &BTreeSet<Uuid>,
    is_gone: impl Fn(&Atom) -> bool,
) -> Vec<MemberChange> {
    targets
        .iter()
        .map(|target| Atom::Uuid(*target))
        .filter(|atom| old.contains(atom) && is_gone(atom))
        .map(|key| MemberChange { key, old: Member::Element, new: Member::Absent })
        .collect()
}

fn pruned_pairs(old: &Datum, is_gone: impl Fn(&Atom, &Atom) -> bool) -> Vec<MemberChange> {
    old.members()
        .filter_map(|(key, value)| {
            let value = value.filter(|value| is_gone(key, value))?;
            let old = Member::Value(value.clone());
            Some(MemberChange { key: key.clone(), old, new: Member::Absent })
        })
        .collect()
}

/// A part of an index as messages name it.
fn name_of(table: &TableSchema, part: &KeyPart) -> String {
    let column = &table.data(part.column()).name;
    match part {
        KeyPart::Column(_) => format!("\"{column}\""),
        KeyPart::MapValue { key, .. } => format!("\"{column}:{key}\""),
    }
}

fn in_words(table: &TableSchema, parts: &[KeyPart], key: &[Datum]) -> String {
    let values = parts.iter().zip(key).map(|(part, value)| match part {
        KeyPart::Column(column) => value.in_words(&table.data(*column).ty),
        KeyPart::MapValue { .. } => value.as_one().map_or_else(|| "absent".to_string(), Atom::to_string),
    });
    enumeration(&values.collect::<Vec<_>>())
}

/// Texts as a list in a sentence.
fn enumeration(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        [rest @ .., last] => format!("{}, and {last}", rest.join(", ")),
    }
}
