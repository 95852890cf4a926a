//! Validation: a transaction is run on the cache by the server's own executor before it is sent.
//!
//! A verdict is only worth as much as the cache it was made on, and the cache lacks what other transactions of this
//! client have in flight. So each transaction is reduced to what it looked at and what it changes ([`Footprint`]): a
//! verdict that looked at nothing that is in flight is the same with those transactions and without them, and stands at
//! once. Any other waits for their replies and is made again. Invariants: what is looked at and what is changed are
//! never understated; an error other than a duplicate key counts everything in the tables around it as looked at.

use crate::error::{Duplicate, Refusal};
use crate::plan::Known;
use crate::snapshot::Snapshot;
use cowslip_engine::{ChangeSet, IndexIx, IndexKind, Strength, TableIx, Uuid};
use cowslip_ovsdb::condition::{Clause, Condition, Function};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::executor::{Circumstances, Execution, Outcome, execute, indexed};
use cowslip_ovsdb::mutation::Mutator;
use cowslip_ovsdb::operation::{Operation, Transaction};
use cowslip_ovsdb::row::{IndexKey, Ovsdb};
use cowslip_ovsdb::schema::{Column, ColumnIx, KeyPart, Schema, TableSchema};
use cowslip_ovsdb::types::UNLIMITED;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Which transactions are validated before they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// None.
    Off,
    /// Those with an operation on a table that has a primary client index.
    #[default]
    PrimaryIndexes,
    /// All.
    All,
}

impl Validation {
    /// Whether a transaction is to be validated.
    pub(crate) fn applies_to(self, schema: &Schema, operations: &[Operation]) -> bool {
        let has_primary = |table: TableIx| {
            schema.at(table).client_indexes.iter().any(|index| index.kind == IndexKind::Primary)
        };
        match self {
            Validation::Off => false,
            Validation::All => true,
            Validation::PrimaryIndexes => operations.iter().filter_map(table_of).any(has_primary),
        }
    }
}

/// Something that a transaction can look at or change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Thing {
    table: TableIx,
    what: What,
}

// The order matters: all things of one table are one range, and `Anything` is its beginning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Whatever the table has.
    Anything,
    /// Which rows there are.
    Members,
    /// A column of any row.
    Values(ColumnIx),
    /// Whether a row is there.
    Row(Uuid),
    /// A column of a row.
    Value(Uuid, ColumnIx),
    /// Who holds a key.
    Key(IndexIx, IndexKey),
    /// Who refers to a row.
    Referrers(Uuid),
}

/// Things in order, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint(Vec<Thing>);

impl Footprint {
    fn new(mut things: Vec<Thing>) -> Self {
        things.sort_unstable();
        things.dedup();
        Footprint(things)
    }

    /// Everything in some tables.
    fn tables(tables: &BTreeSet<TableIx>) -> Self {
        Footprint(tables.iter().map(|table| Thing { table: *table, what: What::Anything }).collect())
    }

    /// Whether what `self` looks at is something that `changed` changes.
    pub(crate) fn meets(&self, changed: &Footprint) -> bool {
        let Footprint(changed) = changed;
        if changed.is_empty() {
            return false;
        }
        let is_changed = |thing: &Thing| {
            if thing.what == What::Anything {
                let from = changed.partition_point(|t| t.table < thing.table);
                return changed.get(from).is_some_and(|t| t.table == thing.table);
            }
            changed.binary_search(thing).is_ok()
        };
        let has_anything = changed.iter().any(|t| t.what == What::Anything);
        self.0.iter().any(|thing| {
            is_changed(thing)
                || (has_anything
                    && changed.binary_search(&Thing { table: thing.table, what: What::Anything }).is_ok())
        })
    }
}

/// A transaction run on the cache.
pub(crate) struct Trial {
    pub(crate) outcome: Outcome,
    /// Why it is refused, if it is.
    pub(crate) refusal: Option<Refusal>,
    /// What the verdict looked at; nothing, if nobody asked.
    pub(crate) looked_at: Footprint,
}

/// What a transaction changes if it is applied. Most transactions end before another one asks.
#[derive(Default)]
pub(crate) struct Changed {
    changes: Option<ChangeSet<Ovsdb>>,
    footprint: OnceCell<Footprint>,
}

impl Changed {
    /// Of a transaction that is not run.
    pub(crate) fn by_operations(schema: &Schema, operations: &[Operation]) -> Self {
        Changed { changes: None, footprint: OnceCell::from(anything(schema, operations)) }
    }

    /// Of a transaction that was tried.
    pub(crate) fn by_outcome(schema: &Schema, operations: &[Operation], outcome: Outcome) -> Self {
        let is_known = outcome.is_certain && (outcome.error.is_none() || outcome.conflict.is_some());
        if is_known {
            return Changed { changes: Some(outcome.changes), footprint: OnceCell::new() };
        }
        Changed::by_operations(schema, operations)
    }

