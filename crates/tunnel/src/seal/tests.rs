//! Two ends and what is in between, in a room without clocks.

mod around;
mod bodies;
mod cookies;
mod groups;
mod key_files;
pub(super) mod nonces;
mod restarts;
mod room;
mod sessions;
mod trouble;
