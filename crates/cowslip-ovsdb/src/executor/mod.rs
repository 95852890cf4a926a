//! The transaction executor (RFC 7047 sections 4.1.3 and 5.2): one for servers and clients.
//!
//! Operations run in order on a draft of a root; then the rules that hold at the end of a transaction are applied
//! (the module `commit`). Nothing is written but the draft: its change set is the outcome. Look-ups by `_uuid` and by the
//! columns of an index never scan.
//!
//! With incomplete [`Knowledge`], a rule is only taken as broken if what is known breaks it; where that can't be told
//! the outcome is marked as not certain.

mod commit;
mod found;
mod knowledge;
mod results;
mod unseen;

pub use knowledge::{Everything, Knowledge};
pub use results::{OperationResult, Selection};

use crate::atom::Atom;
use crate::condition::Condition;
use crate::datum::Datum;
use crate::error::{Error, ErrorKind};
use crate::key::KeyWriter;
use crate::mutation::{Mutation, Mutator, replace_members};
use crate::operation::{Operation, PartialRow, Transaction};
use crate::row::{IndexKey, Ovsdb, Row, RowDelta};
use crate::schema::{Column, ColumnIx, KeyPart, Schema, TableSchema};
use cowslip_engine::{ChangeSet, Conflict, Draft, IndexIx, Root, TableIx, Uuid};
use found::Found;
use std::collections::BTreeSet;
use std::sync::Arc;
use unseen::Unseen;

/// What a transaction's outcome depends on besides the data.
pub struct Circumstances<'a> {
    /// Tells whether the session owns a lock now.
    pub owns_lock: &'a dyn Fn(&str) -> bool,
    /// Whether the server may not write.
    pub read_only: bool,
    /// How long the transaction has waited so far, in milliseconds.
    pub waited_ms: u64,
}

/// What became of a transaction.
#[derive(Debug)]
pub enum Execution {
    /// It ran to its end or to its first error.
    Done(Outcome),
    /// A `wait` does not hold yet and has time left: nothing was changed.
    Waiting {
        /// After how many milliseconds since the first try it times out; never if there is none.
        timeout_ms: Option<u64>,
        /// The table whose changes can make the `wait` hold.
        table: TableIx,
    },
}

/// The end of a transaction.
#[derive(Debug)]
pub struct Outcome {
    /// The results of the operations that succeeded, in order.
    pub results: Vec<OperationResult>,
    /// The error that ended the transaction: of the operation after the last result, or, if every operation has a
    /// result, of the commit.
    pub error: Option<Error>,
    /// How many operations the request has.
    pub requested: usize,
    /// What the transaction changes; empty after an error. Only if a client finds two rows with one key, this is what
    /// the transaction would have changed, so that the client can tell what its verdict hangs on.
    pub changes: ChangeSet<Ovsdb>,
    /// Whether the outcome follows from what is known alone. Always true with complete knowledge.
    pub is_certain: bool,
    /// Whether the error, if there is one, follows from what is known alone: a server with these rows, and any others
    /// besides, fails too. Always true with complete knowledge.
    pub error_is_certain: bool,
    /// The rows that share a key, if that is the error.
    pub conflict: Option<Conflict<Ovsdb>>,
}

impl Outcome {
    /// Appends the reply's `result` array: results, then the error, then `null` for operations that did not run.
    pub fn write(&self, schema: &Schema, out: &mut String) {
        out.push('[');
        let mut count = 0;
        for result in &self.results {
            if count > 0 {
                out.push(',');
            }
            result.write(schema, out);
            count += 1;
        }
        if let Some(error) = &self.error {
            if count > 0 {
                out.push(',');
            }
            error.write(out);
            count += 1;
        }
        for i in count..self.requested {
            out.push_str(if i > 0 { ",null" } else { "null" });
        }
        out.push(']');
    }
}

