//! The files behind a TLS end: reading them, and what is wrong with them.
//!
//! Invariant: what is compared and what is used is one reading of each file.

use super::{TlsOptions, shown};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most bytes taken from a file of certificates or keys.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// What an end shows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file of the private key, in PEM (PKCS #8, PKCS #1 or SEC1), not encrypted.
    pub private_key: PathBuf,
    /// The file of the certificate and of those between it and the authority, in PEM.
    pub certificate: PathBuf,
}

/// What is wrong with a TLS end's files or settings. Always the fault of whoever put them there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{file}: {reason}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// A file is longer than [`FILE_BYTES_MAX`].
    #[error("{file}: longer than {FILE_BYTES_MAX} bytes")]
    TooLong {
        /// The file.
        file: String,
    },
    /// A file is not in PEM, or what it holds is broken.
    #[error("{file}: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file has no certificate in it.
    #[error("{file}: no certificate in it")]
    NoCertificate {
        /// The file.
        file: String,
    },
    /// A file has no private key in it, or only an encrypted one.
    #[error("{file}: no private key in it that can be read without a password")]
    NoPrivateKey {
        /// The file.
        file: String,
    },
    /// A private key of a kind that is not supported, or of another certificate.
    #[error("private key {private_key} does not go with certificate {certificate}: {reason}")]
    Mismatch {
        /// The private key's file.
        private_key: String,
        /// The certificate's file.
        certificate: String,
        /// Why not.
        reason: String,
    },
    /// A name to check for that no certificate can be for.
    #[error("\"{name}\" is no host name or address to check a certificate for")]
    Name {
        /// The text.
        name: String,
    },
}

impl TlsError {
    pub(super) fn key(identity: Option<&Identity>, error: &rustls::Error) -> Self {
        let file = |path: fn(&Identity) -> &PathBuf| identity.map_or_else(String::new, |i| shown(path(i)));
        let reason = match error {
            rustls::Error::InconsistentKeys(_) => "it is another one's key".to_string(),
            other => other.to_string(),
        };
        TlsError::Mismatch {
            private_key: file(|i| &i.private_key),
            certificate: file(|i| &i.certificate),
            reason,
        }
    }
}

/// What the files of an end held when they were read. It shows nothing of itself in logs, since there is a key in it.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    ca: Vec<u8>,
    /// The key's and the certificate's.
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// A certificate, those between it and the authority, and its key.
type Chain = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Contents {
    pub(super) fn read(options: &TlsOptions) -> Result<Self, TlsError> {
        let ca = read(&options.ca_certificate)?;
        let identity = match &options.identity {
            None => None,
            Some(identity) => Some((read(&identity.private_key)?, read(&identity.certificate)?)),
        };
        Ok(Contents { ca, identity })
    }

    /// The authorities that are trusted.
    pub(super) fn authorities(&self, path: &Path) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.ca, path)? {
            roots.add(certificate).map_err(|error| malformed(path, &error))?;
        }
        Ok(roots)
    }

    /// What is shown to the other end.
    pub(super) fn identity(&self, paths: Option<&Identity>) -> Result<Option<Chain>, TlsError> {
        let (Some((key, chain)), Some(paths)) = (&self.identity, paths) else { return Ok(None) };
        let chain = certificates(chain, &paths.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => {
                TlsError::NoPrivateKey { file: shown(&paths.private_key) }
            }
            other => malformed(&paths.private_key, &other),
        })?;
        Ok(Some((chain, key)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error: std::io::Error| TlsError::Read { file: shown(path), reason: error.to_string() };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(TlsError::TooLong { file: shown(path) }),
        false => Ok(bytes),
    }
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| malformed(path, &error))?;
    match all.is_empty() {
        true => Err(TlsError::NoCertificate { file: shown(path) }),
        false => Ok(all),
    }
}

fn malformed(path: &Path, error: &impl std::fmt::Display) -> TlsError {
    TlsError::Malformed { file: shown(path), reason: error.to_string() }
}
