//! Resources for a server.

mod files;
mod format;
#[cfg(test)]
mod support;
mod test;
mod time;

pub use files::{FileResource, FilesError};
pub use test::Tests;
pub use time::Time;
