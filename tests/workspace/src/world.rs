//! Test in its own mount namespace, with an empty `/run` and temporary `/etc` and `/var/lib`. Programs of
//! `/run/bin` replace those of the system.

use std::process::Command;

/// Set in the process that runs in the namespace.
const INSIDE: &str = "THINAIR_TEST_WORLD";

/// Shell commands in the new namespace before the test.
const PREPARE: &str = "set -eu
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/netns
for of in etc var/lib; do
    upper=/run/upper/$of
    mkdir -p $upper $upper.work
    mount -t overlay overlay -o lowerdir=/$of,upperdir=$upper,workdir=$upper.work /$of
done
ip link set lo up
export PATH=/run/bin:$PATH
exec \"$@\"";

/// Runs the test of that name again in a new mount namespace, and `body` there. Without the privilege, prints that the
/// test is skipped.
pub fn in_a_world(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    if !thinair_os::privileges::is_root() {
        println!("skipped: {test} needs root, for namespaces and mounts of its own");
        return;
    }
    let status = Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", PREPARE, "sh"])
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", test, "--nocapture", "--include-ignored", "--test-threads", "1"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare of util-linux");
    assert!(status.success(), "{test}: {status}");
}
