//! A connection as RFC 4511 sees it, without its socket: which requests may run now, which are open, what ends them.
//!
//! The driver reads requests while [`Session::takes_requests`], hands each to [`Session::receive`] and does the [`Step`]
//! that comes back. When an operation is done it asks [`Session::answered`] whether the answer may still be sent.
//!
//! | state | Bind | Unbind | Abandon | StartTls | Request | Damage | BindAnswered | BindContinues | TlsAccepted | TlsRefused | TlsUp | TlsFailed | End |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Open | Bind → Binding | Close → Closing | Abandon | StartTls → StartTls | Start | Disconnect → Closing | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Close → Closing |
//! | Binding | Wait | Wait | Wait | Wait | Wait | Wait | Resume → Open | Resume → Sasl | Ignore | Ignore | Ignore | Ignore | Close → Closing |
//! | Sasl | Bind → Binding | Close → Closing | Abandon | Refuse | Refuse | Disconnect → Closing | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Close → Closing |
//! | StartTls | Wait | Wait | Wait | Wait | Wait | Wait | Ignore | Ignore | Handshake → Handshake | Resume → Open | Ignore | Ignore | Close → Closing |
//! | Handshake | Wait | Wait | Wait | Wait | Wait | Wait | Ignore | Ignore | Ignore | Ignore | Resume → Open | Close → Closing | Close → Closing |
//! | Closing | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore | Ignore |
//!
//! Invariants: no number is open twice; an answer is sent at most once, and never for an operation that was dropped, even
//! if its number is in use again; while a bind or StartTLS is being answered it is the only thing open.

mod table;

use std::borrow::Cow;

pub use table::{Action, Event, State, transition};

use crate::message::{
    MessageId, Operation, OperationKind, Remedy, Request, RequestError, canceled_operation,
};
use crate::oids;
use crate::result::ResultCode;

/// Most operations that are open at a time; further requests stay unread until one is answered.
pub const REQUESTS_OPEN_MAX: usize = 256;

/// Most steps of one SASL bind. The longest mechanisms in use take three or four.
pub const SASL_STEPS_MAX: usize = 16;

/// An operation that runs. Unlike its number it is never used again on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    id: MessageId,
    serial: u64,
}

impl Ticket {
    /// The number of the request, which its answer carries.
    #[must_use]
    pub const fn id(self) -> MessageId {
        self.id
    }
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs the request; answers it when it's done.
    Start(Ticket),
    /// Stops these operations, makes the connection anonymous, forgets cookies and proxied identities, then runs the bind
    /// and ends it by [`Session::bind_answered`]. Reads nothing meanwhile.
    Bind {
        /// The bind.
        ticket: Ticket,
        /// What was open; it is not answered.
        dropped: Vec<Ticket>,
    },
    /// As for [`Step::Bind`], but the bind has failed already: answers it with this code and goes on reading.
    FailBind {
        /// The bind's number.
        id: MessageId,
        /// The code of the answer.
        code: ResultCode,
        /// The message of the answer.
        message: Cow<'static, str>,
        /// What was open; it is not answered.
        dropped: Vec<Ticket>,
    },
    /// Runs StartTLS and ends it by [`Session::start_tls_answered`]. Reads nothing meanwhile.
    StartTls(Ticket),
    /// Tries to stop `target`, which is answered `canceled`, or as it would be if it is too late. Answers the cancel
    /// after that, with success or `tooLate`.
    Cancel {
        /// The cancel.
        ticket: Ticket,
        /// The operation to stop.
        target: Ticket,
    },
    /// Stops this operation, which is not answered.
    Abandon(Ticket),
    /// Answers the request with this code, without running it.
    Refuse {
        /// The request's number.
        id: MessageId,
        /// What it asked for.
        operation: OperationKind,
        /// The code of the answer.
        code: ResultCode,
        /// The message of the answer.
        message: Cow<'static, str>,
    },
    /// Does nothing.
    Ignore,
    /// Leaves the request in the buffer until [`Session::takes_requests`] is true again.
    Wait,
    /// Stops these operations, sends a notice of disconnection with this code, and closes.
    Disconnect {
        /// The code of the notice.
        code: ResultCode,
        /// The message of the notice.
        message: Cow<'static, str>,
        /// What was open; it is not answered.
        dropped: Vec<Ticket>,
    },
    /// Stops these operations and closes without a word.
    Close {
        /// What was open; it is not answered.
        dropped: Vec<Ticket>,
    },
}

