//! Operations, as taken from a `transact` request (RFC 7047 section 5.2).
//!
//! A request is parsed in the session, off the committer: names become numbers, values are checked against the schema
//! of the root that the session holds. Parsing stops at the first operation that is at fault; the executor gives the
//! operations before it their results and then reports the fault, as if it had parsed while executing.

use crate::condition::Condition;
use crate::datum::Datum;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::members::{Kind, Members, is_id};
use crate::mutation::Mutation;
use crate::row::UUID_TYPE;
use crate::schema::{Column, Schema, TableSchema, columns_from_json};
use crate::symbols::Symbols;
use cowslip_engine::{TableIx, Uuid};
use std::sync::Arc;

/// The most operations of one transaction.
pub const OPERATIONS_MAX: usize = 10_000_000;

/// A transaction of more operations is not run by the thread of the session that sent it.
const QUICK_OPERATIONS_MAX: usize = 32;

/// Values for some columns of a row.
pub type PartialRow = Vec<(Column, Datum)>;

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// `insert`
    Insert {
        /// The table.
        table: TableIx,
        /// The new row's UUID.
        uuid: Uuid,
        /// Whether the request chose the UUID, so that it may be taken.
        chosen: bool,
        /// The values it is given.
        row: PartialRow,
    },
    /// `select`
    Select {
        /// The table.
        table: TableIx,
        /// Which rows.
        condition: Condition,
        /// Which columns.
        columns: Vec<Column>,
        /// By which columns the result is ordered.
        sort: Vec<Column>,
    },
    /// `update`
    Update {
        /// The table.
        table: TableIx,
        /// Which rows.
        condition: Condition,
        /// Their new values.
        row: PartialRow,
    },
    /// `mutate`
    Mutate {
        /// The table.
        table: TableIx,
        /// Which rows.
        condition: Condition,
        /// What is done to each, in order.
        mutations: Vec<Mutation>,
    },
    /// `delete`
    Delete {
        /// The table.
        table: TableIx,
        /// Which rows.
        condition: Condition,
    },
    /// `wait`
    Wait {
        /// The table.
        table: TableIx,
        /// Which rows.
        condition: Condition,
        /// Which columns are compared.
        columns: Vec<Column>,
        /// Whether the rows must equal the ones given, or must not.
        equal: bool,
        /// The rows given.
        rows: Vec<PartialRow>,
        /// How long the transaction may wait; for ever if there is none.
        timeout_ms: Option<u64>,
    },
    /// `commit`
    Commit {
        /// Whether the reply waits until the transaction is on the disk.
        durable: bool,
    },
    /// `abort`
    Abort,
    /// `comment`
    Comment(String),
    /// `assert`
    Assert {
        /// The lock that the session must own.
        lock: String,
    },
}

/// A parsed `transact` request.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The schema that the operations were parsed with.
    pub schema: Arc<Schema>,
    /// The operations before the first that is at fault.
    pub operations: Vec<Operation>,
    /// What is wrong with the next one.
    pub fault: Option<Error>,
    /// How many operations the request has.
    pub requested: usize,
    /// Whether every operation only reads, so that the transaction needs no committer.
    pub reads_only: bool,
    /// Whether it is sure to take little time: few operations, and each finds its rows without a scan.
    pub is_quick: bool,
}

