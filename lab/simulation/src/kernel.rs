//! TCP of the kernel over an emulated link in real time: the reference for [`tcp`](crate::tcp).
//!
//! Sockets of two network namespaces, with CUBIC, and the link of `thinair link run` between them.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thinair_link::{LinkModel, Side};

use thinair_emulator::{
    DirectionTotals, EmulatorError, Engine, Lateness, LinkEnds, Where, addresses, mtu, route_mtus, run,
};

const PORT: u16 = 5_683;

/// Time after which a silent socket is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Requests and responses over one open connection with Nagle's algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Exchanges {
    /// Size of a request in octets, at least 1.
    pub request: usize,
    /// Size of a response in octets, at least 1. Each is a separate write.
    pub response: usize,
    /// Number of requests.
    pub count: u32,
    /// Time between two requests, independent of responses.
    pub interval: Duration,
}

/// Result, and the packets that the link has carried from A and from B.
#[derive(Debug)]
pub struct KernelResult<T> {
    /// Result.
    pub what: T,
    /// Totals of the link from A and from B.
    pub totals: [DirectionTotals; 2],
    /// Lateness of packets.
    pub lateness: Lateness,
}

/// Measures the duration of each exchange, from the write of the request to the last octet of its response.
///
/// # Errors
/// The caller may not create namespaces, or a connection failed.
pub fn exchanges(
    model: &LinkModel<'static>,
    seed: u64,
    plan: Exchanges,
) -> Result<KernelResult<Vec<Duration>>, EmulatorError> {
    over(model, seed, |ends| {
        let (client, mut server) = connect(ends)?;
        thread::scope(|scope| {
            let serving = scope.spawn(move || -> io::Result<()> {
                let (mut buffer, mut octets) = (vec![0; 1 << 16], 0);
                loop {
                    match server.read(&mut buffer)? {
                        0 => return Ok(()),
                        len => octets += len,
                    }
                    while octets >= plan.request {
                        octets -= plan.request;
                        server.write_all(&vec![b'x'; plan.response])?;
                    }
                }
            });
            let mut responses = client.try_clone()?;
            let reading = scope.spawn(move || -> io::Result<Vec<Instant>> {
                let mut response = vec![0; plan.response];
                let mut one = || responses.read_exact(&mut response).map(|()| Instant::now());
                (0..plan.count).map(|_| one()).collect()
            });
            let start = Instant::now() + Duration::from_secs(1);
            let mut made = Vec::new();
            for number in 0..plan.count {
                thread::sleep((start + number * plan.interval).saturating_duration_since(Instant::now()));
                made.push(Instant::now());
                (&client).write_all(&vec![b'x'; plan.request])?;
            }
            let answered = reading.join().map_err(|_| io::Error::other("the client failed"))??;
            client.shutdown(std::net::Shutdown::Both)?;
            serving.join().map_err(|_| io::Error::other("the server failed"))??;
            Ok(answered.into_iter().zip(made).map(|(answered, made)| answered - made).collect())
        })
    })
}

/// Measures the duration of a download of `octets` octets from B to A, from the SYN to the last octet.
///
/// # Errors
/// As for [`exchanges`].
pub fn download(
    model: &LinkModel<'static>,
    seed: u64,
    octets: usize,
) -> Result<KernelResult<Duration>, EmulatorError> {
    over(model, seed, |ends| {
        let start = Instant::now();
        let (mut client, mut server) = connect(ends)?;
        thread::scope(|scope| {
            let serving = scope.spawn(move || server.write_all(&vec![0x5A; octets]));
            let (mut buffer, mut received) = (vec![0; 1 << 16], 0);
            while received < octets {
                match client.read(&mut buffer)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    len => received += len,
                }
            }
            let took = start.elapsed();
            serving.join().map_err(|_| io::Error::other("the server failed"))??;
            Ok(took)
        })
    })
}

/// Client at A and the server's end at B.
fn connect(ends: &LinkEnds) -> io::Result<(TcpStream, TcpStream)> {
    let [(address, _), _]: [(IpAddr, u8); 2] = addresses(Side::B);
    let address = SocketAddr::new(address, PORT);
    let listener = ends.namespace(Side::B).within(|| TcpListener::bind(address));
    let listener = listener.map_err(io::Error::other)??;
    let client = ends.namespace(Side::A).within(|| TcpStream::connect_timeout(&address, PATIENCE));
    let client = client.map_err(io::Error::other)??;
    let (server, _) = listener.accept()?;
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
    }
    Ok((client, server))
}

/// Does something over the link, which exists until it is done.
fn over<T: Send>(
    model: &LinkModel<'static>,
    seed: u64,
    work: impl FnOnce(&LinkEnds) -> io::Result<T> + Send,
) -> Result<KernelResult<T>, EmulatorError> {
    let failed = |why: io::Error| EmulatorError::Os(thinair_os::Error::new("talk over the link", why));
    let ends = LinkEnds::open(&Where::Create, route_mtus(mtu(model)), "cubic")?;
    let mut engine = Engine::new(model, seed, None);
    let (read, write) = io::pipe().map_err(failed)?;
    // It ends when no process can write to it any more.
    let mut command = Command::new("cat");
    command.stdin(Stdio::from(read)).stdout(Stdio::null());
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work(&ends);
            drop(write);
            result
        });
        let report = run(&mut engine, &ends, Some(&mut command), true, &mut |_, _| Ok(()))?;
        let what =
            worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed"))).map_err(failed)?;
        Ok(KernelResult {
            what,
            totals: Side::ALL.map(|side| engine.totals(side)),
            lateness: report.lateness,
        })
    })
}
