//! Where to listen and where to connect, in the words of OVSDB's tools: `punix:FILE`, `ptcp:[PORT][:IP]`, `unix:FILE`,
//! `tcp:HOST:PORT`. IPv6 addresses stand in brackets.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The port that the Internet Assigned Numbers Authority gave to OVSDB.
pub const OVSDB_PORT: u16 = 6640;

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
    /// A method that this program does not offer (yet).
    Unsupported {
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
            AddressError::Unsupported { method } => {
                write!(f, "connection method \"{method}\" is not supported; use punix:, ptcp:, unix: or tcp:")
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
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Connect(endpoint) => endpoint.fmt(f),
            Remote::Listen(Endpoint::Unix(path)) => write!(f, "punix:{}", path.display()),
            Remote::Listen(Endpoint::Tcp { host, port }) if host.contains(':') => {
                write!(f, "ptcp:{port}:[{host}]")
            }
            Remote::Listen(Endpoint::Tcp { host, port }) => write!(f, "ptcp:{port}:{host}"),
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
        let (method, rest) = text.split_once(':').ok_or_else(|| malformed("METHOD:ADDRESS"))?;
        match method {
            "punix" if !rest.is_empty() => Ok(Remote::Listen(Endpoint::Unix(rest.into()))),
            "unix" if !rest.is_empty() => Ok(Remote::Connect(Endpoint::Unix(rest.into()))),
            "punix" => Err(malformed("punix:FILE")),
            "unix" => Err(malformed("unix:FILE")),
            "ptcp" => {
                let (port, host) = rest.split_once(':').unwrap_or((rest, ""));
                let port = if port.is_empty() { Some(OVSDB_PORT) } else { port.parse().ok() };
                let port = port.ok_or_else(|| malformed("ptcp:[PORT][:IP]"))?;
                let host = if host.is_empty() { "0.0.0.0" } else { unbracketed(host) };
                Ok(Remote::Listen(Endpoint::Tcp { host: host.to_string(), port }))
            }
            "tcp" => {
                let (host, port) = split_host(rest).ok_or_else(|| malformed("tcp:HOST:PORT"))?;
                let port = if port.is_empty() { Some(OVSDB_PORT) } else { port.parse().ok() };
                let port = port.ok_or_else(|| malformed("tcp:HOST:PORT"))?;
                Ok(Remote::Connect(Endpoint::Tcp { host: host.to_string(), port }))
            }
            _ => Err(AddressError::Unsupported { method: method.to_string() }),
        }
    }
}

impl Remote {
    /// The same remote with a relative path of a unix socket taken from `directory`.
    #[must_use]
    pub fn in_directory(self, directory: &Path) -> Self {
        let place = |endpoint| match endpoint {
            Endpoint::Unix(path) => Endpoint::Unix(directory.join(path)),
            tcp => tcp,
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
            "error: connection method \"ssl\" is not supported; use punix:, ptcp:, unix: or tcp:",
        );
        assert_eq!(
            "punix:s".parse::<Remote>().unwrap().in_directory(Path::new("/r")).to_string(),
            "punix:/r/s"
        );
    }
}
