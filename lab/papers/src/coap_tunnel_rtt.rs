//! `coap-tunnel-rtt`: how long a CoAP request takes through two tunnels, by profile, and how long without.

mod cell;
mod exchange;
mod published;
#[cfg(target_os = "linux")]
mod real;
mod rows;
mod show;
mod summary;

use cell::{Cell, Place, Version, Way};
use summary::Summary;

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapTunnelRtt;

const ABOUT: About = About {
    name: "coap-tunnel-rtt",
    title: "What a tunnel and its profile add to the round trip of a CoAP request",
    source: "M. Majanen, P. Koskela, M. Valta: Constrained Application Protocol Profile for Robust Header \
        Compression Framework, 2015",
    claim: &[
        "Tables III and IV: the round trip of a CoAP request from a Raspberry Pi to a laptop takes 20.2 ms with profile \
            CoAP, 22.4 with UDP, 21.5 with IP, 18.8 uncompressed, 10.6 without a tunnel (IPv4); over IPv6 20.1, 22.4, \
            21.1, 16.3 and 13.4. “The round-trip delay increased slightly due to the extra processing needed for \
            compression and decompression.” If anything is compressed, “it is then worth to compress all the packet \
            headers”. The tunnel itself costs about 8 ms over IPv4, 3 ms over IPv6.",
        "Ours: each of two tunnels adds at most 0.3 ms to what a plain forwarder takes, sealed as they are by default, and no \
            profile is further than 0.1 ms from no compression (medians).",
    ],
    method: &[
        "The paper's exchange: libcoap's client asks libcoap's server for “time” (GET of 38 octets and response of 52 \
            over IPv4, 58 and 72 over IPv6: a token of one octet more than in the paper). Each request is a process of \
            its own, from one port, so that all are of one flow. The round trip is the time from the request to the \
            response at the client's host inside the tunnel, by the kernel's time stamps (tcpdump): the start of the \
            process is not in it.",
        "Client and server are in two network namespaces, joined by a veth pair, or by the emulated link of `thinair link \
            run` with 5.3 ms each way. On top run two `thinair tunnel run` for each profile and version of IP, over UDP and \
            IPv4, with a key, in O-mode; one pair more is uncompressed and --insecure. forwarder: one thread that reads \
            packets from one interface and writes them to the other. none: no tunnel.",
        "1,000 round trips of each cell (50 in a quick run), after 10 that are not counted. All cells of a place are there at \
            the same time, and each round asks once in each, in an order that follows from --seed: what disturbs the \
            machine hits all alike. Bars are on medians. Nothing is left out because it took long; what was sent twice or \
            not answered is counted as lost.",
    ],
    theirs: &[
        "Averages, least and most of 20 round trips, as printed, beside those over 10.6 ms: that is the paper's average \
            without a tunnel. Its profile CoAP is our coap-2015 (0x0080).",
        "The paper gives no deviations. Its 95 % intervals are estimated here from the range: that of 20 normal values is 3.735 \
            standard deviations on average.",
    ],
    why_different: &[
        "Theirs were a laptop on WiFi and a Raspberry Pi of 700 MHz, with the tunnel program of rohc-lib that hands each \
            packet through user space, as ours does. Times of a machine of today say nothing of theirs; what can be \
            compared are the differences between ways of one run, and their signs.",
        "With 20 round trips between 2 and 59 ms, the paper's means are uncertain by 3 to 7 ms: of its conclusions only that a \
            tunnel costs something over IPv4 is beyond chance. That CoAP is faster than UDP and IP does not follow from \
            its tables; nor can it be processing, which its own tables I and II put at 1.1 ms for both ends and both \
            directions in SO state, least of all for the profile that does most.",
        "By medians ours cost at most some tens of microseconds for a whole exchange, coap-2015 the most, as it always goes \
            the long way through our code: what the paper says of compression holds, and what it says of its profile \
            does not. Each tunnel adds about 0.1 ms. Means are those of a machine that does other things, too, and say so \
            by their intervals; the page tells how much of its time was taken away meanwhile.",
        "Fewer octets do not make a round trip shorter where the link has no rate: here it has a delay alone, as the paper's \
            network had in effect. On slow links they do: see coap-robustness, and `thinair link run`.",
        "Linux gives every IPv6 socket a flow label of its own since 4.2, which is switched off here (auto_flowlabels=0). \
            With it, each request of a client that is started anew is another flow to the profiles of RFC 3095: a GET \
            then took 108 to 110 octets on the carrier by coap-2015, udp and ip, more than the 106 of uncompressed, and \
            62 by coap, which lets the label change.",
    ],
};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Round trips of a cell.
    rounds: usize,
}

