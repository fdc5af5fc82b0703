//! `thinair-lab serve` with clients of other implementations, and `thinair-lab fetch` with their servers: curl and
//! Python's server by HTTP, the `spdy` of npm by SPDY/3.1, aioquic by HTTP/3, libcoap by CoAP.
//!
//! All on loopback, at free ports. Where one of the others is missing, the test prints the skipped part. No process
//! outlives its test.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Time limit of a command, in seconds.
const LIMIT: &str = "90";

/// Path of the command. The environment may name an existing build.
fn thinair() -> &'static str {
    static COMMAND: OnceLock<String> = OnceLock::new();
    COMMAND.get_or_init(thinair_tests::laboratory)
}

/// Larger than windows and buffers, without repetition.
fn large() -> Vec<u8> {
    (0..1_u32 << 16).flat_map(|number| number.wrapping_mul(0x9E37_79B1).to_be_bytes()).collect()
}

/// Folder with objects, removed with the test.
struct ObjectFolder(PathBuf);

impl ObjectFolder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("thinair-http-peers-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("10"), "0123456789").unwrap();
        fs::write(folder.join("large"), large()).unwrap();
        Self(folder)
    }
}

impl Drop for ObjectFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Our server, and its port.
fn serve(service: &str, folder: &ObjectFolder, options: &[&str]) -> (Running, u16) {
    let mut command = Command::new(thinair());
    command.args(["serve", "--service", service, "--bind", "0"]).args(options).arg(&folder.0);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let port = port(child.stderr.take().unwrap());
    (Running(child), port)
}

/// Port at the end of the first line.
fn port(from: impl std::io::Read) -> u16 {
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line).unwrap();
    let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
    port.unwrap_or_else(|| panic!("it does not start: {line}"))
}

