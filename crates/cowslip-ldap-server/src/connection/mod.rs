//! A client's connection: requests in, answers out.
//!
//! A `Connection` does no input or output: the `driver` gives it messages and events, and sends what it leaves in its
//! output. What may run when is the protocol core's matter ([`cowslip_ldap::session`]); here it is done. Searches run in
//! steps on the connection's task, writes in the committer. Invariants: a connection's writes are queued in the order of
//! their coming; whatever is abandoned is answered no more; no request of a connection sees less than an answer that the
//! connection has been sent.

mod bind;
mod driver;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cowslip_engine::Root;
use cowslip_ldap::message::{
    ExtendedRequest, Operation, OperationKind, Request, decode_request, write_bind_response,
    write_extended_response, write_notice_of_disconnection, write_result,
};
use cowslip_ldap::oids;
use cowslip_ldap::result::{LdapResult, ResultCode};
use cowslip_ldap::session::{BindAnswer, Session, Step, Ticket};
use tokio::sync::mpsc;

pub(crate) use driver::run;

use crate::host::{Answer, Job, Progress as WriteProgress, Request as Origin, WriteJob};
use crate::model::Directory;
use crate::operations::{Refusal, request};
use crate::search::{Limits, Progress, Search, compare};
use crate::server::Shared;
use bind::Identity;

/// How much may be waiting to be sent before no more requests are taken and no search goes on, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How many entries a step of a search looks at before others have their turn.
const STEP_ENTRIES: usize = 512;

/// How many bytes a step of a search writes before others have their turn.
const STEP_BYTES: usize = 128 << 10;

/// A write is done.
struct Answered {
    ticket: Ticket,
    answer: Answer,
}

struct Writing {
    ticket: Ticket,
    kind: OperationKind,
    progress: WriteProgress,
}

/// A search that took more than one step, and the root that it holds to its end.
struct Searching {
    ticket: Ticket,
    root: Arc<Root<Directory>>,
    search: Box<Search>,
}

/// What ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ended;

/// A client's connection.
struct Connection {
    shared: Arc<Shared>,
    session: Session,
    identity: Identity,
    out: Vec<u8>,
    searches: VecDeque<Searching>,
    writes: Vec<Writing>,
    /// Writes that somebody tries to cancel, by the write's ticket.
    cancels: HashMap<Ticket, Ticket>,
    events: mpsc::UnboundedSender<Answered>,
    arrivals: mpsc::UnboundedReceiver<Answered>,
}

impl Connection {
    fn new(shared: Arc<Shared>) -> Self {
        let (events, arrivals) = mpsc::unbounded_channel();
        let session = Session::new(false).with_open_max(shared.options.requests_open_max);
        Self {
            shared,
            session,
            identity: Identity::anonymous(),
            out: Vec::new(),
            searches: VecDeque::new(),
            writes: Vec::new(),
            cancels: HashMap::new(),
            events,
            arrivals,
        }
    }

    /// The most bytes that a message of this client may have now.
    fn message_bytes_max(&self) -> usize {
        self.shared.options.messages.message_bytes(!self.identity.is_anonymous())
    }

    /// Handles one whole message.
    fn handle(&mut self, frame: &[u8]) -> Result<(), Ended> {
        let limits = self.shared.options.messages;
        let step = match decode_request(frame, &limits) {
            Ok(request) => match self.session.receive(&request) {
                Step::Start(ticket) => {
                    self.start(ticket, &request, frame);
                    return Ok(());
                }
                Step::Bind { ticket, dropped } => {
                    self.drop_all(&dropped);
                    self.bind(ticket, &request);
                    return Ok(());
                }
                step => step,
            },
            Err(error) => self.session.refused(&error),
        };
        self.follow(step)
    }

    /// Does what the protocol core says, apart from starting operations.
    fn follow(&mut self, step: Step) -> Result<(), Ended> {
        match step {
            Step::Refuse { id, operation, code, message } => {
                write_result(&mut self.out, id, operation, &LdapResult::new(code, message), &[]);
            }
            Step::FailBind { id, code, message, dropped } => {
                self.drop_all(&dropped);
                self.identity = Identity::anonymous();
                write_bind_response(&mut self.out, id, &LdapResult::new(code, message), None, &[]);
            }
            Step::StartTls(ticket) => {
                let result = LdapResult::new(ResultCode::ProtocolError, "StartTLS is not there yet");
                write_extended_response(&mut self.out, ticket.id(), &result, None, None, &[]);
                let next = self.session.start_tls_answered(ticket, false, 0);
                return self.follow(next);
            }
            Step::Cancel { ticket, target } => self.cancel(ticket, target),
            Step::Abandon(ticket) => self.drop_all(&[ticket]),
            Step::Disconnect { code, message, dropped } => {
                self.drop_all(&dropped);
                write_notice_of_disconnection(&mut self.out, &LdapResult::new(code, message));
                return Err(Ended);
            }
            Step::Close { dropped } => {
                self.drop_all(&dropped);
                return Err(Ended);
            }
            // The driver hands over requests only when they are taken, and the other two are started above.
            Step::Ignore | Step::Wait | Step::Start(_) | Step::Bind { .. } => {}
        }
        Ok(())
    }

