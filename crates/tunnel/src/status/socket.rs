//! Status socket: each client receives one JSON object, followed by the end of the stream. Nothing is read
//! from clients.
//!
//! The server never blocks, so that the event loop of the daemon can run it: wait for [`StatusSocket::as_fd`]
//! to be readable, then call [`StatusSocket::accept_and_answer`]. Members of the file's group may connect
//! (mode 0660).

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Clock};

use thinair_wire::time::Instant;

use super::{SCHEMA, Status};

/// Maximum number of clients with an incomplete answer. Further ones are disconnected.
const MOST_CLIENTS: usize = 8;

/// Maximum time for a client to read its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum time that [`ask`] waits for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// Maximum size of a status in octets.
const LONGEST: usize = 16 << 20;

/// Server of the status. **The file is removed when this value is dropped**, if it is still the one created
/// here.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file.
    file: (u64, u64),
    clients: Vec<StatusClient>,
}

/// A client that has not read all of its answer.
#[derive(Debug)]
struct StatusClient {
    stream: UnixStream,
    answer: Vec<u8>,
    written: usize,
    until: Instant,
}

/// Reason why the socket cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon answers there.
    #[error("{}: another daemon is answering here; stop it, or choose another socket", .0.display())]
    InUse(PathBuf),
    /// The path exists and is not a socket.
    #[error("{}: the file exists and is not a socket; choose another path", .0.display())]
    NotASocket(PathBuf),
    /// A system call failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

/// Reason why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No daemon listens.
    #[error("{}: no daemon is running here (`thinair tunnel run` starts one)", .0.display())]
    NoDaemon(PathBuf),
    /// Permission denied.
    #[error("{}: permission denied; allowed are root, the user of the daemon and members of its group", .0.display())]
    NotAllowed(PathBuf),
    /// No answer in time.
    #[error("{}: no answer within {} s", .0.display(), ANSWERED_WITHIN.as_secs())]
    Late(PathBuf),
    /// Disconnected without an answer.
    #[error("{}: the daemon has too many clients; try again", .0.display())]
    Busy(PathBuf),
    /// The answer is not a status.
    #[error("{}: the answer is not a status: {words}", path.display())]
    NotAStatus {
        /// Path of the socket.
        path: PathBuf,
        /// Error in the answer.
        words: String,
    },
    /// Another error of the system.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

impl StatusSocket {
    /// Listens at this path. Replaces a socket without a listener, but not one in use.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let io = |error| BindError::Io { path: path.to_owned(), error };
        // The mode must be set before anybody can connect: the file receives its final name last.
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(format!(".{}", std::process::id()));
        let unfinished = PathBuf::from(unfinished);
        let _ = fs::remove_file(&unfinished);
        let listener = UnixListener::bind(&unfinished).map_err(io)?;
        let named = Self::give_name(&listener, &unfinished, path);
        let _ = fs::remove_file(&unfinished);
        let file = named?;
        Ok(Self { listener, path: path.to_owned(), file, clients: Vec::new() })
    }

    fn give_name(listener: &UnixListener, unfinished: &Path, path: &Path) -> Result<(u64, u64), BindError> {
        let io = |error| BindError::Io { path: path.to_owned(), error };
        listener.set_nonblocking(true).map_err(io)?;
        fs::set_permissions(unfinished, fs::Permissions::from_mode(0o660)).map_err(io)?;
        // In contrast to renaming, linking does not replace a file that another daemon has created meanwhile.
        if let Err(error) = fs::hard_link(unfinished, path) {
            if error.kind() != ErrorKind::AlreadyExists {
                return Err(io(error));
            }
            remove_if_stale(path)?;
            fs::hard_link(unfinished, path).map_err(io)?;
        }
        let meta = fs::symlink_metadata(path).map_err(io)?;
        Ok((meta.dev(), meta.ino()))
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the owner of the file to the user and group to which the daemon changes.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<()> {
        std::os::unix::fs::lchown(&self.path, Some(user), Some(group))
    }

    /// Answers all waiting clients, as far as they read. Calls `status` once if there is a new client.
    pub fn accept_and_answer(&mut self, now: Instant, status: impl FnOnce() -> Status) {
        self.go_on(now);
        let mut status = Some(status);
        let mut answer = Vec::new();
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() >= MOST_CLIENTS || stream.set_nonblocking(true).is_err() {
                continue;
            }
            if let Some(status) = status.take() {
                answer = serde_json::to_vec(&status()).unwrap_or_default();
                answer.push(b'\n');
            }
            let mut client =
                StatusClient { stream, answer: answer.clone(), written: 0, until: now + PATIENCE };
            if client.write() {
                self.clients.push(client);
            }
        }
    }

    /// Continues incomplete answers, and disconnects clients that do not read. Call it periodically while
    /// [`is_busy`](Self::is_busy).
    pub fn go_on(&mut self, now: Instant) {
        self.clients.retain_mut(|client| now < client.until && client.write());
    }

    /// True if there are answers to [continue](Self::go_on).
    pub fn is_busy(&self) -> bool {
        !self.clients.is_empty()
    }
}