    pub(crate) fn footprint(&self) -> &Footprint {
        self.footprint.get_or_init(|| self.changes.as_ref().map(changed).unwrap_or_default())
    }
}

/// Runs a transaction on the cache; tells what the verdict hangs on, if anyone asks.
pub(crate) fn try_on(snapshot: &Snapshot, transaction: &Transaction, asks: bool) -> Trial {
    let outcome = run(snapshot, transaction);
    let refusal = refusal(snapshot, transaction, &outcome);
    let looked_at = match (asks, outcome.error.is_some() && outcome.conflict.is_none()) {
        (false, _) => Footprint::default(),
        (true, true) => {
            let tables = transaction.operations.iter().filter_map(table_of);
            Footprint::tables(&reachable(snapshot.schema(), tables))
        }
        (true, false) => looked_at(snapshot, transaction, &outcome),
    };
    Trial { outcome, refusal, looked_at }
}

/// What a transaction may change, by its operations alone: the tables that they name; those whose rows may be collected
/// because a reference goes, or pruned because a row goes; and those whose rows gain or lose a reference to them.
fn anything(schema: &Schema, operations: &[Operation]) -> Footprint {
    let mut reach = Reach { schema, tables: BTreeSet::new(), losing: Vec::new() };
    for operation in operations {
        match operation {
            Operation::Insert { table, .. } => reach.change(*table, false),
            Operation::Update { table, row, .. } => {
                let is_reference = |column: &Column| match column {
                    Column::Data(column) => schema.at(*table).references.contains(column),
                    Column::Uuid | Column::Version => false,
                };
                reach.tables.insert(*table);
                if row.iter().any(|(column, _)| is_reference(column)) {
                    reach.change(*table, true);
                }
            }
            Operation::Mutate { table, mutations, .. } => {
                reach.tables.insert(*table);
                if mutations.iter().any(|m| schema.at(*table).references.contains(&m.column)) {
                    reach.change(*table, true);
                }
            }
            Operation::Delete { table, .. } => reach.losing.push(*table),
            _ => {}
        }
    }
    reach.follow();
    Footprint::tables(&reach.tables)
}

/// The tables that a transaction may change.
struct Reach<'a> {
    schema: &'a Schema,
    tables: BTreeSet<TableIx>,
    /// Tables whose rows may go.
    losing: Vec<TableIx>,
}

impl Reach<'_> {
    /// References of a table's rows may change; if they may go, what they keep may, too.
    fn change(&mut self, table: TableIx, may_go: bool) {
        self.tables.insert(table);
        for (target, strength) in targets(self.schema, table) {
            self.tables.insert(target);
            if may_go && strength == Strength::Strong && !self.schema.at(target).is_root {
                self.losing.push(target);
            }
        }
    }

    fn follow(&mut self) {
        let mut followed = BTreeSet::new();
        while let Some(table) = self.losing.pop() {
            if !followed.insert(table) {
                continue;
            }
            self.change(table, true);
            for (source, _) in self.schema.numbered_tables() {
                if targets(self.schema, source).any(|reference| reference == (table, Strength::Weak)) {
                    self.change(source, true);
                }
            }
        }
    }
}

/// The tables that a table's columns refer to.
fn targets(schema: &Schema, table: TableIx) -> impl Iterator<Item = (TableIx, Strength)> {
    let definition = schema.at(table);
    let bases = definition.references.iter().flat_map(|column| {
        let ty = &definition.data(*column).ty;
        [Some(&ty.key), ty.value.as_ref()]
    });
    bases.flatten().filter_map(|base| base.reference.as_ref()).map(|r| (r.table, r.strength))
}

/// The executor's outcome on the cache.
pub(crate) fn run(snapshot: &Snapshot, transaction: &Transaction) -> Outcome {
    let circumstances = Circumstances { owns_lock: &|_| true, read_only: false, waited_ms: 0 };
    match execute(&snapshot.root, transaction, snapshot.known.as_ref(), &circumstances) {
        Execution::Done(outcome) => outcome,
        // With incomplete knowledge every `wait` is assumed to hold.
        Execution::Waiting { .. } => unreachable!("a client's executor does not wait"),
    }
}