/// Executes a transaction on a root.
pub fn execute<K: Knowledge>(
    root: &Root<Ovsdb>,
    transaction: &Transaction,
    knowledge: &K,
    circumstances: &Circumstances<'_>,
) -> Execution {
    let mut executor = Executor {
        schema: root.meta().as_ref(),
        draft: Draft::new(root),
        knowledge,
        circumstances,
        is_certain: true,
        sees_right: true,
        doubtful: BTreeSet::new(),
        unseen: Unseen::default(),
        suspects: Vec::new(),
        conflict: None,
    };
    let mut results = Vec::with_capacity(transaction.operations.len());
    let mut error = None;
    for operation in &transaction.operations {
        match executor.operate(operation) {
            Ok(result) => results.push(result),
            Err(Stop::Error(e)) => {
                error = Some(e);
                break;
            }
            Err(Stop::Wait { timeout_ms, table }) => return Execution::Waiting { timeout_ms, table },
        }
    }
    let mut is_fault = false;
    if error.is_none() {
        error = transaction.fault.clone();
        is_fault = error.is_some();
    }
    let mut changes = ChangeSet::empty();
    let settled = if error.is_none() { executor.settle() } else { Ok(()) };
    let is_certain = (executor.is_certain, executor.sees_right);
    let conflict = executor.conflict.take();
    match settled {
        Ok(()) if error.is_none() => changes = executor.draft.into_changes(),
        Ok(()) => {}
        Err(e) => {
            error = Some(e);
            if !K::COMPLETE && conflict.is_some() {
                changes = executor.draft.into_changes();
            }
        }
    }
    Execution::Done(Outcome {
        results,
        error,
        requested: transaction.requested,
        changes,
        is_certain: is_certain.0,
        error_is_certain: is_fault || is_certain.1,
        conflict,
    })
}

/// Why an operation has no result.
enum Stop {
    Error(Error),
    Wait { timeout_ms: Option<u64>, table: TableIx },
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

/// A transaction being executed.
struct Executor<'a, 'r, K: Knowledge> {
    schema: &'r Schema,
    draft: Draft<'r, Ovsdb>,
    knowledge: &'a K,
    circumstances: &'a Circumstances<'a>,
    is_certain: bool,
    /// Whether the rows that are seen are as the server would see them here; false after a condition on a column that
    /// is not known, because nobody knows which rows it chose.
    sees_right: bool,
    /// Rows that the server may collect or prune for reasons that are not known: the keys they hold are neither taken
    /// nor free.
    doubtful: BTreeSet<(TableIx, Uuid)>,
    unseen: Unseen,
    /// Changed rows that may be again as they were before the transaction. A row that was changed once is another one.
    suspects: Vec<(TableIx, Uuid)>,
    conflict: Option<Conflict<Ovsdb>>,
}

impl<K: Knowledge> Executor<'_, '_, K> {
    fn operate(&mut self, operation: &Operation) -> Result<OperationResult, Stop> {
        if self.circumstances.read_only && !operation.is_read_only() {
            let details = format!(
                "{} operation not allowed when database server is in read only mode",
                operation.name()
            );
            return Err(Error::new(ErrorKind::NotAllowed, details).into());
        }
        match operation {
            Operation::Insert { table, uuid, chosen, row } => Ok(self.insert(*table, *uuid, *chosen, row)?),
            Operation::Select { table, condition, columns, sort } => {
                Ok(self.select(*table, condition, columns, sort))
            }
            Operation::Update { table, condition, row } => Ok(self.update(*table, condition, row)),
            Operation::Mutate { table, condition, mutations } => {
                Ok(self.mutate(*table, condition, mutations)?)
            }
            Operation::Delete { table, condition } => {
                if !K::COMPLETE {
                    self.note_deleted(*table, condition);
                }
                let rows = self.matching(*table, condition);
                let count = rows.len();
                for (id, _) in rows {
                    self.draft.remove(*table, &id);
                }
                Ok(OperationResult::Count(count))
            }
            Operation::Wait { table, condition, columns, equal, rows, timeout_ms } => {
                if self.wait_holds(*table, condition, columns, *equal, rows) {
                    return Ok(OperationResult::Empty);
                }
                Err(self.unmet(*timeout_ms, *table))
            }
            Operation::Commit { .. } | Operation::Comment(_) => Ok(OperationResult::Empty),
            Operation::Abort => Err(Error::new(ErrorKind::Aborted, "aborted by request").into()),
            Operation::Assert { lock } => {
                if !K::COMPLETE || (self.circumstances.owns_lock)(lock) {
                    return Ok(OperationResult::Empty);
                }
                let details = format!("Asserted lock {lock} not held.");
                Err(Error::new(ErrorKind::NotOwner, details).into())
            }
        }
    }

    fn insert(
        &mut self,
        table: TableIx,
        uuid: Uuid,
        chosen: bool,
        values: &PartialRow,
    ) -> Result<OperationResult, Error> {
        // A row that this transaction made and deleted again leaves its UUID free.
        let is_deleted = |draft: &Draft<'_, Ovsdb>| {
            draft.touched_record(table, &uuid).is_some_and(|t| t.first.is_some() && t.last.is_none())
        };
        let taken = chosen && (self.draft.record(table, &uuid).is_some() || is_deleted(&self.draft));
        if taken {
            let details = "This UUID would duplicate a UUID already present within the table or deleted within the same transaction.";
            let text = crate::json::Json::Str(uuid.to_string().into());
            return Err(Error::at(&text, ErrorKind::DuplicateUuid, details));
        }
        let mut columns: Box<[Datum]> = self.schema.at(table).defaults().into();
        for (column, value) in values {
            if let Column::Data(column) = column {
                columns[usize::from(column.0)] = value.clone();
            }
        }
        let row = Row { version: fresh_version::<K>(), columns };
        self.draft.put(table, uuid, Arc::new(row), RowDelta::default());
        Ok(OperationResult::Uuid(uuid))
    }

