//! What the system refused.

use std::io;

/// The system refused something: what, and its reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct Error {
    what: String,
    #[source]
    why: io::Error,
}

/// A result of the system.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The system refused to `what`, in the words that follow "cannot".
    pub fn new(what: impl Into<String>, why: impl Into<io::Error>) -> Self {
        Self { what: what.into(), why: why.into() }
    }

    /// The reason by kind.
    pub fn kind(&self) -> io::ErrorKind {
        self.why.kind()
    }

    /// The number of the reason, if the system gave one (errno(3)).
    pub fn raw_os_error(&self) -> Option<i32> {
        self.why.raw_os_error()
    }

    /// Whether the caller lacks a privilege for it (EPERM or EACCES).
    pub fn is_permission(&self) -> bool {
        self.kind() == io::ErrorKind::PermissionDenied
    }
}

/// Adds what was tried to what the system says.
pub(crate) trait Attempt<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempt<T> for std::result::Result<T, E> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|why| Error::new(what(), why))
    }
}
