//! A small TCP for experiments: what decides when and in which segments octets travel, and nothing else.
//!
//! This module knows one connection ([`Connection`]): RFC 9293, with SACK (RFC 2018, RFC 6675) or NewReno (RFC 6582),
//! limited transmit (RFC 3042), RFC 6298 with a floor that can be set, delayed acknowledgments (RFC 1122), Nagle's algorithm
//! (RFC 896), timestamps and window scaling (RFC 7323), Fast Open (RFC 7413), [Reno](Algorithm::Reno) (RFC 5681) and
//! [CUBIC](Algorithm::Cubic) (RFC 9438). It refuses to know IP, sockets and clocks: segments, time and octets of the
//! application come in, segments and [`Event`]s go out. Windows of congestion are counted in segments, as Linux does.
//!
//! ```
//! use thinair_simulation::tcp::{Config, Connection, Event};
//! use thinair_wire::time::Instant;
//!
//! let config = Config::default();
//! let now = Instant::ZERO;
//! let mut client = Connection::connect(config, now, 1_000);
//! let mut server = Connection::listen(config, 9_000);
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
//! assert_eq!(client.poll_event(), Some(Event::Connected));
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

pub use congestion::Algorithm;
pub use connection::{Connection, Event, Loss, Status};
pub use fast_open::Cookie;
pub use retransmission::Floor;
pub use segment::{Options, SackBlocks, Segment, SegmentError};

/// How a connection behaves. The default is Linux with its defaults, as far as it can be said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// MSS that is announced, and the most octets of a segment that is sent: 1 and more. 1,460.
    pub mss: u16,
    /// Congestion control. CUBIC.
    pub algorithm: Algorithm,
    /// Initial window in segments. 10, RFC 6928.
    pub initial_window: u32,
    /// Segments under way, at most: the window of simulators. No limit.
    pub window: Option<u32>,
    /// Octets of the application's that are taken before it has read them, 1 to 2^30. 64,240.
    pub receive_buffer: u32,
    /// Octets that may wait to be sent. 2^20.
    pub send_buffer: usize,
    /// SACK Permitted is said. Yes.
    pub sack: bool,
    /// Two duplicate acknowledgments send new segments. RFC 3042. Yes.
    pub limited_transmit: bool,
    /// The end of a flight is probed before the retransmission timeout. RFC 8985, section 7. Yes.
    pub tail_loss_probe: bool,
    /// Timestamps are said. RFC 7323. Yes.
    pub timestamps: bool,
    /// Whether small segments wait. Minshall's variant.
    pub nagle: Nagle,
    /// How long an acknowledgment may wait for company, and whether it does. 40 ms.
    pub delayed_ack: Option<Duration>,
    /// Segments at the start of a connection that are acknowledged at once, unless octets go both ways. 16.
    pub quick_acks: u32,
    /// What the retransmission timeout cannot be less than. 200 ms of variation, as in Linux.
    pub floor: Floor,
    /// The timeout before anything was measured. 1 s.
    pub initial_timeout: Duration,
    /// What a timeout is at most, with its back-off. 120 s.
    pub longest_timeout: Duration,
    /// How often one segment is sent again before the connection is given up. 15; a SYN: 6.
    pub retries: u8,
    /// How often a SYN, or a SYN-ACK, is sent again.
    pub syn_retries: u8,
    /// Window Scale is said. RFC 7323. Yes.
    pub window_scaling: bool,
    /// Fast Open. Off.
    pub fast_open: FastOpen,
    /// Octets of data in a SYN, at most; nothing: as many as fit beside its options. Linux leaves room for all options that
    /// there can be, 40 octets. Nothing.
    pub syn_data: Option<u16>,
    /// How long the acknowledgment of a SYN-ACK waits for what is sent next. Nothing: not at all.
    pub syn_ack_wait: Option<Duration>,
    /// TIME-WAIT. 60 s.
    pub time_wait: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1_460,
            algorithm: Algorithm::Cubic,
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

/// When a segment that is not full waits for acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Never: TCP_NODELAY.
    Off,
    /// While anything is not acknowledged. RFC 896; RFC 9293, section 3.7.4.
    On,
    /// While a segment that was not full is not acknowledged: draft-minshall-nagle-01, which Linux does.
    Minshall,
}

/// Data in a SYN. RFC 7413.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// None are sent or taken.
    Off,
    /// A client with this cookie sends data with its SYN, and one without asks for a cookie; a server with it hands it out,
    /// and takes data with it.
    Cookie(Option<Cookie>),
    /// Data are sent and taken without a cookie, for paths on which addresses cannot be spoofed.
    Cookieless,
}