    fn select(
        &mut self,
        table: TableIx,
        condition: &Condition,
        columns: &[Column],
        sort: &[Column],
    ) -> OperationResult {
        let mut rows: Vec<(Uuid, Arc<Row>)> = Vec::new();
        let distinct = !columns.contains(&Column::Uuid);
        let mut seen = BTreeSet::new();
        for (id, row) in self.matching(table, condition) {
            if !distinct || seen.insert(project(&id, &row, columns)) {
                rows.push((id, row));
            }
        }
        if !sort.is_empty() {
            rows.sort_by_cached_key(|(id, row)| project(id, row, sort));
        }
        OperationResult::Rows(Selection { table, columns: columns.into(), rows })
    }

    fn update(&mut self, table: TableIx, condition: &Condition, values: &PartialRow) -> OperationResult {
        if !K::COMPLETE {
            let columns = values.iter().filter_map(|(column, _)| match column {
                Column::Data(column) => Some(*column),
                _ => None,
            });
            self.note_lost(table, condition, columns);
        }
        let rows = self.matching(table, condition);
        let count = rows.len();
        for (id, row) in rows {
            let mut delta = RowDelta::default();
            let mut new = None;
            for (column, value) in values {
                let Column::Data(column) = *column else { continue };
                let old = row.data(column);
                if old == value {
                    continue;
                }
                let new: &mut Row = new.get_or_insert_with(|| row.as_ref().clone());
                let place = &mut new.columns[usize::from(column.0)];
                if old.is_large() || value.is_large() {
                    // The old value keeps its structure, and what differs is found once.
                    replace_members(column, place, old.changes_to(value), &mut delta);
                } else {
                    *place = value.clone();
                    delta.touch(column);
                }
            }
            if let Some(new) = new {
                self.modify(table, (id, row), new, delta);
            }
        }
        OperationResult::Count(count)
    }

    fn mutate(
        &mut self,
        table: TableIx,
        condition: &Condition,
        mutations: &[Mutation],
    ) -> Result<OperationResult, Error> {
        if !K::COMPLETE {
            let losing = mutations.iter().filter(|mutation| mutation.mutator != Mutator::Insert);
            self.note_lost(table, condition, losing.map(|mutation| mutation.column));
        }
        let rows = self.matching(table, condition);
        let count = rows.len();
        let definition = self.schema.at(table);
        for (id, row) in rows {
            let mut new: Option<Row> = None;
            let mut delta = RowDelta::default();
            for mutation in mutations {
                let column = mutation.column;
                if !self.knows_column(table, column) && !is_new(&self.draft, table, &id) {
                    self.is_certain = false;
                    self.unseen.vague.insert((table, id));
                    continue;
                }
                let value = new.as_ref().unwrap_or(&row).data(column);
                if let Some(mutated) = mutation.of(definition, value)? {
                    let new = new.get_or_insert_with(|| row.as_ref().clone());
                    mutated.store(column, &mut new.columns[usize::from(column.0)], &mut delta);
                }
            }
            if let Some(new) = new {
                if mutations.len() > 1 {
                    // One mutation may undo what another did.
                    self.suspects.push((table, id));
                }
                self.modify(table, (id, row), new, delta);
            }
        }
        Ok(OperationResult::Count(count))
    }

    /// Replaces a row by another version that differs from it.
    fn modify(&mut self, table: TableIx, (id, old): (Uuid, Arc<Row>), mut new: Row, delta: RowDelta) {
        new.version = fresh_version::<K>();
        if self.draft.replace(table, id, old, Arc::new(new), delta) {
            self.suspects.push((table, id));
        }
    }

    /// Whether the rows that meet `condition` are, or are not, the ones given. Rows compare as sets of projections.
    fn wait_holds(
        &mut self,
        table: TableIx,
        condition: &Condition,
        columns: &[Column],
        equal: bool,
        rows: &[PartialRow],
    ) -> bool {
        if !K::COMPLETE {
            // The outcome depends on the server's time and rows: it is sent and assumed to hold.
            return true;
        }
        let defaults = Row { version: Uuid::nil(), columns: self.schema.at(table).defaults().into() };
        let given = |row: &PartialRow, column: &Column| {
            let stated = row.iter().rev().find(|(c, _)| c == column).map(|(_, value)| value.clone());
            stated.unwrap_or_else(|| defaults.value(&Uuid::nil(), *column).into_owned())
        };
        let expected: BTreeSet<Vec<Datum>> =
            rows.iter().map(|row| columns.iter().map(|column| given(row, column)).collect()).collect();
        let actual: BTreeSet<Vec<Datum>> = self
            .matching(table, condition)
            .into_iter()
            .map(|(id, row)| project(&id, &row, columns))
            .collect();
        (expected == actual) == equal
    }

