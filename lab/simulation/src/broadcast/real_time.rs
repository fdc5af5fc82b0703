//! One site that sends to another, in real time: packets of a kernel, our compressor and encapsulator with a TS clock,
//! datagrams between two network namespaces, receiver and decompressor, packets to a kernel.
//!
//! iperf3 counts sent and received packets, at both ends. Its TCP connection, and everything in the return direction,
//! bypasses the stream, which carries only the measured packets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use thinair_link::Side;
use thinair_os::udp::{self, ReceiveBatch};
use thinair_os::{EventLoop, Interface, RealTime, Route, Tun, clock};
use thinair_rohc::{CompressorConfig, Mode, Refresh};
use thinair_ule::ts::packets;
use thinair_ule::{Pid, SlotClock, TsPacket};

use super::listener::Listener;
use super::sender::StreamSender;
use super::{BroadcastError, Filling, StreamCarrier};
use thinair_emulator::ProtocolStack;
use thinair_emulator::{Lateness, LinkEnds, Where};

const PID: u16 = 0x40;

/// TS packets per datagram: as many as fit into an Ethernet frame.
const TS_PER_DATAGRAM: usize = 7;

/// Maximum size of a packet, and of an SNDU, in octets.
const LONGEST: usize = 4_096;

/// Queue of the interface in packets: some tenths of a second, so that the TS clock always finds one.
const QUEUE: u32 = 2_000;

/// Receive buffer in octets.
const ROOM: usize = 4 << 20;

/// Name of the carrier's cable, and its addresses, which differ from those of the carried packets.
const CABLE: &str = "carrier0";
const HERE: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 2);
const STREAM_PORT: u16 = 7_001;
const BESIDE_PORT: u16 = 7_002;

/// Time that iperf3 may take in addition to the measurement.
const PATIENCE: Duration = Duration::from_secs(10);

/// Next Header value of TCP.
const TCP: u8 = 6;

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTimePlan {
    /// Rate of whole TS packets including null packets, in bit/s.
    pub bitrate: u64,
    /// Refreshes of the context; `None`: packets are not compressed.
    pub refresh: Option<Refresh>,
    /// Payload of a datagram over UDP and IPv6, in octets: 16 to 1,400.
    pub payload: u16,
    /// Offered payload in bit/s; more than the stream can carry, to fill it.
    pub offered: u64,
    /// Duration of the measurement in seconds, after one second that is not counted.
    pub seconds: u16,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct RealTimeOutcome {
    /// Payload that iperf3 received after the decompressor, in bit/s.
    pub throughput: f64,
    /// Packets that iperf3 received.
    pub packets: u64,
    /// TS packets of the whole run.
    pub slots: u64,
    /// Null packets, which `slots` includes: before iperf3 began and after its end.
    pub null_packets: u64,
    /// Packets that left the stream and could not be decompressed.
    pub not_delivered: u64,
    /// TS packets that were sent and did not reach the receiver.
    pub lost_ts: u64,
    /// Lateness of the TS clock.
    pub lateness: Lateness,
    /// Real-time properties that the system did not grant, as text.
    pub refused: Vec<String>,
}

/// Reason that a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RealTimeRunError {
    /// The system rejected an operation.
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
    /// Compressor or encapsulator failed.
    #[error(transparent)]
    Broadcast(#[from] BroadcastError),
    /// A socket or device failed.
    #[error("cannot carry the stream")]
    Io(#[from] io::Error),
    /// The output of iperf3 is no result.
    #[error("iperf3: {0}")]
    Iperf(String),
    /// The payload is too short for iperf3, or too long for a frame.
    #[error("invalid payload of {0} octets: expected 16 to 1,400")]
    Payload(u16),
}

/// Runs a plan. It takes two seconds more than the measurement.
///
/// # Errors
///
/// The caller may not create namespaces, or iperf3 is missing; a packet is rejected; the payload is out of range.
pub fn run(plan: &RealTimePlan) -> Result<RealTimeOutcome, RealTimeRunError> {
    if !(16..=1_400).contains(&plan.payload) {
        return Err(RealTimeRunError::Payload(plan.payload));
    }
    let ends = LinkEnds::open(&Where::Create, (1_500, 1_500), "cubic")?;
    let sockets = lay_cable(&ends)?;
    let config = plan.refresh.map(|refresh| ProtocolStack::IPV6_UDP.compressor(1, refresh)).transpose();
    let rohc = config.map_err(BroadcastError::from)?.map(|config| (config, Mode::Unidirectional));
    // The receiver ends after the sender, so that it receives everything.
    let (no_more_to_send, to_hear) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
    let (a, b) = sockets;
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(plan, rohc, ends.tun(Side::A), &a, &no_more_to_send));
        let receiving = scope.spawn(|| receive(rohc, ends.tun(Side::B), &b, &to_hear));
        let measured = iperf(plan, &ends);
        no_more_to_send.store(true, Ordering::Relaxed);
        let sent = sending.join();
        let slots = sent.as_ref().map_or(0, |sent| sent.as_ref().map_or(0, |sent| sent.slots));
        to_hear.store(slots, Ordering::Relaxed);
        let received = receiving.join();
        let sent = sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let received = received.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let received_by_iperf = measured?;
        let number = |name: &str| received_by_iperf["end"]["sum_received"][name].as_f64();
        let (Some(throughput), Some(packets), Some(lost)) =
            (number("bits_per_second"), number("packets"), number("lost_packets"))
        else {
            return Err(RealTimeRunError::Iperf(format!("no result: {}", received_by_iperf["error"])));
        };
        Ok(RealTimeOutcome {
            throughput,
            packets: (packets - lost).max(0.0) as u64,
            slots: sent.slots,
            null_packets: sent.null_packets,
            not_delivered: received.not_delivered,
            lost_ts: sent.slots.saturating_sub(received.ts_packets),
            lateness: sent.lateness,
            refused: sent.refused,
        })
    })
}

