//! HTTP/3 client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf as _;
use h3::error::{ConnectionError, StreamError};
use http::{Request, Uri};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint};
use rustls::version::TLS13;
use thinair_http::{HttpLimits, HttpResponse};
use thinair_os::Signals;
use thinair_os::clock::now;

use super::certificate::provider;
use super::{ALPN, NO_ERROR, Trust, runtime, transport};
use crate::http::{FetchError as Common, Url};
use thinair_services::resolve::resolve;
use thinair_services::wait::{Wait, Woken};

/// Time that a connection stays open for the session's ticket, which follows the handshake at an unknown time.
const TICKET: Duration = Duration::from_millis(500);

/// Maximum time that a closed connection waits for datagrams in flight (RFC 9000, section 10.2). At a closed port the
/// system would answer them by ICMP.
const END: Duration = Duration::from_secs(1);

/// Object to fetch, and the options of the transfer.
#[derive(Debug)]
pub struct Http3Task<'t> {
    /// Object: [`Url::secure`].
    pub url: &'t Url,
    /// Trusted certificates.
    pub trust: &'t Trust,
    /// Fetches the object twice: the second connection resumes the session of the first, with the request in its first
    /// datagrams (0-RTT; RFC 9001, section 4.6).
    pub resumes: bool,
    /// Limits on the memory that the server can claim: octets of headers and of the body.
    pub limits: HttpLimits,
    /// Time limit of the whole transfer.
    pub limit: Duration,
    /// Signals that interrupt it.
    pub signals: Option<&'t Signals>,
}

