//! A listening socket, and the unix socket's file with it.
//!
//! A unix socket's file that is already there is replaced, as OVSDB's servers do; it is removed when the listener is
//! dropped.

use crate::address::{Endpoint, Remote};
use crate::stream::Stream;
use std::io;
use std::path::PathBuf;
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
    /// Binds and listens.
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
                let socket = Socket::Unix(UnixListener::bind(path)?, path.clone());
                Ok(Listener { socket, remote: Remote::Listen(endpoint.clone()) })
            }
            Endpoint::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port)).await?;
                let port = listener.local_addr()?.port();
                let remote = Remote::Listen(Endpoint::Tcp { host: host.clone(), port });
                Ok(Listener { socket: Socket::Tcp(listener), remote })
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