/// Sockets of one end: for the stream, and for the traffic beside it.
struct Sockets {
    stream: UdpSocket,
    beside: UdpSocket,
}

/// Connects both namespaces by a cable, with a socket at each of its ends.
fn lay_cable(ends: &LinkEnds) -> Result<(Sockets, Sockets), RealTimeRunError> {
    let (a, b) = (ends.namespace(Side::A), ends.namespace(Side::B));
    Interface::veth((a, CABLE), (b, CABLE))?;
    for (side, own) in [(Side::A, HERE), (Side::B, THERE)] {
        let tun = ends.tun(side).name();
        ends.namespace(side).within(|| {
            let cable = Interface::named(CABLE)?;
            cable.quiet()?;
            cable.up()?;
            cable.add_address(own.into(), 30)?;
            let to = (IpAddr::from([10, 10, 0, 0]), 30);
            cable.add_route(&Route { to, from: Some(own.into()), mtu: 0, congestion: None })?;
            Interface::named(tun)?.set_queue(QUEUE)
        })??;
    }
    let open = |side: Side, own: Ipv4Addr, other: Ipv4Addr| -> Result<Sockets, RealTimeRunError> {
        let bind = |port: u16| -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind((own, port))?;
            socket.connect((other, port))?;
            socket.set_nonblocking(true)?;
            udp::set_receive_room(&socket, ROOM)?;
            Ok(socket)
        };
        let open = || Ok(Sockets { stream: bind(STREAM_PORT)?, beside: bind(BESIDE_PORT)? });
        Ok(ends.namespace(side).within(open)?.map_err(|error: io::Error| error)?)
    };
    Ok((open(Side::A, HERE, THERE)?, open(Side::B, THERE, HERE)?))
}

/// Counters of the sending end.
struct ClockCounters {
    slots: u64,
    null_packets: u64,
    lateness: Lateness,
    refused: Vec<String>,
}

/// TS clock: sends a TS packet in each slot, with the packets that the kernel has queued by then.
fn send(
    plan: &RealTimePlan,
    rohc: Option<(CompressorConfig, Mode)>,
    tun: &Tun,
    sockets: &Sockets,
    stop: &AtomicBool,
) -> Result<ClockCounters, RealTimeRunError> {
    let pid = Pid::new(PID).ok_or(BroadcastError::Unfit("no PID"))?;
    let carrier =
        StreamCarrier { bitrate: plan.bitrate, delay: Duration::ZERO, filling: Filling::Pull, concat: 1 };
    let mut sender = StreamSender::new(pid, &carrier, rohc);
    let realtime = RealTime::request();
    // Without busy waiting: late slots are made up for, as slots are counted from the start.
    let mut events = EventLoop::new(Duration::ZERO)?;
    let mut pace = SlotClock::new(clock::now(), plan.bitrate);
    let mut sent =
        ClockCounters { slots: 0, null_packets: 0, lateness: Lateness::new(), refused: realtime.refused() };
    let (mut ready, mut packet) = (Vec::new(), vec![0; LONGEST]);
    let mut datagram = Vec::with_capacity(TS_PER_DATAGRAM * size_of::<TsPacket>());
    while !stop.load(Ordering::Relaxed) {
        let due = pace.next_at();
        events.wait(Some(due), &mut ready)?;
        let now = clock::now();
        if !pace.advance(now) {
            continue;
        }
        sent.lateness.add(now.nanos_since(due));
        while sender.is_ready() {
            let Some(len) = there(tun.read(&mut packet))? else { break };
            let packet = packet.get(..len).unwrap_or_default();
            if packet.get(6) == Some(&TCP) {
                sockets.beside.send(packet)?;
            } else {
                sender.take(now, packet)?;
            }
        }
        while let Some(len) = there(sockets.beside.recv(&mut packet))? {
            // Packets that the kernel rejects are not counted here.
            let _ = tun.write(packet.get(..len).unwrap_or_default());
        }
        sent.slots += 1;
        let ts = sender.slot();
        sent.null_packets += u64::from(ts.is_none());
        datagram.extend_from_slice(&ts.unwrap_or(thinair_ule::ts::NULL_PACKET));
        if datagram.len() == TS_PER_DATAGRAM * size_of::<TsPacket>() {
            udp::send(&sockets.stream, None, &[&datagram])?;
            datagram.clear();
        }
    }
    if !datagram.is_empty() {
        udp::send(&sockets.stream, None, &[&datagram])?;
    }
    Ok(sent)
}