    fn start(&mut self, ticket: Ticket, request: &Request<'_>, frame: &[u8]) {
        let kind = request.operation.kind();
        let unknown =
            request.controls.iter().find(|control| control.is_critical && control.oid != oids::MANAGE_DSA_IT);
        if let Some(control) = unknown {
            let message = format!("the control {} is not known", control.oid);
            let refusal = Refusal::new(ResultCode::UnavailableCriticalExtension, message);
            return self.finish(ticket, kind, Some(&refusal));
        }
        match &request.operation {
            Operation::Search(_) => self.start_search(ticket, request),
            Operation::Compare(compared) => {
                let result = self.may_read().and_then(|()| {
                    let root = self.shared.readers.root();
                    compare(&**root, compared, self.identity.is_root())
                });
                let code = match result {
                    Ok(true) => Refusal::new(ResultCode::CompareTrue, ""),
                    Ok(false) => Refusal::new(ResultCode::CompareFalse, ""),
                    Err(refusal) => refusal,
                };
                self.finish(ticket, kind, Some(&code));
            }
            Operation::Extended(extended) => self.extended(ticket, extended),
            _ => self.start_write(ticket, request, frame),
        }
    }

    fn may_read(&self) -> Result<(), Refusal> {
        if self.identity.is_anonymous() && !self.shared.options.anonymous_reads {
            let message = "reading needs a bind";
            return Err(Refusal::new(ResultCode::InsufficientAccessRights, message));
        }
        Ok(())
    }

    fn start_search(&mut self, ticket: Ticket, request: &Request<'_>) {
        let Operation::Search(asked) = &request.operation else { return };
        let is_root = self.identity.is_root();
        let limits = if is_root { Limits::default() } else { self.shared.options.search };
        // Whoever is nobody yet finds the root DSE, to learn how to become somebody.
        let may = if asked.base.is_empty() { Ok(()) } else { self.may_read() };
        if let Err(refusal) = may {
            return self.finish(ticket, OperationKind::Search, Some(&refusal));
        }
        // Most searches are done in one step. They borrow the root that this connection has, and count no owners.
        let root = self.shared.readers.root();
        let begun = Search::new(&root, asked, limits, is_root, &self.shared.root_dse);
        let progress = begun.map(|mut search| {
            let progress = search.step(&root, ticket.id(), STEP_ENTRIES, STEP_BYTES, &mut self.out);
            let goes_on = progress == Progress::More;
            (
                progress,
                goes_on.then(|| Searching { ticket, root: Arc::clone(&root), search: Box::new(search) }),
            )
        });
        drop(root);
        match progress {
            Ok((Progress::Done(refusal), _)) => self.finish(ticket, OperationKind::Search, refusal.as_ref()),
            Ok((Progress::More, searching)) => self.searches.extend(searching),
            Err(refusal) => self.finish(ticket, OperationKind::Search, Some(&refusal)),
        }
    }

    /// Goes on with a search; true if it is done.
    fn step(&mut self, searching: &mut Searching) -> bool {
        let Searching { ticket, root, search } = searching;
        match search.step(root, ticket.id(), STEP_ENTRIES, STEP_BYTES, &mut self.out) {
            Progress::More => false,
            Progress::Done(refusal) => {
                self.finish(*ticket, OperationKind::Search, refusal.as_ref());
                true
            }
        }
    }

    /// Goes on with the search that has waited longest.
    fn go_on(&mut self) {
        if let Some(mut searching) = self.searches.pop_front()
            && !self.step(&mut searching)
        {
            self.searches.push_back(searching);
        }
    }

    fn start_write(&mut self, ticket: Ticket, message: &Request<'_>, frame: &[u8]) {
        let kind = message.operation.kind();
        if !self.identity.is_root() {
            let refusal = Refusal::new(ResultCode::InsufficientAccessRights, "only the root may write");
            return self.finish(ticket, kind, Some(&refusal));
        }
        let planned = {
            let root = self.shared.readers.root();
            let meta = root.meta();
            request::plan(message, meta).map(|plan| (plan, meta.version))
        };
        let (plan, version) = match planned {
            Ok(planned) => planned,
            Err(refusal) => return self.finish(ticket, kind, Some(&refusal)),
        };
        let progress = WriteProgress::default();
        let events = self.events.clone();
        let job = WriteJob {
            request: Origin::Message(frame.to_vec(), request::plan_message),
            plan,
            version,
            who: self.identity.name(),
            progress: progress.clone(),
            is_durable: self.shared.options.is_durable,
            answer: Box::new(move |answer| {
                // A connection that has ended has nobody to tell.
                let _ = events.send(Answered { ticket, answer });
            }),
        };
        self.writes.push(Writing { ticket, kind, progress });
        if self.shared.service.submit(Job::Write(Box::new(job))).is_err() {
            let refusal = Refusal::new(ResultCode::Unavailable, "the directory is shutting down");
            self.answered(Answered { ticket, answer: Err(refusal) });
        }
    }

