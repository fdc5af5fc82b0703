//! The streams of a table through rohc-lib: the program `link` of `extras/peers`, which `make peers` builds.

use std::ffi::OsString;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use thinair_rohc::Mode;

use super::journey::{JourneyOutcome, JourneySetup};
use super::source::SourceKind;

/// Program that compresses and decompresses with rohc-lib.
#[derive(Clone, Debug)]
pub struct Peer(OsString);

impl Peer {
    /// The program that `THINAIR_PEER_LINK` names; without it, that of `make peers`.
    pub fn at_hand() -> Option<Self> {
        let built = || {
            // This program is in `TARGET/PROFILE/deps`.
            let program = std::env::current_exe().ok()?;
            let path = program.ancestors().nth(3).unwrap_or(Path::new("target")).join("peers/link");
            path.exists().then(|| path.into_os_string())
        };
        std::env::var_os("THINAIR_PEER_LINK").or_else(built).map(Self)
    }

    /// True if rohc-lib has the profile and the mode: not those of UDP-Lite and CoAP, nor 0x0101 and R-mode.
    pub fn has(setup: &JourneySetup) -> bool {
        let has_profile = match setup.kind {
            SourceKind::UdpLite => false,
            kind if kind.is_rtp() => setup.v2.is_none(),
            kind => !kind.is_coap(),
        };
        has_profile && setup.mode != Mode::Reliable && !setup.counts
    }

    /// Starts the program for one flow.
    pub fn start(&self, setup: &JourneySetup) -> PeerFlow {
        let set = if setup.v2.is_some() { "v2" } else { "v1" };
        let mode = setup.mode.letter().to_string();
        let mut child = Command::new(&self.0)
            .args([set, &mode, &(2 * setup.delay).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.0.to_string_lossy()));
        let requests = BufWriter::new(child.stdin.take().unwrap());
        PeerFlow { child, requests }
    }
}

/// One flow through rohc-lib.
pub struct PeerFlow {
    child: std::process::Child,
    requests: BufWriter<ChildStdin>,
}

impl PeerFlow {
    /// Sends a packet at a time in microseconds.
    pub fn send(&mut self, at: u64, is_lost: bool, packet: &[u8]) {
        let length = (packet.len() as u32).to_le_bytes();
        for part in [&(1_000 * at).to_le_bytes()[..], &[u8::from(is_lost)], &length, packet] {
            self.requests.write_all(part).unwrap();
        }
    }

    /// Returns wrong packets, those that were not delivered, those that arrived, and the longest outage.
    pub fn end(self) -> JourneyOutcome {
        let Self { mut child, requests } = self;
        drop(requests);
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success(), "rohc-lib ends with an error");
        let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [wrong, undelivered, arrived, outage] = numbers[..] else { panic!("{text}") };
        JourneyOutcome { wrong, undelivered, arrived, outage, ..JourneyOutcome::default() }
    }
}
