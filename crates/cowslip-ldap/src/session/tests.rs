//! The table against its documentation, and connections played through.

use super::*;
use crate::message::{
    Authentication, ExtendedRequest, Limits, cancel_request_value, decode_request, write_abandon, write_bind,
    write_delete, write_extended, write_unbind,
};

fn id(number: u32) -> MessageId {
    MessageId::new(number).expect("in range")
}

/// The table in the module's documentation says what the function does.
#[test]
fn check_table() {
    let documented: Vec<Vec<&str>> = include_str!("mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "))
        .map(|line| line.trim_end_matches(" |").split(" | ").collect())
        .collect();
    let mut expected = vec![
        std::iter::once("state".to_owned())
            .chain(Event::ALL.iter().map(|event| format!("{event:?}")))
            .collect(),
        vec!["---".to_owned(); Event::ALL.len() + 1],
    ];
    for state in State::ALL {
        let cells = Event::ALL.iter().map(|event| match transition(state, *event) {
            (action, next) if next == state => format!("{action:?}"),
            (action, next) => format!("{action:?} → {next:?}"),
        });
        expected.push(std::iter::once(format!("{state:?}")).chain(cells).collect::<Vec<_>>());
    }
    assert_eq!(documented, expected);
}

/// What a client sends, what the server does by itself.
#[derive(Clone, Copy, Debug)]
enum Input {
    Delete(u32),
    Abandon(u32, u32),
    Cancel(u32, u32),
    CancelNothing(u32),
    Bind(u32),
    StartTls(u32),
    Unbind(u32),
    Damage,
    BadBind(u32),
    Answer(u32),
    BindEnds,
    BindContinues,
    TlsAccepted(usize),
    TlsRefused,
    TlsUp,
    TlsFailed,
    Gone,
}

/// A connection, and the last ticket given out per number.
struct Play {
    session: Session,
    tickets: Vec<Ticket>,
}

impl Play {
    fn latest(&self, number: u32) -> Ticket {
        *self.tickets.iter().rfind(|ticket| ticket.id() == id(number)).expect("the script started it")
    }

    fn last(&self) -> Ticket {
        *self.tickets.last().expect("the script started something")
    }

    fn receive(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut frame = Vec::new();
        write(&mut frame);
        let step = match decode_request(&frame, &Limits::DEFAULT) {
            Ok(request) => self.session.receive(&request),
            Err(error) => self.session.refused(&error),
        };
        if let Step::Start(ticket)
        | Step::Bind { ticket, .. }
        | Step::StartTls(ticket)
        | Step::Cancel { ticket, .. } = step
        {
            self.tickets.push(ticket);
        }
        told(&step)
    }

    fn play(&mut self, input: Input) -> String {
        let extended = |name, value| ExtendedRequest { name, value };
        match input {
            Input::Delete(n) => self.receive(|out| write_delete(out, id(n), b"dc=x", &[])),
            Input::Abandon(n, target) => self.receive(|out| write_abandon(out, id(n), id(target))),
            Input::Cancel(n, target) => {
                let value = cancel_request_value(id(target));
                self.receive(|out| write_extended(out, id(n), &extended(oids::CANCEL, Some(&value)), &[]))
            }
            Input::CancelNothing(n) => {
                self.receive(|out| write_extended(out, id(n), &extended(oids::CANCEL, None), &[]))
            }
            Input::StartTls(n) => {
                self.receive(|out| write_extended(out, id(n), &extended(oids::START_TLS, None), &[]))
            }
            Input::Bind(n) => {
                self.receive(|out| write_bind(out, id(n), b"", Authentication::Simple(b""), &[]))
            }
            Input::Unbind(n) => self.receive(|out| write_unbind(out, id(n))),
            Input::Damage => self.receive(|out| out.extend_from_slice(b"\x30\x02\x02\x05")),
            Input::BadBind(n) => self.receive(|out| {
                write_bind(out, id(n), b"", Authentication::Simple(b""), &[]);
                out[9] = 2;
            }),
            Input::Answer(n) => {
                let ticket = self.latest(n);
                self.session.answered(ticket).to_string()
            }
            Input::BindEnds => self.session.bind_answered(self.last(), BindAnswer::Ended).to_string(),
            Input::BindContinues => {
                self.session.bind_answered(self.last(), BindAnswer::Continues).to_string()
            }
            Input::TlsAccepted(unread) => told(&self.session.start_tls_answered(self.last(), true, unread)),
            Input::TlsRefused => told(&self.session.start_tls_answered(self.last(), false, 9)),
            Input::TlsUp => told(&self.session.handshake_ended(true)),
            Input::TlsFailed => told(&self.session.handshake_ended(false)),
            Input::Gone => told(&self.session.end()),
        }
    }
}

