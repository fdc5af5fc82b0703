//! Server of a test, with its own folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_os::signals::{Ask, ask};

/// Path of the command. The environment may name an existing build.
pub(crate) fn thinair() -> String {
    static COMMAND: OnceLock<String> = OnceLock::new();
    COMMAND.get_or_init(thinair_tests::command).clone()
}

/// 1 MiB without repetition.
pub(crate) fn body() -> Vec<u8> {
    (0..1_u32 << 18).flat_map(|number| number.wrapping_mul(0x9E37_79B1).to_be_bytes()).collect()
}

/// Output of a process.
pub(crate) fn output(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// Running server.
pub(crate) struct Served {
    child: Child,
    folder: PathBuf,
    port: u16,
}

impl Served {
    /// Starts a server on 127.0.0.1.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::at("127.0.0.1:0", arguments)
    }

    /// Starts a server with a folder that is served, and a parent folder that is not, with a secret.
    pub(crate) fn at(listen: &str, arguments: &[&str]) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("thinair-serve-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("root")).unwrap();
        fs::write(folder.join("secret"), "secret").unwrap();
        let mut child = Command::new(thinair())
            .args(["coap", "serve", "--json", "--listen", listen, "--root"])
            .arg(folder.join("root"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        text.read_line(&mut line).unwrap();
        let uri = line.trim().strip_prefix("serving ").and_then(|uris| uris.split(", ").next());
        let port = uri.and_then(|uri| uri.rsplit(':').next()?.parse().ok());
        // Drains the output, so that the server never blocks.
        std::thread::spawn(move || std::io::copy(&mut text, &mut std::io::sink()));
        Self { child, folder, port: port.unwrap_or_else(|| panic!("it does not start: {line}")) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn uri(&self) -> String {
        format!("coap://{}", self.address())
    }

    pub(crate) fn tcp_uri(&self) -> String {
        format!("coap+tcp://{}", self.address())
    }

    /// Folder that is served.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Path of a file that is not served.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Resident memory in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(Path::new("/proc").join(self.child.id().to_string()).join("status"));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim_end_matches("kB").trim().parse().unwrap()
    }

    /// True if the server still answers, within a while.
    pub(crate) fn answers(&self) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let mut id = 0_u16;
        while Instant::now() < until {
            id = id.wrapping_add(1);
            let [high, low] = id.to_be_bytes();
            let request = [&[0x40, 1, high, low, 0xB4][..], b"time"].concat();
            socket.send_to(&request, self.address()).unwrap();
            let mut answer = [0; 100];
            // This may be a late response to an earlier request.
            if socket.recv(&mut answer).is_ok_and(|len| len > 4 && answer[..2] == [0x60, 0x45]) {
                return true;
            }
        }
        false
    }

    /// Connects to the server.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Asks the server to end.
    pub(crate) fn ask_to_end(&mut self) {
        ask(&mut self.child, Ask::Terminate);
    }

    /// Asks the server to end. Returns its counters.
    pub(crate) fn end(mut self) -> Value {
        self.ask_to_end();
        self.ended()
    }

    /// Returns its counters after it was asked to end. A second signal might end it without output.
    pub(crate) fn ended(mut self) -> Value {
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
