//! Two ends and what is in between, in a room without clocks.

pub(super) mod nonces;
mod room;
mod sessions;
