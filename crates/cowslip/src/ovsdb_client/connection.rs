//! One blocking JSON-RPC connection to a server.
//!
//! `echo` requests of the server are answered wherever they arrive, so that a command that waits for days is not taken
//! for dead.

use super::error::ClientError;
use super::json::{Value, object, text};
use crate::environment::run_directory;
use cowslip_ovsdb::framing::{Framer, MESSAGE_BYTES_MAX};
use cowslip_ovsdb::json::Json;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

/// The port of a `tcp:` address without one.
pub(crate) const PORT: u16 = 6640;

/// How much is read at once.
const READ_BYTES: usize = 1 << 16;

/// A byte stream to a server.
pub(crate) enum Stream {
    /// Over a unix domain socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.flush(),
            Stream::Tcp(stream) => stream.flush(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Stream {
    /// Whether reads and writes fail rather than wait.
    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(nonblocking),
            Stream::Tcp(stream) => stream.set_nonblocking(nonblocking),
        }
    }

    /// Connects to `unix:PATH` or `tcp:HOST[:PORT]`, or waits for a server to connect to `punix:PATH` or
    /// `ptcp:[PORT][:HOST]`.
    pub(crate) fn open(server: &str) -> Result<Stream, ClientError> {
        let connect = |source| ClientError::Connect { server: server.to_owned(), source };
        let listen = |source| ClientError::Listen { server: server.to_owned(), source };
        let (method, rest) = server.split_once(':').unwrap_or((server, ""));
        match method {
            "unix" => UnixStream::connect(socket_path(rest)).map(Stream::Unix).map_err(connect),
            "tcp" => {
                let (host, port) =
                    host_and_port(rest).ok_or_else(|| ClientError::Address { server: server.to_owned() })?;
                let stream = TcpStream::connect((host, port)).map_err(connect)?;
                // Requests are written whole; waiting for more to send would only delay the reply.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            "punix" => {
                // A socket file that an earlier listener left behind would make binding fail.
                let _ = std::fs::remove_file(rest);
                let accepted = UnixListener::bind(rest).and_then(|l| l.accept()).map_err(listen)?;
                let _ = std::fs::remove_file(rest);
                Ok(Stream::Unix(accepted.0))
            }
            "ptcp" => {
                let (port, host) = rest.split_once(':').unwrap_or((rest, "0.0.0.0"));
                let host = host.trim_matches(['[', ']']);
                let port = if port.is_empty() { Ok(PORT) } else { port.parse() };
                let port = port.map_err(|_| ClientError::Address { server: server.to_owned() })?;
                let accepted = TcpListener::bind((host, port)).and_then(|l| l.accept()).map_err(listen)?;
                Ok(Stream::Tcp(accepted.0))
            }
            "ssl" | "pssl" => Err(ClientError::TlsAddress { server: server.to_owned() }),
            _ => Err(ClientError::Address { server: server.to_owned() }),
        }
    }
}

/// A relative path is meant from the run directory, as the reference tools have it; from the working directory if there
/// is no such socket.
fn socket_path(path: &str) -> PathBuf {
    let in_run_directory = run_directory().join(path);
    if in_run_directory.exists() { in_run_directory } else { PathBuf::from(path) }
}

/// Splits `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`.
pub(crate) fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => PORT,
    };
    (!host.is_empty()).then_some((host, port))
}

/// What a server sends.
pub(crate) enum Message {
    /// The reply to a request of ours: its id, and the result or the error.
    Reply {
        /// The request's id.
        id: u64,
        /// What came of it.
        outcome: Result<Value, Value>,
    },
    /// Something the server tells unasked.
    Notice {
        /// What it is about.
        method: String,
        /// The details.
        params: Value,
    },
}

/// A connection that numbers its requests.
pub(crate) struct Connection {
    server: String,
    stream: Stream,
    framer: Framer,
    next_id: u64,
}

impl Connection {
    /// Connects; see [`Stream::open`] for the forms of the address.
    pub(crate) fn open(server: &str) -> Result<Connection, ClientError> {
        let stream = Stream::open(server)?;
        Ok(Connection {
            server: server.to_owned(),
            stream,
            framer: Framer::new(MESSAGE_BYTES_MAX),
            next_id: 0,
        })
    }

    /// The server's address.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Sends a request; the reply will have the id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Result<u64, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let request = object([
            ("id", Json::Int(id as i64)),
            ("method", super::json::string(method)),
            ("params", params),
        ]);
        self.write(&request)?;
        Ok(id)
    }

    fn write(&mut self, message: &Json<'_>) -> Result<(), ClientError> {
        let text = message.to_string();
        self.stream
            .write_all(text.as_bytes())
            .map_err(|source| ClientError::Io { server: self.server.clone(), source })
    }

    /// The next reply or notice.
    pub(crate) fn receive(&mut self) -> Result<Message, ClientError> {
        loop {
            let message = self.next_json()?;
            let Json::Object(members) = &message else {
                return Err(ClientError::Reply(format!("{}: a message is no object", self.server)));
            };
            let member = |name: &str| members.member(name).cloned().unwrap_or(Json::Null);
            if let Some(method) = members.member("method").and_then(Json::as_str) {
                if method != "echo" {
                    return Ok(Message::Notice { method: method.to_owned(), params: member("params") });
                }
                let reply =
                    object([("id", member("id")), ("result", member("params")), ("error", Json::Null)]);
                self.write(&reply)?;
                continue;
            }
            // An id that is none of ours belongs to no request that anybody waits for.
            let Json::Int(id) = member("id") else { continue };
            let outcome = match member("error") {
                Json::Null => Ok(member("result")),
                error => Err(error),
            };
            return Ok(Message::Reply { id: id as u64, outcome });
        }
    }

    fn next_json(&mut self) -> Result<Value, ClientError> {
        loop {
            let framed = self.framer.message();
            if let Some(bytes) =
                framed.map_err(|source| ClientError::Framing { server: self.server.clone(), source })?
            {
                return match Json::parse(bytes) {
                    Ok(json) => Ok(json.into_owned()),
                    Err(source) => Err(ClientError::BadJson { server: self.server.clone(), source }),
                };
            }
            let buffer = self.framer.buffer();
            let filled = buffer.len();
            buffer.resize(filled + READ_BYTES, 0);
            let read = self.stream.read(&mut buffer[filled..]);
            buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(ClientError::Closed { server: self.server.clone() }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ClientError::Io { server: self.server.clone(), source }),
            }
        }
    }

    /// Sends a request and waits for its reply; what else comes is dropped.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, Value>, ClientError> {
        let wanted = self.send(method, params)?;
        loop {
            if let Message::Reply { id, outcome } = self.receive()?
                && id == wanted
            {
                return Ok(outcome);
            }
        }
    }

    /// Sends a request that must succeed.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        self.exchange(method, params)?
            .map_err(|error| ClientError::Refused { method: method.to_owned(), error: text(&error, false) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        for (text, want) in [
            ("h:1", Some(("h", 1))),
            ("h", Some(("h", PORT))),
            ("[::1]:2", Some(("::1", 2))),
            ("[::1]", Some(("::1", PORT))),
            ("[::1]2", None),
            (":2", None),
            ("h:x", None),
            ("h:70000", None),
        ] {
            assert_eq!(host_and_port(text), want, "{text}");
        }
    }
}
