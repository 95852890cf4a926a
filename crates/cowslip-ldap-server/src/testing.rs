//! A server in a test's own process, in one line.

use std::path::Path;
use std::sync::Arc;

use cowslip_engine::storage::FileSystem;
use cowslip_net::address::Endpoint;

use crate::server::{Server, ServerOptions};
use crate::service::{Service, ServiceOptions};

/// The suffix of a test's directory.
pub const SUFFIX: &str = "dc=example,dc=com";

/// The name of its root.
pub const ROOT_DN: &str = "cn=admin,dc=example,dc=com";

/// The password of its root.
pub const ROOT_PASSWORD: &str = "secret";

/// A directory server on a free port of 127.0.0.1, without entries of users.
#[derive(Debug)]
pub struct TestServer {
    /// The server.
    pub server: Server,
    /// Its port.
    pub port: u16,
}

impl TestServer {
    /// A server whose directory lives as long as it. Must be called within a tokio runtime.
    ///
    /// # Panics
    /// If there is no port, or no thread.
    pub async fn in_memory() -> Self {
        Self::of(Service::in_memory(&ServiceOptions::new([SUFFIX])).expect("a directory in memory")).await
    }

    /// A server on a directory in a folder, which is made if it is not there.
    ///
    /// # Panics
    /// If the folder cannot be used.
    pub async fn in_folder(folder: &Path) -> Self {
        let options = ServiceOptions::new([SUFFIX]);
        if !folder.exists() || std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_none()) {
            Service::create(&FileSystem::new(), folder, &options).expect("a directory in the folder");
        }
        let (service, _) = Service::open(Arc::new(FileSystem::new()), folder, &options).expect("a directory");
        Self::of(service).await
    }

    async fn of(service: Service) -> Self {
        Self::with_options(service, ServerOptions::new(ROOT_DN, Some(ROOT_PASSWORD.into()))).await
    }

    /// A server with these options.
    ///
    /// # Panics
    /// If there is no port.
    pub async fn with_options(service: Service, options: ServerOptions) -> Self {
        let server = Server::start(service, options).expect("a name for the root");
        let Endpoint::Tcp { port, .. } = server.listen("ldap://127.0.0.1:0").await.expect("a free port")
        else {
            panic!("a port was asked for");
        };
        Self { server, port }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("ldap://127.0.0.1:{}", self.port)
    }

    /// Stops it.
    ///
    /// # Panics
    /// If the last sync fails.
    pub async fn stop(self) {
        self.server.stop().await.expect("a clean end");
    }
}