/// A step in short: its name, the number it is about, the numbers it drops.
fn told(step: &Step) -> String {
    let numbers = |dropped: &[Ticket]| dropped.iter().map(|it| format!(" -{}", it.id())).collect::<String>();
    match step {
        Step::Start(ticket) => format!("start {}", ticket.id()),
        Step::Bind { ticket, dropped } => format!("bind {}{}", ticket.id(), numbers(dropped)),
        Step::FailBind { id, code, dropped, .. } => format!("fail {id} {}{}", code.name(), numbers(dropped)),
        Step::StartTls(ticket) => format!("tls {}", ticket.id()),
        Step::Cancel { ticket, target } => format!("cancel {} of {}", ticket.id(), target.id()),
        Step::Abandon(ticket) => format!("abandon {}", ticket.id()),
        Step::Refuse { id, code, .. } => format!("refuse {id} {}", code.name()),
        Step::Ignore => "ignore".to_owned(),
        Step::Wait => "wait".to_owned(),
        Step::Disconnect { code, dropped, .. } => format!("disconnect {}{}", code.name(), numbers(dropped)),
        Step::Close { dropped } => format!("close{}", numbers(dropped)),
    }
}

use Input::*;

/// What the script is about, and its inputs with what comes of each.
const SCRIPTS: &[(&str, &[(Input, &str)])] = &[
    (
        "requests run side by side",
        &[(Delete(1), "start 1"), (Delete(2), "start 2"), (Answer(2), "true"), (Answer(1), "true")],
    ),
    ("an answer is sent once", &[(Delete(1), "start 1"), (Answer(1), "true"), (Answer(1), "false")]),
    ("L006: a number that is open", &[(Delete(5), "start 5"), (Delete(5), "disconnect protocolError -5")]),
    (
        "L006: a number used again later",
        &[(Delete(5), "start 5"), (Answer(5), "true"), (Delete(5), "start 5")],
    ),
    (
        "L012: cancel",
        &[
            (Cancel(7, 7), "refuse 7 noSuchOperation"),
            (Cancel(8, 1), "refuse 8 noSuchOperation"),
            (CancelNothing(9), "refuse 9 protocolError"),
            (Delete(5), "start 5"),
            (Cancel(10, 5), "cancel 10 of 5"),
            (Cancel(11, 5), "refuse 11 cannotCancel"),
            (Cancel(12, 10), "refuse 12 cannotCancel"),
            (Abandon(13, 5), "ignore"),
            (Answer(5), "true"),
            (Answer(10), "true"),
            (Cancel(14, 5), "refuse 14 noSuchOperation"),
        ],
    ),
    (
        "L013: abandon",
        &[
            (Delete(5), "start 5"),
            (Abandon(6, 5), "abandon 5"),
            (Answer(5), "false"),
            (Abandon(7, 999), "ignore"),
            (Delete(8), "start 8"),
            (Answer(8), "true"),
        ],
    ),
    (
        "a bind drops what is open and is alone",
        &[
            (Delete(1), "start 1"),
            (Delete(2), "start 2"),
            (Bind(3), "bind 3 -1 -2"),
            (Delete(4), "wait"),
            (Unbind(4), "wait"),
            (Damage, "wait"),
            (BadBind(4), "wait"),
            (Answer(1), "false"),
            (BindEnds, "true"),
            (Delete(4), "start 4"),
        ],
    ),
    (
        "a bind in error ends the identity too",
        &[(Delete(1), "start 1"), (BadBind(2), "fail 2 protocolError -1")],
    ),
    (
        "SASL takes its steps",
        &[
            (Bind(1), "bind 1"),
            (BindContinues, "true"),
            (Delete(2), "refuse 2 operationsError"),
            (StartTls(3), "refuse 3 operationsError"),
            (Abandon(4, 1), "ignore"),
            (Bind(5), "bind 5"),
            (BindEnds, "true"),
            (Delete(6), "start 6"),
        ],
    ),
    (
        "L014: octets behind StartTLS",
        &[(StartTls(1), "tls 1"), (Bind(2), "wait"), (TlsAccepted(14), "close"), (Bind(2), "ignore")],
    ),
    (
        "L014: StartTLS twice",
        &[
            (StartTls(1), "tls 1"),
            (TlsAccepted(0), "ignore"),
            (Delete(2), "wait"),
            (TlsUp, "ignore"),
            (StartTls(2), "refuse 2 operationsError"),
            (Delete(3), "start 3"),
        ],
    ),
    (
        "L014: StartTLS with a request open",
        &[(Delete(1), "start 1"), (StartTls(2), "refuse 2 operationsError")],
    ),
    (
        "StartTLS refused",
        &[(StartTls(1), "tls 1"), (TlsRefused, "ignore"), (Delete(2), "start 2"), (TlsUp, "ignore")],
    ),
    ("TLS fails", &[(StartTls(1), "tls 1"), (TlsAccepted(0), "ignore"), (TlsFailed, "close")]),
    (
        "L015: unbind and gone",
        &[(Delete(1), "start 1"), (Unbind(2), "close -1"), (Delete(3), "ignore"), (Gone, "ignore")],
    ),
    ("the peer is gone during a bind", &[(Bind(1), "bind 1"), (Gone, "close -1"), (BindEnds, "false")]),
    ("damage", &[(Delete(1), "start 1"), (Damage, "disconnect protocolError -1"), (Damage, "ignore")]),
];

