//! Profile 0x0006: what rohc-lib and others have made of TCP streams, and what our compressor makes of the sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thinair_rohc::packet::{self, Body};
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, Decompressor, DecompressorConfig, DecompressorMemory, Format, Instant,
    Mode, ProfileId, ProfileSet,
};

use crate::streams::{cids_of, decode_with};
use crate::{Pair, ROOM, captures, compressor_config, files, records, stem, vectors};

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, cids.highest(), ProfileSet::v1().with(ProfileId::Tcp).unwrap()).unwrap()
}

fn decompressor(cids: CidSpace) -> Decompressor<'static> {
    let channel = channel(cids);
    let config = DecompressorConfig {
        mode: Mode::Optimistic,
        deliver_empty: true,
        ..DecompressorConfig::new(channel)
    };
    Decompressor::new(config, DecompressorMemory::owned(&channel, 64))
}

/// Each stream that their tests of RFC 6846 have: its source, and its goldens.
fn streams(folder: &Path) -> Vec<(PathBuf, Vec<PathBuf>)> {
    let sources = files(&folder.join("non_regression/rfc6846/inputs"), &|name| name == "source.pcap");
    let goldens = |source: &PathBuf| {
        let stream = source.parent().unwrap();
        files(stream, &|name| name.starts_with("rohc_"))
            .into_iter()
            .filter(|golden| golden.parent() == Some(stream))
            .collect()
    };
    sources.into_iter().map(|source| (source.clone(), goldens(&source))).collect()
}

#[test]
fn goldens_of_tcp_decode_to_their_source_packets() {
    let Some(folder) = vectors("goldens of profile 0x0006") else { return };
    let (mut good, mut all) = (0, 0);
    for (source, goldens) in streams(&folder) {
        let expected = records(&source);
        for golden in goldens {
            all += 1;
            let cids = cids_of(&golden);
            match decode_with(&records(&golden), &expected, [decompressor(cids), decompressor(cids)]) {
                Ok(()) => good += 1,
                Err(why) => println!("{}: {why}", golden.display()),
            }
        }
    }
    println!("{good} of {all} goldens decode to their source packets");
    assert_eq!((good, all), (1, 1));
}
