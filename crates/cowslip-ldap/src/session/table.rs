//! The connection's states and what leads from one to another, as a table (`check_table` in the tests compares it with
//! the one in the module's documentation).

/// What a connection is doing, as far as the order of requests depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Requests are taken and run side by side.
    Open,
    /// A bind is being answered.
    Binding,
    /// The server waits for the next step of a SASL bind.
    Sasl,
    /// StartTLS is being answered.
    StartTls,
    /// TLS is being negotiated.
    Handshake,
    /// Nothing more is taken.
    Closing,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A bind came.
    Bind,
    /// An unbind came.
    Unbind,
    /// An abandon came.
    Abandon,
    /// A StartTLS came.
    StartTls,
    /// Any other request came.
    Request,
    /// Octets came that are no request.
    Damage,
    /// The bind ended, with success or without.
    BindAnswered,
    /// The bind was answered by `saslBindInProgress`.
    BindContinues,
    /// StartTLS was answered with success.
    TlsAccepted,
    /// StartTLS was answered without success.
    TlsRefused,
    /// TLS stands.
    TlsUp,
    /// TLS could not be negotiated.
    TlsFailed,
    /// The peer is gone, or the server ends the connection.
    End,
}

/// What is done then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Runs the request beside the others.
    Start,
    /// Drops what is open, makes the connection anonymous, runs the bind.
    Bind,
    /// Drops the operation named, if it is open.
    Abandon,
    /// Runs StartTLS.
    StartTls,
    /// Negotiates TLS.
    Handshake,
    /// Answers `operationsError`.
    Refuse,
    /// Takes requests again.
    Resume,
    /// Leaves the request in the buffer.
    Wait,
    /// Sends a notice of disconnection and closes.
    Disconnect,
    /// Drops what is open and closes.
    Close,
    /// Does nothing.
    Ignore,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Binding, Self::Sasl, Self::StartTls, Self::Handshake, Self::Closing];

    /// Whether requests are taken.
    #[must_use]
    pub const fn takes_requests(self) -> bool {
        matches!(self, Self::Open | Self::Sasl)
    }
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Bind,
        Self::Unbind,
        Self::Abandon,
        Self::StartTls,
        Self::Request,
        Self::Damage,
        Self::BindAnswered,
        Self::BindContinues,
        Self::TlsAccepted,
        Self::TlsRefused,
        Self::TlsUp,
        Self::TlsFailed,
        Self::End,
    ];

    /// Whether it came from the peer, as opposed to from the server itself.
    const fn is_received(self) -> bool {
        matches!(
            self,
            Self::Bind | Self::Unbind | Self::Abandon | Self::StartTls | Self::Request | Self::Damage
        )
    }
}

/// What an event does in a state, and the state after it.
#[must_use]
pub const fn transition(state: State, event: Event) -> (Action, State) {
    match (state, event) {
        (State::Closing, _) => (Action::Ignore, State::Closing),
        (_, Event::End) => (Action::Close, State::Closing),

        (State::Open | State::Sasl, Event::Bind) => (Action::Bind, State::Binding),
        (State::Open | State::Sasl, Event::Unbind) => (Action::Close, State::Closing),
        (State::Open | State::Sasl, Event::Abandon) => (Action::Abandon, state),
        (State::Open | State::Sasl, Event::Damage) => (Action::Disconnect, State::Closing),
        (State::Open, Event::StartTls) => (Action::StartTls, State::StartTls),
        (State::Open, Event::Request) => (Action::Start, State::Open),
        (State::Sasl, Event::StartTls | Event::Request) => (Action::Refuse, State::Sasl),

        (State::Binding, Event::BindAnswered) => (Action::Resume, State::Open),
        (State::Binding, Event::BindContinues) => (Action::Resume, State::Sasl),

        (State::StartTls, Event::TlsAccepted) => (Action::Handshake, State::Handshake),
        (State::StartTls, Event::TlsRefused) => (Action::Resume, State::Open),

        (State::Handshake, Event::TlsUp) => (Action::Resume, State::Open),
        (State::Handshake, Event::TlsFailed) => (Action::Close, State::Closing),

        (_, event) if event.is_received() => (Action::Wait, state),
        _ => (Action::Ignore, state),
    }
}
