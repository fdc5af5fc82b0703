//! Search for secrets in the memory of processes. They are given as complements of their octets, so that the memory of the process that
//! searches does not have them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

/// Octets that are read at a time.
const PART: usize = 1 << 18;

/// Returns how often each secret is in the writable memory of a process.
///
/// # Errors
/// The memory cannot be read: that of processes that are hidden from core dumps needs root.
pub fn found(process: u32, complements: &[&[u8]]) -> io::Result<Vec<usize>> {
    let memory = File::open(format!("/proc/{process}/mem"))?;
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let mut counts = vec![0; complements.len()];
    let longest = complements.iter().map(|complement| complement.len()).max().unwrap_or(1);
    // A secret that is found is in this part, too, where it is not found again.
    let mut part = vec![0_u8; PART];
    let own = match process == std::process::id() {
        true => part.as_ptr() as u64..part.as_ptr() as u64 + PART as u64,
        false => 0..0,
    };
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let bounds = line.split_once(' ').and_then(|(bounds, _)| bounds.split_once('-'));
        let (start, end) = bounds.expect("a line of maps begins with two addresses");
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        for (start, end) in [(start, end.min(own.start.max(start))), (start.max(own.end), end)] {
            let mut at = start;
            while at < end {
                let len = PART.min((end - at) as usize);
                if memory.read_exact_at(&mut part[..len], at).is_ok() {
                    // A part begins with the end of the one before; what is whole there was counted.
                    let before = if at == start { 0 } else { longest - 1 };
                    for (count, complement) in counts.iter_mut().zip(complements) {
                        let is = |window: &[u8]| {
                            window.iter().zip(*complement).all(|(octet, other)| *octet == !other)
                        };
                        let windows = part[..len].windows(complement.len()).enumerate();
                        let new = windows.filter(|(place, _)| place + complement.len() > before);
                        *count += new.filter(|(_, window)| is(window)).count();
                    }
                }
                at += if len < PART { len } else { len - (longest - 1) } as u64;
            }
        }
    }
    part.fill(0);
    std::hint::black_box(&part);
    Ok(counts)
}

/// Returns the complements of the hexadecimal digits of a secret.
pub fn digits(complements: &[u8]) -> Vec<u8> {
    let digit = |value: u8| !(if value < 10 { b'0' + value } else { b'a' + value - 10 });
    complements.iter().flat_map(|octet| [digit(!octet >> 4), digit(!octet & 0xF)]).collect()
}
