//! The results of a transaction, operation by operation.

use crate::error::{Failure, TransactError};
use crate::shared::{Answer, InFlight};
use crate::transaction::Transaction;
use cowslip_engine::Uuid;
use cowslip_ovsdb::atom::parse_uuid;
use cowslip_ovsdb::condition::column_type;
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation::Operation;
use cowslip_ovsdb::schema::{Schema, TableSchema};
use std::collections::BTreeMap;

/// What the server answered to a transaction that it applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    operations: Vec<OperationResult>,
    inserted: BTreeMap<Uuid, Uuid>,
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperationResult {
    /// Of an insert: the row's UUID.
    Inserted(Uuid),
    /// Of an update, mutation or deletion: how many rows it was about.
    Count(u64),
    /// Of a selection: the rows, each with its columns.
    Rows(Vec<BTreeMap<String, Datum>>),
    /// Of the others.
    Done,
}

impl Results {
    /// The results, in the order of the operations.
    pub fn operations(&self) -> &[OperationResult] {
        &self.operations
    }

    /// The result of the operation at a position.
    pub fn at(&self, position: usize) -> Option<&OperationResult> {
        self.operations.get(position)
    }

    /// The number of rows that the operation at a position was about.
    pub fn count(&self, position: usize) -> Option<u64> {
        match self.at(position)? {
            OperationResult::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// The rows that the selection at a position found.
    pub fn rows(&self, position: usize) -> Option<&[BTreeMap<String, Datum>]> {
        match self.at(position)? {
            OperationResult::Rows(rows) => Some(rows),
            _ => None,
        }
    }

    /// The real UUID of a row by the one under which it was inserted.
    pub fn uuid(&self, provisional: Uuid) -> Uuid {
        self.inserted.get(&provisional).copied().unwrap_or(provisional)
    }
}

/// Turns a reply into the outcome of its transaction.
pub(crate) fn answer(transaction: &InFlight, outcome: Result<Json<'_>, Json<'_>>) -> Answer {
    let malformed = |reason: &str| TransactError::Reply { reason: reason.to_string() };
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return Err(TransactError::Failed(Box::new(failure(&error, None, transaction)))),
    };
    let Some(results) = result.as_array() else { return Err(malformed("the result is no array")) };
    let (guards, operations) = (transaction.guards.len(), &transaction.transaction.prepared.operations);
    let schema = transaction.transaction.snapshot.schema();
    let total = guards + operations.len();
    if let Some(at) = results.iter().position(|r| r.as_object().is_some_and(|o| o.member("error").is_some()))
    {
        if at < guards {
            return Err(TransactError::Duplicate(Box::new(transaction.guards[at].duplicate.clone())));
        }
        let operation = (at < total).then(|| at - guards);
        return Err(TransactError::Failed(Box::new(failure(&results[at], operation, transaction))));
    }
    if results.len() != total {
        return Err(malformed("the number of results is not that of the operations"));
    }
    let mut answer = Results::default();
    for (operation, json) in operations.iter().zip(&results[guards..]) {
        let result = operation_result(schema, operation, json).map_err(|e| malformed(&e))?;
        if let (Operation::Insert { uuid, .. }, OperationResult::Inserted(real)) = (operation, &result) {
            answer.inserted.insert(*uuid, *real);
        }
        answer.operations.push(result);
    }
    Ok(answer)
}

fn operation_result(
    schema: &Schema,
    operation: &Operation,
    json: &Json<'_>,
) -> Result<OperationResult, String> {
    let object = json.as_object().ok_or("a result is no object")?;
    match operation {
        Operation::Insert { .. } => match object.member("uuid").and_then(Json::as_array) {
            Some([Json::Str(tag), Json::Str(uuid)]) if tag == "uuid" => {
                parse_uuid(uuid).map(OperationResult::Inserted).ok_or_else(|| format!("{uuid} is no UUID"))
            }
            _ => Err("an insert without a UUID".to_string()),
        },
        Operation::Update { .. } | Operation::Mutate { .. } | Operation::Delete { .. } => {
            match object.member("count") {
                Some(Json::Int(count)) => Ok(OperationResult::Count(u64::try_from(*count).unwrap_or(0))),
                _ => Err("no count".to_string()),
            }
        }
        Operation::Select { table, .. } => {
            let rows = object.member("rows").and_then(Json::as_array).ok_or("a selection without rows")?;
            let rows = rows.iter().map(|row| selected(schema.at(*table), row));
            Ok(OperationResult::Rows(rows.collect::<Result<_, _>>()?))
        }
        _ => Ok(OperationResult::Done),
    }
}

fn selected(table: &TableSchema, json: &Json<'_>) -> Result<BTreeMap<String, Datum>, String> {
    let object = json.as_object().ok_or("a selected row is no object")?;
    let values = object.iter().map(|(name, value)| {
        let column = table.column(name).ok_or_else(|| format!("unknown column {name}"))?;
        let value = Datum::from_json(column_type(table, column), value, None).map_err(|e| e.to_string())?;
        Ok((name.to_string(), value))
    });
    values.collect()
}

fn failure(json: &Json<'_>, operation: Option<usize>, transaction: &InFlight) -> Failure {
    let member = |name| json.as_object().and_then(|o| o.member(name)).and_then(Json::as_str);
    let kind = member("error").or(json.as_str()).unwrap_or("ovsdb error").to_string();
    let details = member("details").unwrap_or_default().to_string();
    let Transaction { snapshot, prepared, .. } = transaction.transaction.as_ref();
    let schema = snapshot.schema();
    let table = operation.and_then(|at| crate::validation::table_of(&prepared.operations[at]));
    let table = table.or_else(|| {
        let words = || details.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words().find_map(|word| schema.table(word))
    });
    let column = table.and_then(|table| {
        let quoted = details.split('"').skip(1).step_by(2);
        let name = quoted.filter(|name| schema.at(table).column(name).is_some()).last();
        name.map(str::to_string)
    });
    let rows = details.split(|c: char| !(c.is_ascii_hexdigit() || c == '-')).filter_map(parse_uuid).collect();
    Failure { kind, operation, table: table.map(|t| schema.at(t).name.to_string()), column, rows, details }
}