impl Transaction {
    /// Parses the operations of a request.
    pub fn parse(schema: &Arc<Schema>, operations: &[Json<'_>]) -> Self {
        let mut symbols = Symbols::default();
        predefine(operations, &mut symbols);
        let mut transaction = Transaction {
            schema: schema.clone(),
            operations: Vec::with_capacity(operations.len()),
            fault: None,
            requested: operations.len(),
            reads_only: false,
            is_quick: false,
        };
        if operations.len() > OPERATIONS_MAX {
            let details = format!("a transaction may have at most {OPERATIONS_MAX} operations");
            transaction.fault = Some(Error::new(ErrorKind::ResourcesExhausted, details));
            return transaction;
        }
        for (i, json) in operations.iter().enumerate() {
            let name = format!("ovsdb operation {} of {}", i + 1, operations.len());
            match parse_operation(schema, json, name, &mut symbols) {
                Ok(operation) => transaction.operations.push(operation),
                Err(fault) => {
                    transaction.fault = Some(fault);
                    break;
                }
            }
        }
        transaction.is_quick = operations.len() <= QUICK_OPERATIONS_MAX
            && transaction.operations.iter().all(|operation| operation.finds_rows_by_key(schema));
        transaction.reads_only = transaction.operations.iter().all(Operation::only_reads);
        transaction
    }

    /// Whether the reply has to wait for the disk.
    pub fn is_durable(&self) -> bool {
        self.operations.iter().any(|o| matches!(o, Operation::Commit { durable: true }))
    }

    /// The comments, one to a line.
    pub fn comment(&self) -> Option<String> {
        let comments: Vec<&str> = self
            .operations
            .iter()
            .filter_map(|o| match o {
                Operation::Comment(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        (!comments.is_empty()).then(|| comments.join("\n"))
    }
}

impl Operation {
    /// Whether the operation neither changes anything nor depends on time or locks.
    fn only_reads(&self) -> bool {
        matches!(self, Operation::Select { .. } | Operation::Comment(_) | Operation::Abort)
    }

    /// Whether the rows that it is about are found by their UUID or by an index.
    fn finds_rows_by_key(&self, schema: &Schema) -> bool {
        match self {
            Operation::Select { table, condition, .. }
            | Operation::Update { table, condition, .. }
            | Operation::Mutate { table, condition, .. }
            | Operation::Delete { table, condition }
            | Operation::Wait { table, condition, .. } => {
                condition.equal_to(Column::Uuid).is_some()
                    || crate::executor::indexed(schema.at(*table), condition).is_some()
            }
            _ => true,
        }
    }

    /// Whether a server that may not write can execute it.
    pub fn is_read_only(&self) -> bool {
        !matches!(
            self,
            Operation::Insert { .. }
                | Operation::Update { .. }
                | Operation::Mutate { .. }
                | Operation::Delete { .. }
        )
    }

    /// The operation's name in requests.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Insert { .. } => "insert",
            Operation::Select { .. } => "select",
            Operation::Update { .. } => "update",
            Operation::Mutate { .. } => "mutate",
            Operation::Delete { .. } => "delete",
            Operation::Wait { .. } => "wait",
            Operation::Commit { .. } => "commit",
            Operation::Abort => "abort",
            Operation::Comment(_) => "comment",
            Operation::Assert { .. } => "assert",
        }
    }
}

/// Collects the names of all inserts, so that a name used before its insert means the insert's row even if that insert
/// chooses the UUID.
fn predefine(operations: &[Json<'_>], symbols: &mut Symbols) {
    for operation in operations.iter().filter_map(Json::as_object) {
        let text = |name| operation.member(name).and_then(Json::as_str);
        if let (Some("insert"), Some(name)) = (text("op"), text("uuid-name")) {
            let chosen = text("uuid").and_then(crate::atom::parse_uuid);
            symbols.predefine(name, chosen.unwrap_or_else(Uuid::new_v4));
        }
    }
}

fn parse_operation(
    schema: &Schema,
    json: &Json<'_>,
    name: String,
    symbols: &mut Symbols,
) -> Result<Operation, Error> {
    let members = Members::new(json, name);
    let op = members.required("op", Kind::Id).and_then(Json::as_str).unwrap_or_default();
    let request = Request { schema, members: &members, symbols };
    let parsed = match op {
        "insert" => request.insert(),
        "select" => request.select(),
        "update" => request.update(),
        "mutate" => request.mutate(),
        "delete" => request.delete(),
        "wait" => request.wait(),
        "commit" => request.commit(),
        "abort" => members.check().map(|()| Operation::Abort),
        "comment" => request.comment(),
        "assert" => request.assert(),
        _ => {
            members.raise(format!("No operation \"{op}\""));
            members.check().map(|()| Operation::Abort)
        }
    };
    // A fault of the form outweighs a fault of the content, as in the reference server.
    members.finish()?;
    parsed
}

struct Request<'r, 'j, 'a> {
    schema: &'r Schema,
    members: &'r Members<'j, 'a>,
    symbols: &'r mut Symbols,
}

impl<'r> Request<'r, '_, '_> {
    fn table(&self) -> Option<(TableIx, &'r TableSchema)> {
        let name = self.members.required("table", Kind::Id)?.as_str()?;
        match self.schema.table(name) {
            Some(table) => Some((table, self.schema.at(table))),
            None => {
                self.members.raise(format!("No table named {name}."));
                None
            }
        }
    }

    /// The value, or the fault that explains its absence.
    fn settled<T>(&self, value: Option<T>) -> Result<T, Error> {
        self.members.check()?;
        value.ok_or_else(|| Error::syntax(self.members.whole(), "incomplete operation"))
    }

    fn insert(self) -> Result<Operation, Error> {
        let table = self.table();
        let uuid_json = self.members.optional("uuid", Kind::String);
        let name_json = self.members.optional("uuid-name", Kind::Id);
        let row_json = self.members.required("row", Kind::Object);
        let (table, schema) = self.settled(table)?;
        let row_json = self.settled(row_json)?;
        let mut uuid = None;
        if let Some(json) = uuid_json {
            let chosen = json.as_str().and_then(crate::atom::parse_uuid);
            uuid = Some(chosen.ok_or_else(|| Error::syntax(json, "bad uuid"))?);
        }
        let chosen = uuid.is_some();
        if let Some(json) = name_json {
            let name = json.as_str().filter(|name| is_id(name)).unwrap_or_default();
            let Some(named) = self.symbols.define(name) else {
                let details = "This \"uuid-name\" appeared on an earlier \"insert\" operation.";
                return Err(Error::at(json, ErrorKind::DuplicateUuidName, details));
            };
            uuid.get_or_insert(named);
        }
        let mut row = row_from_json(schema, row_json, Some(self.symbols))?;
        row.retain(|(column, _)| matches!(column, Column::Data(_)));
        check_defaults(schema, &row)?;
        Ok(Operation::Insert { table, uuid: uuid.unwrap_or_else(Uuid::new_v4), chosen, row })
    }

    fn select(self) -> Result<Operation, Error> {
        let table = self.table();
        let condition = self.members.required("where", Kind::Array);
        let columns = self.members.optional("columns", Kind::Array);
        let sort = self.members.optional("sort", Kind::Array);
        let (table, schema) = self.settled(table)?;
        let condition = self.settled(condition)?;
        let condition = Condition::from_json(schema, condition, Some(self.symbols))?;
        let columns =
            columns.map_or_else(|| Ok(schema.all_columns()), |json| columns_from_json(json, schema))?;
        let sort = sort.map_or_else(|| Ok(Vec::new()), |json| columns_from_json(json, schema))?;
        Ok(Operation::Select { table, condition, columns, sort })
    }

    fn update(self) -> Result<Operation, Error> {
        let table = self.table();
        let condition = self.members.required("where", Kind::Array);
        let row = self.members.required("row", Kind::Object);
        let (table, schema) = self.settled(table)?;
        let (condition, row) = (self.settled(condition)?, self.settled(row)?);
        let row = row_from_json(schema, row, Some(&mut *self.symbols))?;
        for (column, _) in &row {
            if !matches!(column, Column::Data(c) if schema.data(*c).mutable) {
                let name = schema.column_name(*column);
                let details = format!("Cannot update immutable column {name} in table {}.", schema.name);
                return Err(Error::at(self.members.whole(), ErrorKind::ConstraintViolation, details));
            }
        }
        let condition = Condition::from_json(schema, condition, Some(self.symbols))?;
        Ok(Operation::Update { table, condition, row })
    }

    fn mutate(self) -> Result<Operation, Error> {
        let table = self.table();
        let condition = self.members.required("where", Kind::Array);
        let mutations = self.members.required("mutations", Kind::Array);
        let (table, schema) = self.settled(table)?;
        let (condition, mutations) = (self.settled(condition)?, self.settled(mutations)?);
        let mutations = mutations
            .as_array()
            .unwrap_or_default()
            .iter()
            .map(|json| Mutation::from_json(schema, json, Some(&mut *self.symbols)))
            .collect::<Result<_, _>>()?;
        let condition = Condition::from_json(schema, condition, Some(self.symbols))?;
        Ok(Operation::Mutate { table, condition, mutations })
    }

    fn delete(self) -> Result<Operation, Error> {
        let table = self.table();
        let condition = self.members.required("where", Kind::Array);
        let (table, schema) = self.settled(table)?;
        let condition = self.settled(condition)?;
        let condition = Condition::from_json(schema, condition, Some(self.symbols))?;
        Ok(Operation::Delete { table, condition })
    }

    fn wait(self) -> Result<Operation, Error> {
        let timeout = self.members.optional("timeout", Kind::Integer);
        let condition = self.members.required("where", Kind::Array);
        let columns = self.members.optional("columns", Kind::Array);
        let until = self.members.required("until", Kind::String);
        let rows = self.members.required("rows", Kind::Array);
        let table = self.table();
        let (table, schema) = self.settled(table)?;
        let (condition, until, rows) = (self.settled(condition)?, self.settled(until)?, self.settled(rows)?);
        let condition = Condition::from_json(schema, condition, Some(&mut *self.symbols))?;
        let columns =
            columns.map_or_else(|| Ok(schema.all_columns()), |json| columns_from_json(json, schema))?;
        let timeout_ms = match timeout {
            None => None,
            Some(Json::Int(ms)) if *ms >= 0 => Some(*ms as u64),
            Some(json) => return Err(Error::syntax(json, "timeout must be nonnegative")),
        };
        let equal = match until.as_str() {
            Some("==") => true,
            Some("!=") => false,
            _ => return Err(Error::syntax(until, "\"until\" must be \"==\" or \"!=\"")),
        };
        let rows = rows
            .as_array()
            .unwrap_or_default()
            .iter()
            .map(|json| row_from_json(schema, json, Some(&mut *self.symbols)))
            .collect::<Result<_, _>>()?;
        Ok(Operation::Wait { table, condition, columns, equal, rows, timeout_ms })
    }

    fn commit(self) -> Result<Operation, Error> {
        let durable = self.members.required("durable", Kind::Bool);
        Ok(Operation::Commit { durable: matches!(self.settled(durable)?, Json::Bool(true)) })
    }

    fn comment(self) -> Result<Operation, Error> {
        let text = self.members.required("comment", Kind::String);
        Ok(Operation::Comment(self.settled(text)?.as_str().unwrap_or_default().to_string()))
    }

    fn assert(self) -> Result<Operation, Error> {
        let lock = self.members.required("lock", Kind::Id);
        Ok(Operation::Assert { lock: self.settled(lock)?.as_str().unwrap_or_default().to_string() })
    }
}

/// Takes a `<row>` from a request: the columns that it names.
///
/// # Errors
/// `unknown column`, or what a value breaks.
pub fn row_from_json(
    table: &TableSchema,
    json: &Json<'_>,
    mut symbols: Option<&mut Symbols>,
) -> Result<PartialRow, Error> {
    let object = json.as_object().ok_or_else(|| Error::syntax(json, "row must be JSON object"))?;
    let mut row = Vec::with_capacity(object.len());
    for (name, value) in object.iter() {
        let Some(column) = table.column(name) else {
            let details = format!("No column {name} in table {}.", table.name);
            return Err(Error::at(json, ErrorKind::UnknownColumn, details));
        };
        let ty = match column {
            Column::Data(column) => &table.data(column).ty,
            Column::Uuid | Column::Version => &*UUID_TYPE,
        };
        row.push((column, Datum::from_json(ty, value, symbols.as_deref_mut())?));
    }
    Ok(row)
}

/// A column that an insert leaves out gets its default, which may break the column's own limits.
fn check_defaults(table: &TableSchema, row: &PartialRow) -> Result<(), Error> {
    for (column, definition) in table.data_columns() {
        if !row.iter().any(|(c, _)| *c == Column::Data(column)) {
            table.defaults()[usize::from(column.0)].check_members(&definition.ty)?;
        }
    }
    Ok(())
}
