//! `thinair analyze` in a browser: the page in `page/` calls these functions in a worker.
//!
//! Options, results and messages are those of the command, whose library does all of it. Here are the passages between Rust and
//! JavaScript: files are read by a function of the page, piece by piece and several times, and documents are written by another one, so
//! that neither has to be in memory as a whole.

use std::io::{self, BufWriter, Write};
use std::panic;

use thinair_cli::analyze::{ReadAt, Reading, Results};
use wasm_bindgen::prelude::*;

/// Octets of a document that are passed to the page at a time.
const PIECE: usize = 1 << 16;

/// Price lists of docs/tariffs.
const TARIFFS: [&str; 5] = [
    include_str!("../../../docs/tariffs/1nce.toml"),
    include_str!("../../../docs/tariffs/iridium-sbd-rockblock.toml"),
    include_str!("../../../docs/tariffs/narrowband-satellite.toml"),
    include_str!("../../../docs/tariffs/skylo-monogoto.toml"),
    include_str!("../../../docs/tariffs/telnyx.toml"),
];

const EXAMPLE: &[u8] = include_bytes!("../../../captures/coap_udp6_observe.pcap");

// Functions of `page/engine.js`.
#[wasm_bindgen]
extern "C" {
    /// Copies octets of a file from a position on; returns their number. Throws a text.
    #[wasm_bindgen(catch, js_name = thinairRead)]
    fn read(file: u32, position: f64, out: &mut [u8]) -> Result<u32, JsValue>;
    /// Appends octets to the document that is being written.
    #[wasm_bindgen(js_name = thinairWrite)]
    fn write(octets: &[u8]);
    /// Takes note of a reading of all files.
    #[wasm_bindgen(js_name = thinairBegin)]
    fn begin(reading: &str);
    /// Takes note of a panic, after which nothing else is called.
    #[wasm_bindgen(js_name = thinairPanic)]
    fn report_panic(message: &str);
}

/// A file of the page.
struct PageFile {
    /// Its number among those that the page has opened.
    number: u32,
}

impl ReadAt for PageFile {
    fn read_at(&self, out: &mut [u8], position: u64) -> io::Result<usize> {
        // Exact up to 2^53.
        let read = read(self.number, position as f64, out);
        read.map(|len| len as usize).map_err(|error| io::Error::other(error.as_string().unwrap_or_default()))
    }
}

/// The page, as the end of a document.
struct Page;

impl Write for Page {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        write(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A finished analysis.
#[wasm_bindgen]
pub struct Analysis(Results);

#[wasm_bindgen]
impl Analysis {
    /// Analyzes the files of the page with these names, in their order. `options`: those of the command. `tariff`: text of a price
    /// list.
    ///
    /// # Errors
    /// The message of the command.
    #[wasm_bindgen(constructor)]
    pub fn new(options: Vec<String>, tariff: Option<String>, names: Vec<String>) -> Result<Self, String> {
        let files =
            (0..).zip(names).map(|(number, name)| (name, Box::new(PageFile { number }) as Box<dyn ReadAt>));
        let tariff = tariff.as_deref().map(|text| ("price list", text));
        let results = Results::of(options, tariff, files.collect(), |reading| begin(name_of(reading)));
        results.map(Self).map_err(|error| format!("{error:#}"))
    }

    /// Messages that the command writes on standard error.
    pub fn notes(&self) -> Vec<String> {
        self.0.notes().to_vec()
    }

    /// Contents of the report, as HTML.
    pub fn body(&self) -> String {
        self.0.report().to_html_body()
    }

    /// Table of flows, as JSON.
    pub fn flows(&self) -> String {
        self.0.flows().to_string()
    }

    /// Configuration of a tunnel, for both ends, if the report recommends one.
    pub fn configuration(&self) -> Option<String> {
        self.0.configuration()
    }

    /// Writes the document of `--json`.
    pub fn json(&self) {
        in_pieces(|out| self.0.write_json(out));
    }

    /// Writes the table of `--csv`.
    pub fn csv(&self) {
        in_pieces(|out| self.0.write_csv(out));
    }

    /// Writes the report of `--html`.
    pub fn html(&self) {
        in_pieces(|out| out.write_all(self.0.report().to_html().as_bytes()));
    }
}

/// Passes a document to the page, which takes all octets.
fn in_pieces(write: impl FnOnce(&mut BufWriter<Page>) -> io::Result<()>) {
    let mut out = BufWriter::with_capacity(PIECE, Page);
    let _ = write(&mut out).and_then(|()| out.flush());
}

/// Returns the message of the command if the file is no capture.
#[wasm_bindgen]
pub fn check(number: u32, name: &str) -> Option<String> {
    let checked = thinair_cli::analyze::check(name, &PageFile { number });
    checked.err().map(|error| format!("{error:#}"))
}

/// Texts of price lists to choose from.
#[wasm_bindgen]
pub fn tariffs() -> Vec<String> {
    TARIFFS.map(str::to_owned).to_vec()
}

/// A capture for those who have none: observed resources, CoAP over UDP and IPv6.
#[wasm_bindgen]
pub fn example() -> Vec<u8> {
    EXAMPLE.to_vec()
}

/// Passes panics to the page.
#[wasm_bindgen(start)]
pub fn start() {
    panic::set_hook(Box::new(|info| report_panic(&info.to_string())));
}

fn name_of(reading: Reading) -> &'static str {
    match reading {
        Reading::Survey => "survey",
        Reading::Learning => "learning",
        Reading::Analysis => "analysis",
    }
}
