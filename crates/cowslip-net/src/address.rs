//! Where to listen and where to connect, in the words of OVSDB's tools: `punix:FILE`, `ptcp:[PORT][:IP]`, `unix:FILE`,
//! `tcp:HOST:PORT`, `ssl:HOST:PORT`. IPv6 addresses stand in brackets.
//!
//! An [`Endpoint`]'s text is where a client goes, a [`Remote`]'s how a server meets its clients. Servers have no TLS in this
//! version, so `ssl:` is an endpoint only, and `pssl:` is refused.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The port that the Internet Assigned Numbers Authority gave to OVSDB.
pub const OVSDB_PORT: u16 = 6640;

/// What a server takes.
const REMOTES: &str = "punix:, ptcp:, unix: or tcp:";

/// What a client takes.
const ENDPOINTS: &str = "unix:, tcp: or ssl:";

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP port of a host, by name or address.
    Tcp {
        /// The host, without brackets.
        host: String,
        /// The port; 0 lets the system choose when listening.
        port: u16,
    },
    /// The same with TLS on it.
    Tls {
        /// The host, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

/// A remote: how a server meets its clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    /// Waits for them (`punix:`, `ptcp:`).
    Listen(Endpoint),
    /// Goes to them (`unix:`, `tcp:`).
    Connect(Endpoint),
}

/// A text that is no remote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressError {
    /// A method that is not offered here (yet).
    Unsupported {
        /// The text before the colon.
        method: String,
        /// Those that are.
        offered: &'static str,
    },
    /// TLS, where a server is to meet its clients with it.
    ServerTls {
        /// The text before the colon.
        method: String,
    },
    /// A method that it offers, with something else behind it than the method takes.
    Malformed {
        /// The whole text.
        text: String,
        /// The form that was expected.
        expected: &'static str,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Unsupported { method, offered } => {
                write!(f, "connection method \"{method}\" is not supported; use {offered}")
            }
            AddressError::ServerTls { method } => {
                write!(f, "servers do not support TLS ({method}:) in this version; use {REMOTES}")
            }
            AddressError::Malformed { text, expected } => {
                write!(f, "\"{text}\" is not of the form {expected}")
            }
        }
    }
}

impl std::error::Error for AddressError {}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
            Endpoint::Tcp { host, port } => write!(f, "tcp:{}:{port}", Bracketed(host)),
            Endpoint::Tls { host, port } => write!(f, "ssl:{}:{port}", Bracketed(host)),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Connect(endpoint) => endpoint.fmt(f),
            Remote::Listen(Endpoint::Unix(path)) => write!(f, "punix:{}", path.display()),
            Remote::Listen(Endpoint::Tcp { host, port }) => write!(f, "ptcp:{port}:{}", Bracketed(host)),
            Remote::Listen(Endpoint::Tls { host, port }) => write!(f, "pssl:{port}:{}", Bracketed(host)),
        }
    }
}

/// A host as it stands before a port.
struct Bracketed<'a>(&'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains(':') {
            true => write!(f, "[{}]", self.0),
            false => f.write_str(self.0),
        }
    }
}

/// Cuts the method off an address.
fn method_of(text: &str) -> Result<(&str, &str), AddressError> {
    let malformed = || AddressError::Malformed { text: text.to_string(), expected: "METHOD:ADDRESS" };
    text.split_once(':').ok_or_else(malformed)
}

impl FromStr for Endpoint {
    type Err = AddressError;

    /// Takes the address that a client connects to.
    ///
    /// ```
    /// use cowslip_net::address::Endpoint;
    /// let endpoint: Endpoint = "ssl:192.0.2.1".parse().unwrap();
    /// assert_eq!(endpoint.to_string(), "ssl:192.0.2.1:6640");
    /// ```
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let malformed = |expected| AddressError::Malformed { text: text.to_string(), expected };
        let (method, rest) = method_of(text)?;
        let host_and_port = |expected| {
            let (host, port) = split_host(rest).ok_or_else(|| malformed(expected))?;
            let port = if port.is_empty() { Some(OVSDB_PORT) } else { port.parse().ok() };
            Ok((host.to_string(), port.ok_or_else(|| malformed(expected))?))
        };
        match method {
            "unix" if rest.is_empty() => Err(malformed("unix:FILE")),
            "unix" => Ok(Endpoint::Unix(rest.into())),
            "tcp" => host_and_port("tcp:HOST:PORT").map(|(host, port)| Endpoint::Tcp { host, port }),
            "ssl" => host_and_port("ssl:HOST:PORT").map(|(host, port)| Endpoint::Tls { host, port }),
            _ => Err(AddressError::Unsupported { method: method.to_string(), offered: ENDPOINTS }),
        }
    }
}

