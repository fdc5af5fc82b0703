//! Rules of robust compression that all profiles share.

pub(crate) mod establish;
pub(crate) mod health;
pub(crate) mod pending;
pub(crate) mod sender;