/// Why an outcome is a refusal: only what is known for certain counts.
pub(crate) fn refusal(snapshot: &Snapshot, transaction: &Transaction, outcome: &Outcome) -> Option<Refusal> {
    let error = outcome.error.clone()?;
    let is_deliberate = error.kind == cowslip_ovsdb::error::ErrorKind::Aborted;
    if !outcome.error_is_certain || is_deliberate {
        return None;
    }
    let schema = snapshot.schema();
    let at = outcome.results.len();
    let operation = (at < transaction.operations.len()).then_some(at);
    let duplicate = outcome.conflict.as_ref().map(|conflict| Duplicate {
        table: schema.at(conflict.table).name.to_string(),
        index: snapshot.known.index_name(schema, conflict.table, conflict.index),
        key: conflict.key.values(),
        rows: conflict.ids.clone(),
    });
    let table = operation.and_then(|at| table_of(&transaction.operations[at]));
    let table = table.or(outcome.conflict.as_ref().map(|c| c.table));
    Some(Refusal {
        generation: snapshot.generation(),
        operation,
        table: table.map(|table| schema.at(table).name.to_string()),
        duplicate,
        error,
    })
}

/// The table of an operation.
pub(crate) fn table_of(operation: &Operation) -> Option<TableIx> {
    match operation {
        Operation::Insert { table, .. }
        | Operation::Select { table, .. }
        | Operation::Update { table, .. }
        | Operation::Mutate { table, .. }
        | Operation::Delete { table, .. }
        | Operation::Wait { table, .. } => Some(*table),
        Operation::Commit { .. } | Operation::Abort | Operation::Comment(_) | Operation::Assert { .. } => {
            None
        }
    }
}

/// These tables and all that are connected with them by references, however far.
fn reachable(schema: &Schema, tables: impl Iterator<Item = TableIx>) -> BTreeSet<TableIx> {
    let mut reached: BTreeSet<TableIx> = tables.collect();
    loop {
        let before = reached.len();
        for (source, _) in schema.numbered_tables() {
            for (target, _) in targets(schema, source) {
                if reached.contains(&source) || reached.contains(&target) {
                    reached.extend([source, target]);
                }
            }
        }
        if reached.len() == before {
            return reached;
        }
    }
}

/// What a change set changes.
fn changed(set: &ChangeSet<Ovsdb>) -> Footprint {
    let mut things = Vec::new();
    for changes in set.tables() {
        let table = changes.table;
        let mut add = |what| things.push(Thing { table, what });
        for record in &changes.records {
            match (&record.old, &record.new) {
                (Some(_), Some(_)) => {
                    for column in record.delta.columns() {
                        add(What::Value(record.id, column));
                        add(What::Values(column));
                    }
                }
                _ => {
                    add(What::Row(record.id));
                    add(What::Members);
                }
            }
        }
        for (index, key, _, _) in changes.keys() {
            add(What::Key(index, key.clone()));
        }
        for (referrer, _) in changes.referrers() {
            add(What::Referrers(referrer.target));
        }
    }
    Footprint::new(things)
}

/// What the verdict on a transaction that went through depends on.
fn looked_at(snapshot: &Snapshot, transaction: &Transaction, outcome: &Outcome) -> Footprint {
    let schema = snapshot.schema();
    let mut look = Look { schema, things: Vec::new() };
    for operation in &transaction.operations {
        look.operation(operation);
    }
    for changes in outcome.changes.tables() {
        let table = changes.table;
        let definition = schema.at(table);
        for record in &changes.records {
            match (&record.old, &record.new) {
                (Some(_), Some(_)) => {
                    for column in record.delta.columns().filter(|c| definition.references.contains(c)) {
                        look.add(table, What::Value(record.id, column));
                    }
                }
                (Some(_), None) => {
                    look.add(table, What::Row(record.id));
                    look.add(table, What::Referrers(record.id));
                }
                _ if definition.max_rows.is_some() => look.add(table, What::Members),
                _ => {}
            }
        }
        let layout = snapshot.root.layout().get(usize::from(table.0));
        for (index, key, _, is_taken) in changes.keys() {
            let kind = layout.and_then(|l| l.indexes.get(usize::from(index.0)));
            if is_taken && kind == Some(&IndexKind::Primary) {
                look.add(table, What::Key(index, key.clone()));
            }
        }
        for (referrer, net) in changes.referrers() {
            look.add(table, What::Row(referrer.target));
            if *net < 0 && referrer.strength == Strength::Strong {
                look.add(table, What::Referrers(referrer.target));
            }
        }
    }
    Footprint::new(look.things)
}

struct Look<'a> {
    schema: &'a Schema,
    things: Vec<Thing>,
}

