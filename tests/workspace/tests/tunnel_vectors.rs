//! Handshakes and datagrams on record (`tests/vectors/tunnel.json`), checked by a second implementation in Python.

use std::path::PathBuf;
use std::process::Command;

#[test]
fn a_second_implementation_makes_the_same_octets() {
    let target = PathBuf::from(thinair_tests::text(&thinair_tests::metadata(), "target_directory"));
    let python = std::env::var_os("THINAIR_PYTHON").map_or(target.join("coap-peers/python"), PathBuf::from);
    if !python.join("installed").exists() {
        println!(
            "skipped: cryptography of Python, because it is not installed (`make test` does that, with pip)"
        );
        return;
    }
    let root = thinair_tests::root();
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", "120", "python3", "-s"]);
    command.arg(root.join("tests/workspace/peers/tunnel_vectors.py"));
    command.arg(root.join("tests/vectors/tunnel.json"));
    command.env("PYTHONPATH", python).env("PYTHONDONTWRITEBYTECODE", "1");
    let done = command.output().expect("timeout(1)");
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    print!("{said}");
    assert_eq!(said, "9 handshakes and 54 datagrams agree\n");
}
