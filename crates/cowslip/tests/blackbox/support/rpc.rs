//! One JSON-RPC session with an OVSDB server over a unix socket.
//!
//! Replies and notifications are told apart by their members; probes of the server are answered on the way and
//! never shown to a test.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a reply may take unless a test says otherwise.
pub(crate) const REPLY_LIMIT: Duration = Duration::from_secs(20);

/// What came of waiting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A complete message.
    Message(Value),
    /// A complete message that is no JSON to a strict reader, such as a number out of range.
    Unreadable(String),
    /// The server ended the connection.
    Closed,
    /// Nothing complete came in time.
    Silent,
}

/// What a request led to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The member `result` of a reply without error.
    Result(Value),
    /// The member `error` of a reply.
    Error(Value),
    /// A reply that cannot be read.
    Unreadable,
    /// The connection was closed.
    Closed,
    /// No reply in time.
    Silent,
}

/// Finds the ends of messages in a stream without separators.
#[derive(Default)]
struct Splitter {
    buffer: Vec<u8>,
    seen: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Splitter {
    fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(&byte) = self.buffer.get(self.seen) {
            self.seen += 1;
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        let rest = self.buffer.split_off(self.seen);
                        self.seen = 0;
                        return Some(std::mem::replace(&mut self.buffer, rest));
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// A connection and what arrived on it unasked.
pub(crate) struct Session {
    stream: UnixStream,
    splitter: Splitter,
    serial: u64,
    /// Notifications in order of arrival, as `(method, params)`.
    pub(crate) notes: VecDeque<(String, Value)>,
    replies: Vec<Value>,
}

impl Session {
    /// Connects to the socket.
    pub(crate) fn connect(path: &Path) -> Session {
        Session::try_connect(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Connects if somebody listens.
    pub(crate) fn try_connect(path: &Path) -> std::io::Result<Session> {
        let stream = UnixStream::connect(path)?;
        stream.set_write_timeout(Some(REPLY_LIMIT))?;
        Ok(Session {
            stream,
            splitter: Splitter::default(),
            serial: 0,
            notes: VecDeque::new(),
            replies: Vec::new(),
        })
    }

    /// Writes bytes as they are. An error is kept for the next read, which sees the closed connection.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// A second handle of the socket, for a thread that only writes.
    pub(crate) fn writer(&self) -> UnixStream {
        self.stream.try_clone().expect("a socket handle can be cloned")
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, method: &str, params: &Value, id: &Value) {
        let text = json!({"method": method, "params": params, "id": id}).to_string();
        self.send_raw(text.as_bytes());
    }

    /// The next message of any kind.
    pub(crate) fn event(&mut self, limit: Duration) -> Event {
        let end = Instant::now() + limit;
        let mut chunk = vec![0; 1 << 16];
        loop {
            if let Some(bytes) = self.splitter.next() {
                let Ok(message) = serde_json::from_slice::<Value>(&bytes) else {
                    return Event::Unreadable(String::from_utf8_lossy(&bytes).into_owned());
                };
                if message["method"] == "echo" {
                    let reply = json!({"result": message["params"], "error": null, "id": message["id"]});
                    self.send_raw(reply.to_string().as_bytes());
                    continue;
                }
                return Event::Message(message);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Event::Silent;
            }
            self.stream.set_read_timeout(Some(left)).expect("a read time-out can be set");
            match self.stream.read(&mut chunk) {
                Ok(0) => return Event::Closed,
                Ok(n) => self.splitter.buffer.extend_from_slice(&chunk[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Event::Silent;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Event::Closed,
            }
        }
    }

    /// The reply with this id; notifications on the way are kept.
    pub(crate) fn reply(&mut self, id: &Value, limit: Duration) -> Outcome {
        if let Some(at) = self.replies.iter().position(|r| &r["id"] == id) {
            return outcome(self.replies.remove(at));
        }
        let end = Instant::now() + limit;
        loop {
            match self.event(end.saturating_duration_since(Instant::now())) {
                Event::Message(message) => {
                    if let Some(method) = message["method"].as_str() {
                        self.notes.push_back((method.to_owned(), message["params"].clone()));
                    } else if &message["id"] == id {
                        return outcome(message);
                    } else {
                        self.replies.push(message);
                    }
                }
                Event::Unreadable(_) => return Outcome::Unreadable,
                Event::Closed => return Outcome::Closed,
                Event::Silent => return Outcome::Silent,
            }
        }
    }

    /// A fresh request id.
    pub(crate) fn fresh_id(&mut self) -> Value {
        self.serial += 1;
        json!(self.serial)
    }

    /// Sends a request and waits for its reply.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Outcome {
        let id = self.fresh_id();
        self.send(method, params, &id);
        self.reply(&id, REPLY_LIMIT)
    }

    /// Sends a transaction whose operations are given as JSON text.
    pub(crate) fn call_text(&mut self, database: &str, operations: &str) -> Outcome {
        let id = self.fresh_id();
        let inner = operations.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let inner = inner.expect("the operations are an array");
        let inner = if inner.is_empty() { String::new() } else { format!(",{inner}") };
        let name = json!(database);
        self.send_raw(format!(r#"{{"method":"transact","params":[{name}{inner}],"id":{id}}}"#).as_bytes());
        self.reply(&id, REPLY_LIMIT)
    }

    /// Runs a transaction.
    pub(crate) fn transact(&mut self, database: &str, operations: &[Value]) -> Outcome {
        let mut params = vec![json!(database)];
        params.extend_from_slice(operations);
        self.call("transact", &Value::Array(params))
    }

    /// Runs a transaction in which nothing may fail.
    pub(crate) fn must(&mut self, database: &str, operations: &[Value]) -> Value {
        let outcome = self.transact(database, operations);
        match &outcome {
            Outcome::Result(Value::Array(results))
                if results.len() == operations.len()
                    && results.iter().all(|r| r.is_object() && r.get("error").is_none()) =>
            {
                Value::Array(results.clone())
            }
            _ => panic!("the transaction failed: {outcome:?}"),
        }
    }

    /// The next notification, if one comes in time.
    pub(crate) fn note(&mut self, limit: Duration) -> Option<(String, Value)> {
        let end = Instant::now() + limit;
        while self.notes.is_empty() {
            match self.event(end.saturating_duration_since(Instant::now())) {
                Event::Message(message) => match message["method"].as_str() {
                    Some(method) => self.notes.push_back((method.to_owned(), message["params"].clone())),
                    None => self.replies.push(message),
                },
                _ => return None,
            }
        }
        self.notes.pop_front()
    }
}

fn outcome(mut reply: Value) -> Outcome {
    match reply.get_mut("error").map(Value::take) {
        None | Some(Value::Null) => Outcome::Result(reply["result"].take()),
        Some(error) => Outcome::Error(error),
    }
}
