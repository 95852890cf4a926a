//! A transaction's way from the caller to the connection: when it may be sent, and with what in front of it.
//!
//! Invariants: whether it may be sent is decided under the lock under which it is queued, so that nothing changes in
//! between; a verdict that relies on something in flight, or on something that waits in front of it, waits too.

use crate::encode::write_operation;
use crate::error::{Refusal, TransactError};
use crate::shared::{Answer, InFlight, Inner, Shared, Statistics, Waiting};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::validation::{self, Changed, Footprint, Guard};
use cowslip_ovsdb::json::write_str;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A transaction's place in the order of this client's.
pub(crate) struct Ticket<'a> {
    shared: &'a Shared,
    number: Option<u64>,
    /// The right to be in flight; with the transaction, once it is.
    room: Option<OwnedSemaphorePermit>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number
            && self.shared.inner().waiting.remove(&number).is_some()
        {
            self.shared.ended.notify_waiters();
        }
    }
}

/// What is to be sent, and what it changes.
struct Admission {
    guards: Vec<Guard>,
    looked_at: Footprint,
    changed: Changed,
    refusal: Option<Refusal>,
}

impl<'a> Ticket<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Ticket { shared, number: None, room: None }
    }

    /// Sends the transaction as soon as nothing in flight stands against it, and waits for its results.
    pub(crate) async fn run(&mut self, transaction: Arc<Transaction>) -> Answer {
        let shared = self.shared;
        let room = shared.room.clone().acquire_owned().await;
        self.room = Some(room.map_err(|_| TransactError::Closed)?);
        let answer = loop {
            // Before the look, so that nothing that ends in between is missed.
            let ended = shared.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            match self.admit(&transaction)? {
                Some(answer) => break answer,
                None => ended.await,
            }
        };
        answer.await.unwrap_or(Err(TransactError::Closed))
    }

    /// Takes the transaction back if no byte of it has left; tells whether one may have.
    pub(crate) fn withdraw(&self) -> bool {
        let mut inner = self.shared.inner();
        let Some(number) = self.number else { return false };
        if inner.waiting.contains_key(&number) {
            return false;
        }
        match inner.in_flight.get(&number) {
            Some(in_flight) if !in_flight.is_sent => {
                inner.in_flight.remove(&number);
                inner.queue.retain(|(queued, _)| *queued != number);
                drop(inner);
                self.shared.ended.notify_waiters();
                false
            }
            _ => true,
        }
    }

    /// Sends the transaction, if nothing in flight stands against it; none if it has to wait.
    fn admit(
        &mut self,
        transaction: &Arc<Transaction>,
    ) -> Result<Option<oneshot::Receiver<Answer>>, TransactError> {
        let shared = self.shared;
        let mut inner = shared.inner();
        if inner.is_closed {
            return Err(TransactError::Closed);
        }
        let options = &shared.options;
        let mode = transaction.validation.unwrap_or(options.validation);
        let snapshot = inner.snapshot.clone();
        let is_validated = mode.applies_to(transaction.snapshot.schema(), &transaction.prepared.operations);
        if is_validated && !inner.is_synchronised {
            return Err(TransactError::NotSynchronised);
        }
        if !inner.is_live {
            return Err(TransactError::Disconnected);
        }
        if !is_same_schema(&snapshot, transaction) {
            return Err(TransactError::SchemaChanged);
        }
        let is_serialized = transaction.is_serialized.unwrap_or(options.serialized);
        let number = *self.number.get_or_insert_with(|| {
            inner.next_ticket += 1;
            inner.next_ticket
        });
        let has_others = !inner.in_flight.is_empty() || !inner.waiting.is_empty();
        let admission = self.look(&snapshot, transaction, is_validated, has_others);
        if must_wait(&inner, number, &admission, is_validated, is_serialized) {
            inner.waiting.insert(number, Waiting { changed: admission.changed, is_serialized });
            Statistics::count(&shared.statistics.waited, "cowslip_ovsdb_client_verdicts_waiting_total");
            return Ok(None);
        }
        inner.waiting.remove(&number);
        if let Some(refusal) = admission.refusal {
            Statistics::count(&shared.statistics.refused, "cowslip_ovsdb_client_refused_total");
            drop(inner);
            shared.ended.notify_waiters();
            return Err(TransactError::Refused(Box::new(refusal)));
        }
        let params = encode(&options.database, transaction, &admission.guards);
        let (answer, receiver) = oneshot::channel();
        let room =
            self.room.take().expect("a transaction has room before it is admitted, and is admitted once");
        inner.in_flight.insert(
            number,
            InFlight {
                transaction: transaction.clone(),
                guards: admission.guards,
                changed: admission.changed,
                is_serialized,
                is_sent: false,
                answer,
                _room: room,
            },
        );
        inner.queue.push_back((number, params));
        Statistics::count(&shared.statistics.sent, "cowslip_ovsdb_client_transactions_total");
        drop(inner);
        shared.wake.notify_one();
        Ok(Some(receiver))
    }

    fn look(
        &self,
        snapshot: &Snapshot,
        transaction: &Transaction,
        is_validated: bool,
        has_others: bool,
    ) -> Admission {
        let needs_run = is_validated || transaction.guards == Some(true);
        if !needs_run {
            let changed = Changed::by_operations(snapshot.schema(), &transaction.prepared.operations);
            return Admission { guards: Vec::new(), looked_at: Footprint::default(), changed, refusal: None };
        }
        let span = tracing::trace_span!("validate", operations = transaction.len());
        let trial = span.in_scope(|| validation::try_on(snapshot, &transaction.prepared, has_others));
        let guards = match trial.refusal {
            None => validation::guards(snapshot, &trial.outcome, transaction.guards),
            Some(_) => Vec::new(),
        };
        let refusal = trial.refusal.filter(|_| is_validated);
        Statistics::count(&self.shared.statistics.validated, "cowslip_ovsdb_client_validations_total");
        let operations = &transaction.prepared.operations;
        let changed = Changed::by_outcome(snapshot.schema(), operations, trial.outcome);
        Admission { guards, looked_at: trial.looked_at, changed, refusal }
    }
}