impl AsFd for StatusSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.file);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl StatusClient {
    /// Writes as much as possible without blocking. Returns true if there is more to write.
    fn write(&mut self) -> bool {
        while self.written < self.answer.len() {
            match self.stream.write(&self.answer[self.written..]) {
                Ok(0) => return false,
                Ok(octets) => self.written += octets,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        false
    }
}

/// Makes room for a new socket, if no daemon listens at the existing one.
fn remove_if_stale(path: &Path) -> Result<(), BindError> {
    let io = |error| BindError::Io { path: path.to_owned(), error };
    let meta = fs::symlink_metadata(path).map_err(io)?;
    if !meta.file_type().is_socket() {
        return Err(BindError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(io),
        // A socket with a full queue is in use, too.
        Ok(_) => Err(BindError::InUse(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(BindError::InUse(path.to_owned())),
        Err(error) => Err(io(error)),
    }
}

/// Requests the status from the daemon at this path. Waits for at most 2 s.
pub fn ask(path: &Path) -> Result<Status, AskError> {
    ask_within(path, ANSWERED_WITHIN)
}

fn ask_within(path: &Path, limit: Duration) -> Result<Status, AskError> {
    let until = Clock::now() + limit;
    let mut stream = UnixStream::connect(path).map_err(|error| asked(path, error))?;
    let mut answer = Vec::new();
    let mut part = [0; 16 << 10];
    loop {
        let left = until.saturating_duration_since(Clock::now());
        if left.is_zero() {
            return Err(AskError::Late(path.to_owned()));
        }
        stream.set_read_timeout(Some(left)).map_err(|error| asked(path, error))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(octets) => answer.extend_from_slice(&part[..octets]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(asked(path, error)),
        }
        if answer.len() > LONGEST {
            return Err(not_a_status(path, "it does not end"));
        }
    }
    if answer.is_empty() {
        return Err(AskError::Busy(path.to_owned()));
    }
    understand(path, &answer)
}

fn understand(path: &Path, answer: &[u8]) -> Result<Status, AskError> {
    let json: serde_json::Value =
        serde_json::from_slice(answer).map_err(|error| not_a_status(path, error))?;
    match json.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(not_a_status(path, format!("its schema is {other:.60}, and not {SCHEMA}")));
        }
        None => return Err(not_a_status(path, "it has no schema")),
    }
    serde_json::from_value(json).map_err(|error| not_a_status(path, error))
}

fn not_a_status(path: &Path, words: impl ToString) -> AskError {
    AskError::NotAStatus { path: path.to_owned(), words: words.to_string() }
}

fn asked(path: &Path, error: io::Error) -> AskError {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::NoDaemon(path),
        ErrorKind::PermissionDenied => AskError::NotAllowed(path),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::Late(path),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => AskError::Busy(path),
        _ => AskError::Io { path, error },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::specimen;
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A path of its own for each test.
    struct SocketPath(PathBuf);

    impl SocketPath {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("thinair-status-{}-{number}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn path(&self) -> PathBuf {
            self.0.join("status.sock")
        }
    }

    impl Drop for SocketPath {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1000 * seconds)
    }

    /// Requests the status in another thread while the socket is served.
    fn asked_while_served(socket: &mut StatusSocket, status: &Status) -> Result<Status, AskError> {
        let path = socket.path().to_owned();
        let asking = std::thread::spawn(move || ask(&path));
        while !asking.is_finished() {
            socket.accept_and_answer(at(0), || status.clone());
            std::thread::sleep(Duration::from_millis(1));
        }
        asking.join().unwrap()
    }

    #[test]
    fn who_asks_gets_the_status() {
        let place = SocketPath::new();
        let mut socket = StatusSocket::bind(&place.path()).unwrap();
        assert_eq!(asked_while_served(&mut socket, &specimen()).unwrap(), specimen());
        assert_eq!(fs::metadata(place.path()).unwrap().permissions().mode() & 0o777, 0o660);
        assert!(!socket.is_busy());
    }

    #[test]
    fn a_status_longer_than_the_buffers_arrives_whole() {
        let place = SocketPath::new();
        let mut socket = StatusSocket::bind(&place.path()).unwrap();
        let mut status = specimen();
        status.peers = vec![status.peers[0].clone(); 2000];
        assert_eq!(asked_while_served(&mut socket, &status).unwrap(), status);
    }

    #[test]
    fn the_file_goes_with_the_socket() {
        let place = SocketPath::new();
        drop(StatusSocket::bind(&place.path()).unwrap());
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
        assert!(matches!(ask(&place.path()), Err(AskError::NoDaemon(_))));
    }

    #[test]
    fn a_socket_in_use_is_not_taken_over() {
        let place = SocketPath::new();
        let _first = StatusSocket::bind(&place.path()).unwrap();
        assert!(matches!(StatusSocket::bind(&place.path()), Err(BindError::InUse(_))));
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 1);
    }

    #[test]
    fn a_socket_that_was_left_is_replaced() {
        let place = SocketPath::new();
        drop(UnixListener::bind(place.path()).unwrap());
        assert!(matches!(ask(&place.path()), Err(AskError::NoDaemon(_))));
        let mut socket = StatusSocket::bind(&place.path()).unwrap();
        assert!(asked_while_served(&mut socket, &specimen()).is_ok());
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let place = SocketPath::new();
        fs::write(place.path(), "mine").unwrap();
        assert!(matches!(StatusSocket::bind(&place.path()), Err(BindError::NotASocket(_))));
        assert_eq!(fs::read(place.path()).unwrap(), b"mine");
    }

    #[test]
    fn a_socket_that_took_the_name_is_left_alone() {
        let place = SocketPath::new();
        let socket = StatusSocket::bind(&place.path()).unwrap();
        fs::remove_file(place.path()).unwrap();
        let _other = UnixListener::bind(place.path()).unwrap();
        drop(socket);
        assert!(place.path().exists());
    }

    #[test]
    fn clients_that_do_not_read_are_few_and_not_for_long() {
        let place = SocketPath::new();
        let mut socket = StatusSocket::bind(&place.path()).unwrap();
        let mut status = specimen();
        status.peers = vec![status.peers[0].clone(); 2000];
        let idle: Vec<_> = (0..20).map(|_| UnixStream::connect(place.path()).unwrap()).collect();
        let mut made = 0;
        socket.accept_and_answer(at(0), || {
            made += 1;
            status
        });
        assert_eq!((socket.clients.len(), made), (MOST_CLIENTS, 1));
        assert!(matches!(ask_while_full(&mut socket), Err(AskError::Busy(_))));
        socket.go_on(at(4));
        assert!(socket.is_busy());
        socket.go_on(at(6));
        assert!(!socket.is_busy());
        drop(idle);
    }

    fn ask_while_full(socket: &mut StatusSocket) -> Result<Status, AskError> {
        asked_while_served(socket, &specimen())
    }

    #[test]
    fn a_daemon_that_says_nothing_is_not_waited_for() {
        let place = SocketPath::new();
        let _silent = UnixListener::bind(place.path()).unwrap();
        let asked = ask_within(&place.path(), Duration::from_millis(50));
        assert!(matches!(asked, Err(AskError::Late(_))), "{asked:?}");
    }

    #[test]
    fn what_is_no_status_is_named() {
        let words = |answer: &str| understand(Path::new("s"), answer.as_bytes()).unwrap_err().to_string();
        assert!(words("hello").contains("the answer is not a status"));
        assert!(words("{}").contains("it has no schema"));
        let later = words(r#"{"schema":"thinair.tunnel.status/2"}"#);
        assert!(later.contains("thinair.tunnel.status/2"), "{later}");
    }
}
