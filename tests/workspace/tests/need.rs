//! `scripts/need` waits while another process has locked the package database; scripts that build show their progress;
//! `scripts/tests` runs every program.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use thinair_tests::root;

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the script beside a list of one package, with an `apt-get` that fails `times` with an error; returns the output and
/// the arguments of each call.
fn need(times: u32, error: &str) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::copy(root().join("scripts/need"), path("need")).unwrap();
    fs::write(path("packages"), "absent-command absent-package goal nothing works\n").unwrap();
    fs::create_dir(path("bin")).unwrap();
    program(&path("bin/id"), "#!/bin/sh\necho 0\n");
    let calls = path("calls");
    let apt = format!(
        "#!/bin/sh\necho \"$@\" >>{calls}\n[ $(wc -l <{calls}) -gt {times} ] || {{ echo '{error}' >&2; exit 100; }}\n",
        calls = calls.display()
    );
    program(&path("bin/apt-get"), &apt);
    let search = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .arg(path("need"))
        .arg("goal")
        .env("PATH", search)
        .env("THINAIR_LOCK_SECONDS", "0")
        .output()
        .unwrap();
    (output, fs::read_to_string(calls).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn a_locked_package_database_is_waited_for() {
    for error in [
        "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)",
        "E: Unable to lock directory /var/lib/apt/lists/",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend)",
    ] {
        let (output, calls) = need(2, error);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
        assert_eq!(calls.len(), 4, "{calls:?}");
        assert!(calls.iter().all(|call| call.starts_with("-o DPkg::Lock::Timeout=600 ")), "{calls:?}");
        assert!(calls[..3].iter().all(|call| call.ends_with("update -qq")), "{calls:?}");
        assert!(calls[3].ends_with("install -qq -y --no-install-recommends absent-package"), "{calls:?}");
        assert_eq!(told.matches("Waiting for another process").count(), 2, "{told}");
        assert_eq!(output.stdout, b"Installing absent-package\n");
    }
}

#[test]
fn another_error_ends_at_once_and_a_lock_that_stays_after_a_while() {
    let (output, calls) = need(1_000, "E: Unable to locate package absent-package");
    assert!(!output.status.success());
    assert_eq!(calls.len(), 1);
    assert!(String::from_utf8(output.stderr).unwrap().contains("Unable to locate package"));
    let (output, calls) = need(1_000, "E: Could not get lock /var/lib/dpkg/lock");
    assert!(!output.status.success());
    assert_eq!(calls.len(), 60);
    assert!(String::from_utf8(output.stderr).unwrap().ends_with("Could not get lock /var/lib/dpkg/lock\n"));
}

/// Runs a script that builds with programs of `bin` in front, and returns what it printed and the arguments of each call that
/// these programs recorded.
fn built(script: &str, arguments: &[&str], programs: &[(&str, &str)]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, text) in programs {
        program(&bin.join(name), &format!("#!/bin/sh\n{text}\n"));
    }
    let output = Command::new("bash")
        .arg(root().join("scripts").join(script))
        .args(arguments)
        .arg(folder.path().join("out"))
        .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()))
        .env("CARGO_TARGET_DIR", folder.path().join("target"))
        .env("CALLS", folder.path().join("calls"))
        .output()
        .unwrap();
    assert!(!output.status.success(), "the build fails");
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    (String::from_utf8(output.stdout).unwrap(), calls)
}

/// `make c` and `make python` take minutes: they say what they build, and Cargo shows its progress.
#[test]
fn long_builds_show_their_progress() {
    const FAILS: &str = "echo \"$@\" >>\"$CALLS\"; exit 1";
    let (told, calls) = built("c-libraries", &[], &[("cargo", FAILS)]);
    assert!(told.contains("Building thinair-c"), "{told}");
    assert!(calls.contains("rustc") && !calls.contains("quiet"), "{calls}");

    let python = format!(
        "case $1 in -c) echo 3.12 ;; esac\n[ \"$2\" = venv ] || exit 0\nmkdir \"$3/bin\"\n\
         echo 'exit 0' >\"$3/bin/pip\"\necho '{FAILS}' >\"$3/bin/maturin\"\nchmod +x \"$3\"/bin/*"
    );
    let (told, calls) = built("python", &["wheel"], &[("python3", &python)]);
    assert!(
        told.contains("Installing maturin") && told.contains("Building the wheel of bindings/python"),
        "{told}"
    );
    assert!(calls.contains("build") && !calls.contains("quiet"), "{calls}");
}

/// Cargo with three test programs, which it gives the variable PROGRAM.
const CARGO: &str = r#"case "$*" in
*--no-run*) ;;
*--tests*)
    set -- $(echo "$*" | sed "s/.*runner=\['\(.*\)','--keep','\(.*\)'\].*/\1 \2/")
    for name in first second third; do PROGRAM=$name "$1" --keep "$2" "$FOLDER/$name" --show-output; done ;;
*) echo "documentation, too" ;;
esac"#;

/// Returns the output and the status of `scripts/tests`, whose second program ends with `status`.
fn tests_run(status: u8) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("bin")).unwrap();
    program(&path("bin/cargo"), &format!("#!/bin/sh\n{CARGO}\n"));
    for (name, status) in [("first", 0), ("second", status), ("third", 0)] {
        program(&path(name), &format!("#!/bin/sh\necho \"$PROGRAM with $1\"\nexit {status}\n"));
    }
    let output = Command::new("bash")
        .arg(root().join("scripts/tests"))
        .env("PATH", format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap()))
        .env("FOLDER", folder.path())
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn every_test_program_is_run_and_one_that_fails_is_named() {
    let (told, status) = tests_run(7);
    for part in ["first with --show-output", "second with", "third with", "documentation, too"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.ends_with("\nFAILED with status 7: second\n"), "{told}");
    assert_eq!(status, Some(1));
    let (told, status) = tests_run(0);
    assert!(told.contains("\n4 test programs passed in "), "{told}");
    assert_eq!(status, Some(0));
}
