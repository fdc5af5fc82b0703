#![no_main]
//! Forged ROHC packets: they are decompressed or rejected, and every delivered packet is an IP packet.
//!
//! Most random packets fail on their CRC, so an input may try every value of one octet until the CRC is right.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_fuzz::{ChannelSetup, ROOM};
use thinair_rohc::{DecompressError, Decompressor, Instant, ProfileId};
use thinair_wire::header::chain::HeaderChain;

#[derive(Arbitrary, Debug)]
struct ForgedPacket {
    wait: u16,
    /// Octet of which every value is tried, if any.
    search: Option<u8>,
    octets: Vec<u8>,
}

fuzz_target!(|input: (ChannelSetup, bool, Vec<ForgedPacket>)| {
    let (setup, patient, packets) = input;
    let mut decompressor = if patient { setup.patient_decompressor() } else { setup.decompressor() };
    let mut now = Instant::ZERO;
    for packet in packets.into_iter().take(32) {
        now = Instant::from_nanos(now.as_nanos() + u64::from(packet.wait) * 1_000_000);
        let mut octets = packet.octets;
        match packet.search.map(|at| usize::from(at % 8)).filter(|at| *at < octets.len()) {
            None => {
                let _ = try_one(&mut decompressor, now, &octets);
            }
            Some(at) => {
                for value in 0..=u8::MAX {
                    octets[at] = value;
                    let outcome = try_one(&mut decompressor, now, &octets);
                    if matches!(outcome, Ok(len) if len > 0) {
                        break;
                    }
                }
            }
        }
    }
});

fn try_one(
    decompressor: &mut Decompressor<'_>,
    now: Instant,
    octets: &[u8],
) -> Result<usize, DecompressError> {
    let mut out = [0; ROOM];
    let traced = decompressor.dissect(octets, |_| {});
    let outcome = decompressor.decompress(now, octets, &mut out);
    let mut element = [0; 32];
    while let Some(len) = decompressor.poll_feedback(&mut element) {
        assert!(len <= thinair_rohc::feedback::MAX_ELEMENT);
    }
    let done = outcome?;
    assert!(done.header_in <= octets.len());
    // A delivered packet can be dissected, too. (A segmented unit is not dissected segment by segment.)
    if octets[0] & 0b1111_1110 != 0b1111_1110 && octets[0] & 0b1111_1000 != 0b1111_0000 {
        let traced = traced.map(|(cid, profile, _)| (cid, profile));
        assert!(traced.is_none() || traced == Some((done.cid, done.profile)));
    }
    if done.len > 0 && done.profile != ProfileId::Uncompressed {
        assert!(done.header_out <= done.len);
        HeaderChain::parse(&out[..done.len]).expect("headers that were rebuilt are headers");
    }
    Ok(done.len)
}
