//! `coap-sizes`: sizes of CoAP flows on the wire in steady state, beside those of the paper.

mod exchange;
mod first;
mod leshan;
mod peers;
mod table;

use thinair_rohc::{Compressor, Decompressor};

use crate::form::{Figures, PaperRun, declared};
use crate::paper::{Paper, PaperError};

pub(crate) const PAPER: Paper = declared!("coap-sizes", "coap_sizes", measure);

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    table::measure(run, figures)?;
    exchange::measure(run, figures)?;
    first::measure(run, figures)?;
    leshan::measure(run, figures)?;
    figures.put("memory/compressor", Compressor::octets_per_context().0 as f64);
    figures.put("memory/decompressor", Decompressor::octets_per_context().0 as f64);
    Ok(())
}
