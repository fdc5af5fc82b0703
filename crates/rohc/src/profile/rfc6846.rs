//! Profile 0x0006, TCP/IP: ROHC-TCP. RFC 6846.
//!
//! A packet is a `TcpState`: every field of its headers, and the control fields. Both ends keep that of the last packet. The
//! formats (`formats`, `header`, `ip`, `options`) encode the differences from it.
//!
//! **A delivered packet equals the one sent.** After losses, and with late packets and duplicates, the TCP checksum, which is
//! carried, determines the numbers of a packet, and carrier, clock and CRC determine its MSN (`solve`, `doubt`): see
//! `tests/silence.rs`, `tests/impaired_matrix.rs` and `tests/all/tcp_impaired.rs`. The exception is a counting IP-ID in a flow
//! without a pace on a carrier that does not count lost packets: only the CRC covers it, and the tests print the resulting bound.
//! Damage that reaches the decompressor is detected by 3 bits of CRC and the checksum.
//!
//! The cost: a change of TTL, DSCP or DF adds 5 octets to 48 packets, and without feedback every 16th packet of a flow with a
//! counting IP-ID has 5 more. Flows of the matrix, which change one of these fields every 67 packets, take 9.76 octets; with
//! 8.99, 1 packet in 400 would be wrong after 12 losses.
//!
//! **New connections.** One IR packet begins a connection that is seen from its SYN on: a host that continues after its SYN has
//! received the answer to it. With feedback that is an IR-CR packet if there was a connection between the same hosts before
//! (`replicate`), and a short one if there was one to the same port (`pattern`). The last packets of a connection do not survive
//! losses right before them, which TCP repairs (`life`). A retransmission by TCP after a pause is an IR-DYN packet (`note`).
//! `cargo bench -p thinair-rohc --bench figures` prints the cost of short connections, segments, acknowledgments and keep-alives;
//! `thinair analyze --schemes tcp` prints the cost of each flow of a capture.

mod checksum;
mod choose;
pub(crate) mod compress;
mod confirm;
pub(crate) mod decompress;
mod doubt;
mod encodings;
mod flow;
mod formats;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod formats_test;
mod growth;
mod header;
mod initialize;
mod ip;
mod learn;
mod life;
mod next;
mod note;
mod numbers;
mod options;
mod pattern;
mod receiver;
mod replicate;
mod segment;
mod solve;
mod state;

use thinair_wire::coder::{Coder, Step};

use encodings::Counter;
use options::ListEncoding;
pub(crate) use pattern::Pattern;
pub(crate) use replicate::Base;
pub(crate) use segment::TcpSegment;
pub use state::TcpRoom;

use crate::id::ProfileId;
use state::TcpState;

/// Fields that a packet of a compressed format may carry in full; true for those that it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FullFields {
    ack_stride: bool,
    urg_ptr: bool,
    dscp: bool,
    ttl: bool,
    list: bool,
}

/// Fields of a base header.
#[derive(Clone, Copy, Debug)]
struct TcpFields {
    msn: Counter<u16>,
    seq: Counter,
    ack: Counter,
    seq_scaled: Counter,
    ack_scaled: Counter,
    window: Counter<u16>,
    ttl: Counter<u8>,
    ip_id_offset: Counter<u16>,
    /// The payload is a scale that the other side has. A reader assumes it, and then checks.
    may_scale_seq: bool,
    /// There is a stride, and the other side has it.
    may_scale_ack: bool,
    /// The IP-ID is carried in full.
    has_whole_ip_id: bool,
    /// `ttl_irregular_chain_flag`.
    outer_ttl: bool,
    full: FullFields,
    options: ListEncoding,
    crc3: u8,
    crc7: u8,
}

impl TcpFields {
    /// Returns fields to be read by a context with that state.
    #[inline]
    fn read(state: &TcpState) -> Self {
        let ack_scaled = if state.ack_stride == 0 { 0 } else { state.ack / u32::from(state.ack_stride) };
        Self {
            msn: Counter::read(state.msn),
            seq: Counter::read(state.seq),
            ack: Counter::read(state.ack),
            seq_scaled: Counter::read(state.seq_scaled),
            ack_scaled: Counter::read(ack_scaled),
            window: Counter::read(state.window),
            ttl: Counter::read(state.inner().header.ttl),
            ip_id_offset: Counter::read(state.ip_id_offset()),
            may_scale_seq: true,
            may_scale_ack: true,
            has_whole_ip_id: false,
            outer_ttl: false,
            full: FullFields::default(),
            options: ListEncoding {
                present: 0,
                changed: 0,
                timestamps: state.options.timestamps.map(Counter::read),
            },
            crc3: 0,
            crc7: 0,
        }
    }
}

/// `IR` packet: profile, CRC-8, static and dynamic chain. RFC 6846, section 7.1.
fn ir<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut TcpState,
    sent: &mut ListEncoding,
    has_stride: &mut bool,
) -> Step {
    c.discriminator(8, 0b1111_1101)?;
    c.discriminator(8, u32::from(ProfileId::Tcp.low_octet()))?;
    c.crc("CRC", 8)?;
    ip::static_chain(c, state)?;
    header::tcp_static(c, state)?;
    ip::dynamic_chain(c, state)?;
    header::tcp_dynamic(c, state, sent, has_stride)
}

/// `IR-DYN` packet: profile, CRC-8, dynamic chain. RFC 6846, section 7.1.
fn ir_dyn<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut TcpState,
    sent: &mut ListEncoding,
    has_stride: &mut bool,
) -> Step {
    c.discriminator(8, 0b1111_1000)?;
    c.discriminator(8, u32::from(ProfileId::Tcp.low_octet()))?;
    c.crc("CRC", 8)?;
    ip::dynamic_chain(c, state)?;
    header::tcp_dynamic(c, state, sent, has_stride)
}

/// Irregular chain, which follows the base header. RFC 6846, section 7.3.
#[inline]
fn irregular<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    ip::irregular_chain(c, state, x.outer_ttl, Counter::read)?;
    header::tcp_irregular(c, state)?;
    let ack = state.ack;
    options::irregular(c, &mut state.options, &mut x.options, ack)
}
