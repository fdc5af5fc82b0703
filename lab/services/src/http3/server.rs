//! HTTP/3 server for the files of a folder.
//!
//! One thread. Memory that clients can claim is bounded by [`Http3ServerSettings::max_connections`], and by the streams and
//! windows of each; clients that are silent, take too long over a request, or do not read its response, are
//! disconnected.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use h3::server::RequestResolver;
use http::Method;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, Incoming, TokioRuntime, VarInt};
use rustls::version::TLS13;
use thinair_http::{self as lean, HttpLimits, HttpResponse, status};
use thinair_os::Signals;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::certificate::{IdentityError, provider};
use super::{ALPN, NO_ERROR, ServerIdentity, runtime, transport};
use crate::http::ServedFolder;
use thinair_services::wait::{Wait, Woken};

/// Time that clients have to receive the close at the server's end.
const END: Duration = Duration::from_millis(200);

/// Time limit of the wait for a connection's next request, and for a request's headers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time limit for a client to accept one piece of a response, and for its acknowledgment.
const READING: Duration = Duration::from_secs(60);
const PIECE: usize = 16_384;

/// Configuration of a server.
#[derive(Debug)]
pub struct Http3ServerSettings {
    /// Address to listen at. Port 0: any free port.
    pub listen: SocketAddr,
    /// Certificate and key.
    pub identity: ServerIdentity,
    /// Folder whose files are served.
    pub folder: PathBuf,
    /// Limits on the memory that clients can claim per connection: octets of headers, streams; `body`: maximum size of
    /// a file, in octets.
    pub limits: HttpLimits,
    /// Maximum number of connections; one more is refused.
    pub max_connections: usize,
}

/// Reason that a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Invalid identity.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The system rejects an operation.
    #[error(transparent)]
    System(#[from] thinair_os::Error),
}

impl From<rustls::Error> for ServerError {
    fn from(why: rustls::Error) -> Self {
        Self::Identity(why.into())
    }
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Http3ServerStatistics {
    /// Complete requests.
    pub requests: u64,
    /// Responses of class 2.
    pub successes: u64,
    /// Attempted connections.
    pub connections: u64,
    /// Connections refused because there were too many, which `connections` includes.
    pub refused: u64,
}

/// State that all connections share.
#[derive(Debug)]
struct Http3ServerState {
    site: ServedFolder,
    limits: HttpLimits,
    requests: AtomicU64,
    successes: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
}

/// Server. [`run`](Self::run) serves until the process receives a signal.
#[derive(Debug)]
pub struct Http3Server {
    signals: Signals,
    runtime: Runtime,
    endpoint: Endpoint,
    address: SocketAddr,
    max_connections: usize,
    shared: Arc<Http3ServerState>,
}

impl Http3Server {
    /// Listens. **Call it before any other thread starts:** it blocks signals.
    ///
    /// # Errors
    /// The address does not exist here or is in use, the folder cannot be read, or certificate and key do not match.
    pub fn open(settings: Http3ServerSettings) -> Result<Self, ServerError> {
        let Http3ServerSettings { listen, identity, folder, limits, max_connections } = settings;
        let signals = Signals::take()?;
        let site = ServedFolder::open(&folder, limits.body)?;
        let failed = |why| thinair_os::Error::new("listen to UDP", why);
        let config = config(identity, limits)?;
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let runtime = runtime()?;
        let entered = runtime.enter();
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime));
        drop(entered);
        let none = AtomicU64::default;
        let shared = Http3ServerState {
            site,
            limits,
            requests: none(),
            successes: none(),
            connections: none(),
            refused: none(),
        };
        Ok(Self {
            signals,
            runtime,
            endpoint: endpoint.map_err(failed)?,
            address,
            max_connections,
            shared: Arc::new(shared),
        })
    }

    /// Address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until a signal, then closes all open connections. Returns its counters.
    ///
    /// # Errors
    /// The system cannot wait any more.
    pub fn run(self) -> Result<Http3ServerStatistics, thinair_os::Error> {
        let Self { signals, runtime, endpoint, max_connections, shared, .. } = self;
        let mut waiting = Wait::new(Some(&signals), None)?;
        let (ended, has_ended) = mpsc::channel();
        let (serving, done) = (endpoint.clone(), shared.clone());
        let woken = waiting.elsewhere(move || {
            runtime.block_on(async {
                while let Some(incoming) = serving.accept().await {
                    done.connections.fetch_add(1, Ordering::Relaxed);
                    if serving.open_connections() >= max_connections.max(1) {
                        done.refused.fetch_add(1, Ordering::Relaxed);
                        incoming.refuse();
                    } else {
                        tokio::spawn(serve(incoming, done.clone()));
                    }
                }
                let _ = timeout(END, serving.wait_idle()).await;
            });
            // An error means that the receiver has already ended.
            let _ = ended.send(());
        })?;
        if woken == Err(Woken::Interrupted) {
            endpoint.close(NO_ERROR, b"");
            let _ = has_ended.recv_timeout(END * 2);
        }
        let read = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Ok(Http3ServerStatistics {
            requests: read(&shared.requests),
            successes: read(&shared.successes),
            connections: read(&shared.connections),
            refused: read(&shared.refused),
        })
    }
}