    /// What a `wait` that does not hold leads to.
    fn unmet(&self, timeout_ms: Option<u64>, table: TableIx) -> Stop {
        let waited = self.circumstances.waited_ms;
        match timeout_ms {
            Some(timeout) if timeout <= waited => {
                // A transaction may have stood in the queue for a while; with a time-out of 0 it has not waited by that.
                let details = match waited.min(timeout) {
                    0 => "\"where\" clause test failed".to_string(),
                    _ => format!("\"wait\" timed out after {waited} ms"),
                };
                Stop::Error(Error::new(ErrorKind::TimedOut, details))
            }
            _ => Stop::Wait { timeout_ms, table },
        }
    }

    /// The rows that meet `condition`: by UUID or by an index where the condition allows, else by a scan.
    fn matching(&mut self, table: TableIx, condition: &Condition) -> Found {
        if let Some(Datum::One(Atom::Uuid(id))) = condition.equal_to(Column::Uuid) {
            let row = self.draft.record(table, id).cloned();
            if !K::COMPLETE {
                self.note_ignorance(table, condition, row.is_some());
            }
            // The clause that named the row holds already.
            let holds = |row: &Arc<Row>| condition.clauses.len() == 1 || condition.all_hold(id, row);
            return Found::one(row.filter(holds).map(|row| (*id, row)));
        }
        if !K::COMPLETE {
            self.note_ignorance(table, condition, false);
        }
        if let Some((index, key)) = indexed(self.schema.at(table), condition) {
            let found = self.draft.lookup(table, index, &key);
            let rows = found.filter_map(|id| Some((id, self.draft.record(table, &id)?)));
            return rows
                .filter(|(id, row)| condition.all_hold(id, row))
                .map(|(id, r)| (id, r.clone()))
                .collect();
        }
        let rows = self.draft.scan(table).filter(|(id, row)| condition.all_hold(id, row));
        rows.map(|(id, row)| (id, row.clone())).collect()
    }

    /// Marks the outcome as not certain if rows that are not known, or not known in full, may meet `condition`.
    fn note_ignorance(&mut self, table: TableIx, condition: &Condition, names_known_row: bool) {
        let sees_all_columns = condition.looks_only_at(|column| match column {
            Column::Data(column) => self.knows_column(table, column),
            Column::Uuid | Column::Version => true,
        });
        self.sees_right &= sees_all_columns;
        if !sees_all_columns || !(names_known_row || self.knowledge.has_all_rows(table)) {
            self.is_certain = false;
        }
    }

    fn knows_column(&self, table: TableIx, column: ColumnIx) -> bool {
        K::COMPLETE || self.knowledge.has_column(table, column)
    }
}

/// The index, and the key in it, whose columns a condition says equal something.
pub fn indexed(table: &TableSchema, condition: &Condition) -> Option<(IndexIx, IndexKey)> {
    let equal = |column: &ColumnIx| condition.equal_to(Column::Data(*column));
    let declared = table.indexes.iter().map(|columns| columns.iter().map(equal).collect());
    let client = table.client_indexes.iter().map(|index| {
        let mut key = KeyWriter::default();
        for part in &index.parts {
            match part {
                KeyPart::Column(column) => key.datum(equal(column)?),
                KeyPart::MapValue { column, key: map_key, .. } => {
                    key.one(condition.included_value(Column::Data(*column), map_key)?);
                }
            }
        }
        Some(key.finish())
    });
    let keys = declared.chain(client).enumerate();
    keys.filter_map(|(i, key): (usize, Option<IndexKey>)| Some((IndexIx(i as u16), key?))).next()
}

/// A version for a changed row. Only a server's are ever seen.
fn fresh_version<K: Knowledge>() -> Uuid {
    if K::COMPLETE { Uuid::new_v4() } else { Uuid::nil() }
}

/// Whether this transaction inserted the row, so that all its columns are known.
fn is_new(draft: &Draft<'_, Ovsdb>, table: TableIx, id: &Uuid) -> bool {
    draft.touched_record(table, id).is_some_and(|touched| touched.first.is_none())
}

fn project(id: &Uuid, row: &Row, columns: &[Column]) -> Vec<Datum> {
    columns.iter().map(|column| row.value(id, *column).into_owned()).collect()
}
