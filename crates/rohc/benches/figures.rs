//! What compression costs in memory and saves on the wire, as tables; nothing here depends on the machine's speed.
//!
//! `cargo bench -p thinair-rohc --bench figures` prints
//!
//! - octets of memory per context and side, of this machine's build;
//! - octets of a CoAP GET on the wire: in IR (the first packet), FO (the first IR-DYN) and SO (the first UO-0),
//!   on CID 0 of a channel with small CIDs, beside what rohc-lib sends for the same packet.
//!
//! The figures of rohc-lib (master of 2019-09-24) were measured elsewhere, with a GET of the same length.

use thinair_rohc::profile::coap::Template;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, ProfileId, ProfileSet,
};

mod get;

/// Octets of the index of flows for one context: two buckets of two octets.
const INDEX: usize = 2 * 2;

/// Most octets per context and side, with a block of extension headers and without templates.
const BAR: usize = 512;

/// The packet with that count.
type Get = fn(u16) -> Vec<u8>;

fn main() {
    memory();
    sizes();
}

fn memory() {
    println!("Octets of memory per context, for two IP headers, a window of 16 and 16 templates");
    println!(
        "{:<14}{:>9}{:>7}{:>7}{:>6}{:>6}{:>10}",
        "", "context", "block", "index", "sum", "bar", "template"
    );
    let template = size_of::<Template>();
    let (context, block) = Compressor::octets_per_context();
    let sum = context + block + INDEX;
    println!("{:<14}{context:>9}{block:>7}{INDEX:>7}{sum:>6}{BAR:>6}{template:>10}", "compressor");
    let (context, block) = Decompressor::octets_per_context();
    let sum = context + block;
    println!("{:<14}{context:>9}{block:>7}{:>7}{sum:>6}{BAR:>6}{template:>10}", "decompressor", "-");
    println!(
        "A block holds the extension headers of one list, and is taken when there are any; a template is taken"
    );
    println!("for each kind of CoAP message, at most 16 a context.");
    println!();
}

fn sizes() {
    println!("Octets of a CoAP GET on the wire; the last {} of them are never compressed here", get::PAYLOAD);
    println!("{:<12}{:>7}   {:>17}   {:>17}   {:>17}", "", "", "IR", "FO (IR-DYN)", "SO (UO-0)");
    print!("{:<12}{:>7}", "profile", "plain");
    (0..3).for_each(|_| print!("   {:>8}{:>9}", "thinair", "rohc-lib"));
    println!();
    // Table 3b of the measurements of rohc-lib: IR, IR-DYN and UO-0 with the payload.
    let rows: [(_, _, Get, [usize; 3]); 4] = [
        ("UDP/IPv4", ProfileId::Udp, ipv4, [36, 22, 12]),
        ("IP/IPv4", ProfileId::Ip, ipv4, [38, 28, 18]),
        ("UDP/IPv6", ProfileId::Udp, ipv6, [60, 20, 12]),
        ("IP/IPv6", ProfileId::Ip, ipv6, [62, 26, 18]),
    ];
    for (name, profile, packet, rohc_lib) in rows {
        let ours = [Format::Ir, Format::IrDyn, Format::Uo0].map(|format| first(profile, packet, format));
        print!("{name:<12}{:>7}", packet(0).len());
        for (size, theirs) in ours.iter().zip(rohc_lib) {
            print!("   {size:>8}{theirs:>9}");
        }
        println!();
    }
}

/// Octets of the first packet of a flow that has this format, with the default refresh.
fn first(profile: ProfileId, packet: Get, format: Format) -> usize {
    let profiles = ProfileSet::of(&[profile]).expect("one profile has no rival");
    let channel = Channel::new(CidSpace::Small, 15, profiles).expect("15 is a small CID");
    let mut compressor =
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel, 0));
    let mut decompressor =
        Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(&channel, 0));
    let (mut rohc, mut back) = ([0; 128], [0; 128]);
    for count in 0..=u16::MAX {
        let (now, packet) = (Instant::from_millis(10 * u64::from(count)), packet(count));
        let sent = compressor.compress(now, &packet, &mut rohc).expect("the packet is sound");
        let got = decompressor.decompress(now, &rohc[..sent.len], &mut back).expect("nothing is lost");
        assert_eq!(back[..got.len], packet);
        if sent.format == format {
            return sent.len;
        }
    }
    unreachable!("no {} in 65,536 packets", format.name())
}

fn ipv4(count: u16) -> Vec<u8> {
    get::over_ipv4(1, count).to_vec()
}

fn ipv6(_: u16) -> Vec<u8> {
    get::IPV6.to_vec()
}
