//! Network namespaces: worlds of their own, with interfaces, addresses and routes that nobody else sees.
//!
//! Named ones are those of `ip netns`: a file in `/run/netns` on which the namespace is mounted, so that
//! `ip netns exec NAME COMMAND` works.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Attempt as _, Error, Result};
use crate::interface::Interface;
use crate::signals;

/// Where `ip netns` keeps its names.
const FOLDER: &str = "/run/netns";

/// The network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. One that was made here goes on drop, when nobody is in it any more.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    name: Option<String>,
    /// The mount that goes on drop.
    _mounted: Option<Mounted>,
}

/// A file of `/run/netns` on which a namespace is mounted.
#[derive(Debug)]
struct Mounted(PathBuf);

impl Namespace {
    /// A new namespace of that name, as `ip netns add` makes it: with nothing in it but the loopback interface, which
    /// is down.
    ///
    /// # Errors
    /// The name is taken ([`io::ErrorKind::AlreadyExists`]) or no file name, or the caller may not (CAP_SYS_ADMIN, and
    /// `/run/netns` writable).
    pub fn create(name: &str) -> Result<Self> {
        check(name)?;
        let what = || format!("make the network namespace `{name}`");
        prepare_folder().attempt(|| format!("prepare {FOLDER} for the network namespace `{name}`"))?;
        let path = Path::new(FOLDER).join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path).attempt(what)?;
        // From here on the file goes if anything fails.
        let mounted = Mounted(path);
        let file = in_a_thread(|| -> Result<File> {
            unshare(CloneFlags::CLONE_NEWNET).attempt(what)?;
            mount(Some(OWN), &mounted.0, Some("none"), MsFlags::MS_BIND, None::<&str>).attempt(what)?;
            File::open(OWN).attempt(what)
        })??;
        Ok(Self { file, name: Some(name.to_owned()), _mounted: Some(mounted) })
    }

    /// A new namespace without a name. It goes with the last that uses it.
    ///
    /// # Errors
    /// The caller may not (CAP_SYS_ADMIN).
    pub fn create_unnamed() -> Result<Self> {
        let what = || "make a network namespace".to_owned();
        let file = in_a_thread(|| -> Result<File> {
            unshare(CloneFlags::CLONE_NEWNET).attempt(what)?;
            File::open(OWN).attempt(what)
        })??;
        Ok(Self { file, name: None, _mounted: None })
    }

    /// One that is there: a name of `ip netns`, or the path of a file such as `/proc/1234/ns/net`.
    ///
    /// # Errors
    /// There is none, or the caller may not look at it.
    pub fn open(name: &str) -> Result<Self> {
        let is_path = name.contains('/');
        let path = if is_path { PathBuf::from(name) } else { Path::new(FOLDER).join(name) };
        let file = File::open(&path).attempt(|| format!("open the network namespace {}", path.display()))?;
        Ok(Self { file, name: Some(name.to_owned()), _mounted: None })
    }

    /// Its name: that of `ip netns`, or the path it was opened by; `None` if it has none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What others can call it by while this process is there: its name, or a path.
    pub fn called(&self) -> String {
        let path = || format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        self.name.clone().unwrap_or_else(path)
    }

    /// What stands in front of a command that is to run inside of it: `ip netns exec NAME`, or `nsenter --net=PATH`.
    pub fn prefix(&self) -> String {
        let called = self.called();
        if called.contains('/') {
            format!("nsenter --net={called}")
        } else {
            format!("ip netns exec {called}")
        }
    }

    /// The file that stands for it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Does something inside of it: in a thread of its own, which ends with the work.
    ///
    /// # Errors
    /// The caller may not enter (CAP_SYS_ADMIN), or there can be no thread.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let what = || format!("enter the network namespace {}", self.name().unwrap_or("without a name"));
        in_a_thread(|| -> Result<T> {
            setns(&self.file, CloneFlags::CLONE_NEWNET).attempt(what)?;
            Ok(work())
        })?
    }

    /// Starts a command inside of it, with no signal blocked. `/sys` and `/etc` stay those of the caller.
    ///
    /// # Errors
    /// There is no such command, or it may not be run; those of [`within`](Self::within).
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.within(|| signals::spawn(command))?.attempt(|| format!("run `{program}`"))
    }

    /// Lets everybody in it send echo requests ([`Ping`](crate::Ping)).
    ///
    /// # Errors
    /// The caller may not (root of this namespace).
    pub fn allow_pings(&self) -> Result<()> {
        let path = "/proc/sys/net/ipv4/ping_group_range";
        self.within(|| fs::write(path, "0 2147483647"))?.attempt(|| format!("write {path}"))
    }

    /// Lets packets of IPv4 through it that are for others: from one of its interfaces to another, by its routes.
    ///
    /// # Errors
    /// The caller may not (root of this namespace).
    pub fn allow_forwarding(&self) -> Result<()> {
        let path = "/proc/sys/net/ipv4/ip_forward";
        self.within(|| fs::write(path, "1"))?.attempt(|| format!("write {path}"))
    }

    /// Lets nothing speak in it that was not asked: the loopback interface is up, and interfaces that are made from
    /// here on get no link-local address, solicit no router, and do not ask whether somebody has their address.
    ///
    /// # Errors
    /// The caller may not (CAP_NET_ADMIN).
    pub fn quiet(&self) -> Result<()> {
        self.within(|| {
            Interface::named("lo")?.up()?;
            quiet_ipv6("default")
        })?
    }
}

/// No link-local address, no router solicitation, no duplicate address detection, for one interface of this thread's
/// namespace, or for those to come (`default`). Without IPv6 there is nothing to be done.
pub(crate) fn quiet_ipv6(interface: &str) -> Result<()> {
    // addr_gen_mode 1 is "none". RFC 4862, section 5.3; RFC 4861, section 6.3.7.
    let settings = [
        ("addr_gen_mode", "1"),
        ("router_solicitations", "0"),
        ("accept_ra", "0"),
        ("accept_dad", "0"),
        ("dad_transmits", "0"),
    ];
    for (name, value) in settings {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/{name}");
        match fs::write(&path, value) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.attempt(|| format!("write {path}"))?,
        }
    }
    Ok(())
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Fails if nothing was mounted yet; then the file alone is there.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
        let _ = fs::remove_file(&self.0);
    }
}

/// Refuses what is no file name.
fn check(name: &str) -> Result<()> {
    let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
    if is_name {
        return Ok(());
    }
    Err(Error::new(format!("call a network namespace `{name}`"), io::ErrorKind::InvalidInput))
}

/// Makes the folder what `ip netns` makes it: a mount of its own that is shared, so that a namespace which is unmounted
/// here is unmounted everywhere, and can go.
fn prepare_folder() -> io::Result<()> {
    fs::create_dir_all(FOLDER)?;
    let share = || mount(Some(""), FOLDER, Some("none"), MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        // It is no mount yet.
        Err(Errno::EINVAL) => {
            fs::set_permissions(FOLDER, Permissions::from_mode(0o755))?;
            mount(Some(FOLDER), FOLDER, Some("none"), MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
            Ok(share()?)
        }
        result => Ok(result?),
    }
}

/// Does something in a thread of its own, so that what it does to the thread ends with it.
fn in_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    let what = || "start a thread".to_owned();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work).attempt(what)?;
        thread.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}
