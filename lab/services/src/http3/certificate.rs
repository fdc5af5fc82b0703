//! Identity of a server, and certificates that a client trusts. Only named certificates are trusted, and keys are never
//! shown.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Certificate chain, and its private key.
#[derive(Debug)]
pub struct ServerIdentity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// Certificates that a client trusts, as a server's own or as authorities.
#[derive(Clone, Debug)]
pub struct Trust(pub(super) Arc<RootCertStore>);

/// Error in an identity or in trusted certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file cannot be read, or is not PEM.
    #[error("{}: {why}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the parser.
        why: pem::Error,
    },
    /// The file has no certificate.
    #[error("{} has no certificate", .0.display())]
    Empty(PathBuf),
    /// Invalid certificate.
    #[error("{}: {why}", path.display())]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// Error of the TLS library.
        why: rustls::Error,
    },
    /// No certificate can be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// Certificate and key do not match, or have an unsupported type.
    #[error("invalid certificate or key: {0}")]
    Mismatch(#[from] rustls::Error),
}

impl ServerIdentity {
    /// Reads files in PEM: the server's certificate first, then its issuers.
    ///
    /// # Errors
    /// A file cannot be read, or has no certificate or key in it.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|why| IdentityError::File { path: key.to_owned(), why })?;
        Ok(Self { chain, key })
    }

    /// Makes a key, and a self-signed certificate for these addresses and `localhost`. Returns the certificate in PEM,
    /// too, for clients that should trust it. The key is never stored.
    ///
    /// # Errors
    /// The system has no random octets.
    pub fn make(addresses: &[IpAddr]) -> Result<(Self, String), IdentityError> {
        let names = addresses.iter().map(ToString::to_string).chain(["localhost".to_owned()]);
        let mut certificate = CertificateParams::new(names.collect::<Vec<_>>())?;
        certificate.distinguished_name.push(DnType::CommonName, "thinair");
        let key = KeyPair::generate()?;
        let made = certificate.self_signed(&key)?;
        let pem = made.pem();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Ok((Self { chain: vec![made.der().clone()], key }, pem))
    }
}

impl Trust {
    /// Reads all certificates of a file in PEM.
    ///
    /// # Errors
    /// It cannot be read, or has none in it that can be trusted.
    pub fn read(path: &Path) -> Result<Self, IdentityError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|why| IdentityError::Certificate { path: path.to_owned(), why })?;
        }
        Ok(Self(Arc::new(roots)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let failed = |why| IdentityError::File { path: path.to_owned(), why };
    let all = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(failed)?;
    if all.is_empty() { Err(IdentityError::Empty(path.to_owned())) } else { Ok(all) }
}

/// Algorithms of both ends.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
