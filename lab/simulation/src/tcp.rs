//! A small TCP for experiments: only the parts that determine the times and segments of octets.
//!
//! This module implements one connection ([`TcpConnection`]): RFC 9293, with SACK (RFC 2018, RFC 6675) or NewReno (RFC
//! 6582), limited transmit (RFC 3042), RFC 6298 with a configurable floor, delayed acknowledgments (RFC 1122), Nagle's
//! algorithm (RFC 896), timestamps and window scaling (RFC 7323), Fast Open (RFC 7413), [Reno](CongestionAlgorithm::Reno) (RFC
//! 5681) and [CUBIC](CongestionAlgorithm::Cubic) (RFC 9438). It has no IP, sockets or clocks: segments, time and octets of the
//! application come in, segments and [`TcpEvent`]s go out. Congestion windows are counted in segments, as in Linux.
//!
//! ```
//! use thinair_simulation::tcp::{TcpConfig, TcpConnection, TcpEvent};
//! use thinair_wire::time::Instant;
//!
//! let config = TcpConfig::default();
//! let now = Instant::ZERO;
//! let mut client = TcpConnection::connect(config, now, 1_000);
//! let mut server = TcpConnection::listen(config, 9_000);
//! client.write(now, b"hello");
//! client.close(now);
//! loop {
//!     let forth = client.poll_transmit(now).map(|segment| server.handle_segment(now, &segment));
//!     let back = server.poll_transmit(now).map(|segment| client.handle_segment(now, &segment));
//!     if forth.or(back).is_none() {
//!         break;
//!     }
//! }
//! assert_eq!(server.read(64), b"hello");
//! assert_eq!(client.poll_event(), Some(TcpEvent::Connected));
//! assert!(server.is_finished());
//! ```

mod congestion;
mod connection;
mod cubic;
mod fast_open;
mod inbox;
mod outbox;
mod retransmission;
mod scoreboard;
mod segment;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use core::time::Duration;

pub use congestion::CongestionAlgorithm;
pub use connection::{LossDetection, Status, TcpConnection, TcpEvent};
pub use fast_open::Cookie;
pub use retransmission::Floor;
pub use segment::{SackBlocks, SegmentError, SegmentOptions, TcpSegment};

/// Configuration of a connection. The default is Linux with its defaults, as far as these parameters can express it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// MSS that is announced, and maximum size of a sent segment, in octets; at least 1. Default: 1,460.
    pub mss: u16,
    /// Congestion control. Default: CUBIC.
    pub algorithm: CongestionAlgorithm,
    /// Initial window in segments. Default: 10 (RFC 6928).
    pub initial_window: u32,
    /// Maximum number of segments in flight, as in simulators. Default: no limit.
    pub window: Option<u32>,
    /// Receive buffer in octets, 1 to 2^30. Default: 64,240.
    pub receive_buffer: u32,
    /// Send buffer in octets. Default: 2^20.
    pub send_buffer: usize,
    /// Send SACK Permitted. Default: true.
    pub sack: bool,
    /// Two duplicate acknowledgments send new segments (RFC 3042). Default: true.
    pub limited_transmit: bool,
    /// Probe the end of a flight before the retransmission timeout (RFC 8985, section 7). Default: true.
    pub tail_loss_probe: bool,
    /// Send the Timestamps option (RFC 7323). Default: true.
    pub timestamps: bool,
    /// Delay of small segments. Default: Minshall's variant.
    pub nagle: Nagle,
    /// Maximum delay of an acknowledgment; `None`: no delay. Default: 40 ms.
    pub delayed_ack: Option<Duration>,
    /// Number of segments at the start of a connection that are acknowledged at once, unless both sides send. Default:
    /// 16.
    pub quick_acks: u32,
    /// Lower bound of the retransmission timeout. Default: 200 ms of variation, as in Linux.
    pub floor: Floor,
    /// Retransmission timeout before any measurement. Default: 1 s.
    pub initial_timeout: Duration,
    /// Maximum retransmission timeout with its back-off. Default: 120 s.
    pub longest_timeout: Duration,
    /// Maximum number of retransmissions of a segment. Default: 15.
    pub retries: u8,
    /// Maximum number of retransmissions of a SYN or a SYN-ACK. Default: 6.
    pub syn_retries: u8,
    /// Send the Window Scale option (RFC 7323). Default: true.
    pub window_scaling: bool,
    /// Fast Open. Default: off.
    pub fast_open: FastOpen,
    /// Maximum data in a SYN, in octets; `None`: as much as fits beside its options. Linux leaves room for the 40
    /// octets of all possible options. Default: `None`.
    pub syn_data: Option<u16>,
    /// Delay of the acknowledgment of a SYN-ACK, which waits for the next data; `None`: no delay. Default: `None`.
    pub syn_ack_wait: Option<Duration>,
    /// Duration of TIME-WAIT. Default: 60 s.
    pub time_wait: Duration,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss: 1_460,
            algorithm: CongestionAlgorithm::Cubic,
            initial_window: 10,
            window: None,
            receive_buffer: 64_240,
            send_buffer: 1 << 20,
            sack: true,
            limited_transmit: true,
            tail_loss_probe: true,
            timestamps: true,
            nagle: Nagle::Minshall,
            delayed_ack: Some(Duration::from_millis(40)),
            quick_acks: 16,
            floor: Floor::Variation(Duration::from_millis(200)),
            initial_timeout: Duration::from_secs(1),
            longest_timeout: Duration::from_secs(120),
            retries: 15,
            syn_retries: 6,
            window_scaling: true,
            fast_open: FastOpen::Off,
            syn_data: None,
            syn_ack_wait: None,
            time_wait: Duration::from_secs(60),
        }
    }
}

/// Condition in which a segment that is not full waits for acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Never: TCP_NODELAY.
    Off,
    /// While any data is unacknowledged. RFC 896; RFC 9293, section 3.7.4.
    On,
    /// While a segment that was not full is unacknowledged: draft-minshall-nagle-01, as in Linux.
    Minshall,
}

/// Data in a SYN. RFC 7413.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// None is sent or accepted.
    Off,
    /// A client with this cookie sends data with its SYN, and one without requests a cookie; a server with this cookie
    /// grants it, and accepts data with it.
    Cookie(Option<Cookie>),
    /// Data is sent and accepted without a cookie, for paths on which addresses cannot be spoofed.
    Cookieless,
}
