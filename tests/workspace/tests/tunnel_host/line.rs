//! A serial line that is unplugged, and a tunnel within an emulated link.

use std::os::unix::fs::symlink;

use thinair_os::serial::Pty;

use thinair_tests::site::{SiteDaemon, Sites, folder, run, thinair, within};
use thinair_tests::world::in_a_world;

#[test]
fn an_unplugged_line_is_found_again() {
    in_a_world("line::an_unplugged_line_is_found_again", || {
        let sites = Sites::new(0);
        // As udev does for a USB adapter: one name for changing devices.
        let name = folder().join("ttyUSB0");
        let mut pty = Pty::open().unwrap();
        symlink(pty.path(), &name).unwrap();
        let url = format!("serial://{}?speed=115200", name.display());
        let daemon = SiteDaemon::start(&sites.field, &format!("{url} --key {} --tun line0", sites.key));
        for count in 1..=2 {
            drop(pty);
            assert!(
                within(5.0, || daemon.log().matches("the line is gone").count() == count),
                "{}",
                daemon.log()
            );
            std::fs::remove_file(&name).unwrap();
            pty = Pty::open().unwrap();
            symlink(pty.path(), &name).unwrap();
            // The daemon runs as nobody, who may not open it; the helper does.
            assert!(
                within(5.0, || daemon.log().matches("the line is back").count() == count),
                "{}",
                daemon.log()
            );
        }
        // Requests for keys use the new line.
        let mut room = [0; 256];
        assert!(within(5.0, || pty.read(&mut room).is_ok_and(|octets| octets > 0)), "{}", daemon.log());
        assert_eq!(daemon.end("TERM"), Some(0));
    });
}

#[test]
fn a_tunnel_runs_in_an_emulated_link_without_a_name() {
    in_a_world("line::a_tunnel_runs_in_an_emulated_link_without_a_name", || {
        let sites = Sites::new(0);
        let (thinair, key) = (thinair(), &sites.key);
        let inside = format!(
            "{thinair} tunnel run udp://10.9.0.2:7000 --key {key} --address 10.8.0.1/30 2>/run/test/in.log & sleep 1; \
             ip -brief link; kill %1; wait"
        );
        let output = run(&format!("timeout 20 {thinair} link run --create --rate 1M -- bash -c '{inside}'"));
        let (out, log) =
            (String::from_utf8_lossy(&output.stdout), std::fs::read_to_string("/run/test/in.log"));
        assert!(out.contains("link0") && out.contains("thinair0"), "{out}\n{log:?}\n{output:?}");
    });
}
