//! One object.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf as _;
use h3::error::{ConnectionError, StreamError};
use http::{Request, Uri};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint};
use rustls::version::TLS13;
use thinair_http::{Limits, Response};
use thinair_os::Signals;
use thinair_os::clock::now;

use super::certificate::provider;
use super::{ALPN, NO_ERROR, Trust, runtime, transport};
use crate::http::{FetchError as Common, Url};
use thinair_services::resolve::resolve;
use thinair_services::wait::{Wait, Woken};

/// How long a connection stays for the ticket of its session, which comes after the handshake: nobody tells when.
const TICKET: Duration = Duration::from_millis(500);

/// How long at most a connection that is closed waits for what is under way to it (RFC 9000, section 10.2). To a port that is gone the
/// system would answer by ICMP.
const END: Duration = Duration::from_secs(1);

/// What to fetch, and how.
#[derive(Debug)]
pub struct Task<'t> {
    /// What: [`Url::secure`].
    pub url: &'t Url,
    /// Whose certificates are taken.
    pub trust: &'t Trust,
    /// Fetch it once before, so that this is a new connection that resumes the session of that one, with the request in its first
    /// datagrams (0-RTT; RFC 9001, section 4.6).
    pub resumes: bool,
    /// What the server can make us hold: octets of headers and of the body.
    pub limits: Limits,
    /// How long there is for all of it.
    pub limit: Duration,
    /// Signals that end it.
    pub signals: Option<&'t Signals>,
}

/// Why there is no object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// What every way to fetch can end with: no address, no time, a signal, no room in the system.
    #[error(transparent)]
    Common(#[from] Common),
    /// The URL cannot be asked for.
    #[error("{0}")]
    Target(#[from] http::Error),
    /// There can be no connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] quinn::ConnectError),
    /// The connection has failed, or was never there.
    #[error("the connection has failed: {0}")]
    Connection(#[from] quinn::ConnectionError),
    /// HTTP/3 was not spoken.
    #[error("the connection has failed: {0}")]
    Protocol(#[from] ConnectionError),
    /// The request was not answered.
    #[error("the request has failed: {0}")]
    Stream(#[from] StreamError),
    /// The body is longer than the limit.
    #[error("the body has more than {0} octets")]
    BodyTooLarge(usize),
    /// There can be no TLS.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The system has no socket.
    #[error("a socket: {0}")]
    Socket(#[from] std::io::Error),
}

/// What it took. Times are since the connection was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The address of the latest attempt.
    pub address: Option<SocketAddr>,
    /// Until the handshake was over; nothing if the request went before.
    pub connected: Option<Duration>,
    /// Until the headers of the response were there.
    pub first: Option<Duration>,
    /// Until the last octet of the object was there.
    pub total: Duration,
    /// Octets of the datagrams that were sent.
    pub sent: u64,
    /// Octets of those that came.
    pub received: u64,
    /// QUIC packets that were taken for lost.
    pub lost: u64,
}

/// What became of it, and what it took.
#[derive(Debug)]
pub struct Outcome {
    /// The response, whatever its status.
    pub result: Result<Response, FetchError>,
    /// What it took.
    pub report: Report,
}

/// Fetches it. The addresses of a host are tried in their order, the next one if there is no connection.
pub fn fetch(task: &Task<'_>) -> Outcome {
    let mut report = Report::default();
    let result = try_all(task, &mut report);
    Outcome { result, report }
}

fn try_all(task: &Task<'_>, report: &mut Report) -> Result<Response, FetchError> {
    let mut waiting = Wait::new(task.signals, Some(now() + task.limit)).map_err(Common::from)?;
    let addresses = resolve(&task.url.host, task.url.port, &mut waiting).map_err(Common::from)?;
    let config = config(task.trust)?;
    let last = addresses.len().saturating_sub(1);
    for (index, address) in addresses.into_iter().enumerate() {
        let client = Client {
            config: config.clone(),
            address,
            name: task.url.host.to_string().trim_matches(['[', ']']).to_owned(),
            uri: task.url.to_string().parse().map_err(http::Error::from)?,
            limits: task.limits,
        };
        let resumes = task.resumes;
        *report = Report { address: Some(address), ..Report::default() };
        // It ends by the limit in any case.
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

/// TLS 1.3 with these certificates, and what is remembered of sessions.
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

/// What a thread of its own does.
struct Client {
    config: quinn::ClientConfig,
    address: SocketAddr,
    name: String,
    uri: Uri,
    limits: Limits,
}

impl Client {
    fn run(self, resumes: bool) -> (Result<Response, FetchError>, Report) {
        let mut report = Report { address: Some(self.address), ..Report::default() };
        let result = match runtime() {
            Ok(runtime) => runtime.block_on(async {
                if resumes {
                    self.exchange(TICKET, &mut Report::default()).await?;
                }
                self.exchange(Duration::ZERO, &mut report).await
            }),
            Err(why) => Err(Common::System(why).into()),
        };
        (result, report)
    }

    /// A connection from a port of its own, and an exchange on it. It stays for so long when the exchange is over.
    async fn exchange(&self, stays: Duration, report: &mut Report) -> Result<Response, FetchError> {
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
            // The server may not want to know of the session: then nothing of it was read. RFC 9001, section 4.6.2.
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
        report: &mut Report,
    ) -> Result<Response, FetchError> {
        let (mut driver, mut requests) = h3::client::builder()
            .send_grease(false)
            .max_field_section_size(self.limits.head as u64)
            .build::<_, _, bytes::Bytes>(h3_quinn::Connection::new(connection.clone()))
            .await?;
        // It reads what the server says of the connection as a whole.
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
            Ok(Response { status: head.status().as_u16(), body })
        };
        let result = exchange.await;
        report.total = start.elapsed();
        driver.abort();
        result
    }
}
