//! Changes of `thinair tunnel` to its host, and their cleanup: routes, rules, addresses, name servers, folders.
//!
//! Each test runs in its own mount namespace with an empty `/run`. Three network namespaces are a field site, a router
//! and a gateway; the field site's default route leads to the router. Needs root, otherwise the tests are skipped.
//!
//! `cargo test -p thinair-tests --test tunnel_host -- --show-output` prints the tables of docs/tunnel.md.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod block;
mod flows;
mod helper;
mod input;
mod line;
mod names;
mod nat;
mod own_addresses;
mod path;
mod roam;
mod routes;
mod told;
