//! The commands that send one request and print what comes back.

use super::Context;
use super::connection::Connection;
use super::error::ClientError;
use super::json::{Value, object, string, strings, text};
use super::remote::{self, Need, Target};
use super::schema_text::{SchemaText, type_json};
use super::table::{Cell, Table};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::schema::TableSchema;
use cowslip_ovsdb::types::ColumnType;
use std::time::Duration;

/// How long `wait` waits before it tries again to connect, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// `list-dbs`
pub(super) fn list_dbs(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    for name in remote::database_names(&mut target.connection)? {
        context.print(&format!("{name}\n"))?;
    }
    Ok(())
}

/// The schema of a database.
pub(super) fn fetch_schema(connection: &mut Connection, database: &str) -> Result<SchemaText, ClientError> {
    let json = connection.call("get_schema", strings([database]))?;
    SchemaText::from_json(&json)
}

/// `get-schema`
pub(super) fn get_schema(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let schema = fetch_schema(&mut target.connection, &target.database)?;
    context.print_json(&schema.json)
}

/// `get-schema-version`
pub(super) fn get_schema_version(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let schema = fetch_schema(&mut target.connection, &target.database)?.schema;
    context.print(&format!("{}\n", schema.version))
}

/// `get-schema-cksum`
pub(super) fn get_schema_cksum(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let schema = fetch_schema(&mut target.connection, &target.database)?.schema;
    context.print(&format!("{}\n", schema.cksum))
}

/// `list-tables`
pub(super) fn list_tables(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let schema = fetch_schema(&mut target.connection, &target.database)?.schema;
    let mut table = Table::new(None);
    table.column("Table", None);
    table.rows = schema.tables.iter().map(|t| vec![Cell::Text(t.name.to_string())]).collect();
    context.print_table(&table)
}

/// The columns of a table as clients see them, `_uuid` and `_version` first, with their types.
pub(super) fn columns_of(table: &TableSchema) -> Vec<(&str, ColumnType)> {
    let own =
        ["_uuid", "_version"].map(|name| (name, ColumnType::scalar(cowslip_ovsdb::atom::AtomicType::Uuid)));
    own.into_iter().chain(table.columns.iter().map(|c| (&*c.name, c.ty.clone()))).collect()
}

/// `list-columns`
pub(super) fn list_columns(context: &mut Context, mut target: Target<'_>) -> Result<(), ClientError> {
    let schema = fetch_schema(&mut target.connection, &target.database)?.schema;
    let only = target.rest.first();
    let mut table = Table::new(None);
    if only.is_none() {
        table.column("Table", None);
    }
    table.column("Column", None);
    table.column("Type", None);
    for of in schema.tables.iter().filter(|t| only.is_none_or(|name| **name == *t.name)) {
        for (name, ty) in columns_of(of) {
            let mut row = vec![Cell::Text(name.to_owned()), Cell::Json(type_json(&ty))];
            if only.is_none() {
                row.insert(0, Cell::Text(of.name.to_string()));
            }
            table.rows.push(row);
        }
    }
    context.print_table(&table)
}

fn parse_argument(argument: &str) -> Result<Value, ClientError> {
    Json::parse(argument.as_bytes())
        .map(Json::into_owned)
        .map_err(|source| ClientError::Argument { text: argument.to_owned(), source })
}

/// The condition of `monitor-cond` and the like.
pub(super) fn parse_condition(argument: &str) -> Result<Value, ClientError> {
    let condition = parse_argument(argument)?;
    match condition {
        Json::Array(_) => Ok(condition),
        _ => Err(ClientError::Usage(format!("{argument:?} is no array of conditions"))),
    }
}

fn not_a_transaction() -> ClientError {
    ClientError::Usage("a transaction is an array of the database's name and the operations".to_owned())
}

/// Runs `operations`, the first element of which names the database.
fn run_transaction(context: &Context, args: &[String], operations: Vec<Value>) -> Result<Value, ClientError> {
    let database = operations.first().and_then(Json::as_str).ok_or_else(not_a_transaction)?;
    let target = remote::open(args, 1, Need::Database, Some(database), context.leader_only)?;
    let [_] = target.rest else {
        return Err(ClientError::Usage(
            "transact and query take a server and a transaction, no more".to_owned(),
        ));
    };
    let mut connection = target.connection;
    connection.call("transact", Json::Array(operations))
}

fn parse_transaction(args: &[String]) -> Result<Vec<Value>, ClientError> {
    match args.last().map(|last| parse_argument(last)) {
        Some(Ok(Json::Array(elements))) => Ok(elements),
        Some(Err(error)) => Err(error),
        _ => Err(not_a_transaction()),
    }
}