/// How a bind was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindAnswer {
    /// It ended, with success or without.
    Ended,
    /// By `saslBindInProgress`.
    Continues,
}

#[derive(Debug)]
struct OpenOperation {
    ticket: Ticket,
    is_cancelable: bool,
}

/// What one connection has going on.
///
/// ```
/// use cowslip_ldap::message::{Limits, MessageId, decode_request, write_abandon, write_delete};
/// use cowslip_ldap::session::{Session, Step};
/// let (five, six) = (MessageId::new(5).expect("in range"), MessageId::new(6).expect("in range"));
/// let (mut delete, mut abandon) = (Vec::new(), Vec::new());
/// write_delete(&mut delete, five, b"uid=amy,dc=example", &[]);
/// write_abandon(&mut abandon, six, five);
///
/// let mut session = Session::new(false);
/// let Step::Start(ticket) = session.receive(&decode_request(&delete, &Limits::DEFAULT)?) else { unreachable!() };
/// assert_eq!(session.receive(&decode_request(&abandon, &Limits::DEFAULT)?), Step::Abandon(ticket));
/// assert!(!session.answered(ticket), "nobody waits for the answer any more");
/// # Ok::<(), cowslip_ldap::message::RequestError>(())
/// ```
#[derive(Debug)]
pub struct Session {
    state: State,
    is_encrypted: bool,
    sasl_steps: usize,
    next_serial: u64,
    open: Vec<OpenOperation>,
    open_max: usize,
}

impl Session {
    /// A connection that was just made, through TLS from the start or not.
    #[must_use]
    pub const fn new(is_encrypted: bool) -> Self {
        Self {
            state: State::Open,
            is_encrypted,
            sasl_steps: 0,
            next_serial: 0,
            open: Vec::new(),
            open_max: REQUESTS_OPEN_MAX,
        }
    }

    /// The same with another bound on open operations; at least one.
    #[must_use]
    pub fn with_open_max(self, open_max: usize) -> Self {
        Self { open_max: open_max.max(1), ..self }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether TLS stands.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Whether the next request may be taken from the buffer.
    #[must_use]
    pub const fn takes_requests(&self) -> bool {
        self.state.takes_requests() && self.open.len() < self.open_max
    }

    /// Steps of the SASL bind that were answered by `saslBindInProgress`.
    #[must_use]
    pub const fn sasl_steps(&self) -> usize {
        self.sasl_steps
    }

    /// The operations that run, in the order received.
    pub fn open(&self) -> impl ExactSizeIterator<Item = Ticket> + '_ {
        self.open.iter().map(|open| open.ticket)
    }

