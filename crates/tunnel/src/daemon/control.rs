//! The control socket of a tunnel: one line with a verb, one line of JSON in answer.
//!
//! Its file belongs to the user who started the tunnel, and has mode 0600, so that nobody else can connect.
//! The tunnel waits at most 200 ms for a client.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Name of the socket in the folder of the tunnel.
pub const CONTROL_SOCKET: &str = "control.sock";

/// Time for a client to send its line, and to read the answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// Time for the tunnel to answer; it includes lookups of host names.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// Length of the longest line, in octets.
const LONGEST: u64 = 64 << 10;

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Read the configuration again.
    Reload,
    /// End the tunnel.
    Stop,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Answer {
    /// True if the request succeeded.
    pub ok: bool,
    /// Changes made, or reasons why there are none, one sentence each.
    pub messages: Vec<String>,
}

/// The daemon's end of the socket.
#[derive(Debug)]
pub(super) struct ControlSocket {
    listener: UnixListener,
    /// Clients that wait for the answer.
    waiting: Vec<UnixStream>,
}

impl ControlSocket {
    /// Listens in the locked folder. An existing socket there is stale.
    pub(super) fn bind(folder: &Path) -> io::Result<Self> {
        let path = folder.join(CONTROL_SOCKET);
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, waiting: Vec::new() })
    }

    /// The next request of a client. The client waits for an [`answer`](Self::answer).
    pub(super) fn accept(&mut self) -> Option<Verb> {
        loop {
            let (stream, _) = self.listener.accept().ok()?;
            if let Ok(verb) = read(&stream) {
                self.waiting.push(stream);
                return Some(verb);
            }
        }
    }

    /// Answers all waiting clients.
    pub(super) fn answer(&mut self, answer: &Answer) {
        for mut client in self.waiting.drain(..) {
            let text = serde_json::to_string(answer).unwrap_or_default() + "\n";
            // Clients may leave without reading it.
            let _ = client.write_all(text.as_bytes());
        }
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn read(stream: &UnixStream) -> io::Result<Verb> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(serde_json::from_str(&line(stream)?)?)
}

fn line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    Ok(line)
}

/// Sends a request to the tunnel of this folder, and waits for its answer. A tunnel that ends may not answer.
///
/// # Errors
/// No tunnel is running there ([`NotFound`](io::ErrorKind::NotFound),
/// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused)), or the caller has no permission
/// ([`PermissionDenied`](io::ErrorKind::PermissionDenied)).
pub fn ask(folder: &Path, verb: Verb) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(folder.join(CONTROL_SOCKET))?;
    stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
    stream.write_all((serde_json::to_string(&verb)? + "\n").as_bytes())?;
    Ok(serde_json::from_str(&line(&stream)?)?)
}
