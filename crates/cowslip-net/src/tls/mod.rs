//! TLS 1.2 and 1.3, with the files that OVSDB's tools take: a private key, a certificate, a CA certificate.
//!
//! A [`TlsClient`] reads its files before each connection, so that rotated certificates need no restart. Invariants: a
//! set of files that does not work as a whole never takes the place of one that did; the other end's certificate chain is
//! always verified; no session is resumed, so that each connection is verified by the files of its time.
//!
//! The server's end is not here yet; [`Identity`] and [`TlsStream`] are made for both ends.

mod files;
mod reason;
mod verifier;

pub use files::{FILE_BYTES_MAX, Identity, TlsError};
pub use reason::reason;

use files::Contents;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use verifier::ChainVerifier;

/// Which name a server's certificate must be for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NameCheck {
    /// Any name will do: whoever holds a certificate of the CA is a server. This is what OVSDB's own programs do, whose
    /// certificates carry no host names, and so the CA must be one that signs for servers of one installation only.
    #[default]
    ChainOnly,
    /// The host that was connected to, name or address.
    Host,
    /// This name, whatever host was connected to.
    Name(String),
}

/// The files of a TLS client, and what it asks of a server.
///
/// ```
/// use cowslip_net::tls::{NameCheck, TlsOptions};
/// let options = TlsOptions::new("/etc/ovn/cacert.pem")
///     .identity("/etc/ovn/key.pem", "/etc/ovn/cert.pem")
///     .name_check(NameCheck::Host);
/// assert!(options.identity.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificates of the authorities that may sign a server's certificate, in PEM (`--ca-cert`).
    pub ca_certificate: PathBuf,
    /// What this end shows of itself; servers of OVSDB demand it by default.
    pub identity: Option<Identity>,
    /// Which name the server's certificate must be for.
    pub name_check: NameCheck,
}

impl TlsOptions {
    /// Trusts the authorities in a file, shows no certificate, and takes any name.
    pub fn new(ca_certificate: impl Into<PathBuf>) -> Self {
        TlsOptions { ca_certificate: ca_certificate.into(), identity: None, name_check: NameCheck::ChainOnly }
    }

    /// Shows a certificate: the files of its private key (`--private-key`) and of itself, followed by those between it
    /// and the authority, if there are any (`--certificate`); both in PEM.
    #[must_use]
    pub fn identity(mut self, private_key: impl Into<PathBuf>, certificate: impl Into<PathBuf>) -> Self {
        self.identity = Some(Identity { private_key: private_key.into(), certificate: certificate.into() });
        self
    }

    /// Asks for a name in the server's certificate.
    #[must_use]
    pub fn name_check(mut self, name_check: NameCheck) -> Self {
        self.name_check = name_check;
        self
    }
}

/// A TLS stream over TCP; an end of either kind.
pub type TlsStream = tokio_rustls::TlsStream<TcpStream>;

/// The client's end of TLS: connects with the newest files that work.
pub struct TlsClient {
    options: TlsOptions,
    /// The name asked for, if it is the same for every host.
    fixed_name: Option<ServerName<'static>>,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    contents: Contents,
    config: Arc<ClientConfig>,
    /// Why the files as they are now are not the ones in use.
    problem: Option<TlsError>,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = &self.loaded().problem;
        f.debug_struct("TlsClient")
            .field("options", &self.options)
            .field("problem", problem)
            .finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// They cannot be read, or are not what they should be.
    pub fn new(options: TlsOptions) -> Result<Self, TlsError> {
        let fixed_name = match &options.name_check {
            NameCheck::Name(name) => {
                let parsed = ServerName::try_from(name.clone());
                Some(parsed.map_err(|_| TlsError::Name { name: name.clone() })?)
            }
            NameCheck::ChainOnly | NameCheck::Host => None,
        };
        let contents = Contents::read(&options)?;
        let config = config(&options, &contents)?;
        Ok(TlsClient { options, fixed_name, loaded: Mutex::new(Loaded { contents, config, problem: None }) })
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files and what is asked for.
    pub fn options(&self) -> &TlsOptions {
        &self.options
    }

    /// Reads the files again; tells whether they are others than before. Connections that are open go on as they are.
    ///
    /// # Errors
    /// They cannot be read, or do not work together; the ones before stay in use.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let mut loaded = self.loaded();
        let fresh = Contents::read(&self.options).and_then(|contents| {
            if contents == loaded.contents {
                return Ok(None);
            }
            let config = config(&self.options, &contents)?;
            Ok(Some((contents, config)))
        });
        match fresh {
            Ok(changed) => {
                loaded.problem = None;
                let Some((contents, config)) = changed else { return Ok(false) };
                loaded.contents = contents;
                loaded.config = config;
                tracing::info!("the TLS files have changed; new connections use them");
                Ok(true)
            }
            Err(problem) => {
                // Once per problem: reconnections come often.
                if loaded.problem.as_ref() != Some(&problem) {
                    tracing::warn!(%problem, "the TLS files have changed and do not work; the ones before stay in use");
                }
                loaded.problem = Some(problem.clone());
                Err(problem)
            }
        }
    }

    /// Why the files as they were when last looked at are not in use; none if they are.
    pub fn problem(&self) -> Option<TlsError> {
        self.loaded().problem.clone()
    }

    /// Agrees on a TLS connection with the server at the other end of `stream`, which was found as `host`, with the
    /// newest files that work. There is no time limit here.
    ///
    /// # Errors
    /// The connection broke, or one end does not accept the other: see [`reason`].
    pub async fn connect(&self, stream: TcpStream, host: &str) -> io::Result<TlsStream> {
        // A problem is kept and reported there; the files before it may well do.
        let _ = self.reload();
        let config = self.loaded().config.clone();
        let name = match (&self.fixed_name, ServerName::try_from(host.to_string())) {
            (Some(name), _) => name.clone(),
            (None, Ok(name)) => name,
            (None, Err(error)) if self.options.name_check == NameCheck::Host => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
            }
            // A host with a name that no certificate can have; without a check any name will do.
            (None, Err(_)) => ServerName::IpAddress(stream.peer_addr()?.ip().into()),
        };
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        Ok(TlsStream::Client(stream))
    }
}

/// The cryptography in use.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn config(options: &TlsOptions, contents: &Contents) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider();
    let roots = contents.authorities(&options.ca_certificate)?;
    let is_name_checked = options.name_check != NameCheck::ChainOnly;
    let verifier = Arc::new(ChainVerifier::new(roots, is_name_checked, &provider));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the cipher suites of both versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match contents.identity(options.identity.as_ref())? {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| TlsError::key(options.identity.as_ref(), &error))?,
    };
    // Connections are few and long; a resumed one would not be verified by newer files, and servers that demand
    // certificates often refuse to resume.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The path, for messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