    /// A request came.
    pub fn receive(&mut self, request: &Request<'_>) -> Step {
        let id = request.id;
        let operation = &request.operation;
        let event = event_of(operation);
        let (action, next) = transition(self.state, event);
        if matches!(action, Action::Ignore | Action::Wait)
            || (!self.takes_requests() && event == Event::Request)
        {
            return if action == Action::Ignore { Step::Ignore } else { Step::Wait };
        }
        // Two answers under one number could not be told apart, so a refusal under it would not help either.
        if operation.kind().has_answer() && self.open.iter().any(|open| open.ticket.id == id) {
            return self
                .disconnect(ResultCode::ProtocolError, format!("request {id} is open already").into());
        }
        match action {
            Action::Bind if self.sasl_steps >= SASL_STEPS_MAX => {
                self.fail_bind(id, ResultCode::UnwillingToPerform, "too many steps of a SASL bind".into())
            }
            Action::Bind => {
                let dropped = self.drop_open();
                self.state = next;
                Step::Bind { ticket: self.register(id, false), dropped }
            }
            Action::StartTls => self.start_tls(id),
            Action::Start => self.start(id, operation),
            Action::Abandon => self.abandon(operation),
            Action::Refuse => {
                refuse(id, operation.kind(), ResultCode::OperationsError, "a SASL bind is under way")
            }
            _ => {
                self.state = next;
                Step::Close { dropped: self.drop_open() }
            }
        }
    }

    /// Octets came that are no request, or not one that may be.
    pub fn refused(&mut self, error: &RequestError) -> Step {
        if !self.state.takes_requests() {
            return if self.state == State::Closing { Step::Ignore } else { Step::Wait };
        }
        let message = || Cow::Owned(error.to_string());
        match error.remedy() {
            Remedy::Ignore => Step::Ignore,
            Remedy::Answer { id, .. } if self.open.iter().any(|open| open.ticket.id == id) => {
                self.disconnect(ResultCode::ProtocolError, format!("request {id} is open already").into())
            }
            Remedy::Answer { id, operation: OperationKind::Bind, code } => {
                self.fail_bind(id, code, message())
            }
            Remedy::Answer { id, operation, code } => {
                Step::Refuse { id, operation, code, message: message() }
            }
            Remedy::Disconnect { code } => self.disconnect(code, message()),
        }
    }

    /// An operation is done. Whether its answer may be sent: not if it was dropped meanwhile.
    #[must_use = "an operation that was dropped is not answered"]
    pub fn answered(&mut self, ticket: Ticket) -> bool {
        let place = self.open.iter().position(|open| open.ticket == ticket);
        place.map(|place| self.open.remove(place)).is_some()
    }

    /// Whether an operation is still wanted, asked before another of its responses is sent.
    #[must_use]
    pub fn is_open(&self, ticket: Ticket) -> bool {
        self.open.iter().any(|open| open.ticket == ticket)
    }

    /// The bind is being answered. Whether the answer may be sent: not if the connection is closing.
    #[must_use = "an operation that was dropped is not answered"]
    pub fn bind_answered(&mut self, ticket: Ticket, answer: BindAnswer) -> bool {
        let event = match answer {
            BindAnswer::Ended => Event::BindAnswered,
            BindAnswer::Continues => Event::BindContinues,
        };
        if !self.answered(ticket) {
            return false;
        }
        self.sasl_steps = if answer == BindAnswer::Continues { self.sasl_steps + 1 } else { 0 };
        self.state = transition(self.state, event).1;
        true
    }

    /// StartTLS is being answered: with success or not, and with so many octets received behind it. Those came in the
    /// clear and must not count as sent through TLS; with some, the connection is closed in place of answering.
    pub fn start_tls_answered(&mut self, ticket: Ticket, is_accepted: bool, unread_bytes: usize) -> Step {
        if !self.answered(ticket) {
            return Step::Ignore;
        }
        if is_accepted && unread_bytes > 0 {
            return self.end();
        }
        let event = if is_accepted { Event::TlsAccepted } else { Event::TlsRefused };
        self.state = transition(self.state, event).1;
        Step::Ignore
    }

    /// TLS was negotiated, or failed to be.
    pub fn handshake_ended(&mut self, is_up: bool) -> Step {
        let (action, next) = transition(self.state, if is_up { Event::TlsUp } else { Event::TlsFailed });
        self.is_encrypted |= action == Action::Resume;
        self.state = next;
        if action == Action::Close { Step::Close { dropped: self.drop_open() } } else { Step::Ignore }
    }

