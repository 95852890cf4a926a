//! A listening socket, and the unix socket's file with it.
//!
//! A unix socket's file that is already there is replaced, as OVSDB's servers do; it is removed when the listener is
//! dropped.

use crate::address::{Endpoint, Remote};
use crate::stream::Stream;
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener};

/// Waits for connections.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    remote: Remote,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            // Someone else may have removed it; there is nobody to tell.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    /// Binds and listens. A unix socket is for its owner and group, as far as the umask lets the group in.
    ///
    /// # Errors
    /// The system's: the directory is missing, the port is taken, and so on.
    pub async fn bind(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => {
                use std::os::unix::fs::FileTypeExt;
                if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
                    std::fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                allow_group(path)?;
                let socket = Socket::Unix(listener, path.clone());
                Ok(Listener { socket, remote: Remote::Listen(endpoint.clone()) })
            }
            Endpoint::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port)).await?;
                let port = listener.local_addr()?.port();
                let remote = Remote::Listen(Endpoint::Tcp { host: host.clone(), port });
                Ok(Listener { socket: Socket::Tcp(listener), remote })
            }
            Endpoint::Tls { .. } => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "listening with TLS (pssl:) is not supported"))
            }
        }
    }

    /// Where it listens; the port is the real one even if 0 was asked for.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The next connection and the name of its other end.
    ///
    /// # Errors
    /// The system's; most concern one connection only, so the caller goes on after a pause.
    pub async fn accept(&self) -> io::Result<(Stream, String)> {
        match &self.socket {
            Socket::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), format!("unix:{}", path.display())))
            }
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), format!("tcp:{peer}")))
            }
        }
    }
}

/// Keeps all others out, whatever the umask says.
fn allow_group(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::symlink_metadata(path)?.permissions().mode();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o770))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_unix_socket_is_not_for_all() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("cowslip-listener-{}", std::process::id()));
        let listener = Listener::bind(&Endpoint::Unix(path.clone())).await.expect("a socket");
        let mode = std::fs::metadata(&path).expect("the socket is there").permissions().mode();
        assert_eq!(mode & 0o7707, 0o700, "{mode:o}");
        drop(listener);
        assert!(!path.exists(), "the listener removes its socket");
    }
}
