//! Changes of `thinair tunnel` to its host, and their cleanup: routes, rules, addresses, name servers, folders.
//!
//! Each test runs in its own mount namespace with an empty `/run`. Three network namespaces are a field site, a router
//! and a gateway; the field site's default route leads to the router. Needs root, otherwise the tests are skipped.
//!
//! `cargo test -p thinair-tests --test tunnel_host -- --show-output` prints the tables of docs/tunnel.md.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

#[path = "tunnel_host/block.rs"]
mod block;
#[path = "tunnel_host/flows.rs"]
mod flows;
#[path = "tunnel_host/input.rs"]
mod input;
#[path = "tunnel_host/line.rs"]
mod line;
#[path = "tunnel_host/names.rs"]
mod names;
#[path = "tunnel_host/own_addresses.rs"]
mod own_addresses;
#[path = "tunnel_host/path.rs"]
mod path;
#[path = "tunnel_host/roam.rs"]
mod roam;
#[path = "tunnel_host/routes.rs"]
mod routes;
#[path = "tunnel_host/site.rs"]
mod site;
#[path = "tunnel_host/told.rs"]
mod told;
