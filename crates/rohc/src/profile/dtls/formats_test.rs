//! Tests of `docs/dtls-profile.md` against the code: a Describer that runs the function of each format prints its description.
//!
//! With `THINAIR_BLESS=1` the tests write the blocks of the document.

use std::string::String;

use thinair_wire::header::dtls::TLS12_CID;

use super::formats;
use super::state::{ChecksumMode, DtlsState};
use super::{HeaderFields, NonceSource};
use crate::id::Format;
use crate::profile::notation;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dtls-profile.md");

fn hold(name: &str, block: &str) {
    notation::hold(DOCUMENT, name, block);
}

/// State of an IPv6 or IPv4 flow with a record type.
fn state(v6: bool, first: u8, cid_len: u8) -> DtlsState {
    let mut state = DtlsState::default();
    (state.path.v6, state.path.checksum) = (v6, ChecksumMode::Carried);
    (state.shape.kind.first, state.shape.kind.cid_len) = (first, cid_len);
    state
}

/// Returns the description of a format in the notation of RFC 4997, with its flags given as bits.
fn described(title: &str, format: Format, choices: u32, mut next: DtlsState, source: NonceSource) -> String {
    let mut x = HeaderFields { nonce_source: source, ..HeaderFields::default() };
    notation::described(title, choices, |c| formats::packet(format, c, &mut x, &mut next))
}

#[test]
fn formats_are_those_of_the_document() {
    let none = NonceSource::None;
    let plain = |v6| state(v6, 23, 0);
    hold("format pt_0c", &described("COMPRESSED pt_0c", Format::Pt0c, 0, plain(true), none));
    hold("format pt_1", &described("COMPRESSED pt_1", Format::Pt1, 0, plain(true), none));
    let block = [
        described("COMPRESSED pt_2, no flag", Format::Pt2, 0, plain(true), none),
        described("COMPRESSED pt_2c, no flag", Format::Pt2c, 0, plain(true), none),
    ];
    hold("format pt_2", &block.join("\n"));
    // Flags in the order of the octets: version, DF, length, msn.
    hold(
        "format co_repair",
        &described("COMPRESSED co_repair, IPv4", Format::CoRepair, 0, plain(false), none),
    );
    let block = [
        described("COMPRESSED IR, IPv4", Format::Ir, 0, plain(false), none),
        described("COMPRESSED IR, IPv6, length = 1, msn = 1", Format::Ir, 0b1101, plain(true), none),
    ];
    hold("format IR", &block.join("\n"));
    let block = [
        described("COMPRESSED IR-CR, IPv6", Format::IrCr, 0b1, plain(true), none),
        described("COMPRESSED IR-CR, IPv4, dynamic = 1", Format::IrCr, 0b1_0000, plain(false), none),
    ];
    hold("format IR-CR", &block.join("\n"));
    let all = NonceSource::Carried;
    let block = [
        described(
            "COMPRESSED pt_2c, IPv4, all flags 1, connection ID of 2 octets, nonce = 2, wide = 0",
            Format::Pt2c,
            0b01111,
            state(false, TLS12_CID, 2),
            all,
        ),
        described("COMPRESSED pt_2c, IPv6, number = 1, wide = 1", Format::Pt2c, 0b1_0100, plain(true), none),
        described(
            "COMPRESSED pt_2c, IPv6, unified header with 16 bits of the sequence number",
            Format::Pt2c,
            0,
            state(true, 0x2C, 0),
            none,
        ),
    ];
    hold("format chain", &block.join("\n"));
}
