//! `coap-sizes`: octets on the wire of CoAP flows in steady state, and those of the paper that began it.

mod first;
mod leshan;
mod memory;
mod peers;
mod published;
mod table;

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapSizes;

const ABOUT: About = About {
    name: "coap-sizes",
    title: "Octets on the wire of CoAP over UDP and IP",
    source: "M. Majanen, P. Koskela, M. Valta: Constrained Application Protocol Profile for Robust Header \
        Compression Framework, 2015",
    claim: &[
        "A GET over IPv4 shrinks from 37 octets to 5, one over IPv6 from 57 to 5 (91.2 %); the profile sends the \
            2-octet Message ID in every packet, as it “may vary totally randomly”.",
        "Ours: stacks count Message IDs, tokens, Observe, block numbers and Partial IVs, so that a packet of any of \
            these flows takes 1 octet of header, 2 with a CRC of 8 bits, or 3 with the UDP checksum of its sender, and \
            what is random in it.",
    ],
    method: &[
        "Flows as sensors send them, 500 packets each through two endpoints in O-mode, with feedback that arrives at \
            once and without refreshes. A figure is the mean of packets 200 to 499, payload included, octets of \
            feedback not. The seed changes addresses, ports, first Message IDs, tokens, IP-IDs and payloads. Every \
            packet is decompressed and compared.",
        "elided: the carrier vouches for its frames, right UDP checksums are left out and computed anew; pt_0 is the \
            format of 1 octet with a CRC of 3 bits, pt_1 that of 2 with 8 bits. carried: the default, where the UDP \
            checksum itself is the check. CID 0, small CIDs; IP-IDs count.",
        "The paper's exchange (GET of “time”, response of 15 octets) goes through the profiles coap-2015, udp and ip; \
            sizes are those of each packet type, in O-mode and with the refreshes of U-mode.",
    ],
    theirs: &[
        "For flows a, b and h the paper states a size; those of c and f follow from its design, and for d it is a \
            lower bound. It classes options as static, so that e, g and OSCORE requests start a new context per packet.",
        "Measured in the same run, on the same packets: udp and coap-2015, our profiles of those names; schc, RFC 8724 with \
            rule IDs of 8 bits and the best rules that can be derived from these very packets, checksums elided; 6lowpan, \
            RFC 6282 over IPv6 with a context for the prefix and interface identifiers of link addresses, checksums \
            carried (in JSON elided in the rows that elide).",
    ],
    why_different: &[
        "The paper counts an Add-CID octet for its second flow, which with small CIDs is free for CID 0: our \
            responses travel on a channel of their own and are 1 octet less. Its IR packets carry feedback of \
            6 octets and more; ours are counted without.",
        "Its compressor sends three IR packets and three in FO state before the first UO-0. Ours stays in IR until it \
            is acknowledged, and goes from IR-DYN to UO-0; where no UOR-2 is sent, its row is the packet that follows \
            IR-DYN.",
        "SCHC needs 3 octets for a GET because it elides the checksum and sends the Message ID; with a Message ID that \
            counts ours elides both. With a random one (flow h) ours is larger by its check.",
    ],
};

impl Paper for CoapSizes {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        table::measure(plan, progress, &mut findings)?;
        published::measure(plan, &mut findings)?;
        first::measure(plan, &mut findings)?;
        leshan::measure(plan, &mut findings)?;
        memory::measure(&mut findings);
        Ok(findings)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn found(plan: &Plan) -> Findings {
        CoapSizes.run(plan, &|_, _| ()).unwrap()
    }

    #[test]
    fn a_seed_determines_every_figure_whatever_the_threads() {
        let one = found(&Plan { seed: 7, threads: 1, ..Plan::default() });
        let again = found(&Plan { seed: 7, threads: 3, ..Plan::default() });
        assert_eq!(one.rows, again.rows);
    }

    #[test]
    fn ids_are_unique_and_every_packet_comes_back() {
        let found = found(&Plan { seed: 3, ..Plan::default() });
        let ids: BTreeSet<_> = found.rows.iter().map(|row| row.id()).collect();
        assert_eq!(ids.len(), found.rows.len());
        let inexact = found.rows.iter().find(|row| row.id() == "round-trip/not-exact").unwrap();
        assert_eq!(inexact.ours(), Some(0.0));
    }
}
