//! Invalid input: errors of the command, its exit status, and an unchanged host.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use thinair_tests::site::{Sites, folder, run, thinair};
use thinair_tests::world::in_a_world;

#[test]
fn wrong_input_is_named_and_changes_nothing() {
    in_a_world("input::wrong_input_is_named_and_changes_nothing", || {
        let sites = Sites::new(0);
        let written = |name: &str, text: &str, mode: u32| {
            let path = folder().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let good = fs::read_to_string(&sites.key).unwrap();
        let exposed = written("exposed.key", &good, 0o644);
        let empty = written("empty.key", "", 0o600);
        let long = written("long.key", &"# a comment\n".repeat(400), 0o600);
        let malformed = written("malformed.key", "# of the gateway\nsecret\n", 0o600);
        let missing = folder().join("missing.key").to_str().unwrap().to_owned();
        let own = sites.key.clone();
        let url = "udp://198.51.100.7:7000";
        // Another program has the port of the second tunnel.
        let _socket = thinair_os::Namespace::open(&sites.field)
            .unwrap()
            .within(|| std::net::UdpSocket::bind("0.0.0.0:7999").unwrap())
            .unwrap();

        // Arguments; exit status; parts of the error.
        let cases: Vec<(String, i32, Vec<&str>)> = vec![
            (format!("{url} --key {missing}"), 2, vec!["missing.key", "No such file", "keygen"]),
            (format!("{url} --key {empty}"), 2, vec!["empty.key", "no key", "keygen"]),
            (format!("{url} --key {long}"), 2, vec!["long.key", "4,096"]),
            (format!("{url} --key {exposed}"), 2, vec!["exposed.key", "0644", "chmod 600"]),
            (format!("{url} --key {malformed}"), 2, vec!["malformed.key", "line 2", "not a key"]),
            (format!("{url} --key {own} --route 10.0.0.1/8"), 2, vec!["--route", "10.0.0.0/8"]),
            (format!("{url} --key {own} --route everywhere"), 2, vec!["--route", "10.9.0.1/30"]),
            (
                format!("{url} --key {own} --listen 0.0.0.0:7999"),
                1,
                vec!["0.0.0.0:7999", "ss -ulpn", "--listen"],
            ),
            (format!("{url} --key {own} --address 192.0.2.2/24"), 1, vec!["192.0.2.2/24", "eth0", "free"]),
            // It may resolve later: `timeout` ends the wait.
            (
                format!("udp://no.such.host.example:7000 --key {own}"),
                124,
                vec!["no.such.host.example", "cannot resolve", "the next attempt is in"],
            ),
            (format!("{url} --key {own} --tun eth0"), 1, vec!["eth0", "--tun"]),
            (format!("{url} --key {own} --dns 10.9.0.1 --address 10.9.0.2/30"), 1, vec!["resolvconf", "dns"]),
            (format!("{url} --key {own} --user no-such-user"), 1, vec!["no-such-user"]),
            (format!("udp://198.51.100.7:99999 --key {own}"), 2, vec!["99999", "65535"]),
        ];
        let before = sites.look();
        for (arguments, status, names) in cases {
            let route = "--route 0.0.0.0/0 --route ::/0";
            let output = run(&format!(
                "ip netns exec {} timeout 20 {} tunnel run {arguments} {route}",
                sites.field,
                thinair()
            ));
            let error = String::from_utf8_lossy(&output.stderr);
            let last = error.lines().last().unwrap_or_default();
            println!("{}\n    {last}", arguments.replace("/run/test/", ""));
            assert_eq!(output.status.code(), Some(status), "{arguments}\n{error}");
            for name in names {
                assert!(last.contains(name), "{arguments}: `{name}` is not in: {last}");
            }
            assert_eq!(sites.look(), before, "{arguments}");
        }
    });
}
