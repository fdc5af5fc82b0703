//! The daemon: an interface, a carrier, and a [`Site`](crate::site::Site) between them. It moves octets, and has the clock.
//!
//! One thread waits for both and for points in time, takes up to 64 packets in a row, and hands over datagrams in
//! batches. When no more packets wait, nothing is kept back. The live page has a thread of its own.

pub mod control;
mod event_loop;
mod helper;
mod host;
mod inside;
mod keys;
mod name_servers;
mod notices;
mod outside;
mod recorder;
mod reload;
mod remembered;
mod run_folder;
mod setup;

pub use helper::{Files, MakeSiteConfig, Resolve, Source, clean_up};
pub use run_folder::{RunFolder, RunFolderError};
pub use setup::{Daemon, RunError};
