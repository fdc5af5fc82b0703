//! Files of a folder.
//!
//! One thread. What others can make it hold is bounded: [`Settings::max_connections`], and the streams and windows of each; whoever
//! says nothing, takes too long over a request, or does not read its response, is closed.

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
use thinair_http::{self as lean, Limits, Response, status};
use thinair_os::Signals;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::certificate::{IdentityError, provider};
use super::{ALPN, Identity, NO_ERROR, runtime, transport};
use crate::http::Site;
use thinair_services::wait::{Wait, Woken};

/// How long connections have to hear that the server ends.
const END: Duration = Duration::from_millis(200);

/// How long a connection has for its next request, and a request for its headers.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a client has to read a piece of a response, and its octets.
const READING: Duration = Duration::from_secs(60);
const PIECE: usize = 16_384;

/// What a server does.
#[derive(Debug)]
pub struct Settings {
    /// Where it listens. Port 0: one that is free.
    pub listen: SocketAddr,
    /// Who it is.
    pub identity: Identity,
    /// The folder whose files are served.
    pub folder: PathBuf,
    /// What clients can make a connection hold: octets of headers, streams; `body`: octets of a file.
    pub limits: Limits,
    /// Connections at the same time; one more is refused.
    pub max_connections: usize,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// It cannot be who it should be.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The system refuses something.
    #[error(transparent)]
    System(#[from] thinair_os::Error),
}

impl From<rustls::Error> for ServerError {
    fn from(why: rustls::Error) -> Self {
        Self::Identity(why.into())
    }
}

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that were complete.
    pub requests: u64,
    /// Responses of class 2.
    pub successes: u64,
    /// Connections that were asked for.
    pub connections: u64,
    /// Of them, those that were refused as there were too many.
    pub refused: u64,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    site: Site,
    limits: Limits,
    requests: AtomicU64,
    successes: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
}

/// A server. [`run`](Self::run) serves until the process is asked to end.
#[derive(Debug)]
pub struct Server {
    signals: Signals,
    runtime: Runtime,
    endpoint: Endpoint,
    address: SocketAddr,
    max_connections: usize,
    shared: Arc<Shared>,
}

impl Server {
    /// Listens. **Before any other thread is started:** signals are taken.
    ///
    /// # Errors
    /// There is no such address here, somebody else has it, the folder cannot be read, or certificate and key do not fit.
    pub fn open(settings: Settings) -> Result<Self, ServerError> {
        let Settings { listen, identity, folder, limits, max_connections } = settings;
        let signals = Signals::take()?;
        let site = Site::open(&folder, limits.body)?;
        let failed = |why| thinair_os::Error::new("listen to UDP", why);
        let config = config(identity, limits)?;
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let runtime = runtime()?;
        let entered = runtime.enter();
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime));
        drop(entered);
        let none = AtomicU64::default;
        let shared = Shared {
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

    /// Where it listens, with the port that it has got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until a signal asks it to end; connections that are open then are closed. What it has done.
    ///
    /// # Errors
    /// The system cannot wait any more.
    pub fn run(self) -> Result<Statistics, thinair_os::Error> {
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
            // Whoever does not listen any more has ended.
            let _ = ended.send(());
        })?;
        if woken == Err(Woken::Interrupted) {
            endpoint.close(NO_ERROR, b"");
            let _ = has_ended.recv_timeout(END * 2);
        }
        let read = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Ok(Statistics {
            requests: read(&shared.requests),
            successes: read(&shared.successes),
            connections: read(&shared.connections),
            refused: read(&shared.refused),
        })
    }
}

/// TLS 1.3, with one ticket for each session, and early data: a request that is sent again by somebody else (RFC 8470) gets a file
/// that he can ask for as well.
fn config(identity: Identity, limits: Limits) -> Result<quinn::ServerConfig, ServerError> {
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // All or nothing in QUIC. RFC 9001, section 4.6.1.
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
    // Whose address changes has lost its way on these links.
    config.migration(false);
    Ok(config)
}

async fn serve(incoming: Incoming, shared: Arc<Shared>) {
    let Ok(connecting) = incoming.accept() else { return };
    // Responses go as soon as there are requests, before the client has shown that it has the keys: it is not asked who it is.
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
    // As many as hold it are being answered, and one more.
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

/// Answers one request; nothing if the client is gone meanwhile, or too slow.
async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>, shared: &Shared) -> Option<()> {
    let (request, mut stream) = timeout(PATIENCE, request.resolve_request()).await.ok()?.ok()?;
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let target = request.uri().path_and_query().map_or("", |target| target.as_str()).to_owned();
    let respond = |method| shared.site.respond(&lean::Request { stream: 0, method, target });
    let Response { status, body } = match *request.method() {
        Method::GET => respond(lean::Method::Get),
        Method::HEAD => Response { body: Vec::new(), ..respond(lean::Method::Head) },
        _ => Response::empty(status::METHOD_NOT_ALLOWED),
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
