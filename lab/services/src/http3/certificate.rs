//! Who a server is, and whom a client takes for it. Nothing is trusted that was not named, and no key is ever shown.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate with those that vouch for it, and its key.
#[derive(Debug)]
pub struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// Certificates that a client takes for a server's, or for those of who vouches for it.
#[derive(Clone, Debug)]
pub struct Trust(pub(super) Arc<RootCertStore>);

/// Why there is no identity, or nobody to trust.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file cannot be read, or is no PEM.
    #[error("{}: {why}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: pem::Error,
    },
    /// There is no certificate in a file.
    #[error("{}: there is no certificate in it", .0.display())]
    Empty(PathBuf),
    /// A certificate is none.
    #[error("{}: {why}", path.display())]
    Certificate {
        /// In which file.
        path: PathBuf,
        /// What is wrong with it.
        why: rustls::Error,
    },
    /// A certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// Certificate and key are not of each other, or are of no kind that is known.
    #[error("certificate and key: {0}")]
    Mismatch(#[from] rustls::Error),
}

impl Identity {
    /// From files in PEM: the server's certificate first, then those that vouch for it.
    ///
    /// # Errors
    /// A file cannot be read, or has nothing of that kind in it.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|why| IdentityError::File { path: key.to_owned(), why })?;
        Ok(Self { chain, key })
    }

    /// A key that nobody else will ever see, and a certificate for these addresses and `localhost` that it vouches for itself. With
    /// the certificate in PEM, for those who are to trust it.
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
    /// All certificates of a file in PEM.
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

/// The algorithms of both ends.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