    /// A write is done.
    fn answered(&mut self, Answered { ticket, answer }: Answered) {
        let Some(place) = self.writes.iter().position(|writing| writing.ticket == ticket) else { return };
        let kind = self.writes.swap_remove(place).kind;
        let was_canceled = answer.as_ref().is_err_and(|refusal| refusal.code == ResultCode::Canceled);
        self.finish(ticket, kind, answer.as_ref().err());
        if let Some(cancel) = self.cancels.remove(&ticket) {
            let code = if was_canceled { ResultCode::Success } else { ResultCode::TooLate };
            self.finish(cancel, OperationKind::Extended, Some(&Refusal::new(code, "")));
        }
    }

    /// Answers an operation, unless it was dropped.
    fn finish(&mut self, ticket: Ticket, kind: OperationKind, refusal: Option<&Refusal>) {
        if !self.session.answered(ticket) {
            return;
        }
        let result = match refusal {
            None => LdapResult::SUCCESS,
            Some(refusal) => {
                LdapResult::new(refusal.code, refusal.message.as_str()).with_matched(refusal.matched.as_str())
            }
        };
        write_result(&mut self.out, ticket.id(), kind, &result, &[]);
    }

    fn extended(&mut self, ticket: Ticket, request: &ExtendedRequest<'_>) {
        if request.name != oids::WHO_AM_I {
            let message = format!("the extended operation {} is not known", request.name);
            let refusal = Refusal::new(ResultCode::ProtocolError, message);
            return self.finish(ticket, OperationKind::Extended, Some(&refusal));
        }
        if request.value.is_some() {
            let refusal = Refusal::new(ResultCode::ProtocolError, "who am I takes no value");
            return self.finish(ticket, OperationKind::Extended, Some(&refusal));
        }
        if self.session.answered(ticket) {
            let name = self.identity.authorization();
            let id = ticket.id();
            write_extended_response(
                &mut self.out,
                id,
                &LdapResult::SUCCESS,
                None,
                Some(name.as_bytes()),
                &[],
            );
        }
    }

    fn bind(&mut self, ticket: Ticket, request: &Request<'_>) {
        self.identity = Identity::anonymous();
        let Operation::Bind(asked) = &request.operation else { return };
        let result = match request.controls.iter().find(|control| control.is_critical) {
            Some(control) => Err(Refusal::new(
                ResultCode::UnavailableCriticalExtension,
                format!("the control {} is not known", control.oid),
            )),
            None => bind::bind(&self.shared.readers.root(), asked, &self.shared),
        };
        if !self.session.bind_answered(ticket, BindAnswer::Ended) {
            return;
        }
        let result = match result {
            Ok(identity) => {
                self.identity = identity;
                LdapResult::SUCCESS
            }
            Err(refusal) => LdapResult::new(refusal.code, refusal.message),
        };
        write_bind_response(&mut self.out, ticket.id(), &result, None, &[]);
    }

    fn cancel(&mut self, cancel: Ticket, target: Ticket) {
        if let Some(place) = self.searches.iter().position(|searching| searching.ticket == target) {
            self.searches.remove(place);
            self.finish(target, OperationKind::Search, Some(&Refusal::new(ResultCode::Canceled, "")));
            return self.finish(cancel, OperationKind::Extended, None);
        }
        match self.writes.iter().find(|writing| writing.ticket == target) {
            Some(writing) => {
                writing.progress.cancel();
                self.cancels.insert(target, cancel);
            }
            None => {
                self.finish(cancel, OperationKind::Extended, Some(&Refusal::new(ResultCode::TooLate, "")))
            }
        }
    }

    /// Stops operations that nobody waits for any more. A write that is in a batch already is done all the same.
    fn drop_all(&mut self, dropped: &[Ticket]) {
        if dropped.is_empty() {
            return;
        }
        self.searches.retain(|searching| !dropped.contains(&searching.ticket));
        self.writes.retain(|writing| {
            let is_dropped = dropped.contains(&writing.ticket);
            if is_dropped {
                writing.progress.cancel();
            }
            !is_dropped
        });
        self.cancels.retain(|target, cancel| !dropped.contains(target) && !dropped.contains(cancel));
    }

    /// The server ends the connection and says why.
    fn disconnect(&mut self, code: ResultCode, message: &'static str) {
        let step = self.session.disconnect(code, message.into());
        // Whatever it says, the connection ends.
        let _ = self.follow(step);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for writing in &self.writes {
            writing.progress.cancel();
        }
    }
}
