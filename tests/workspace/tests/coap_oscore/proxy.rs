//! Proxies between client and server: they see what RFC 8613 lets them see, and forward the rest as it is.

use super::*;

/// Names of libcoap's server, which is a proxy, too.
const LIBCOAP: [&str; 3] = ["coap-server-openssl", "coap-server-gnutls", "coap-server-notls"];

#[test]
fn libcoaps_proxy_forwards_what_it_cannot_read() {
    let there = LIBCOAP.into_iter().find(|program| Command::new(program).arg("-?").output().is_ok());
    let Some(program) = there else {
        return println!("skipped: libcoap, because there is no {} (Debian: libcoap3-bin)", LIBCOAP[0]);
    };
    let bench = Bench::new();
    let server = bench.serve(&[]);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = limited(program);
    // A direct connection to each server, except the one with this name, which is the proxy itself.
    command.args(["-A", "127.0.0.1", "-p", &port.to_string(), "-P", ",proxy", "-v", "8"]);
    let log = bench.path("proxy.log");
    command
        .stdout(fs::File::create(&log).unwrap())
        .stderr(fs::File::create(bench.path("proxy.err")).unwrap());
    let proxy = Server::started("coap", command.spawn().unwrap(), port);
    let (own, uri) = (server.port.to_string(), proxy.uri("/body.bin"));
    let to = ["--option", "Proxy-Scheme=coap", "--option", "Uri-Host=127.0.0.1"];
    let port = format!("Uri-Port={own}");
    let through = |arguments: &[&str]| bench.done(&[arguments, &to, &["--option", &port]].concat());
    let file = bench.path("body");
    fs::write(&file, body(3_000)).unwrap();
    through(&["put", &uri, "--file", &file]);
    assert_eq!(through(&["get", &uri]), body(3_000));
    assert_eq!(fs::read(bench.path("root") + "/body.bin").unwrap(), body(3_000));
    let seen = String::from_utf8(through(&["observe", &proxy.uri("/time"), "--count", "2"])).unwrap();
    assert_eq!(seen.matches("UTC").count(), 2);
    drop(proxy);
    let seen = fs::read_to_string(log).unwrap() + &fs::read_to_string(bench.path("proxy.err")).unwrap();
    // Outer codes, destination and observation: neither methods nor paths.
    assert!(
        seen.contains("c:POST") && seen.contains("c:FETCH") && seen.contains("Uri-Host:127.0.0.1"),
        "{seen}"
    );
    for hidden in ["body.bin", "time", "Uri-Path", "c:GET", "c:PUT", "c:2.01", "Block"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
}