/// Runs a command with a time limit.
fn run(command: &[&str]) -> Output {
    let mut timeout = Command::new("timeout");
    timeout
        .args(["--signal", "KILL", LIMIT])
        .args(command)
        .env("NODE_PATH", modules())
        .env("NODE_NO_WARNINGS", "1")
        .env("PYTHONPATH", python())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    timeout.stdin(Stdio::null()).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// True if a command is installed; otherwise prints the skipped part.
fn has(command: &str, package: &str) -> bool {
    let is_there =
        Command::new("sh").args(["-c", &format!("command -v {command}")]).output().unwrap().status.success();
    if !is_there {
        println!("skipped: there is no {command} (Debian: {package})");
    }
    is_there
}

/// Folder in which `make test` has installed modules for Node.
fn modules() -> PathBuf {
    let target = thinair_tests::text(&thinair_tests::metadata(), "target_directory");
    Path::new(&target).join("http-peers/node/node_modules")
}

fn has_spdy() -> bool {
    let is_there = has("node", "nodejs") && modules().join("spdy").is_dir();
    if !is_there {
        println!("skipped: SPDY of others, which `make test` has npm install");
    }
    is_there
}

/// Folder in which `make test` has installed packages of Python.
fn python() -> PathBuf {
    let target = thinair_tests::text(&thinair_tests::metadata(), "target_directory");
    Path::new(&target).join("coap-peers/python")
}

fn has_aioquic() -> bool {
    let is_there = has("python3", "python3") && python().join("aioquic").is_dir();
    if !is_there {
        println!("skipped: HTTP/3 of others, which `make test` has pip install");
    }
    is_there
}

fn script(name: &str) -> String {
    thinair_tests::root().join("tests/workspace/peers").join(name).to_str().unwrap().to_owned()
}

/// Report of our client on an object, and its octets.
fn fetch(service: &str, url: &str, options: &[&str]) -> (Value, Vec<u8>) {
    let output = run(&[&[thinair(), "fetch", "--service", service, url, "--json"], options].concat());
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let plain = run(&[&[thinair(), "fetch", "--service", service, url], options].concat());
    (report, plain.stdout)
}

#[test]
fn curl_fetches_from_our_server_in_both_forms() {
    if !has("curl", "curl") {
        return;
    }
    let folder = ObjectFolder::new("curl");
    for (service, version) in [("http", "1.1"), ("iot-http", "1.0")] {
        let (_server, port) = serve(service, &folder, &[]);
        let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
        let report = " %{http_code} %{num_connects}\n";
        for options in [&[][..], &["--http1.0"], &["--tcp-fastopen"]] {
            let done = run(&[&["curl", "-sS", "-w", report, "-o", "-", &url("/10")], options].concat());
            assert_eq!(text(&done.stdout), "0123456789 200 1\n", "{}", text(&done.stderr));
        }
        let done = run(&["curl", "-sS", &url("/large")]);
        assert!(done.stdout == large(), "{} octets, {}", done.stdout.len(), text(&done.stderr));
        for (arguments, status) in
            [(vec!["--path-as-is", "/../secret"], 404), (vec!["-X", "DELETE", "/10"], 405)]
        {
            let (path, options) = arguments.split_last().unwrap();
            let path = url(path);
            let done = run(&[&["curl", "-sS", "-w", "%{http_code}", &path], options].concat());
            assert_eq!(text(&done.stdout), status.to_string(), "{}", text(&done.stderr));
        }
        let head = text(&run(&["curl", "-sS", "--head", &url("/10")]).stdout);
        assert!(head.starts_with(&format!("HTTP/{version} 200 OK\r\n")), "{head}");
        // A second object uses the same connection, or another one where only the end of the connection ends the
        // object.
        let two = run(&["curl", "-sS", "-w", " %{num_connects};", &url("/10"), &url("/10")]);
        let again = if service == "http" { 0 } else { 1 };
        assert_eq!(text(&two.stdout), format!("0123456789 1;0123456789 {again};"), "{}", text(&two.stderr));
        // A request with a body is rejected, and curl receives the response.
        let post = run(&["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-d", "a=b", &url("/10")]);
        assert_eq!(text(&post.stdout), "405", "{}", text(&post.stderr));
    }
}

/// Python's server sends HTTP/1.0, with fields.
#[test]
fn we_fetch_from_a_server_of_others() {
    if !has("python3", "python3") {
        return;
    }
    let folder = ObjectFolder::new("python");
    let mut command = Command::new("python3");
    command.args(["-u", "-c"]).arg(
        "import http.server, os, sys\n\
         os.chdir(sys.argv[1])\n\
         server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
         print(server.server_port)\n\
         server.serve_forever()",
    );
    let mut child = command
        .arg(&folder.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let port = port(child.stdout.take().unwrap());
    let _server = Running(child);
    for service in ["http", "iot-http"] {
        for (path, object) in [("10", b"0123456789".to_vec()), ("large", large())] {
            let (report, octets) = fetch(service, &format!("http://127.0.0.1:{port}/{path}"), &[]);
            assert_eq!(
                (&report["status"], &report["octets"]),
                (&200.into(), &object.len().into()),
                "{report}"
            );
            assert!(octets == object, "{service}: {} octets", octets.len());
        }
        let (report, _) = fetch(service, &format!("http://127.0.0.1:{port}/missing"), &[]);
        assert_eq!(report["status"], 404, "{report}");
    }
}

/// Lines of a peer's client that fetches four of our objects: path, status, octets, SHA-256.
fn four(folder: &ObjectFolder) -> [String; 4] {
    let sums = |path: &str| {
        let sum = run(&["sha256sum", folder.0.join(path).to_str().unwrap()]);
        text(&sum.stdout).split(' ').next().unwrap().to_owned()
    };
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    [
        format!("/10 200 10 {}", sums("10")),
        format!("/large 200 262144 {}", sums("large")),
        format!("/missing 404 0 {nothing}"),
        format!("/10 200 10 {}", sums("10")),
    ]
}

#[test]
fn aioquic_fetches_from_our_server() {
    if !has_aioquic() {
        return;
    }
    let folder = ObjectFolder::new("http3");
    let certificate = folder.0.join("server.pem").to_str().unwrap().to_owned();
    let (_server, port) = serve("http3", &folder, &["--save-certificate", &certificate]);
    let paths = ["/10", "/large", "/missing", "/10"];
    let client = ["python3", "-s", &script("http3.py"), "client", &port.to_string(), &certificate];
    let done = run(&[&client[..], &paths].concat());
    assert_eq!(text(&done.stdout).lines().collect::<Vec<_>>(), four(&folder), "{}", text(&done.stderr));
}

#[test]
fn we_fetch_from_aioquic() {
    if !has_aioquic() {
        return;
    }
    let folder = ObjectFolder::new("aioquic");
    let mut command = Command::new("python3");
    command.args(["-s", &script("http3.py"), "server"]).arg(&folder.0).env("PYTHONPATH", python());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let port = port(child.stdout.take().unwrap());
    let _server = Running(child);
    let certificate = folder.0.join("aioquic.pem").to_str().unwrap().to_owned();
    let trusting = ["--trust-certificate", &certificate];
    for octets in [10, 0, 1_000, 300_000] {
        let (report, body) = fetch("http3", &format!("https://127.0.0.1:{port}/{octets}"), &trusting);
        assert_eq!((&report["status"], &report["octets"]), (&200.into(), &octets.into()), "{report}");
        assert!(body == vec![b'x'; octets], "{} octets", body.len());
    }
    let (report, _) = fetch("http3", &format!("https://127.0.0.1:{port}/missing"), &trusting);
    assert_eq!(report["status"], 404, "{report}");
}

/// zlib reads our header blocks, which end with their last bit.
#[test]
fn spdy_of_npm_fetches_from_our_server() {
    if !has_spdy() {
        return;
    }
    let folder = ObjectFolder::new("spdy");
    for options in [&[][..], &["--keep", "1min"]] {
        let (_server, port) = serve("iot-spdy", &folder, options);
        let paths = ["/10", "/large", "/missing", "/10"];
        let done = run(&[&["node", &script("spdy_client.js"), &port.to_string()], &paths[..]].concat());
        assert_eq!(text(&done.stdout).lines().collect::<Vec<_>>(), four(&folder), "{}", text(&done.stderr));
    }
}

#[test]
fn we_fetch_from_the_spdy_of_npm() {
    if !has_spdy() {
        return;
    }
    let mut command = Command::new("node");
    command.arg(script("spdy_server.js")).env("NODE_PATH", modules()).env("NODE_NO_WARNINGS", "1");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let port = port(child.stdout.take().unwrap());
    let _server = Running(child);
    // The last one exceeds the client's windows several times.
    for octets in [10, 0, 1_000, 300_000] {
        let (report, body) = fetch("iot-spdy", &format!("http://127.0.0.1:{port}/{octets}"), &[]);
        assert_eq!((&report["status"], &report["octets"]), (&200.into(), &octets.into()), "{report}");
        assert!(body == vec![b'x'; octets], "{} octets", body.len());
    }
    let (report, _) = fetch("iot-spdy", &format!("http://127.0.0.1:{port}/missing"), &[]);
    assert_eq!(report["status"], 404, "{report}");
}

#[test]
fn libcoap_fetches_from_our_server() {
    if !has("coap-client-notls", "libcoap3-bin") {
        return;
    }
    let folder = ObjectFolder::new("libcoap");
    for (service, scheme) in [("coap", "coap"), ("coap-tcp", "coap+tcp")] {
        let (_server, port) = serve(service, &folder, &[]);
        for (path, object) in [("10", b"0123456789".to_vec()), ("large", large())] {
            let file = folder.0.join("fetched");
            let uri = format!("{scheme}://127.0.0.1:{port}/{path}");
            let done = run(&["coap-client-notls", "-B", "60", "-o", file.to_str().unwrap(), &uri]);
            assert!(fs::read(&file).is_ok_and(|octets| octets == object), "{uri}: {}", text(&done.stderr));
            fs::remove_file(file).unwrap();
        }
        let done = run(&["coap-client-notls", "-B", "60", &format!("{scheme}://127.0.0.1:{port}/missing")]);
        assert!((text(&done.stderr) + &text(&done.stdout)).contains("4.04"), "{done:?}");
    }
}

#[test]
fn we_fetch_from_libcoap() {
    if !has("coap-server-notls", "libcoap3-bin") {
        return;
    }
    // It cannot choose a free port itself: use one that was free a moment ago.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("coap-server-notls");
    command.args(["-A", "127.0.0.1", "-p", &port.to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _server = Running(child);
    for (service, scheme) in [("coap", "coap"), ("coap-tcp", "coap+tcp")] {
        let url = format!("{scheme}://127.0.0.1:{port}/");
        // It may not listen yet.
        let mut fetched = fetch(service, &url, &[]);
        for _ in 0..100 {
            if !fetched.0["status"].is_null() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            fetched = fetch(service, &url, &[]);
        }
        let (report, body) = fetched;
        assert_eq!(report["status"], 205, "{report}");
        assert!(text(&body).contains("libcoap"), "{}", text(&body));
    }
}
