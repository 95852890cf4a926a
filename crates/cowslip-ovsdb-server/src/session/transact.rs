//! `transact` and `cancel` (RFC 7047 sections 4.1.3 and 4.1.4).
//!
//! A transaction that only reads runs on the newest snapshot, here and not in the committer, unless an earlier
//! transaction of this session is still open: it must see what that one wrote.

use super::{Ended, Open, Session};
use crate::database::Database;
use crate::host::{Answer, Job, Submitted};
use cowslip_ovsdb::error::{Error, ErrorKind};
use cowslip_ovsdb::executor::{self, Circumstances, Everything, Execution};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::message::write_reply;
use cowslip_ovsdb::operation::Transaction;
use std::sync::Arc;
use std::time::Instant;

impl Session {
    pub(super) fn transact(
        &mut self,
        id: String,
        database: &Arc<Database>,
        operations: &[Json<'_>],
        bytes: usize,
    ) -> Result<(), Ended> {
        let transaction = Transaction::parse(&database.schema(), operations);
        if transaction.reads_only && self.open.is_empty() {
            // A snapshot that the history goes up to, so that the monitors can be told of it before the reply shows it.
            let (root, _) = database.snapshot();
            debug_assert!(
                Arc::ptr_eq(root.meta(), &transaction.schema),
                "no schema changes while it is served"
            );
            let circumstances =
                Circumstances { owns_lock: &|_| false, read_only: database.is_read_only, waited_ms: 0 };
            let execute = || executor::execute(&root, &transaction, &Everything, &circumstances);
            // A scan of a large table holds up no other session of this thread.
            let execution =
                if transaction.is_quick { execute() } else { tokio::task::block_in_place(execute) };
            if let Execution::Done(outcome) = execution {
                self.flush_monitors()?;
                self.reply_outcome(&id, database, &outcome);
            }
            return Ok(());
        }
        self.requests += 1;
        let request = self.requests;
        let submitted = Submitted {
            session: self.id,
            request,
            transaction,
            events: Some(self.events.clone()),
            ended: self.ended.clone(),
            arrived: Instant::now(),
            read_only: database.is_read_only,
        };
        if database.submit(Job::Transact(Box::new(submitted))).is_err() {
            let error = Error::new(ErrorKind::Io, "the database is shutting down");
            self.reply_error(&id, &error);
            return Ok(());
        }
        self.open_bytes += bytes;
        self.open.insert(request, Open { id, database: database.clone(), bytes });
        Ok(())
    }

    pub(super) fn answered(&mut self, request: u64, answer: Answer) {
        let Some(Open { id, database, bytes }) = self.open.remove(&request) else { return };
        self.open_bytes -= bytes;
        match answer {
            Answer::Executed { outcome, generation } => {
                debug_assert!(database.root().generation() >= generation, "answers follow publication");
                self.reply_outcome(&id, &database, &outcome);
            }
            Answer::NotStored(error) => self.reply(&id, |out| {
                out.push('[');
                error.write(out);
                out.push(']');
            }),
            Answer::Canceled => self.reply_error_text(&id, "canceled"),
        }
    }

    fn reply_outcome(&mut self, id: &str, database: &Database, outcome: &executor::Outcome) {
        let schema = database.schema();
        let mut encode = || self.output.append(|out| write_reply(out, id, |out| outcome.write(&schema, out)));
        if outcome.results.iter().any(|result| result.is_large()) {
            // The other sessions of this thread move on while this one encodes.
            tokio::task::block_in_place(encode);
        } else {
            encode();
        }
    }

    /// A notification: drops the waiting transaction whose request had this id.
    pub(super) fn cancel(&mut self, params: &[Json<'_>]) {
        let [id] = params else { return };
        let id = id.to_sorted_string();
        for (request, open) in &self.open {
            if open.id == id {
                let job = Job::Cancel { session: self.id, request: *request };
                // A database that is gone has answered already.
                let _ = open.database.submit(job);
            }
        }
    }
}