/// TLS 1.3, with one ticket per session, and early data: a replayed request (RFC 8470) gets a file that the attacker
/// could request anyway.
fn config(identity: ServerIdentity, limits: HttpLimits) -> Result<quinn::ServerConfig, ServerError> {
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // QUIC allows this value or zero. RFC 9001, section 4.6.1.
    tls.max_early_data_size = u32::MAX;
    tls.send_tls13_tickets = 1;
    let quic = QuicServerConfig::try_from(tls)
        .map_err(|why| rustls::Error::General(format!("a cipher of QUIC is missing: {why}")))?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(quic));
    let mut transport = transport();
    if let Some(transport) = Arc::get_mut(&mut transport) {
        transport.max_concurrent_bidi_streams(VarInt::from_u32(limits.streams));
    }
    config.transport_config(transport);
    // A change of address is an error on these links.
    config.migration(false);
    Ok(config)
}

async fn serve(incoming: Incoming, shared: Arc<Http3ServerState>) {
    let Ok(connecting) = incoming.accept() else { return };
    // Responds as soon as there are requests, before the handshake is confirmed: clients are not authenticated.
    let connection = match connecting.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => match connecting.await {
            Ok(connection) => connection,
            Err(_) => return,
        },
    };
    let built = h3::server::builder()
        .send_grease(false)
        .max_field_section_size(shared.limits.head as u64)
        .build(h3_quinn::Connection::new(connection))
        .await;
    let Ok(mut connection) = built else { return };
    // One reference per request in progress, and one more.
    let answers = Arc::new(());
    loop {
        match timeout(PATIENCE, connection.accept()).await {
            Ok(Ok(Some(request))) => {
                let (shared, answers) = (shared.clone(), answers.clone());
                tokio::spawn(async move {
                    let _ = answer(request, &shared).await;
                    drop(answers);
                });
            }
            Err(_) if Arc::strong_count(&answers) > 1 => {}
            _ => return,
        }
    }
}

/// Answers one request; `None` if the client is gone or too slow.
async fn answer(
    request: RequestResolver<h3_quinn::Connection, Bytes>,
    shared: &Http3ServerState,
) -> Option<()> {
    let (request, mut stream) = timeout(PATIENCE, request.resolve_request()).await.ok()?.ok()?;
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let target = request.uri().path_and_query().map_or("", |target| target.as_str()).to_owned();
    let respond = |method| shared.site.respond(&lean::HttpRequest { stream: 0, method, target });
    let HttpResponse { status, body } = match *request.method() {
        Method::GET => respond(lean::Method::Get),
        Method::HEAD => HttpResponse { body: Vec::new(), ..respond(lean::Method::Head) },
        _ => HttpResponse::empty(status::METHOD_NOT_ALLOWED),
    };
    shared.successes.fetch_add(u64::from((200..300).contains(&status)), Ordering::Relaxed);
    let head = http::Response::builder().status(status).body(()).ok()?;
    stream.send_response(head).await.ok()?;
    let mut body = Bytes::from(body);
    while !body.is_empty() {
        let piece = body.split_to(body.len().min(PIECE));
        timeout(READING, stream.send_data(piece)).await.ok()?.ok()?;
    }
    stream.finish().await.ok()
}
