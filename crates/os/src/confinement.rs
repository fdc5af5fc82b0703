//! A process that keeps few privileges: capabilities are cut to those that it uses, and system calls to those of ordinary programs.
//!
//! In contrast to [becoming another user](crate::privileges), the process keeps its user, and with it the access to files of that user.
//! All that it starts is confined, too.

use std::io;

use nix::sys::prctl;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::error::{ErrorContext as _, Result};
use crate::privileges::{cut_bounding_set, hide_memory, is_root};

mod filter;

/// Operations beside those of CAP_NET_ADMIN that a [confined](confine) process keeps, if it has the privilege for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Enters network namespaces (CAP_SYS_ADMIN, and setns(2)).
    pub namespaces: bool,
    /// Reads files that belong to others (CAP_DAC_READ_SEARCH).
    pub files: bool,
    /// Opens devices that belong to others (CAP_DAC_OVERRIDE).
    pub devices: bool,
    /// Starts programs that write files of others, and signal their processes (CAP_DAC_OVERRIDE, CAP_KILL).
    pub services: bool,
}

impl Rights {
    fn capabilities(self) -> CapabilitySet {
        let mut kept = CapabilitySet::NET_ADMIN;
        kept.set(CapabilitySet::SYS_ADMIN, self.namespaces);
        kept.set(CapabilitySet::DAC_READ_SEARCH, self.files);
        kept.set(CapabilitySet::DAC_OVERRIDE, self.devices || self.services);
        kept.set(CapabilitySet::KILL, self.services);
        kept
    }
}

/// Confines this thread, and all threads and programs that it starts, until they end: no capability beside CAP_NET_ADMIN and those of
/// `rights`, no privileges of a program (`PR_SET_NO_NEW_PRIVS`), and no system calls but those of ordinary programs; others fail with
/// ENOSYS. Memory is hidden ([`hide_memory`]). Where the system permits no filter of system calls, that part is left out.
/// Returns whether there is one.
///
/// # Errors
/// A capability remains that is not kept.
pub fn confine(rights: Rights) -> Result<bool> {
    let what = || "give up capabilities".to_owned();
    let kept = rights.capabilities() & rustix::thread::capabilities(None).attempt(what)?.permitted;
    if is_root() {
        // While it has CAP_SETPCAP: programs get no more, either.
        cut_bounding_set(kept).attempt(|| "take capabilities from the bounding set".to_owned())?;
    }
    let before = rustix::thread::capabilities(None).attempt(what)?;
    // Linux keeps those in the ambient set that are both permitted and inheritable.
    let inheritable = before.inheritable & kept;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable };
    rustix::thread::set_capabilities(None, sets).attempt(what)?;
    prctl::set_no_new_privs().attempt(what)?;
    hide_memory()?;
    let has = rustix::thread::capabilities(None).attempt(what)?;
    if !(has.permitted | has.effective | has.inheritable).difference(kept).is_empty() {
        return Err(io::Error::other("capabilities remain")).attempt(what);
    }
    filter::apply(rights).attempt(|| "limit system calls".to_owned())
}