/// Reason that there is no object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Errors of every protocol: no address, time limit, signal, no room in the system.
    #[error(transparent)]
    Common(#[from] Common),
    /// Invalid target in the URL.
    #[error("{0}")]
    Target(#[from] http::Error),
    /// The connection cannot be opened.
    #[error("cannot connect: {0}")]
    Connect(#[from] quinn::ConnectError),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(#[from] quinn::ConnectionError),
    /// The server violated HTTP/3.
    #[error("the connection failed: {0}")]
    Protocol(#[from] ConnectionError),
    /// The request was not answered.
    #[error("the request failed: {0}")]
    Stream(#[from] StreamError),
    /// The body exceeds this limit, in octets.
    #[error("the body exceeds the limit of {0} octets")]
    BodyTooLarge(usize),
    /// TLS cannot be configured.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The system has no socket.
    #[error("cannot use a socket: {0}")]
    Socket(#[from] std::io::Error),
}

/// Costs of a transfer. Times begin with the attempt to connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http3Report {
    /// Address of the latest attempt.
    pub address: Option<SocketAddr>,
    /// Time until the handshake was complete; `None` if the request was sent before.
    pub connected: Option<Duration>,
    /// Time until the headers of the response.
    pub first: Option<Duration>,
    /// Time until the last octet of the object.
    pub total: Duration,
    /// Octets of the datagrams sent.
    pub sent: u64,
    /// Octets of the datagrams received.
    pub received: u64,
    /// QUIC packets declared lost.
    pub lost: u64,
}

/// Result of a transfer, and its costs.
#[derive(Debug)]
pub struct Http3Outcome {
    /// Response, with any status.
    pub result: Result<HttpResponse, FetchError>,
    /// Costs.
    pub report: Http3Report,
}

/// Fetches an object. Tries the addresses of the host in their order, the next one if there is no connection.
pub fn fetch(task: &Http3Task<'_>) -> Http3Outcome {
    let mut report = Http3Report::default();
    let result = try_all(task, &mut report);
    Http3Outcome { result, report }
}

fn try_all(task: &Http3Task<'_>, report: &mut Http3Report) -> Result<HttpResponse, FetchError> {
    let mut waiting = Wait::new(task.signals, Some(now() + task.limit)).map_err(Common::from)?;
    let addresses = resolve(&task.url.host, task.url.port, &mut waiting).map_err(Common::from)?;
    let config = config(task.trust)?;
    let last = addresses.len().saturating_sub(1);
    for (index, address) in addresses.into_iter().enumerate() {
        let client = ClientThread {
            config: config.clone(),
            address,
            name: task.url.host.to_string().trim_matches(['[', ']']).to_owned(),
            uri: task.url.to_string().parse().map_err(http::Error::from)?,
            limits: task.limits,
        };
        let resumes = task.resumes;
        *report = Http3Report { address: Some(address), ..Http3Report::default() };
        // The time limit ends it in any case.
        let done = waiting.elsewhere(move || client.run(resumes)).map_err(Common::from)?;
        match done {
            Ok((Err(FetchError::Connection(_)), _)) if index < last => {}
            Ok((result, took)) => {
                *report = took;
                return result;
            }
            Err(Woken::Interrupted) => return Err(Common::Interrupted.into()),
            Err(Woken::TimeLimit | Woken::Look) => break,
        }
    }
    Err(Common::TimeLimit(task.limit).into())
}

/// TLS 1.3 with these trusted certificates, and a store of sessions.
fn config(trust: &Trust) -> Result<quinn::ClientConfig, FetchError> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(trust.0.clone())
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.enable_early_data = true;
    let quic = QuicClientConfig::try_from(tls)
        .map_err(|why| rustls::Error::General(format!("a cipher of QUIC is missing: {why}")))?;
    let mut config = quinn::ClientConfig::new(Arc::new(quic));
    config.transport_config(transport());
    Ok(config)
}

/// Client, on a thread of its own.
struct ClientThread {
    config: quinn::ClientConfig,
    address: SocketAddr,
    name: String,
    uri: Uri,
    limits: HttpLimits,
}

impl ClientThread {
    fn run(self, resumes: bool) -> (Result<HttpResponse, FetchError>, Http3Report) {
        let mut report = Http3Report { address: Some(self.address), ..Http3Report::default() };
        let result = match runtime() {
            Ok(runtime) => runtime.block_on(async {
                if resumes {
                    self.exchange(TICKET, &mut Http3Report::default()).await?;
                }
                self.exchange(Duration::ZERO, &mut report).await
            }),
            Err(why) => Err(Common::System(why).into()),
        };
        (result, report)
    }

    /// Opens a connection from a new port, and performs an exchange. The connection stays open for `stays` afterwards.
    async fn exchange(&self, stays: Duration, report: &mut Http3Report) -> Result<HttpResponse, FetchError> {
        let any = match self.address {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let endpoint = Endpoint::client(any)?;
        let start = Instant::now();
        let connecting = endpoint.connect_with(self.config.clone(), self.address, &self.name)?;
        let (connection, early) = match connecting.into_0rtt() {
            Ok((connection, accepted)) => (connection, Some(accepted)),
            Err(connecting) => (connecting.await?, None),
        };
        if early.is_none() {
            report.connected = Some(start.elapsed());
        }
        let mut result = self.ask(&connection, start, report).await;
        if let (Err(_), Some(accepted)) = (&result, early) {
            // If the server rejects the session, it has read none of the early data. RFC 9001, section 4.6.2.
            if connection.close_reason().is_none() && !accepted.await {
                report.connected = Some(start.elapsed());
                result = self.ask(&connection, start, report).await;
            }
        }
        tokio::time::sleep(stays).await;
        connection.close(NO_ERROR, b"");
        let stats = connection.stats();
        (report.sent, report.received) = (stats.udp_tx.bytes, stats.udp_rx.bytes);
        report.lost = stats.path.lost_packets;
        let _ = tokio::time::timeout(END, endpoint.wait_idle()).await;
        result
    }

    async fn ask(
        &self,
        connection: &Connection,
        start: Instant,
        report: &mut Http3Report,
    ) -> Result<HttpResponse, FetchError> {
        let (mut driver, mut requests) = h3::client::builder()
            .send_grease(false)
            .max_field_section_size(self.limits.head as u64)
            .build::<_, _, bytes::Bytes>(h3_quinn::Connection::new(connection.clone()))
            .await?;
        // Handles frames of the connection as a whole.
        let driver = tokio::spawn(async move { driver.wait_idle().await });
        let exchange = async {
            let mut stream = requests.send_request(Request::get(self.uri.clone()).body(())?).await?;
            stream.finish().await?;
            let head = stream.recv_response().await?;
            report.first = Some(start.elapsed());
            let mut body = Vec::new();
            while let Some(piece) = stream.recv_data().await? {
                if body.len() + piece.remaining() > self.limits.body {
                    return Err(FetchError::BodyTooLarge(self.limits.body));
                }
                let mut piece = piece;
                while piece.has_remaining() {
                    let octets = piece.chunk();
                    body.extend_from_slice(octets);
                    let len = octets.len();
                    piece.advance(len);
                }
            }
            Ok(HttpResponse { status: head.status().as_u16(), body })
        };
        let result = exchange.await;
        report.total = start.elapsed();
        driver.abort();
        result
    }
}