/// Counters of the receiving end.
#[derive(Default)]
struct ReceiverCounters {
    ts_packets: u64,
    not_delivered: u64,
}

/// Receives the stream. `to_hear`: number of TS packets sent, once it is known.
fn receive(
    rohc: Option<(CompressorConfig, Mode)>,
    tun: &Tun,
    sockets: &Sockets,
    to_hear: &AtomicU64,
) -> Result<ReceiverCounters, RealTimeRunError> {
    /// Time that the last packets may be in flight: on a busy machine the kernel does not forward them at once.
    const PATIENCE: Duration = Duration::from_secs(2);
    let pid = Pid::new(PID).ok_or(BroadcastError::Unfit("no PID"))?;
    let mut memory = vec![0; LONGEST];
    let mut listener = Listener::new(pid, &mut memory, rohc);
    let mut events = EventLoop::new(Duration::ZERO)?;
    events.add(tun, 0)?;
    events.add(&sockets.stream, 1)?;
    events.add(&sockets.beside, 2)?;
    let mut received = ReceiveBatch::new(32, TS_PER_DATAGRAM * size_of::<TsPacket>());
    let mut heard = ReceiverCounters::default();
    let (mut ready, mut packet) = (Vec::new(), vec![0; LONGEST]);
    let mut until = None;
    loop {
        let expected = to_hear.load(Ordering::Relaxed);
        if expected != u64::MAX {
            let now = clock::now();
            if heard.ts_packets >= expected || *until.get_or_insert(now + PATIENCE) <= now {
                return Ok(heard);
            }
        }
        events.wait(Some(clock::now() + Duration::from_millis(20)), &mut ready)?;
        while there(received.receive(&sockets.stream))?.is_some() {
            let now = clock::now();
            for (datagram, _) in received.iter() {
                for ts in packets(datagram).unwrap_or_default() {
                    heard.ts_packets += 1;
                    listener.receive(now, ts, &mut |delivered| match delivered {
                        Some(packet) => drop(tun.write(packet)),
                        None => heard.not_delivered += 1,
                    });
                }
            }
        }
        while let Some(len) = there(sockets.beside.recv(&mut packet))? {
            let _ = tun.write(packet.get(..len).unwrap_or_default());
        }
        while let Some(len) = there(tun.read(&mut packet))? {
            sockets.beside.send(packet.get(..len).unwrap_or_default())?;
        }
    }
}

/// `None` if nothing can be read now.
fn there(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Ok(len) => Ok(Some(len)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Result of iperf3 at its sending end, which includes that of the receiving one.
fn iperf(plan: &RealTimePlan, ends: &LinkEnds) -> Result<Value, RealTimeRunError> {
    let mut server = Command::new("iperf3");
    server.args(["--server", "--one-off", "--bind", "fd09::2"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = ends.namespace(Side::B).spawn(&mut server)?;
    // There is no event for the start of its listening.
    std::thread::sleep(Duration::from_millis(500));
    let client = client(plan, ends);
    // If the client failed, the server waits for another one.
    let _ = server.kill();
    let _ = server.wait();
    serde_json::from_slice(&client?).map_err(|error| RealTimeRunError::Iperf(error.to_string()))
}

fn client(plan: &RealTimePlan, ends: &LinkEnds) -> Result<Vec<u8>, RealTimeRunError> {
    let mut client = Command::new("iperf3");
    client
        .args(["-6", "--client", "fd09::2", "--udp", "--json", "--connect-timeout", "3000"])
        .args(["--bitrate", &plan.offered.to_string(), "--length", &plan.payload.to_string()])
        // One second that is not counted; no report before the end.
        .args(["--time", &plan.seconds.to_string(), "--omit", "1", "--interval", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut client = ends.namespace(Side::A).spawn(&mut client)?;
    let limit = clock::now() + Duration::from_secs(u64::from(plan.seconds)) + PATIENCE;
    while client.try_wait()?.is_none() {
        let is_interrupted = ends.is_interrupted();
        if is_interrupted || clock::now() > limit {
            let _ = client.kill();
            let _ = client.wait();
            let why = if is_interrupted { "interrupted" } else { "it does not end" };
            return Err(RealTimeRunError::Iperf(why.to_owned()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(client.wait_with_output()?.stdout)
}
