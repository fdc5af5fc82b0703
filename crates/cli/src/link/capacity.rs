//! `thinair link capacity`: capacity of an MPEG-2 transport stream of constant bit rate, computed without
//! sending.
//!
//! This module reads arguments and prints the result. The model is in `thinair-ule`; the compressor of
//! `thinair-rohc` measures the sizes of compressed headers.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use thinair_emulator::{ProtocolStack, header_cycle};
use thinair_report::{Cell, Column, Document, Section, Table};
use thinair_rohc::Refresh;
use thinair_ule::capacity::{Cost, Encapsulation, Filling, HeaderRun, PacketFlow, cost, most_padded};

use crate::terminal::{print, style};

/// Schema of the JSON output.
const SCHEMA: &str = "thinair.capacity/1";

/// Width of the output in columns, if it is not a terminal.
const PLAIN_WIDTH: usize = 120;

/// Maximum number of TS packets for which padding steps are listed.
const STEPS: u64 = 6;

#[derive(Args, Debug)]
pub(crate) struct CapacityArguments {
    /// Bit rate of the TS packets that carry ULE, in bit/s, such as 3507k or 3.5M
    ///
    /// Null packets and PSI are not included.
    #[arg(long, value_name = "RATE", value_parser = bitrate, default_value = "3507000")]
    bitrate: u64,
    /// Payload sizes of a packet in octets, separated by commas
    #[arg(
        long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..),
        default_value = "40,80,120,160,200,300,512,1024"
    )]
    payload: Vec<u32>,
    /// Headers of a packet, such as ipv6/udp/rtp
    ///
    /// ipv6 or ipv4, then udp (over ipv4 also udp0, without checksum), then rtp, coap or nothing.
    #[arg(long, value_name = "STACK", default_value = "ipv6/udp")]
    stack: ProtocolStack,
    /// Refresh of the context: `ir=N,so=N[,direct]`, or `off` for an established flow
    #[arg(long, value_name = "POLICY", default_value = "ir=3,so=50,direct")]
    refresh: Refresh,
    /// Include a destination address in every SNDU (D=0), 6 octets
    #[arg(long)]
    npa: bool,
    /// Number of compressed packets per SNDU (PDU-Concat, RFC 5163)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    concat: u32,
    /// Print JSON (thinair.capacity/1)
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub(crate) fn run(arguments: &CapacityArguments) -> anyhow::Result<ExitCode> {
    let most = arguments.stack.most_payload() as u32;
    if let Some(payload) = arguments.payload.iter().find(|payload| **payload > most) {
        eprintln!(
            "thinair: a payload of {payload} octets exceeds the maximum of {}, {most}",
            arguments.stack
        );
        return Ok(ExitCode::from(2));
    }
    if let Refresh::Budget { .. } | Refresh::Periodic { .. } = arguments.refresh {
        eprintln!("thinair: --refresh must repeat after a number of packets: ir=N,so=N[,direct], or off");
        return Ok(ExitCode::from(2));
    }
    let answer = CapacityReport::new(arguments)?;
    if arguments.json {
        print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
    } else {
        print(&answer.document().to_text(&style(PLAIN_WIDTH)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses a number with an optional suffix `k` or `M`.
pub(super) fn bitrate(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.as_bytes() {
        [.., b'k'] => (&text[..text.len() - 1], 1e3),
        [.., b'M'] => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    let rate = number.parse::<f64>().map_err(|error| error.to_string())? * unit;
    if (1.0..=1e12).contains(&rate) {
        return Ok(rate.round() as u64);
    }
    Err("expected 1 to 10^12 bit/s".to_owned())
}

#[derive(Debug, Serialize)]
struct CapacityReport {
    schema: &'static str,
    /// Bit rate of whole TS packets, in bit/s.
    bitrate: u64,
    ts_packets_per_second: f64,
    stack: &'static str,
    refresh: String,
    /// Octets of encapsulation around a packet.
    encapsulation: u32,
    /// Compressed packets per SNDU.
    concat: u32,
    /// Octets of the headers of an uncompressed packet.
    headers: usize,
    /// Octets of the headers of consecutive compressed packets, one period.
    compressed_headers: Vec<HeaderRunRow>,
    /// Mean of `compressed_headers` (equation 5).
    mean_compressed_headers: f64,
    payloads: Vec<CapacityRow>,
    padding_steps: Vec<PaddingStep>,
}

#[derive(Debug, Serialize)]
struct HeaderRunRow {
    packets: u32,
    octets: u32,
}

/// Results for one payload size.
#[derive(Debug, Serialize)]
struct CapacityRow {
    payload: u32,
    /// Results of equations 2 to 7.
    model: Both,
    /// Results of exact packing (RFC 4326, section 6.2).
    packing: Both,
    padding: Both,
    /// Results without compression, by equation 3 with the overhead of Multiprotocol Encapsulation.
    mpe: Fits,
}

#[derive(Debug, Serialize)]
struct Both {
    uncompressed: Fits,
    compressed: Fits,
    /// Gain by compression, in percent.
    gain: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Fits {
    packets_per_second: f64,
    /// Throughput of payload, in bit/s.
    throughput: f64,
    /// TS packets per packet.
    ts_packets: f64,
}

/// Largest payload that fits into a number of TS packets in padding mode; `None` if the headers alone do not
/// fit.
#[derive(Debug, Serialize)]
struct PaddingStep {
    ts_packets: u64,
    uncompressed: Option<u64>,
    /// With the smallest compressed header.
    smallest: Option<u64>,
    /// With the largest compressed header.
    largest: Option<u64>,
}

impl CapacityReport {
    fn new(arguments: &CapacityArguments) -> anyhow::Result<Self> {
        let CapacityArguments { bitrate, stack, refresh, concat, .. } = *arguments;
        let plain = if arguments.npa { Encapsulation::ULE_NPA } else { Encapsulation::ULE };
        let headers = [HeaderRun { packets: 1, octets: stack.headers() as u32 }];
        let compressed = header_cycle(stack, refresh)?;
        let fits = |encapsulation, filling, payload, headers: &[HeaderRun]| {
            Fits::new(cost(encapsulation, filling, PacketFlow { payload, headers }), bitrate)
        };
        let both = |filling, payload| {
            let uncompressed = fits(plain, filling, payload, &headers);
            let compressed = fits(plain.concat(concat), filling, payload, &compressed);
            let gain = (compressed.throughput / uncompressed.throughput - 1.0) * 100.0;
            Both { uncompressed, compressed, gain }
        };
        let row = |payload: &u32| CapacityRow {
            payload: *payload,
            model: both(Filling::Ideal, *payload),
            packing: both(Filling::Packing, *payload),
            padding: both(Filling::Padding, *payload),
            mpe: fits(Encapsulation::MPE, Filling::Ideal, *payload, &headers),
        };
        let sizes = || compressed.iter().map(|run| run.octets);
        let step = |ts_packets| {
            let most = |octets: u32| most_padded(ts_packets).checked_sub(u64::from(plain.around + octets));
            PaddingStep {
                ts_packets,
                uncompressed: most(stack.headers() as u32),
                smallest: sizes().min().and_then(most),
                largest: sizes().max().and_then(most),
            }
        };
        Ok(Self {
            schema: SCHEMA,
            bitrate,
            ts_packets_per_second: bitrate as f64 / 1_504.0,
            stack: stack.name(),
            refresh: refresh.to_string(),
            encapsulation: plain.around,
            concat,
            headers: stack.headers(),
            mean_compressed_headers: PacketFlow { payload: 0, headers: &compressed }.mean_headers(),
            payloads: arguments.payload.iter().map(row).collect(),
            padding_steps: (1..=STEPS).map(step).collect(),
            compressed_headers: compressed
                .iter()
                .map(|run| HeaderRunRow { packets: run.packets, octets: run.octets })
                .collect(),
        })
    }

    fn document(&self) -> Document {
        let headers = self
            .compressed_headers
            .iter()
            .map(|run| format!("{} of {}", run.packets, run.octets))
            .collect::<Vec<_>>()
            .join(", ");
        let concat = match self.concat {
            1 => String::new(),
            several => format!(", {several} compressed packets an SNDU"),
        };
        let about = format!(
            "{}: headers of {} octets; compressed, with refresh {}: {headers}, {:.2} on average. ULE takes {} octets \
                around a PDU{concat}. {:.2} TS packets a second.",
            self.stack,
            self.headers,
            self.refresh,
            self.mean_compressed_headers,
            self.encapsulation,
            self.ts_packets_per_second,
        );
        let section =
            Section::new("").text(about).table(self.packing()).table(self.padding()).table(self.steps());
        Document::new(format!("Capacity of a transport stream of {} kbit/s", self.bitrate as f64 / 1e3))
            .section(section)
    }

    fn packing(&self) -> Table {
        let mut columns = vec![Column::number("payload").unit("B")];
        columns.extend(["model: plain", "compressed"].map(|heading| Column::number(heading).unit("kbit/s")));
        columns.push(Column::number("gain").unit("%"));
        columns.extend(["exact: plain", "compressed"].map(|heading| Column::number(heading).unit("kbit/s")));
        columns.push(Column::number("gain").unit("%"));
        columns.push(Column::number("compressed").unit("packets/s"));
        columns.push(Column::number("MPE, plain").unit("kbit/s"));
        let mut table = Table::new("Packing", columns);
        for row in &self.payloads {
            let mut cells = vec![Cell::integer(row.payload)];
            for both in [&row.model, &row.packing] {
                cells.extend([both.uncompressed, both.compressed].map(|fits| fits.kbps()));
                cells.push(Cell::number(both.gain, 2));
            }
            cells.extend([Cell::number(row.packing.compressed.packets_per_second, 1), row.mpe.kbps()]);
            table.row(cells);
        }
        table.note(
            "Model: equations 1 to 7, a stream of octets. Exact: with Payload Pointers, and without splitting a Length \
                (RFC 4326, 6.2).",
        )
    }

    fn padding(&self) -> Table {
        let columns = [
            Column::number("payload").unit("B"),
            Column::number("TS packets: plain"),
            Column::number("compressed"),
            Column::number("plain").unit("kbit/s"),
            Column::number("compressed").unit("kbit/s"),
            Column::number("gain").unit("%"),
        ];
        let mut table = Table::new("Padding: every SNDU begins in a TS packet of its own", columns);
        for CapacityRow { payload, padding: Both { uncompressed, compressed, gain }, .. } in &self.payloads {
            table.row([
                Cell::integer(*payload),
                Cell::number(uncompressed.ts_packets, 3),
                Cell::number(compressed.ts_packets, 3),
                uncompressed.kbps(),
                compressed.kbps(),
                Cell::number(*gain, 1),
            ]);
        }
        table
    }

    fn steps(&self) -> Table {
        let mut columns = vec![Column::number("TS packets")];
        let headings = ["plain", "smallest compressed header", "largest"];
        columns.extend(headings.map(|heading| Column::number(heading).unit("B")));
        let mut table = Table::new("Steps of padding: the most payload of so many TS packets", columns);
        for PaddingStep { ts_packets, uncompressed, smallest, largest } in &self.padding_steps {
            let most = [uncompressed, smallest, largest].map(|most| most.map_or(Cell::Empty, Cell::integer));
            table.row([Cell::integer(*ts_packets)].into_iter().chain(most));
        }
        table
    }
}

impl Fits {
    fn new(cost: Cost, bitrate: u64) -> Self {
        Self {
            packets_per_second: cost.packets_per_second(bitrate),
            throughput: cost.throughput(bitrate),
            ts_packets: cost.ts_packets(),
        }
    }

    fn kbps(self) -> Cell {
        Cell::number(self.throughput / 1e3, 2)
    }
}
