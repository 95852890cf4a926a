//! Building transactions.
//!
//! A [`Transaction`] is begun on a snapshot, in whose schema its names are looked up as operations are added; the first
//! thing that is wrong is kept and reported when the transaction is to be sent, so that building needs no `?` at each
//! step. A row that it inserts has a UUID at once, by which later operations refer to it; the server's own UUID for the
//! row is in the results.

use crate::encode::Names;
use crate::error::BuildError;
use crate::filter::{Filter, check, column_of, table_of};
use crate::model::{IntoDatum, Model, Ref};
use crate::snapshot::Snapshot;
use crate::validation::Validation;
use cowslip_engine::{TableIx, Uuid};
use cowslip_ovsdb::atom::Atom;
use cowslip_ovsdb::condition::{Clause, Condition, Function};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::executor::indexed;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::mutation::{Mutation, Mutator};
use cowslip_ovsdb::operation::{self, Operation, PartialRow};
use cowslip_ovsdb::schema::{Column, ColumnIx, TableSchema};
use cowslip_ovsdb::types::{ColumnType, UNLIMITED};

/// Operations that will be applied together or not at all.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub(crate) snapshot: Snapshot,
    /// The operations as the executor takes them.
    pub(crate) prepared: operation::Transaction,
    pub(crate) names: Names,
    pub(crate) fault: Option<BuildError>,
    pub(crate) validation: Option<Validation>,
    pub(crate) is_serialized: Option<bool>,
    pub(crate) guards: Option<bool>,
}

/// Where in a transaction an operation is, to find its result.
pub type Position = usize;