const FULL: Scale = Scale { rounds: 1_000 };
const QUICK: Scale = Scale { rounds: 50 };

/// What was measured at a place.
#[derive(Clone, Debug)]
struct Measured {
    place: Place,
    cells: Vec<Told>,
    /// The share of the machine's time that its host gave to others.
    stolen: f64,
    /// Microseconds that the link was late for 99 % of its packets.
    late: Option<f64>,
}

/// What is known of a cell.
#[derive(Clone, Debug)]
struct Told {
    cell: Cell,
    times: Option<Summary>,
    /// Round trips that were not counted: not answered, or asked more than once.
    lost: usize,
    /// None without a tunnel.
    carried: Option<Carried>,
}

/// Mean octets of a packet: of requests, and of responses.
#[derive(Clone, Copy, Debug)]
struct Carried {
    /// IP packets.
    inside: [f64; 2],
    /// ROHC packets.
    compressed: [f64; 2],
    /// All that the carrier takes, feedback included.
    carrier: [f64; 2],
    /// There are contexts of the profile that the cell is about.
    is_by_profile: bool,
}

impl Measured {
    fn of(&self, way: Way, version: Version) -> Option<&Told> {
        self.cells.iter().find(|told| told.cell == Cell { way, version })
    }

    fn times(&self, way: Way, version: Version) -> Option<Summary> {
        self.of(way, version)?.times
    }
}

impl Paper for CoapTunnelRtt {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let scale = if plan.quick { QUICK } else { FULL };
        match measure(plan, scale, progress)? {
            Ok(measured) => Ok(findings(&measured)),
            Err(missing) => {
                let left_out = format!("Left out: all rows, as {missing}.");
                Ok(Findings { left_out: vec![left_out], ..Findings::default() })
            }
        }
    }
}

fn findings(measured: &[Measured]) -> Findings {
    Findings { rows: rows::rows(measured), ours: show::sections(measured), left_out: Vec::new() }
}

/// All places; the inner error says what is missing.
#[cfg(target_os = "linux")]
fn measure(
    plan: &Plan,
    scale: Scale,
    progress: Progress<'_>,
) -> Result<Result<Vec<Measured>, String>, Error> {
    if !plan.real_time {
        return Ok(Err("a run in real time was not asked for".to_owned()));
    }
    let Some(program) = &plan.program else {
        return Ok(Err("it takes the command `thinair` to run tunnels".to_owned()));
    };
    // Before any thread, so that all of them leave signals to this one, and before anything that must be taken away again.
    let interrupt = crate::children::Interrupt::take()?;
    if let Some(missing) = real::missing() {
        return Ok(Err(missing));
    }
    let all: u64 = Place::ALL.iter().map(|&place| real::requests(place, scale)).sum();
    let done = std::cell::Cell::new(0);
    progress(0, all);
    let mut measured = Vec::new();
    for place in Place::ALL {
        measured.push(real::measure(place, plan, program, scale, &interrupt, &|| {
            done.set(done.get() + 1);
            progress(done.get(), all);
        })?);
    }
    Ok(Ok(measured))
}

#[cfg(not(target_os = "linux"))]
fn measure(_: &Plan, _: Scale, _: Progress<'_>) -> Result<Result<Vec<Measured>, String>, Error> {
    Ok(Err("this system has no network namespaces of Linux".to_owned()))
}

#[cfg(test)]
mod tests;
