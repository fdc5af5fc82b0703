//! The scenes, one in each process.

#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use nix::unistd::{Gid, Uid, getgroups, setgid, setgroups, setuid};
use thinair_os::confinement::{Rights, confine};
use thinair_os::privileges::{Account, Keep, become_account, is_root};
use thinair_os::{Interface, Namespace, Tun, TunKind};

/// Variable with the name of the scene.
const SCENE: &str = "THINAIR_TEST_SCENE";

/// A user that every system has.
const USER: &str = "nobody";

const SCENES: [(&str, fn()); 7] = [
    ("nothing_is_left_and_nothing_comes_back", nothing_is_left),
    ("one_capability_can_be_kept", one_is_kept),
    ("the_owner_of_a_device_attaches_to_it", owner_attaches),
    ("who_is_the_user_already_gives_up_the_rest", user_gives_up),
    ("who_is_not_root_cannot_become_another", not_root),
    ("a_confined_process_changes_networks_and_nothing_else", confined),
    ("a_confined_process_keeps_what_it_asked_for", confined_with_rights),
];

pub(crate) fn main() {
    if let Ok(name) = std::env::var(SCENE) {
        let (_, scene) = SCENES.iter().find(|(scene, _)| *scene == name).unwrap();
        return scene();
    }
    if !is_root() {
        println!("skipped: giving up privileges, which needs root");
        return;
    }
    for (name, _) in SCENES {
        let own = std::env::current_exe().unwrap();
        let output = Command::new(own).env(SCENE, name).output().unwrap();
        let output_text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{output_text}", output.status);
        print!("{name} ... ok\n{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Returns a line of `/proc/self/status`.
fn status(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asserts that privileges are gone and cannot be regained.
fn nothing_comes_back(bounding: &str) {
    let uid = Account::named(USER).unwrap().uid();
    assert_eq!(status("Uid"), format!("{uid} {uid} {uid} {uid}"));
    for (field, value) in [("CapInh", "0"), ("CapAmb", "0"), ("CapBnd", bounding)] {
        let is = u64::from_str_radix(&status(field), 16).unwrap();
        assert_eq!(format!("{is:x}"), value, "{field}");
    }
    assert_eq!(status("NoNewPrivs"), "1");
    assert_eq!(nix::sys::prctl::get_dumpable(), Ok(false));
    assert!(setuid(Uid::from_raw(0)).is_err() && setgid(Gid::from_raw(0)).is_err());
    assert!(setgroups(&[Gid::from_raw(0)]).is_err());
    assert!(Namespace::create_unnamed().unwrap_err().is_permission());
    assert!(std::fs::read("/etc/shadow").is_err());
}

fn nothing_is_left() {
    let account = Account::named(USER).unwrap();
    // Threads that have ended do not count.
    let namespace = Namespace::create_unnamed().unwrap();
    let open = Tun::open_in(&namespace, "link0", TunKind::Tun).unwrap();
    become_account(&account, Keep::Nothing).unwrap();
    nothing_comes_back("0");
    for field in ["CapPrm", "CapEff"] {
        assert_eq!(status(field), "0000000000000000");
    }
    let group = nix::unistd::User::from_name(USER).unwrap().unwrap().gid;
    assert!(!getgroups().unwrap().contains(&Gid::from_raw(0)), "no group of root");
    assert_eq!(status("Gid"), format!("{group} {group} {group} {group}"));
    // Open files stay open.
    assert_eq!(open.read(&mut [0; 100]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(Tun::open("link0", TunKind::Tun).unwrap_err().is_permission());
    // New threads have no more.
    std::thread::spawn(|| nothing_comes_back("0")).join().unwrap();
    // Nor do programs.
    let own = Command::new("cat").arg("/proc/self/status").output().unwrap();
    let own = String::from_utf8(own.stdout).unwrap();
    for field in ["CapPrm", "CapEff", "CapBnd"] {
        assert!(own.contains(&format!("{field}:\t0000000000000000")), "{own}");
    }
    // A repetition is not an error.
    become_account(&account, Keep::Nothing).unwrap();
}

fn one_is_kept() {
    let account = Account::named(USER).unwrap();
    let namespace = Namespace::create_unnamed().unwrap();
    let tun = Tun::open_in(&namespace, "link0", TunKind::Tun).unwrap();
    // The namespace can be entered only with the privilege.
    enter(&namespace);
    become_account(&account, Keep::Network).unwrap();
    nothing_comes_back("0");
    // CAP_NET_ADMIN is number 12.
    for field in ["CapPrm", "CapEff"] {
        assert_eq!(u64::from_str_radix(&status(field), 16), Ok(1 << 12), "{field}");
    }
    Interface::named(tun.name()).unwrap().set_mtu(1_400).unwrap();
    Interface::named(tun.name()).unwrap().delete().unwrap();
    tun.attach_again().unwrap();
    // Kept privileges can be given up, too.
    become_account(&account, Keep::Nothing).unwrap();
    assert!(Interface::named(tun.name()).unwrap().set_mtu(1_300).unwrap_err().is_permission());
}

fn owner_attaches() {
    // Usually udev makes the driver accessible to everybody; otherwise only its owner can open it, and the test
    // is skipped.
    if std::fs::metadata("/dev/net/tun").unwrap().permissions().mode() & 0o6 != 0o6 {
        println!("skipped: attaching, because /dev/net/tun is not open to everybody");
        return;
    }
    let account = Account::named(USER).unwrap();
    let namespace = Namespace::create_unnamed().unwrap();
    enter(&namespace);
    for (name, owner) in [("own", account.uid()), ("other", 0)] {
        let tun = Tun::open(name, TunKind::Tun).unwrap();
        tun.set_owner(owner).unwrap();
        tun.set_persistent(true).unwrap();
    }
    become_account(&account, Keep::Nothing).unwrap();
    let tun = Tun::attach("own", TunKind::Tun).unwrap();
    drop(tun);
    Tun::attach("own", TunKind::Tun).unwrap();
    assert!(Tun::attach("other", TunKind::Tun).unwrap_err().is_permission());
    let none = Tun::open("none", TunKind::Tun).unwrap_err();
    assert_eq!(
        (none.is_permission(), none.to_string()),
        (true, "cannot create the TUN device `none`".to_owned())
    );
}

fn user_gives_up() {
    let account = Account::named(USER).unwrap();
    be(&account);
    become_account(&account, Keep::Network).unwrap();
    // This user cannot change the bounding set, but programs get nothing.
    nothing_comes_back(&format!("{:x}", u64::from_str_radix(&status("CapBnd"), 16).unwrap()));
    assert_eq!(status("CapEff"), "0000000000000000", "who has nothing keeps nothing");
}

fn not_root() {
    let account = Account::named(USER).unwrap();
    be(&account);
    let why = become_account(&Account::named("root").unwrap(), Keep::Nothing).unwrap_err();
    assert!(why.is_permission());
    assert_eq!(why.to_string(), "cannot become the user `root`, which needs root");
}

/// Becomes a user as a service manager does, which leaves more privileges than [`become_account`].
fn be(account: &Account) {
    let group = nix::unistd::User::from_name(account.name()).unwrap().unwrap().gid;
    setgroups(&[]).unwrap();
    setgid(group).unwrap();
    setuid(Uid::from_raw(account.uid())).unwrap();
}

/// Puts this process, which has one thread, into a namespace.
fn enter(namespace: &Namespace) {
    let file = std::fs::File::open(namespace.called()).unwrap();
    nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
}

/// Asserts that these are the capabilities, by their numbers.
fn has_capabilities(numbers: &[u32]) {
    let expected: u64 = numbers.iter().map(|number| 1 << number).sum();
    for field in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(u64::from_str_radix(&status(field), 16), Ok(expected), "{field}");
    }
    assert_eq!(["CapInh", "CapAmb"].map(|field| u64::from_str_radix(&status(field), 16).unwrap()), [0, 0]);
}

fn confined() {
    let namespace = Namespace::create_unnamed().unwrap();
    let tun = Tun::open_in(&namespace, "link0", TunKind::Tun).unwrap();
    enter(&namespace);
    let has_filter = confine(Rights::default()).unwrap();
    assert!(has_filter, "Linux has filters of system calls on this processor");
    // CAP_NET_ADMIN is number 12.
    has_capabilities(&[12]);
    assert_eq!((status("NoNewPrivs"), status("Seccomp")), ("1".to_owned(), "2".to_owned()));
    Interface::named(tun.name()).unwrap().set_mtu(1_400).unwrap();
    // Threads and programs are confined, too.
    std::thread::spawn(move || {
        has_capabilities(&[12]);
        let line = "cat /proc/self/status | grep -E '^(Seccomp|CapEff|CapBnd):'";
        let own = Command::new("sh").args(["-c", line]).output().unwrap();
        let own = String::from_utf8(own.stdout).unwrap();
        assert_eq!(own.matches("0000000000001000").count() + own.matches("Seccomp:\t2").count(), 3, "{own}");
    })
    .join()
    .unwrap();
    // Calls that are not permitted are those of an older system, whatever the user or the capabilities.
    let refused = Some(libc::ENOSYS);
    let error = |result: nix::Result<()>| result.err().map(|error| error as i32);
    assert_eq!(error(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)), refused);
    let none = None::<&str>;
    assert_eq!(error(nix::mount::mount(none, "/", none, nix::mount::MsFlags::MS_REMOUNT, none)), refused);
    assert!(namespace.within(|| ()).is_err(), "namespaces stay shut");
}

fn confined_with_rights() {
    let namespace = Namespace::create_unnamed().unwrap();
    let shadow = std::fs::metadata("/etc/shadow").unwrap();
    let rights = Rights { namespaces: true, files: true, devices: false, services: true };
    confine(rights).unwrap();
    // CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_KILL, CAP_NET_ADMIN, CAP_SYS_ADMIN.
    has_capabilities(&[1, 2, 5, 12, 21]);
    assert_eq!(std::fs::read("/etc/shadow").unwrap().len() as u64, shadow.len());
    namespace.within(|| Interface::named("lo").unwrap().up().unwrap()).unwrap();
    assert!(Namespace::create_unnamed().is_err(), "none can be created");
}
