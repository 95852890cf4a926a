//! A server in this process, for tests of programs that use OVSDB: one line to start, with the semantics of the real one.
//!
//! ```
//! use cowslip_ovsdb_server::testing::TestServer;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::in_memory(r#"{"name":"Net","tables":{"Switch":{"columns":{"name":{"type":"string"}}}}}"#).await?;
//! let stream = std::os::unix::net::UnixStream::connect(server.socket())?;
//! # drop(stream);
//! # Ok(())
//! # }
//! ```

use crate::{Server, ServerError, ServerOptions, file};
use cowslip_engine::Uuid;
use cowslip_engine::storage::FileSystem;
use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::error::Error;
use cowslip_ovsdb::schema::Schema;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a test server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestServerError {
    /// The schema is not one.
    #[error("the schema: {0}")]
    Schema(#[from] Error),
    /// The server does not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Its file cannot be made.
    #[error(transparent)]
    File(#[from] file::OpenError),
    /// Its folder cannot be made.
    #[error("{path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// A server on a unix socket of its own. Dropping it ends its sessions and removes the socket; what it keeps in a folder
/// stays.
#[derive(Debug)]
pub struct TestServer {
    server: Server,
    socket: PathBuf,
    folder: Option<PathBuf>,
}

impl TestServer {
    /// A server with an empty database of this schema, which is gone with it. To be called within a tokio runtime.
    ///
    /// # Errors
    /// The schema is not one, or there is no room for a socket.
    pub async fn in_memory(schema: &str) -> Result<Self, TestServerError> {
        let schema = Schema::parse(schema.as_bytes())?;
        let folder = std::env::temp_dir().join(format!("cowslip-{}", Uuid::new_v4().simple()));
        let made = std::fs::create_dir(&folder);
        made.map_err(|source| TestServerError::Folder { path: folder.clone(), source })?;
        let server = Self::start(folder.join("sock"), Some(folder)).await?;
        server.server.add_memory(schema).await?;
        Ok(server)
    }

    /// A server whose database is the file `db` in a folder, made with this schema if it is not there. So a test can
    /// stop it and start it again.
    ///
    /// # Errors
    /// The schema is not one, or the folder cannot be written.
    pub async fn in_folder(folder: &Path, schema: &str) -> Result<Self, TestServerError> {
        let schema = Schema::parse(schema.as_bytes())?;
        let path = folder.join("db");
        if !path.exists() {
            file::create(&FileSystem::new(), &path, &schema)?;
        }
        let server = Self::start(folder.join("sock"), None).await?;
        server.server.add_file(Arc::new(FileSystem::new()), &path).await?;
        Ok(server)
    }

    async fn start(socket: PathBuf, folder: Option<PathBuf>) -> Result<Self, TestServerError> {
        let server = Server::start(ServerOptions::default()).await?;
        // From here on the folder is removed whatever happens.
        let this = TestServer { server, socket, folder };
        this.server.add_remote(&Remote::Listen(Endpoint::Unix(this.socket.clone()))).await?;
        Ok(this)
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Where it listens, as clients' command lines and builders take it.
    pub fn address(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// The server, for more databases and remotes.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Stops it, with everything written and synced.
    ///
    /// # Errors
    /// The last sync failed.
    pub async fn stop(self) -> std::io::Result<()> {
        self.server.stop().await
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.server.begin_stop();
        if let Some(folder) = &self.folder {
            // A test that has removed it is not to fail for that.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
