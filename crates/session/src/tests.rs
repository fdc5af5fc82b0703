//! Two ends and a simulated network, in virtual time.

mod attacker;
mod bodies;
mod cookies;
mod far;
mod fleet;
mod groups;
mod idle;
mod insecure;
mod keys;
pub(super) mod nonces;
mod own_addresses;
mod public_keys;
mod replays;
mod restarts;
mod room;
mod sessions;
mod suites;
mod trouble;
mod vectors;
