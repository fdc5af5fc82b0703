//! Analysis of captures: their cost on a constrained link, and the savings by header compression, verified by round
//! trips.
//!
//! Every scheme of header compression transfers the same packets: each packet is compressed at one side,
//! decompressed at the other, and compared octet by octet. Results are plain values, which [`serde`] converts to
//! JSON; command-line arguments, terminals and pages are left to the caller.
//!
//! ```
//! use thinair_analyze::{Analysis, SchemeSpec, Settings, Survey};
//! use thinair_capture::{LinkType, Timestamp, Writer};
//! use thinair_rohc::{Channel, CidSpace, Mode, ProfileSet};
//!
//! // Ten CoAP GETs over UDP and IPv6, each 57 octets.
//! let packet = *b"\x60\0\0\0\0\x11\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\
//!     \xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";
//! let mut file = Writer::new(Vec::new(), LinkType::RAW)?;
//! for i in 0..10 {
//!     file.write(Timestamp::from_nanos(i), &packet)?;
//! }
//!
//! let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1())?;
//! let scheme = SchemeSpec::Rohc { name: "rohc-v1", channel, mode: Mode::Optimistic, learned: false };
//! let (settings, capture) = (Settings::new(channel, &[scheme]), file.into_inner());
//! let mut survey = Survey::default();
//! survey.read(&settings, capture.as_slice(), |_| ())?;
//! let mut analysis = Analysis::new(settings, survey);
//! analysis.read("gets.pcap", capture.as_slice(), |_| ())?;
//! let outcome = analysis.finish();
//! assert_eq!(outcome.totals.traffic.bytes_in, 570);
//! assert!(outcome.totals.schemes[0].saved_ratio > 0.5);
//! assert_eq!(outcome.mismatches(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to begin: `run.rs` (the path of one packet), `scheme.rs` (the round trip, with a file per scheme in
//! `scheme/`; SCHC itself is in [`schc`]), [`outcome`] (results), `recommendation.rs` (recommended settings),
//! `course.rs` (comparison of schemes packet by packet). Independent of an analysis are [`chart`] (messages between
//! hosts) and [`exchange`] (cost of a request and its response on a link).

#![deny(missing_docs)]

mod bill;
pub mod chart;
mod course;
mod directions;
pub mod exchange;
mod flow;
mod follow;
mod gaps;
mod hosts;
mod loss;
mod merge;
mod mesh;
pub mod outcome;
mod packet;
mod packing;
mod partition;
mod portable;
mod recommendation;
mod report;
mod run;
pub mod schc;
mod scheme;
mod scheme_name;
mod sessions;
mod settings;
mod sides;
mod survey;
mod tally;
mod timeline;
mod tls;
mod tunnel;
mod unpack;

pub use directions::Directions;
pub use merge::MergeError;
pub use outcome::Outcome;
pub use portable::Portable;
pub use recommendation::{
    CarrierCost, MONTH_SECONDS, Month, Recommendation, WORTH_COMPRESSING, more_contexts,
};
pub use run::{Analysis, Live};
pub use scheme::endpoint;
pub use scheme_name::{SchemeError, SchemeName};
pub use settings::{Billing, CarrierOverhead, MOST_FLOWS, MOST_PARTITIONS, RandomLoss, SchemeSpec, Settings};
pub use sides::{CaptureSide, Sides};
pub use survey::Survey;
pub use thinair_link::tariff::{CountedDirections, Tariff, TariffError};
pub use unpack::Unpack;
