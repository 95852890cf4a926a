//! `query` and `transact`: a transaction on a file, without a server.

use std::path::PathBuf;
use std::sync::Arc;

use cowslip_engine::{Commit, Journal, Root};
use cowslip_ovsdb::error::{Error, ErrorKind};
use cowslip_ovsdb::executor::{Circumstances, Everything, Execution, execute};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::operation::Transaction;
use cowslip_ovsdb::row::{Note, Ovsdb};
use cowslip_ovsdb_server::file::{self, OpenOptions};

use super::{ToolError, storage, undamaged};

/// Executes a transaction on a file's content and gives the reply. The file stays as it is.
pub(super) fn query((path, text): &(PathBuf, String)) -> Result<String, ToolError> {
    let loaded = file::load(&storage(), path)?;
    undamaged(path, loaded.report.damage)?;
    Ok(run(&loaded.root, text)?.reply)
}

/// Executes a transaction on a file and gives the reply once the changes are on the disk.
pub(super) fn transact((path, text): &(PathBuf, String)) -> Result<String, ToolError> {
    let opened = file::open(Arc::new(storage()), path, &OpenOptions::default())?;
    undamaged(path, opened.report.damage)?;
    let mut journal = opened.journal;
    let Run { reply, commit } = run(&opened.root, text)?;
    if let Some(commit) = commit {
        let written = journal.append(&[commit]);
        written.map_err(|source| ToolError::Write { path: path.clone(), source })?;
        journal.make_durable().map_err(|source| ToolError::Io { path: path.clone(), source })?;
    }
    Ok(reply)
}

/// What became of a transaction.
struct Run {
    reply: String,
    commit: Option<Commit<Ovsdb>>,
}

impl Run {
    /// A reply to a transaction that did nothing.
    fn refused(reply: String) -> Self {
        Self { reply, commit: None }
    }
}

fn run(root: &Root<Ovsdb>, text: &str) -> Result<Run, ToolError> {
    let json = Json::parse(text.as_bytes()).map_err(|source| ToolError::Json { source })?;
    let refuse =
        |details: &str| Run::refused(sorted(&Error::at(&json, ErrorKind::Syntax, details).to_json()));
    let Some(params) = json.as_array() else { return Ok(refuse("array expected")) };
    let schema = root.meta();
    let Some((_, operations)) = params.split_first().filter(|(name, _)| name.as_str() == Some(&*schema.name))
    else {
        return Ok(refuse("database name expected as first parameter"));
    };
    let transaction = Transaction::parse(schema, operations);
    let circumstances = Circumstances { owns_lock: &|_| false, read_only: false, waited_ms: 0 };
    let outcome = match execute(root, &transaction, &Everything, &circumstances) {
        Execution::Done(outcome) => outcome,
        // Nobody else could make it true.
        Execution::Waiting { .. } => {
            let reply = "[{\"details\":\"triggers not supported\",\"error\":\"not supported\"}]";
            return Ok(Run::refused(reply.to_owned()));
        }
    };
    let mut reply = String::new();
    outcome.write(schema, &mut reply);
    let reply = sorted(&reply);
    if outcome.error.is_some() {
        return Ok(Run::refused(reply));
    }
    let note = Note { comment: transaction.comment() };
    let commit = Commit { changes: Arc::new(outcome.changes), note: Arc::new(note), root: None };
    Ok(Run { reply, commit: Some(commit) })
}

/// The same JSON with the members of objects in order, as the reference tool prints it.
fn sorted(reply: &str) -> String {
    // What cannot be parsed, which nothing here writes, is shown as it is.
    Json::parse(reply.as_bytes()).map_or_else(|_| reply.to_owned(), |json| json.to_sorted_string())
}
