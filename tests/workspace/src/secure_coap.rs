//! Programs of the tests of secure CoAP: servers, ours and others, and clients, each with a time limit.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Time limit of every process, in seconds.
pub const LIMIT: &str = "120";

/// Path of the command.
pub fn thinair() -> String {
    static COMMAND: OnceLock<String> = OnceLock::new();
    COMMAND.get_or_init(crate::command).clone()
}

/// Process with a time limit.
pub fn limited(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", LIMIT, program]).stdin(Stdio::null());
    command
}

/// Folder of the peers that `make test` installs.
fn peers() -> PathBuf {
    PathBuf::from(crate::text(&crate::metadata(), "target_directory")).join("coap-peers")
}

/// Folder with aiocoap; `None` and a message if it is not installed.
pub fn aiocoap() -> Option<PathBuf> {
    let python = std::env::var_os("THINAIR_PYTHON").map_or_else(|| peers().join("python"), PathBuf::from);
    if !python.join("installed").exists() {
        println!("skipped: aiocoap, because it is not installed (`make test` does that, with pip)");
        return None;
    }
    Some(python)
}

/// Program of `tests/workspace/peers` with aiocoap.
pub fn script(python: &Path, name: &str) -> Command {
    let mut command = limited("python3");
    command.arg("-s").arg(crate::root().join("tests/workspace/peers").join(name));
    command.env("PYTHONPATH", python).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Program of `tests/workspace/peers/californium`; `None` and a message if Californium is not installed.
pub fn californium(program: &str) -> Option<Command> {
    let folder = peers().join("californium");
    if !folder.join("installed").exists() {
        println!("skipped: Californium, because it is not installed (`make test` does that, with Maven)");
        return None;
    }
    let mut command = limited("java");
    command.args(["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp"]);
    command.arg(format!("{0}/*:{0}", folder.display())).arg(program);
    Some(command)
}

/// Server that is started with these arguments of `thinair coap serve`.
pub fn server(arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--signal", "KILL", LIMIT, &thinair(), "coap", "serve"]).args(arguments);
    command
}

/// Runs `thinair coap` with these arguments.
pub fn ask(arguments: &[&str]) -> Output {
    limited(&thinair()).arg("coap").args(arguments).output().unwrap()
}

/// Output of a process.
pub fn text(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// Returns the payload of the response to a request.
#[track_caller]
pub fn done(arguments: &[&str]) -> Vec<u8> {
    let done = ask(arguments);
    assert!(done.status.success(), "{arguments:?}: {}", text(&done));
    done.stdout
}

/// Returns the messages of a request that fails.
#[track_caller]
pub fn failed(arguments: &[&str]) -> String {
    let done = ask(arguments);
    assert_eq!(done.status.code(), Some(1), "{arguments:?}: {}", text(&done));
    assert!(done.stdout.is_empty());
    text(&done)
}

/// A body of that many octets, which repeats itself after 251.
pub fn body(octets: usize) -> Vec<u8> {
    (0..octets).map(|number| (number * number % 251) as u8).collect()
}

/// Running server at 127.0.0.1.
pub struct Server {
    child: Child,
    scheme: &'static str,
    pub port: u16,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a server of ours, and waits for its port.
    pub fn start(scheme: &'static str, command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let mut port = None;
        while port.is_none() {
            let line =
                lines.next().unwrap_or_else(|| panic!("it does not start: {}", log.lock().unwrap())).unwrap();
            let uri = line.strip_prefix("serving ").and_then(|uris| uris.split(", ").next());
            port = uri.and_then(|uri| uri.rsplit(':').next()?.parse().ok());
            log.lock().unwrap().push_str(&line);
        }
        let copy = log.clone();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| copy.lock().unwrap().push_str(&line));
        });
        Self { child, scheme, port: port.unwrap(), log }
    }

    /// A server that was started for this port.
    pub fn started(scheme: &'static str, child: Child, port: u16) -> Self {
        Self { child, scheme, port, log: Arc::default() }
    }

    /// Returns the process of a server of ours.
    pub fn process(&self) -> u32 {
        // The child of `timeout`.
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        fs::read_to_string(children).unwrap().trim().parse().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub fn uri(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address())
    }

    /// Returns the messages so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a message.
    #[track_caller]
    pub fn logs(&self, message: &str) {
        let until = Instant::now() + Duration::from_secs(30);
        while !self.log().contains(message) {
            assert!(Instant::now() < until, "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    /// By SIGKILL, and so without a word to its clients and folders.
    fn drop(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let mut has_child = false;
        for child in fs::read_to_string(children).unwrap_or_default().split_whitespace() {
            has_child = true;
            let _ = Command::new("kill").args(["-9", child]).status();
        }
        // `timeout` ends behind its child, which then has no lock any more.
        if !has_child {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
