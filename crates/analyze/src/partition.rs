//! Partitions of a link: parallel channels, selected by the two addresses of a packet.

use std::net::IpAddr;

use crate::loss::mix;

/// Returns the partition of the packets between two hosts in both directions, from 0.
pub(crate) fn partition(one: IpAddr, other: IpAddr, partitions: u32) -> u32 {
    let hash = [one.min(other), one.max(other)].into_iter().fold(0, |hash, address| {
        let bits = match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        mix(mix(hash ^ (bits >> 64) as u64) ^ bits as u64)
    });
    // The hash as a fraction of 2^64, times the number of partitions.
    ((u128::from(hash) * u128::from(partitions)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_share_a_partition_and_all_partitions_are_used_alike() {
        let mut hosts = [0; 16];
        for host in 0..16_000_u32 {
            let (one, other) = (IpAddr::from(host.to_be_bytes()), IpAddr::from([10, 99, 0, 1]));
            let at = partition(one, other, 16);
            assert_eq!(at, partition(other, one, 16));
            assert_eq!(partition(one, other, 1), 0);
            hosts[at as usize] += 1;
        }
        assert!(hosts.iter().all(|hosts| (900..1_100).contains(hosts)), "{hosts:?}");
    }
}