    /// The server ends the connection and says why, as for a time-out or a shutdown.
    pub fn disconnect(&mut self, code: ResultCode, message: Cow<'static, str>) -> Step {
        if self.state == State::Closing {
            return Step::Ignore;
        }
        self.state = State::Closing;
        Step::Disconnect { code, message, dropped: self.drop_open() }
    }

    /// The peer is gone.
    pub fn end(&mut self) -> Step {
        let (action, next) = transition(self.state, Event::End);
        self.state = next;
        if action == Action::Close { Step::Close { dropped: self.drop_open() } } else { Step::Ignore }
    }

    fn fail_bind(&mut self, id: MessageId, code: ResultCode, message: Cow<'static, str>) -> Step {
        self.state = State::Open;
        self.sasl_steps = 0;
        Step::FailBind { id, code, message, dropped: self.drop_open() }
    }

    fn start_tls(&mut self, id: MessageId) -> Step {
        let why = match (self.is_encrypted, self.open.is_empty()) {
            (true, _) => "TLS stands already",
            (false, false) => "other operations are open",
            (false, true) => {
                self.state = State::StartTls;
                return Step::StartTls(self.register(id, false));
            }
        };
        refuse(id, OperationKind::Extended, ResultCode::OperationsError, why)
    }

    fn start(&mut self, id: MessageId, operation: &Operation<'_>) -> Step {
        match operation {
            Operation::Extended(extended) if extended.name == oids::CANCEL => self.cancel(id, extended.value),
            _ => Step::Start(self.register(id, true)),
        }
    }

    /// RFC 3909 section 2: each refusal has its own code.
    fn cancel(&mut self, id: MessageId, value: Option<&[u8]>) -> Step {
        let kind = OperationKind::Extended;
        let target = match canceled_operation(value) {
            Ok(target) => target,
            Err(error) => {
                let message = Cow::Owned(error.to_string());
                return Step::Refuse { id, operation: kind, code: ResultCode::ProtocolError, message };
            }
        };
        match self.open.iter_mut().find(|open| open.ticket.id == target) {
            None => refuse(id, kind, ResultCode::NoSuchOperation, "no such operation is open"),
            Some(open) if !open.is_cancelable => {
                refuse(id, kind, ResultCode::CannotCancel, "this operation can't be canceled")
            }
            Some(open) => {
                // From here on it is answered in any case: an abandon or a second cancel comes too late.
                open.is_cancelable = false;
                let target = open.ticket;
                Step::Cancel { ticket: self.register(id, false), target }
            }
        }
    }

    fn abandon(&mut self, operation: &Operation<'_>) -> Step {
        let Operation::Abandon(target) = operation else { return Step::Ignore };
        let place = self.open.iter().position(|open| open.ticket.id == *target && open.is_cancelable);
        place.map_or(Step::Ignore, |place| Step::Abandon(self.open.remove(place).ticket))
    }

    fn register(&mut self, id: MessageId, is_cancelable: bool) -> Ticket {
        let ticket = Ticket { id, serial: self.next_serial };
        self.next_serial += 1;
        self.open.push(OpenOperation { ticket, is_cancelable });
        ticket
    }

    fn drop_open(&mut self) -> Vec<Ticket> {
        self.open.drain(..).map(|open| open.ticket).collect()
    }
}

fn event_of(operation: &Operation<'_>) -> Event {
    match operation {
        Operation::Bind(_) => Event::Bind,
        Operation::Unbind => Event::Unbind,
        Operation::Abandon(_) => Event::Abandon,
        Operation::Extended(extended) if extended.name == oids::START_TLS => Event::StartTls,
        _ => Event::Request,
    }
}

const fn refuse(id: MessageId, operation: OperationKind, code: ResultCode, message: &'static str) -> Step {
    Step::Refuse { id, operation, code, message: Cow::Borrowed(message) }
}

#[cfg(test)]
mod tests;
