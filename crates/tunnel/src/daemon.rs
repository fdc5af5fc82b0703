//! The daemon: an interface, a carrier, and a [`Site`](crate::site::Site) between them. It performs the input
//! and output, and provides the time.
//!
//! One thread waits for both and for timers, reads up to 64 packets in a row, and sends datagrams in batches.
//! When no more packets wait, all data is sent at once.

mod block;
pub mod control;
mod epochs;
mod event_loop;
mod helper;
mod host;
mod inside;
mod keys;
mod name_servers;
mod notices;
mod outside;
mod ownership;
mod prober;
mod recorder;
mod reload;
mod remembered;
mod run_folder;
mod setup;

pub use block::{block, lift};
pub use helper::{Files, MakeSiteConfig, Resolve, Source, clean_up};
pub use run_folder::{RunFolder, RunFolderError};
pub use setup::{Daemon, RunError};
