//! Opening of a server's sockets.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use thinair_coap::Endpoint;
use thinair_coap::uri::Scheme;
use thinair_os::udp::options::{bind_one_family, report_own_address};
use thinair_os::{EventLoop, Signals, tcp, udp};

use super::datagrams::Datagrams;
use super::event_loop::SIGNALS;
use super::rights::Guard;
use super::secure::SecureSessions;
use super::streams::ServerStreams;
use super::watches::Watches;
use super::{Listen, ResourceServer, Resources, ServerError, ServerSettings, ServerStatistics};

/// Receive buffer of datagrams in the system, in octets.
const RECEIVE_ROOM: usize = 1 << 20;

/// Octets written to a stream at a time.
const CHUNK: usize = 16_384;

impl ResourceServer {
    /// Opens a server that listens. **Must be called before any other thread starts:** signals are
    /// blocked.
    ///
    /// # Errors
    /// An address is not one of this machine, or is in use.
    pub fn open(settings: &ServerSettings, site: Resources) -> Result<Self, ServerError> {
        let signals = Signals::take()?;
        let events = EventLoop::new(Duration::ZERO)?;
        events.add(&signals, SIGNALS)?;
        let (mut sockets, mut listeners, mut uris) = (Vec::new(), Vec::new(), Vec::new());
        for listen in &settings.listen {
            match bind_free(listen) {
                Ok((address, socket, listener)) => {
                    uris.extend(
                        socket.is_some().then(|| format!("coap://{}", authority(address, Scheme::Coap))),
                    );
                    uris.extend(
                        listener
                            .is_some()
                            .then(|| format!("coap+tcp://{}", authority(address, Scheme::CoapTcp))),
                    );
                    sockets.extend(socket.map(|socket| (socket, false)));
                    listeners.extend(listener);
                }
                Err(why) if listen.optional && is_missing(&why) => {}
                Err(why) => return Err(why.into()),
            }
        }
        for &(address, optional) in settings.secure.iter().flat_map(|secure| &secure.listen) {
            match bind(&Listen { address, udp: true, tcp: false, optional }) {
                Ok((address, socket, _)) => {
                    uris.push(format!("coaps://{}", authority(address, Scheme::Coaps)));
                    sockets.extend(socket.map(|socket| (socket, true)));
                }
                Err(why) if optional && is_missing(&why) => {}
                Err(why) => return Err(why.into()),
            }
        }
        if sockets.is_empty() && listeners.is_empty() {
            return Err(ServerError::NoAddress);
        }
        // The random source is checked before the first request is served.
        getrandom::fill(&mut [0; 8]).map_err(ServerError::Random)?;
        let mut guard = Guard::default();
        let max_message = settings.endpoint.limits.max_message;
        let secure = settings.secure.as_ref().map(|secure| {
            guard.close();
            SecureSessions::new(&secure.clients, max_message, random())
        });
        Ok(Self {
            // Echo values, Message IDs and the keys of hash tables must be hard to guess.
            endpoint: Endpoint::new(settings.endpoint, random()),
            site,
            guard,
            secure,
            watches: Watches::default(),
            due: std::collections::BTreeMap::new(),
            dues: 0,
            datagrams: Datagrams::open(sockets, &events)?,
            streams: ServerStreams::open(listeners, &events, settings)?,
            tick: None,
            statistics: ServerStatistics::default(),
            events,
            signals,
            uris,
            buffer: vec![0; CHUNK.max(settings.endpoint.limits.max_message)],
        })
    }
}

/// Returns a source of random numbers of the system, which are read some at a time.
fn random() -> impl FnMut() -> u64 + Send + 'static {
    let mut octets = [0; 256];
    let mut at = octets.len();
    move || {
        if at == octets.len() {
            // It worked when the server started, and Linux never runs out of random numbers.
            let _ = getrandom::fill(&mut octets);
            at = 0;
        }
        let number = octets.get(at..at + 8).and_then(|octets| octets.try_into().ok());
        at += 8;
        number.map_or(0, u64::from_le_bytes)
    }
}

type Bound = (SocketAddr, Option<UdpSocket>, Option<TcpListener>);

/// Opens both sockets of one address. If the system picks the port, and the one that is free for UDP is in use for TCP, it picks
/// another one.
fn bind_free(listen: &Listen) -> Result<Bound, thinair_os::Error> {
    // More ports in use than this in a row are no coincidence.
    let mut picks_left = if listen.address.port() == 0 { 16 } else { 0 };
    loop {
        match bind(listen) {
            Err(why) if why.kind() == ErrorKind::AddrInUse && picks_left > 0 => picks_left -= 1,
            bound => return bound,
        }
    }
}

/// Opens both sockets of one address, with one port.
fn bind(listen: &Listen) -> Result<Bound, thinair_os::Error> {
    let mut address = listen.address;
    let mut socket = None;
    if listen.udp {
        let bound = bind_one_family(address)?;
        if address.ip().is_unspecified() {
            report_own_address(&bound)?;
        }
        let _ = udp::set_receive_room(&bound, RECEIVE_ROOM);
        address.set_port(bound.local_addr().map_or(address.port(), |bound| bound.port()));
        socket = Some(bound);
    }
    let mut listener = None;
    if listen.tcp {
        let bound = tcp::listen(address)?;
        address.set_port(bound.local_addr().map_or(address.port(), |bound| bound.port()));
        listener = Some(bound);
    }
    Ok((address, socket, listener))
}

/// True if the machine does not have the address.
fn is_missing(why: &thinair_os::Error) -> bool {
    matches!(why.kind(), ErrorKind::AddrNotAvailable | ErrorKind::Unsupported)
        // EAFNOSUPPORT, for which there is no kind.
        || why.kind() == std::io::Error::from_raw_os_error(97).kind()
}

/// Returns host and port as in a URI.
fn authority(address: SocketAddr, scheme: Scheme) -> String {
    let host = match address {
        SocketAddr::V4(four) => four.ip().to_string(),
        SocketAddr::V6(six) => format!("[{}]", six.ip()),
    };
    match address.port() {
        port if port == scheme.port() => host,
        port => format!("{host}:{port}"),
    }
}
