//! Which server and which database a command means, from what its arguments leave out.

use super::connection::Connection;
use super::error::ClientError;
use super::json::{Value, object, string};
use crate::environment::run_directory;
use cowslip_ovsdb::json::Json;

/// What a command needs before it can start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A connection.
    Server,
    /// A connection and the name of a database there.
    Database,
}

/// A connection, with the database that was chosen (empty if none is needed) and the arguments that are left.
pub(crate) struct Target<'a> {
    /// The connection.
    pub(crate) connection: Connection,
    /// The database's name.
    pub(crate) database: String,
    /// What follows in the arguments.
    pub(crate) rest: &'a [String],
}

/// The address of the local server.
pub(crate) fn default_server() -> String {
    format!("unix:{}", run_directory().join("db.sock").display())
}

/// Whether an argument looks like an address rather than a name or JSON.
fn is_address(argument: &str) -> bool {
    argument.starts_with(|c: char| c.is_ascii_alphabetic()) && argument.contains(':')
}

/// Takes the server and the database off the front of `args`, of which the last `needed` belong to the command itself.
/// `database` is given when the command knows it from elsewhere. With `leader_only`, a member of a cluster counts only
/// while it leads.
pub(crate) fn open<'a>(
    args: &'a [String],
    needed: usize,
    need: Need,
    database: Option<&str>,
    leader_only: bool,
) -> Result<Target<'a>, ClientError> {
    let (servers, mut rest) = match args.split_first() {
        Some((first, rest)) if args.len() > needed && is_address(first) => (split_servers(first), rest),
        _ => (vec![default_server()], args),
    };
    let mut database = database.map(str::to_owned);
    if let [server] = servers.as_slice() {
        let mut connection = Connection::open(server)?;
        if need == Need::Database && database.is_none() {
            let names = database_names(&mut connection)?;
            database = Some(match rest.split_first() {
                Some((first, after)) if rest.len() > needed && names.contains(first) => {
                    rest = after;
                    first.clone()
                }
                _ => default_database(&names)?.to_owned(),
            });
        }
        return Ok(Target { connection, database: database.unwrap_or_default(), rest });
    }
    if need == Need::Database && database.is_none() {
        match rest.split_first() {
            Some((first, after)) if rest.len() > needed => {
                database = Some(first.clone());
                rest = after;
            }
            _ => return Err(ClientError::Usage("with several servers, name the database".to_owned())),
        }
    }
    let connection = first_usable(&servers, database.as_deref(), leader_only)?;
    Ok(Target { connection, database: database.unwrap_or_default(), rest })
}

/// Splits a list of addresses at its commas. A comma inside a unix socket's path cannot be told apart; the reference
/// tool has the same limit.
fn split_servers(list: &str) -> Vec<String> {
    list.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

/// The names of the databases of a server, sorted.
pub(crate) fn database_names(connection: &mut Connection) -> Result<Vec<String>, ClientError> {
    let result = connection.call("list_dbs", Json::Array(Vec::new()))?;
    let bad = || ClientError::Reply("the reply to list_dbs is no array of strings".to_owned());
    let mut names = Vec::new();
    for name in result.as_array().ok_or_else(bad)? {
        names.push(name.as_str().ok_or_else(bad)?.to_owned());
    }
    names.sort();
    Ok(names)
}

/// The database meant when none is named: Open vSwitch's, or the only one of the server.
fn default_database(names: &[String]) -> Result<&str, ClientError> {
    if names.iter().any(|name| name == "Open_vSwitch") {
        return Ok("Open_vSwitch");
    }
    let mut candidates = names.iter().filter(|name| !name.starts_with('_'));
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(ClientError::Usage(format!("name a database; the server has {}", names.join(", ")))),
    }
}

/// The first server that answers and, if a database is named, serves it in a usable state.
fn first_usable(
    servers: &[String],
    database: Option<&str>,
    leader_only: bool,
) -> Result<Connection, ClientError> {
    let mut last = ClientError::NoServer { servers: servers.join(",") };
    for server in servers {
        match Connection::open(server) {
            Err(error) => last = error,
            Ok(mut connection) => {
                let Some(database) = database else { return Ok(connection) };
                if is_usable(&mut connection, database, leader_only)? {
                    return Ok(connection);
                }
                last = ClientError::NoServer { servers: servers.join(",") };
            }
        }
    }
    Err(last)
}

fn is_usable(connection: &mut Connection, database: &str, leader_only: bool) -> Result<bool, ClientError> {
    let condition = Json::Array(vec![string("name"), string("=="), string(database)]);
    let operation = object([
        ("op", string("select")),
        ("table", string("Database")),
        ("where", Json::Array(vec![condition])),
    ]);
    let result = connection.call("transact", Json::Array(vec![string("_Server"), operation]))?;
    let rows =
        result.as_array().and_then(|r| r.first()).and_then(Json::as_object).and_then(|r| r.member("rows"));
    let Some(row) = rows.and_then(Json::as_array).and_then(|r| r.first()).and_then(Json::as_object) else {
        return Ok(false);
    };
    let is_false = |column: &str| row.member(column) == Some(&Value::Bool(false));
    let clustered = row.member("model").and_then(Json::as_str) == Some("clustered");
    Ok(!clustered || !(is_false("connected") || leader_only && is_false("leader")))
}
