//! Network namespaces: isolated sets of interfaces, addresses and routes.
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

use crate::error::{Error, ErrorContext as _, Result};
use crate::interface::Interface;
use crate::signals;

/// Folder of the names of `ip netns`.
const FOLDER: &str = "/run/netns";

/// The network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. Dropping one that was created here removes it once no process uses it.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    name: Option<String>,
    /// Mount that is removed on drop.
    _mounted: Option<Mounted>,
}

/// A file of `/run/netns` on which a namespace is mounted.
#[derive(Debug)]
struct Mounted(PathBuf);

impl Namespace {
    /// Creates a namespace of this name, as `ip netns add` does: its only interface is the loopback interface, which is
    /// down.
    ///
    /// # Errors
    /// The name is in use ([`io::ErrorKind::AlreadyExists`]) or not a file name, or a missing privilege (CAP_SYS_ADMIN,
    /// and write access to `/run/netns`).
    pub fn create(name: &str) -> Result<Self> {
        check(name)?;
        let what = || format!("create the network namespace `{name}`");
        prepare_folder().attempt(|| format!("prepare {FOLDER} for the network namespace `{name}`"))?;
        let path = Path::new(FOLDER).join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path).attempt(what)?;
        // From here on the file is removed if anything fails.
        let mounted = Mounted(path);
        let file = in_a_thread(|| -> Result<File> {
            unshare(CloneFlags::CLONE_NEWNET).attempt(what)?;
            mount(Some(OWN), &mounted.0, Some("none"), MsFlags::MS_BIND, None::<&str>).attempt(what)?;
            File::open(OWN).attempt(what)
        })??;
        Ok(Self { file, name: Some(name.to_owned()), _mounted: Some(mounted) })
    }

    /// Creates a namespace without a name. It ends with its last user.
    ///
    /// # Errors
    /// Missing privilege (CAP_SYS_ADMIN).
    pub fn create_unnamed() -> Result<Self> {
        let what = || "create a network namespace".to_owned();
        let file = in_a_thread(|| -> Result<File> {
            unshare(CloneFlags::CLONE_NEWNET).attempt(what)?;
            File::open(OWN).attempt(what)
        })??;
        Ok(Self { file, name: None, _mounted: None })
    }

    /// Opens an existing namespace by a name of `ip netns`, or by the path of a file such as `/proc/1234/ns/net`.
    ///
    /// # Errors
    /// There is none, or it is not accessible.
    pub fn open(name: &str) -> Result<Self> {
        let is_path = name.contains('/');
        let path = if is_path { PathBuf::from(name) } else { Path::new(FOLDER).join(name) };
        let file = File::open(&path).attempt(|| format!("open the network namespace {}", path.display()))?;
        Ok(Self { file, name: Some(name.to_owned()), _mounted: None })
    }

    /// Returns its name of `ip netns`, or the path by which it was opened; `None` if it has none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns a name or path by which other processes can open it while this process exists.
    pub fn called(&self) -> String {
        let path = || format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        self.name.clone().unwrap_or_else(path)
    }

    /// Returns the prefix of a command line that runs in it: `ip netns exec NAME`, or `nsenter --net=PATH`.
    pub fn prefix(&self) -> String {
        let called = self.called();
        if called.contains('/') {
            format!("nsenter --net={called}")
        } else {
            format!("ip netns exec {called}")
        }
    }

    /// Returns the file that represents it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Runs `work` in it, in a separate thread that ends with the work.
    ///
    /// # Errors
    /// Missing privilege (CAP_SYS_ADMIN), or the system cannot create a thread.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let what = || format!("enter the network namespace {}", self.name().unwrap_or("without a name"));
        in_a_thread(|| -> Result<T> {
            setns(&self.file, CloneFlags::CLONE_NEWNET).attempt(what)?;
            Ok(work())
        })?
    }

    /// Starts a command in it, without blocked signals. `/sys` and `/etc` are those of the caller.
    ///
    /// # Errors
    /// The command does not exist, or is not executable; those of [`within`](Self::within).
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.within(|| signals::spawn(command))?.attempt(|| format!("run `{program}`"))
    }

    /// Allows all users in it to send echo requests ([`Ping`](crate::Ping)).
    ///
    /// # Errors
    /// Missing privilege (root of this namespace).
    pub fn allow_pings(&self) -> Result<()> {
        let path = "/proc/sys/net/ipv4/ping_group_range";
        self.within(|| fs::write(path, "0 2147483647"))?.attempt(|| format!("write {path}"))
    }

    /// Enables forwarding of IPv4 packets between its interfaces, by its routes.
    ///
    /// # Errors
    /// Missing privilege (root of this namespace).
    pub fn allow_forwarding(&self) -> Result<()> {
        let path = "/proc/sys/net/ipv4/ip_forward";
        self.within(|| fs::write(path, "1"))?.attempt(|| format!("write {path}"))
    }

    /// Suppresses unsolicited packets: the loopback interface is up, and interfaces created later have no link-local
    /// address, and send no router solicitations and no duplicate address detection.
    ///
    /// # Errors
    /// Missing privilege (CAP_NET_ADMIN).
    pub fn quiet(&self) -> Result<()> {
        self.within(|| {
            Interface::named("lo")?.up()?;
            quiet_ipv6("default")
        })?
    }
}

/// Disables link-local addresses, router solicitation and duplicate address detection, for one interface of this
/// thread's namespace, or for later ones (`default`). Without IPv6 there is nothing to do.
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
        // Fails if nothing was mounted yet; then only the file exists.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
        let _ = fs::remove_file(&self.0);
    }
}

/// Rejects a name that is not a file name.
fn check(name: &str) -> Result<()> {
    let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
    if is_name {
        return Ok(());
    }
    Err(Error::new(format!("use `{name}` as the name of a network namespace"), io::ErrorKind::InvalidInput))
}

/// Prepares the folder as `ip netns` does: a separate shared mount, so that a namespace that is unmounted here is
/// unmounted everywhere, and can end.
fn prepare_folder() -> io::Result<()> {
    fs::create_dir_all(FOLDER)?;
    let share = || mount(Some(""), FOLDER, Some("none"), MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        // It is not a mount yet.
        Err(Errno::EINVAL) => {
            fs::set_permissions(FOLDER, Permissions::from_mode(0o755))?;
            mount(Some(FOLDER), FOLDER, Some("none"), MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
            Ok(share()?)
        }
        result => Ok(result?),
    }
}

/// Runs `work` in a separate thread, so that its effects on the thread end with it.
fn in_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    let what = || "start a thread".to_owned();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work).attempt(what)?;
        thread.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}