impl Transaction {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        let prepared = operation::Transaction::parse(snapshot.schema(), &[]);
        Transaction {
            snapshot,
            prepared,
            names: Names::new(),
            fault: None,
            validation: None,
            is_serialized: None,
            guards: None,
        }
    }

    /// Whether this transaction is validated, whatever the client's setting is.
    #[must_use]
    pub fn validated(mut self, validation: Validation) -> Self {
        self.validation = Some(validation);
        self
    }

    /// Whether this transaction waits until no other one of the client is in flight, and others wait for it.
    #[must_use]
    pub fn serialized(mut self, is_serialized: bool) -> Self {
        self.is_serialized = Some(is_serialized);
        self
    }

    /// Whether the keys that this transaction takes in primary client indexes are guarded, whatever the indexes say.
    #[must_use]
    pub fn guarded(mut self, is_guarded: bool) -> Self {
        self.guards = Some(is_guarded);
        self
    }

    /// The snapshot that it was begun on.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The number of operations so far; the position of the next one.
    pub fn len(&self) -> usize {
        self.prepared.operations.len()
    }

    /// Whether there is no operation yet.
    pub fn is_empty(&self) -> bool {
        self.prepared.operations.is_empty()
    }

    /// Inserts a row; what is left out is default. Gives the UUID by which this transaction can refer to the row.
    pub fn insert<'a>(&mut self, table: &str, row: impl IntoIterator<Item = (&'a str, Datum)>) -> Uuid {
        let uuid = Uuid::new_v4();
        self.names.insert(uuid);
        self.insert_as(table, uuid, false, row);
        uuid
    }

    /// Inserts a row whose UUID is chosen here, which makes it safe to send the transaction twice: the second insert
    /// fails. Servers before Open vSwitch 2.13 refuse this.
    pub fn insert_with_uuid<'a>(
        &mut self,
        table: &str,
        uuid: Uuid,
        row: impl IntoIterator<Item = (&'a str, Datum)>,
    ) {
        self.insert_as(table, uuid, true, row);
    }

    /// Inserts a model's row.
    pub fn create<M: Model>(&mut self, model: &M) -> Ref<M> {
        let row = self.values_of(model);
        Ref::new(self.insert(M::TABLE, row))
    }

    /// Sets columns of the rows that meet a filter, to default values, too.
    pub fn update<'a>(
        &mut self,
        table: &str,
        filter: &Filter,
        row: impl IntoIterator<Item = (&'a str, Datum)>,
    ) -> Position {
        self.add(|tx| {
            let (table, condition) = tx.rows(table, filter)?;
            let row = tx.values(table, row, true)?;
            Ok(Operation::Update { table, condition, row })
        })
    }

    /// Writes columns of a model to its row; all that may be changed and that the cache knows, if none are named. What
    /// the cache does not know the model cannot have read: writing its default would undo somebody's work.
    pub fn save<M: Model>(&mut self, model: &M, columns: &[&str]) -> Position {
        let definition = self.snapshot.schema().table(M::TABLE).map(|t| self.snapshot.schema().at(t));
        let is_mutable = |name: &str| {
            definition.is_some_and(|d| match d.column(name) {
                Some(Column::Data(column)) => {
                    d.data(column).mutable && self.snapshot.has_column(M::TABLE, name)
                }
                _ => false,
            })
        };
        let mut row = self.values_of(model);
        row.retain(|(name, _)| if columns.is_empty() { is_mutable(name) } else { columns.contains(name) });
        self.update(M::TABLE, &Filter::uuid(model.uuid()), row)
    }

    /// Changes columns depending on what they hold, in order.
    pub fn mutate<'a>(
        &mut self,
        table: &str,
        filter: &Filter,
        mutations: impl IntoIterator<Item = (&'a str, Mutator, Datum)>,
    ) -> Position {
        self.add(|tx| {
            let (table, condition) = tx.rows(table, filter)?;
            let definition = tx.snapshot.schema().at(table);
            let mutations = mutations.into_iter().map(|(name, mutator, argument)| {
                let column = mutable(definition, name)?;
                check(definition, name, &argument_type(definition, column, mutator, &argument), &argument)?;
                Ok(Mutation { column, mutator, argument })
            });
            let mutations = mutations.collect::<Result<_, BuildError>>()?;
            Ok(Operation::Mutate { table, condition, mutations })
        })
    }

    /// Gives a map's key a value, whether the key is there or not. (A mutation `insert` leaves a key that is there.)
    pub fn upsert(
        &mut self,
        table: &str,
        filter: &Filter,
        column: &str,
        key: &impl IntoDatum,
        value: &impl IntoDatum,
    ) -> Position {
        let key = key.to_datum();
        let pair = match (key.as_one(), value.to_datum().as_one()) {
            (Some(key), Some(value)) => Datum::from_pairs(vec![(key.clone(), value.clone())]),
            _ => Datum::EMPTY,
        };
        self.mutate(table, filter, [(column, Mutator::Delete, key), (column, Mutator::Insert, pair)])
    }

    /// Adds to an integer column and reads it: the result at the position is the new value's row.
    pub fn increment(&mut self, table: &str, filter: &Filter, column: &str, by: i64) -> Position {
        self.mutate(table, filter, [(column, Mutator::Add, by.to_datum())]);
        self.select(table, filter, &["_uuid", column])
    }

    /// Deletes the rows that meet a filter.
    pub fn delete(&mut self, table: &str, filter: &Filter) -> Position {
        self.add(|tx| {
            let (table, condition) = tx.rows(table, filter)?;
            Ok(Operation::Delete { table, condition })
        })
    }

    /// Reads columns of the rows that meet a filter, on the server; all columns, if none are named.
    pub fn select(&mut self, table: &str, filter: &Filter, columns: &[&str]) -> Position {
        self.add(|tx| {
            let (table, condition) = tx.rows(table, filter)?;
            let definition = tx.snapshot.schema().at(table);
            let columns = match columns {
                [] => definition.all_columns(),
                names => names.iter().map(|n| column_of(definition, n)).collect::<Result<_, _>>()?,
            };
            Ok(Operation::Select { table, condition, columns, sort: Vec::new() })
        })
    }

    /// Goes on only when the named columns of the rows that meet a filter are these rows (`equal`), or are not; fails
    /// after the time-out, at once if that is 0, never if there is none.
    pub fn wait<'a, R: IntoIterator<Item = (&'a str, Datum)>>(
        &mut self,
        table: &str,
        filter: &Filter,
        columns: &[&str],
        equal: bool,
        rows: impl IntoIterator<Item = R>,
        timeout_ms: Option<u64>,
    ) -> Position {
        self.add(|tx| {
            let (table, condition) = tx.rows(table, filter)?;
            let definition = tx.snapshot.schema().at(table);
            let columns = columns.iter().map(|n| column_of(definition, n)).collect::<Result<_, _>>()?;
            let rows = rows.into_iter().map(|row| tx.values(table, row, false)).collect::<Result<_, _>>()?;
            Ok(Operation::Wait { table, condition, columns, equal, rows, timeout_ms })
        })
    }

    /// Lets the transaction fail if columns of a row are no longer what they are in the snapshot that it was begun on.
    pub fn verify(&mut self, table: &str, uuid: Uuid, columns: &[&str]) -> Position {
        self.add(|tx| {
            let (table, condition) = tx.rows(table, &Filter::uuid(uuid))?;
            let definition = tx.snapshot.schema().at(table);
            let name = || definition.name.to_string();
            let view = tx.snapshot.view(table, uuid);
            let view = view.ok_or_else(|| BuildError::Row { table: name(), uuid })?;
            let mut row = PartialRow::new();
            for column in columns {
                let value = view.datum(column).cloned();
                let missing = || BuildError::Column { table: name(), column: (*column).to_string() };
                row.push((column_of(definition, column)?, value.ok_or_else(missing)?));
            }
            let columns = row.iter().map(|(column, _)| *column).collect();
            Ok(Operation::Wait {
                table,
                condition,
                columns,
                equal: true,
                rows: vec![row],
                timeout_ms: Some(0),
            })
        })
    }

    /// Fails unless the client owns a lock.
    pub fn assert_lock(&mut self, lock: &str) -> Position {
        self.add(|_| Ok(Operation::Assert { lock: lock.to_string() }))
    }

    /// Leaves a comment in the server's log.
    pub fn comment(&mut self, text: &str) -> Position {
        self.add(|_| Ok(Operation::Comment(text.to_string())))
    }

    /// Has the reply wait until the transaction is on the server's disk.
    pub fn commit_durably(&mut self) -> Position {
        self.add(|_| Ok(Operation::Commit { durable: true }))
    }

    /// Lets the transaction fail: to see what the operations before would do.
    pub fn abort(&mut self) -> Position {
        self.add(|_| Ok(Operation::Abort))
    }

    /// Adds operations as they stand in a `transact` request.
    ///
    /// # Errors
    /// The first operation that is at fault.
    pub fn add_json(&mut self, operations: &[Json<'_>]) -> Result<(), BuildError> {
        let parsed = operation::Transaction::parse(self.snapshot.schema(), operations);
        if let Some(error) = parsed.fault {
            return Err(BuildError::Operation { operation: parsed.operations.len(), error });
        }
        for operation in &parsed.operations {
            if let Operation::Insert { uuid, chosen: false, .. } = operation {
                self.names.insert(*uuid);
            }
        }
        self.prepared.operations.extend(parsed.operations);
        self.prepared.requested = self.prepared.operations.len();
        Ok(())
    }

    fn insert_as<'a>(
        &mut self,
        table: &str,
        uuid: Uuid,
        chosen: bool,
        row: impl IntoIterator<Item = (&'a str, Datum)>,
    ) {
        self.add(|tx| {
            let table = table_of(tx.snapshot.schema(), table)?;
            let row = tx.values(table, row, false)?;
            let definition = tx.snapshot.schema().at(table);
            for (column, data) in definition.data_columns() {
                let default = &definition.defaults()[usize::from(column.0)];
                if !row.iter().any(|(c, _)| *c == Column::Data(column)) {
                    check(definition, &data.name, &data.ty, default)?;
                }
            }
            Ok(Operation::Insert { table, uuid, chosen, row })
        });
    }

    fn add(&mut self, build: impl FnOnce(&Self) -> Result<Operation, BuildError>) -> Position {
        if self.fault.is_none() {
            match build(self) {
                Ok(operation) => {
                    self.prepared.operations.push(operation);
                    self.prepared.requested = self.prepared.operations.len();
                }
                Err(fault) => self.fault = Some(fault),
            }
        }
        self.prepared.operations.len().saturating_sub(1)
    }

    fn values_of<M: Model>(&self, model: &M) -> Vec<(&'static str, Datum)> {
        let schema = self.snapshot.schema();
        let mut row = model.to_row();
        if let Some(table) = schema.table(M::TABLE) {
            // What the server lacks was reported when the client connected.
            row.retain(|(name, _)| schema.at(table).column(name).is_some());
        }
        row
    }

    fn values<'a>(
        &self,
        table: TableIx,
        row: impl IntoIterator<Item = (&'a str, Datum)>,
        must_be_mutable: bool,
    ) -> Result<PartialRow, BuildError> {
        let definition = self.snapshot.schema().at(table);
        let values = row.into_iter().map(|(name, value)| {
            let column = column_of(definition, name)?;
            if must_be_mutable {
                mutable(definition, name)?;
            }
            check(definition, name, cowslip_ovsdb::condition::column_type(definition, column), &value)?;
            Ok((column, value))
        });
        values.collect()
    }

    /// A filter as a condition. If it names a key of an index whose row is in the cache, the row's UUID is put in
    /// front: servers find rows by UUID at once and look through the table for anything else.
    fn rows(&self, table: &str, filter: &Filter) -> Result<(TableIx, Condition), BuildError> {
        let schema = self.snapshot.schema();
        let table = table_of(schema, table)?;
        let mut condition = filter.resolve(schema, table)?;
        if condition.equal_to(Column::Uuid).is_none()
            && let Some((index, key)) = indexed(schema.at(table), &condition)
        {
            let mut found = self.snapshot.root.lookup(table, index, &key);
            if let (Some(uuid), None) = (found.next(), found.next()) {
                let argument = Datum::One(Atom::Uuid(uuid));
                let clause = Clause::Test { column: Column::Uuid, function: Function::Equal, argument };
                condition.clauses.insert(0, clause);
            }
        }
        Ok((table, condition))
    }
}

fn mutable(definition: &TableSchema, name: &str) -> Result<ColumnIx, BuildError> {
    match column_of(definition, name)? {
        Column::Data(column) if definition.data(column).mutable => Ok(column),
        _ => Err(BuildError::Immutable { table: definition.name.to_string(), column: name.to_string() }),
    }
}

/// What a mutation's argument may be.
fn argument_type(
    definition: &TableSchema,
    column: ColumnIx,
    mutator: Mutator,
    argument: &Datum,
) -> ColumnType {
    let mut ty = definition.data(column).ty.clone();
    match mutator {
        Mutator::Insert => ty.min = 0,
        Mutator::Delete => {
            (ty.min, ty.max) = (0, UNLIMITED);
            if argument.members().next().is_some_and(|(_, value)| value.is_none()) {
                ty.value = None;
            }
        }
        _ => {
            ty = ColumnType::scalar(ty.key.atomic);
        }
    }
    ty
}
