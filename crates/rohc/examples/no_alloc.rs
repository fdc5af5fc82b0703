//! A compressor and a decompressor in memory with constant sizes, which is static on a microcontroller.
//!
//! ```sh
//! cargo run -p thinair-rohc --no-default-features --features udp,ip --example no_alloc
//! ```

use thinair_rohc::{Channel, CidSpace, Compressor, CompressorConfig, CompressorStorage};
use thinair_rohc::{Decompressor, DecompressorConfig, DecompressorStorage, Instant, ProfileSet};

/// Number of contexts: flows that are compressed at the same time.
const CONTEXTS: usize = 4;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let channel = Channel::new(CidSpace::Small, CONTEXTS as u16 - 1, ProfileSet::v1())?;
    let mut storage = CompressorStorage::<CONTEXTS>::new();
    let mut compressor = Compressor::new(CompressorConfig::new(channel), &mut storage);
    let mut storage = DecompressorStorage::<CONTEXTS>::new();
    let mut decompressor = Decompressor::new(DecompressorConfig::new(channel), &mut storage);

    // A CoAP GET over UDP and IPv6: 57 octets, of which these profiles compress 48 octets of headers.
    let packet = *b"\x60\0\0\0\0\x11\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\
        \xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";
    let (mut rohc, mut back) = ([0; 128], [0; 128]);
    let mut sizes = [0; 6];
    for (i, size) in sizes.iter_mut().enumerate() {
        let now = Instant::from_millis(10 * i as u64);
        *size = compressor.compress(now, &packet, &mut rohc)?.len;
        let done = decompressor.decompress(now, &rohc[..*size], &mut back)?;
        assert_eq!(back[..done.len], packet);
    }
    assert_eq!(sizes, [59, 59, 59, 59, 12, 12]);
    println!("57 octets, six times: {sizes:?}");
    Ok(())
}