impl FromStr for Remote {
    type Err = AddressError;

    /// ```
    /// use cowslip_net::address::Remote;
    /// let remote: Remote = "ptcp:6641:127.0.0.1".parse().unwrap();
    /// assert_eq!(remote.to_string(), "ptcp:6641:127.0.0.1");
    /// assert!("pssl:6640".parse::<Remote>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let malformed = |expected| AddressError::Malformed { text: text.to_string(), expected };
        let (method, rest) = method_of(text)?;
        match method {
            "punix" if !rest.is_empty() => Ok(Remote::Listen(Endpoint::Unix(rest.into()))),
            "punix" => Err(malformed("punix:FILE")),
            "unix" | "tcp" => text.parse().map(Remote::Connect),
            "ssl" | "pssl" => Err(AddressError::ServerTls { method: method.to_string() }),
            "ptcp" => {
                let (port, host) = rest.split_once(':').unwrap_or((rest, ""));
                let port = if port.is_empty() { Some(OVSDB_PORT) } else { port.parse().ok() };
                let port = port.ok_or_else(|| malformed("ptcp:[PORT][:IP]"))?;
                let host = if host.is_empty() { "0.0.0.0" } else { unbracketed(host) };
                Ok(Remote::Listen(Endpoint::Tcp { host: host.to_string(), port }))
            }
            _ => Err(AddressError::Unsupported { method: method.to_string(), offered: REMOTES }),
        }
    }
}

impl Remote {
    /// The same remote with a relative path of a unix socket taken from `directory`.
    #[must_use]
    pub fn in_directory(self, directory: &Path) -> Self {
        let place = |endpoint| match endpoint {
            Endpoint::Unix(path) => Endpoint::Unix(directory.join(path)),
            other => other,
        };
        match self {
            Remote::Listen(endpoint) => Remote::Listen(place(endpoint)),
            Remote::Connect(endpoint) => Remote::Connect(place(endpoint)),
        }
    }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
}

/// Splits `host:port`, `[v6]:port`, `host` or `[v6]`.
fn split_host(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return Some((host, port.strip_prefix(':').unwrap_or(port)));
    }
    let (host, port) = text.split_once(':').unwrap_or((text, ""));
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let got = match text.parse::<Remote>() {
            Ok(remote) => remote.to_string(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn remotes() {
        check("punix:/run/db.sock", "punix:/run/db.sock");
        check("ptcp:", "ptcp:6640:0.0.0.0");
        check("ptcp:0:[::1]", "ptcp:0:[::1]");
        check("tcp:127.0.0.1", "tcp:127.0.0.1:6640");
        check("tcp:[::1]:7", "tcp:[::1]:7");
        check("unix:a", "unix:a");
        check("punix:", "error: \"punix:\" is not of the form punix:FILE");
        check("ptcp:x", "error: \"ptcp:x\" is not of the form ptcp:[PORT][:IP]");
        check(
            "ssl:a:1",
            "error: servers do not support TLS (ssl:) in this version; use punix:, ptcp:, unix: or tcp:",
        );
        check("db:a", "error: connection method \"db\" is not supported; use punix:, ptcp:, unix: or tcp:");
        check("tcp", "error: \"tcp\" is not of the form METHOD:ADDRESS");
        assert_eq!(
            "punix:s".parse::<Remote>().unwrap().in_directory(Path::new("/r")).to_string(),
            "punix:/r/s"
        );
    }

    #[test]
    fn endpoints() {
        let check = |text: &str, want: &str| {
            let got = match text.parse::<Endpoint>() {
                Ok(endpoint) => endpoint.to_string(),
                Err(error) => format!("error: {error}"),
            };
            assert_eq!(got, want);
        };
        check("ssl:[::1]", "ssl:[::1]:6640");
        check("ssl:db.example:6641", "ssl:db.example:6641");
        check("tcp:a:1", "tcp:a:1");
        check("unix:a b", "unix:a b");
        check("ssl:", "error: \"ssl:\" is not of the form ssl:HOST:PORT");
        check("ssl:a:70000", "error: \"ssl:a:70000\" is not of the form ssl:HOST:PORT");
        check("pssl:1", "error: connection method \"pssl\" is not supported; use unix:, tcp: or ssl:");
    }
}