/// `transact`
pub(super) fn transact(context: &mut Context, args: &[String]) -> Result<(), ClientError> {
    let operations = parse_transaction(args)?;
    let result = run_transaction(context, args, operations)?;
    context.print_json(&result)
}

/// `query`: an `abort` at the end undoes what the operations did; its own result is not shown.
pub(super) fn query(context: &mut Context, args: &[String]) -> Result<(), ClientError> {
    let mut operations = parse_transaction(args)?;
    operations.push(object([("op", string("abort"))]));
    let abort_at = operations.len() - 2;
    let mut result = run_transaction(context, args, operations)?;
    if let Json::Array(results) = &mut result {
        let aborted = |r: &Value| {
            r.as_object().and_then(|o| o.member("error")).and_then(Json::as_str) == Some("aborted")
        };
        if results.len() == abort_at + 1 && results.last().is_some_and(aborted) {
            results.pop();
        }
    }
    context.print_json(&result)
}

/// `needs-conversion`
pub(super) fn needs_conversion(context: &mut Context, args: &[String]) -> Result<(), ClientError> {
    let (wanted, mut target) = open_for_schema(context, args)?;
    let current = fetch_schema(&mut target.connection, &wanted.schema.name)?;
    let same = wanted.json.to_sorted_string() == current.json.to_sorted_string();
    context.print(if same { "no\n" } else { "yes\n" })
}

/// `convert`
pub(super) fn convert(context: &mut Context, args: &[String]) -> Result<(), ClientError> {
    let (wanted, mut target) = open_for_schema(context, args)?;
    set_change_aware(&mut target.connection)?;
    let params = Json::Array(vec![string(&wanted.schema.name), wanted.json]);
    target.connection.call("convert", params).map(|_| ())
}

/// Reads the schema file that ends `args` and connects to the server of its database.
fn open_for_schema<'a>(
    context: &Context,
    args: &'a [String],
) -> Result<(SchemaText, Target<'a>), ClientError> {
    let path = args.last().map_or("", String::as_str);
    let wanted = SchemaText::from_file(path)?;
    let target = remote::open(args, 1, Need::Database, Some(&wanted.schema.name), context.leader_only)?;
    Ok((wanted, target))
}

/// Asks to be told, rather than disconnected, when databases come and go. Servers that do not know how are fine.
pub(super) fn set_change_aware(connection: &mut Connection) -> Result<(), ClientError> {
    connection.exchange("set_db_change_aware", Json::Array(vec![Json::Bool(true)])).map(|_| ())
}

/// Fails if the result of any operation is an error.
pub(super) fn check_results(result: &Value) -> Result<(), ClientError> {
    let results =
        result.as_array().ok_or_else(|| ClientError::Reply("the results are no array".to_owned()))?;
    for result in results {
        let members = result.as_object();
        if members.is_none_or(|m| m.member("error").is_some()) {
            return Err(ClientError::Operation(text(result, false)));
        }
    }
    Ok(())
}

/// `wait`: asks the server to answer when the database is in the state. Connects again as often as needed, because the
/// command is there for scripts that start a server and go on when it is ready.
pub(super) fn wait(_: &mut Context, args: &[String]) -> Result<(), ClientError> {
    let (server, database, state) = match args {
        [database, state] => (remote::default_server(), database, state),
        [server, database, state] => (server.clone(), database, state),
        _ => return Err(ClientError::Usage("wait takes a server, a database and a state".to_owned())),
    };
    let mut row = vec![];
    let (columns, rows) = match state.as_str() {
        "connected" => {
            row.push(("connected", Json::Bool(true)));
            (vec!["connected"], vec![object(row)])
        }
        "added" => (vec![], vec![object(row)]),
        "removed" => (vec![], vec![]),
        _ => {
            return Err(ClientError::Usage(format!(
                "{state:?} is no state: say added, connected or removed"
            )));
        }
    };
    let condition = Json::Array(vec![string("name"), string("=="), string(database)]);
    let operation = object([
        ("op", string("wait")),
        ("table", string("Database")),
        ("where", Json::Array(vec![condition])),
        ("columns", strings(columns)),
        ("until", string("==")),
        ("rows", Json::Array(rows)),
    ]);
    let transaction = Json::Array(vec![string("_Server"), operation]);
    let mut pause = RETRY_FIRST;
    loop {
        match wait_once(&server, &transaction) {
            Err(ClientError::Connect { .. } | ClientError::Closed { .. } | ClientError::Io { .. }) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(RETRY_MAX);
            }
            done => return done,
        }
    }
}

fn wait_once(server: &str, transaction: &Value) -> Result<(), ClientError> {
    let mut connection = Connection::open(server)?;
    // A server that does not tell of databases that come later would let this wait for ever.
    connection.call("set_db_change_aware", Json::Array(vec![Json::Bool(true)]))?;
    check_results(&connection.call("transact", transaction.clone())?)
}
