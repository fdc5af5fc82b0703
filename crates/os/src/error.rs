//! Errors of system calls.

use std::io;

/// An operation that the system refused, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct Error {
    what: String,
    #[source]
    why: io::Error,
}

/// Result of a system call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error with the message "cannot `what`".
    pub fn new(what: impl Into<String>, why: impl Into<io::Error>) -> Self {
        Self { what: what.into(), why: why.into() }
    }

    /// Returns the kind of the reason.
    pub fn kind(&self) -> io::ErrorKind {
        self.why.kind()
    }

    /// Returns the errno(3) of the reason, if there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.why.raw_os_error()
    }

    /// True if the caller lacks a privilege (EPERM or EACCES).
    pub fn is_permission(&self) -> bool {
        self.kind() == io::ErrorKind::PermissionDenied
    }
}

/// Adds the attempted operation to an error of the system.
pub(crate) trait ErrorContext<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> ErrorContext<T> for std::result::Result<T, E> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|why| Error::new(what(), why))
    }
}