/// Whether something in flight, or something that came before and waits, stands against sending now.
fn must_wait(
    inner: &Inner,
    number: u64,
    admission: &Admission,
    is_validated: bool,
    is_serialized: bool,
) -> bool {
    let earlier = || inner.waiting.range(..number).map(|(_, waiting)| waiting);
    if is_serialized && (!inner.in_flight.is_empty() || earlier().next().is_some()) {
        return true;
    }
    if inner.in_flight.values().any(|other| other.is_serialized) || earlier().any(|w| w.is_serialized) {
        return true;
    }
    let meets = |changed: &Changed| is_validated && admission.looked_at.meets(changed.footprint());
    // One that waits is overtaken by none whose verdict would change it.
    inner.in_flight.values().any(|other| meets(&other.changed)) || earlier().any(|w| meets(&w.changed))
}

/// The parameters of the request.
fn encode(database: &str, transaction: &Transaction, guards: &[Guard]) -> String {
    let schema = transaction.snapshot.schema();
    let mut out = String::with_capacity(64 + 128 * transaction.len());
    out.push('[');
    write_str(&mut out, database);
    for operation in guards.iter().map(|g| &g.operation).chain(&transaction.prepared.operations) {
        out.push(',');
        write_operation(schema, operation, &transaction.names, &mut out);
    }
    out.push(']');
    out
}

/// Whether a transaction was begun under the schema that the snapshot has.
pub(crate) fn is_same_schema(snapshot: &Snapshot, transaction: &Transaction) -> bool {
    let (now, then) = (snapshot.schema(), transaction.snapshot.schema());
    Arc::ptr_eq(now, then) || now.text() == then.text()
}