impl Look<'_> {
    fn add(&mut self, table: TableIx, what: What) {
        self.things.push(Thing { table, what });
    }

    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Insert { table, uuid, chosen: true, .. } => self.add(*table, What::Row(*uuid)),
            Operation::Update { table, condition, row } => {
                self.condition(*table, condition);
                let definition = self.schema.at(*table);
                for (column, _) in row {
                    if let Column::Data(column) = column
                        && is_indexed(definition, *column)
                    {
                        self.value(*table, condition, *column);
                    }
                }
            }
            Operation::Mutate { table, condition, mutations } => {
                self.condition(*table, condition);
                let definition = self.schema.at(*table);
                for mutation in mutations {
                    let ty = &definition.data(mutation.column).ty;
                    let is_membership = matches!(mutation.mutator, Mutator::Insert | Mutator::Delete);
                    let is_free = is_membership && ty.min == 0 && ty.max == UNLIMITED && !ty.is_reference();
                    if !is_free || is_indexed(definition, mutation.column) {
                        self.value(*table, condition, mutation.column);
                    }
                }
            }
            Operation::Delete { table, condition } => self.condition(*table, condition),
            // What a `select` finds and what a `wait` waits for is no part of the verdict.
            _ => {}
        }
    }

    fn condition(&mut self, table: TableIx, condition: &Condition) {
        let by_uuid = uuid_of(condition);
        let others = condition.clauses.iter().filter_map(Clause::column).filter_map(|column| match column {
            Column::Data(column) => Some(column),
            Column::Uuid | Column::Version => None,
        });
        match (by_uuid, indexed(self.schema.at(table), condition)) {
            (Some(uuid), _) => self.add(table, What::Row(uuid)),
            (None, Some((index, key))) => self.add(table, What::Key(index, key)),
            (None, None) => self.add(table, What::Members),
        }
        for column in others {
            match by_uuid {
                Some(uuid) => self.add(table, What::Value(uuid, column)),
                None => self.add(table, What::Values(column)),
            }
        }
    }

    fn value(&mut self, table: TableIx, condition: &Condition, column: ColumnIx) {
        match uuid_of(condition) {
            Some(uuid) => self.add(table, What::Value(uuid, column)),
            None => self.add(table, What::Values(column)),
        }
    }
}

fn uuid_of(condition: &Condition) -> Option<Uuid> {
    condition.equal_to(Column::Uuid).and_then(Datum::as_one).and_then(|atom| atom.as_uuid()).copied()
}

fn is_indexed(table: &TableSchema, column: ColumnIx) -> bool {
    table.indexes.iter().any(|columns| columns.contains(&column))
        || table.client_indexes.iter().any(|index| index.parts.iter().any(|part| part.column() == column))
}

/// A `wait` in front of a transaction, and what it means when it does not hold.
pub(crate) struct Guard {
    pub(crate) operation: Operation,
    pub(crate) duplicate: Duplicate,
}

/// The guards of the keys that a transaction takes: the holders of each key must be those that lose it here.
pub(crate) fn guards(snapshot: &Snapshot, outcome: &Outcome, all: Option<bool>) -> Vec<Guard> {
    let schema = snapshot.schema();
    let mut guards = Vec::new();
    for changes in outcome.changes.tables() {
        let table = changes.table;
        let definition = schema.at(table);
        for (index, key, id, _) in changes.keys().filter(|(_, _, _, is_taken)| *is_taken) {
            if definition.client_index(index).is_none_or(|i| i.kind != IndexKind::Primary) {
                continue;
            }
            if !all.unwrap_or_else(|| is_guarded(&snapshot.known, definition, table, index)) {
                continue;
            }
            let Some(condition) = holders(&definition.key_parts(index), &key.values()) else { continue };
            let losers = changes.keys().filter(|(i, k, _, taken)| *i == index && *k == key && !taken);
            let row = |id: Uuid| vec![(Column::Uuid, Datum::One(cowslip_ovsdb::atom::Atom::Uuid(id)))];
            let rows = losers.map(|(_, _, id, _)| row(id)).collect();
            let operation = Operation::Wait {
                table,
                condition,
                columns: vec![Column::Uuid],
                equal: true,
                rows,
                timeout_ms: Some(0),
            };
            let duplicate = Duplicate {
                table: definition.name.to_string(),
                index: snapshot.known.index_name(schema, table, index),
                key: key.values(),
                rows: vec![id],
            };
            guards.push(Guard { operation, duplicate });
        }
    }
    guards
}

fn is_guarded(known: &Known, definition: &TableSchema, table: TableIx, index: IndexIx) -> bool {
    let at = usize::from(index.0).checked_sub(definition.indexes.len());
    at.and_then(|at| known.table(table)?.guarded.get(at).copied()).unwrap_or(false)
}

/// The condition that the holders of a key meet; none if it cannot be expressed ("no value" of a map's key).
fn holders(parts: &[KeyPart], key: &[Datum]) -> Option<Condition> {
    let clauses = parts.iter().zip(key).map(|(part, value)| {
        let (column, function, argument) = match part {
            KeyPart::Column(column) => (*column, Function::Equal, value.clone()),
            KeyPart::MapValue { column, key, .. } => {
                let pair = (key.clone(), value.as_one()?.clone());
                (*column, Function::Includes, Datum::from_pairs(vec![pair]))
            }
        };
        Some(Clause::Test { column: Column::Data(column), function, argument })
    });
    Some(Condition { clauses: clauses.collect::<Option<_>>()? })
}
