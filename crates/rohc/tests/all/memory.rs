//! Memory of contexts, on a machine with pointers of 64 bits.

use thinair_rohc::storage::{ExtensionBlock, TcpRoom, Template};
use thinair_rohc::{CompressorStorage, DecompressorStorage};

/// A context of any profile with its place in the index of flows and a block of extension headers. Templates are in the pool of
/// its channel.
#[test]
fn a_context_takes_at_most_536_octets_on_either_side() {
    let compressor = size_of::<CompressorStorage<1, [ExtensionBlock; 1]>>();
    let decompressor = size_of::<DecompressorStorage<1, [ExtensionBlock; 1]>>();
    assert!(compressor <= 536, "compressor: {compressor}");
    assert!(decompressor <= 512, "decompressor: {decompressor}");
}

/// A context with the additional place for a flow of profile 0x0006.
#[test]
fn a_context_of_tcp_takes_at_most_792_octets_on_either_side() {
    let compressor = size_of::<CompressorStorage<1, [TcpRoom; 1]>>();
    let decompressor = size_of::<DecompressorStorage<1, [TcpRoom; 1]>>();
    assert!(compressor <= 792, "compressor: {compressor}");
    assert!(decompressor <= 768, "decompressor: {decompressor}");
}

#[test]
fn a_template_takes_at_most_48_octets() {
    let template = size_of::<CompressorStorage<1, [Template; 10]>>() - size_of::<CompressorStorage<1, ()>>();
    assert!(template <= 480, "{template}");
}