#[test]
fn connections_go_by_the_table() {
    for (name, script) in SCRIPTS {
        let mut play = Play { session: Session::new(false), tickets: Vec::new() };
        for (at, (input, expected)) in script.iter().enumerate() {
            assert_eq!(&play.play(*input), expected, "{name}, step {at}: {input:?}");
        }
    }
}

#[test]
fn an_abandoned_operation_never_answers_for_its_successor() {
    let mut play = Play { session: Session::new(false), tickets: Vec::new() };
    play.play(Input::Delete(5));
    let old = play.last();
    play.play(Input::Abandon(6, 5));
    play.play(Input::Delete(5));
    assert!(!play.session.is_open(old) && !play.session.answered(old));
    assert!(play.session.is_open(play.last()));
}

#[test]
fn open_requests_are_bounded_by_not_reading() {
    let mut play = Play { session: Session::new(false).with_open_max(2), tickets: Vec::new() };
    assert_eq!(play.play(Input::Delete(1)), "start 1");
    assert!(play.session.takes_requests());
    assert_eq!(play.play(Input::Delete(2)), "start 2");
    assert!(!play.session.takes_requests());
    assert_eq!(play.play(Input::Delete(3)), "wait");
    assert_eq!(play.play(Input::Answer(1)), "true");
    assert_eq!(play.play(Input::Delete(3)), "start 3");
}

#[test]
fn sasl_steps_are_bounded() {
    let mut play = Play { session: Session::new(false), tickets: Vec::new() };
    for step in 1..=SASL_STEPS_MAX {
        play.play(Input::Bind(1));
        assert_eq!(play.play(Input::BindContinues), "true");
        assert_eq!(play.session.sasl_steps(), step);
    }
    assert_eq!(play.play(Input::Bind(1)), "fail 1 unwillingToPerform");
    assert_eq!((play.session.state(), play.session.sasl_steps()), (State::Open, 0));
}
