//! Profile 0x0006, TCP/IP: ROHC-TCP. RFC 6846.
//!
//! A packet is a `State`: every field of its headers, and the control fields. Both ends keep that of the last packet.
//! The formats (`formats`, `header`, `ip`, `options`) say how a packet differs from it.
//!
//! **What is delivered is what was sent.** Behind losses and among late packets and duplicates the TCP checksum, which is carried,
//! tells which numbers are meant, and carrier, clock and CRC which packet it is (`solve`, `doubt`): see `tests/silence.rs`,
//! `tests/impaired_matrix.rs` and `tests/tcp_impaired.rs`. What is left is an IP-ID that counts, in a flow without a pace on a carrier
//! that does not count: it has the CRC alone, and the tests print the bound that follows. Damage that reaches the decompressor has
//! 3 bits of CRC and the checksum against it.
//!
//! What that costs: a change of TTL, DSCP or DF goes into 48 packets of 5 octets more; and without feedback every 16th packet
//! of a flow whose IP-ID counts has 5 more. Flows of the matrix, which change one of them every 67 packets: 9.76 octets,
//! where 8.99 let 1 packet in 400 be wrong behind 12 losses.
//!
//! **New connections.** One IR packet begins a connection that is seen from its SYN on: who goes on behind it has heard that
//! it arrived. Where the decompressor answers, that is an IR-CR packet if there was a connection between the same hosts
//! before (`replicate`), and a short one if there was one to the same port (`pattern`). What ends a connection does not stand
//! losses right before it, which TCP mends (`life`); what TCP sends again behind a pause is an IR-DYN packet (`note`).
//! `cargo bench -p thinair-rohc --bench figures` prints what short connections, segments, acknowledgments and keep-alives cost;
//! `thinair analyze --schemes tcp` what each flow of a capture costs.

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
mod header;
mod ip;
mod learn;
mod life;
mod note;
mod numbers;
mod options;
mod pattern;
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
pub(crate) use state::TcpRoom;

use crate::profile::ProfileId;
use state::TcpState;

/// Fields that a packet of a compressed format may say in full, and whether it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Says {
    ack_stride: bool,
    urg_ptr: bool,
    dscp: bool,
    ttl: bool,
    list: bool,
}

/// What a base header says.
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
    /// The payload is a scale that the other side has; who reads does not know, and finds out.
    may_scale_seq: bool,
    /// There is a stride, and the other side has it.
    may_scale_ack: bool,
    /// The IP-ID stands as a whole.
    has_whole_ip_id: bool,
    /// `ttl_irregular_chain_flag`.
    outer_ttl: bool,
    says: Says,
    options: ListEncoding,
    crc3: u8,
    crc7: u8,
}

impl TcpFields {
    /// To be read by a context with that state.
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
            says: Says::default(),
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
    says_stride: &mut bool,
) -> Step {
    c.discriminator(8, 0b1111_1101)?;
    c.discriminator(8, u32::from(ProfileId::Tcp.low_octet()))?;
    c.crc("CRC", 8)?;
    ip::static_chain(c, state)?;
    header::tcp_static(c, state)?;
    ip::dynamic_chain(c, state)?;
    header::tcp_dynamic(c, state, sent, says_stride)
}

/// `IR-DYN` packet: profile, CRC-8, dynamic chain. RFC 6846, section 7.1.
fn ir_dyn<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut TcpState,
    sent: &mut ListEncoding,
    says_stride: &mut bool,
) -> Step {
    c.discriminator(8, 0b1111_1000)?;
    c.discriminator(8, u32::from(ProfileId::Tcp.low_octet()))?;
    c.crc("CRC", 8)?;
    ip::dynamic_chain(c, state)?;
    header::tcp_dynamic(c, state, sent, says_stride)
}

/// What follows the base header: the irregular chain. RFC 6846, section 7.3.
#[inline]
fn irregular<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    ip::irregular_chain(c, state, x.outer_ttl, Counter::read)?;
    header::tcp_irregular(c, state)?;
    let ack = state.ack;
    options::irregular(c, &mut state.options, &mut x.options, ack)
}
