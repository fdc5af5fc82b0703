//! Privileges, and giving them up permanently.
//!
//! A service performs the operations that need root, [becomes](become_account) a user without privileges, and only then
//! communicates over the network. An attacker who controls it afterwards has the rights of that user, no more: this
//! process and all that it starts cannot regain privileges, which is verified.

use std::ffi::CString;
use std::io;
use std::time::Duration;

use nix::sys::prctl;
use nix::unistd::{
    Gid, Uid, User, getegid, geteuid, getresgid, getresuid, initgroups, setresgid, setresuid, setuid,
};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::error::{Error, ErrorContext as _, Result};

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    name: String,
    user: Uid,
    group: Gid,
}

impl Account {
    /// Finds the user of this name.
    ///
    /// # Errors
    /// There is none ([`NotFound`](io::ErrorKind::NotFound)).
    pub fn named(name: &str) -> Result<Self> {
        let what = || format!("find the user `{name}`");
        let user = User::from_name(name).attempt(what)?;
        let user = user.ok_or_else(|| Error::new(what(), io::ErrorKind::NotFound))?;
        Ok(Self { name: user.name, user: user.uid, group: user.gid })
    }

    /// Returns the user of this process, by number; users of services may have no name.
    pub fn own() -> Self {
        let (user, group) = (geteuid(), getegid());
        Self { name: user.to_string(), user, group }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its number, for [`Tun::set_owner`](crate::Tun::set_owner).
    pub fn uid(&self) -> u32 {
        self.user.as_raw()
    }

    /// Returns the number of its group.
    pub fn gid(&self) -> u32 {
        self.group.as_raw()
    }
}

/// Privileges that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// None.
    Nothing,
    /// CAP_NET_ADMIN: interfaces, addresses and routes of the network namespace can still be changed.
    Network,
}

impl Keep {
    fn capabilities(self) -> CapabilitySet {
        match self {
            Self::Nothing => CapabilitySet::empty(),
            Self::Network => CapabilitySet::NET_ADMIN,
        }
    }
}

/// True if this process runs as root, and can become another user.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Becomes another user, with the groups of that user, and gives up all capabilities except those that are kept; then
/// verifies that they cannot be regained. Programs started later get none either (`PR_SET_NO_NEW_PRIVS`), and memory is
/// neither written to a core dump, nor shown to other processes of the user ([`hide_memory`]).
///
/// A process that already runs as this user gives up its capabilities.
///
/// **Must be called before there is another thread:** Linux keeps capabilities for each thread, and the others would
/// keep theirs. Open files stay open, with the rights granted when they were opened. Files of `/proc/self` belong to
/// root from now on.
///
/// # Errors
/// There is another thread, or the process may not become this user (it needs root). **After any error the process must
/// end:** it may have lost some of its privileges.
pub fn become_account(account: &Account, keep: Keep) -> Result<()> {
    let what = || format!("become the user `{}`", account.name);
    wait_to_be_alone().attempt(what)?;
    let (user, group) = (account.user, account.group);
    let was_root = is_root();
    if was_root {
        let name = CString::new(account.name.as_str()).map_err(io::Error::from).attempt(what)?;
        // While it has CAP_SETPCAP. Capabilities that are kept are for this process alone.
        cut_bounding_set(CapabilitySet::empty())
            .attempt(|| "take capabilities from the bounding set".to_owned())?;
        prctl::set_keepcaps(keep != Keep::Nothing).attempt(what)?;
        initgroups(&name, group).attempt(what)?;
        setresgid(group, group, group).attempt(what)?;
    } else if geteuid() != user {
        return Err(Error::new(format!("{}, which needs root", what()), Errno::PERM));
    }
    setresuid(user, user, user).attempt(what)?;
    give_up(keep).attempt(|| "give up capabilities".to_owned())?;
    hide_memory()?;
    check(account, keep, was_root).map_err(|why| Error::new("verify that all privileges are gone", why))
}

/// Excludes memory, which may contain keys, from core dumps, and protects it from other processes of the same user.
///
/// # Errors
/// None is known.
pub fn hide_memory() -> Result<()> {
    prctl::set_dumpable(false).attempt(|| "exclude memory from core dumps".to_owned())
}

/// Waits until ended threads are gone; others are an error.
fn wait_to_be_alone() -> io::Result<()> {
    // A thread can be joined a moment before Linux removes it from the list.
    for _ in 0..200 {
        if std::fs::read_dir("/proc/self/task")?.count() == 1 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::other("there are other threads, which would keep their privileges"))
}

/// Cuts the bounding set: no program started later can get another capability than these.
pub(crate) fn cut_bounding_set(kept: CapabilitySet) -> io::Result<()> {
    for capability in all().filter(|one| !kept.contains(*one)) {
        match rustix::thread::capability_is_in_bounding_set(capability) {
            Ok(true) => rustix::thread::remove_capability_from_bounding_set(capability)?,
            Ok(false) => {}
            // Linux has no capability of this number or above.
            Err(Errno::INVAL) => return Ok(()),
            Err(why) => return Err(why.into()),
        }
    }
    Ok(())
}

/// Iterates over all possible capabilities, including those that Linux does not have yet.
fn all() -> impl Iterator<Item = CapabilitySet> {
    (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number))
}

fn give_up(keep: Keep) -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    // Only present capabilities can be kept.
    let kept = keep.capabilities() & rustix::thread::capabilities(None)?.permitted;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets)?;
    prctl::set_keepcaps(false)?;
    Ok(prctl::set_no_new_privs()?)
}

/// Verifies that all privileges are gone, and cannot be regained.
fn check(account: &Account, keep: Keep, was_root: bool) -> io::Result<()> {
    let (user, group) = (account.user, account.group);
    let users = getresuid()?;
    let groups = getresgid()?;
    let is_user = [users.real, users.effective, users.saved].iter().all(|&is| is == user);
    let is_group = [groups.real, groups.effective, groups.saved].iter().all(|&is| is == group);
    let has = rustix::thread::capabilities(None)?;
    let more = (has.permitted | has.effective).difference(keep.capabilities());
    let ambient = all().any(|one| rustix::thread::capability_is_in_ambient_set(one).unwrap_or(false));
    let bounding = all().any(|one| rustix::thread::capability_is_in_bounding_set(one).unwrap_or(false));
    let gone = [
        ("the user ID is another one", is_user),
        // A process that was this user before may be of any group, and may not empty the bounding set: its programs get
        // nothing.
        ("the group ID is another one", is_group || !was_root),
        ("capabilities remain in the bounding set", !bounding || !was_root),
        ("capabilities remain", more.is_empty()),
        ("capabilities would be inherited", has.inheritable.is_empty() && !ambient),
        ("programs could gain privileges", prctl::get_no_new_privs()?),
        ("memory can be dumped", !prctl::get_dumpable()?),
        ("the process could become root again", user.is_root() || setuid(Uid::from_raw(0)).is_err()),
    ];
    match gone.iter().find(|(_, is_gone)| !is_gone) {
        Some((what, _)) => Err(io::Error::other(*what)),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let root = Account::named("root").unwrap();
        assert_eq!((root.name(), root.uid()), ("root", 0));
        let nobody = Account::named("no-such-user-here").unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::NotFound);
        assert_eq!(nobody.to_string(), "cannot find the user `no-such-user-here`");
    }

    #[test]
    fn a_process_with_other_threads_keeps_what_it_has() {
        // Tests run in threads.
        let other = std::thread::spawn(std::thread::park);
        let account = Account::named("root").unwrap();
        let why = become_account(&account, Keep::Nothing).unwrap_err();
        assert_eq!(why.to_string(), "cannot become the user `root`");
        assert!(!prctl::get_no_new_privs().unwrap() || !is_root());
        other.thread().unpark();
        other.join().unwrap();
    }
}
