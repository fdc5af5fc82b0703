//! Packets of a link: the log of `thinair link run`, a line per packet, joined with its capture of the delivered IP
//! packets, which has their octets in the order of delivery.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use thinair_capture::Reader;

use crate::paper::PaperError;

/// Transit of a packet. Times are nanoseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkPacket {
    pub(super) entered: u64,
    /// Time of delivery; `None` if it was not delivered.
    pub(super) delivered: Option<u64>,
    /// Delay beyond the planned time of delivery, in nanoseconds.
    pub(super) late: u64,
    /// Size of the IP packet in octets; 0 for separate feedback of ROHC.
    pub(super) ip_octets: u64,
    /// Octets on the link: fewer if it is compressed.
    pub(super) link_octets: u64,
    /// Number of frames, and their octets with all overhead of the link.
    pub(super) frames: u64,
    pub(super) frame_octets: u64,
    /// Delivered IP packet. Empty if none was.
    pub(super) octets: Vec<u8>,
}

/// All packets of a link, in the order in which they entered.
pub(super) fn read(log: &Path, capture: &Path) -> Result<Vec<LinkPacket>, PaperError> {
    let text =
        std::fs::read_to_string(log).map_err(|source| PaperError::Open { path: log.to_owned(), source })?;
    join(&text, records(capture)?)
        .ok_or_else(|| PaperError::RealTime(format!("the log {} does not match its capture", log.display())))
}

/// Times and octets of a capture.
type Records = VecDeque<(u64, Vec<u8>)>;

fn records(path: &Path) -> Result<Records, PaperError> {
    let file = File::open(path).map_err(|source| PaperError::Open { path: path.to_owned(), source })?;
    let failed = |source| PaperError::Read { path: path.to_owned(), source };
    let mut reader = Reader::new(file).map_err(failed)?;
    let mut records = Records::new();
    while let Some(record) = reader.next_record() {
        let record = record.map_err(failed)?;
        records.push_back((record.time.as_nanos(), record.data.to_vec()));
    }
    Ok(records)
}

/// `None` if they do not fit together.
fn join(log: &str, mut records: Records) -> Option<Vec<LinkPacket>> {
    let mut lines = log.lines();
    let names: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| names.iter().position(|other| *other == name);
    let [entered, out, late] = ["in_ns", "out_ns", "late_ns"].map(column);
    let [ip_octets, link_octets, frames, frame_octets, fate] =
        ["ip_octets", "link_octets", "frames", "frame_octets", "fate"].map(column);
    let mut passed = Vec::new();
    let mut origin = None;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: Option<usize>| fields.get(at?)?.parse::<u64>().ok();
        let (mut delivered, mut octets) = (None, Vec::new());
        let fate = *fields.get(fate?)?;
        if let Some(out) = number(out).filter(|_| matches!(fate, "delivered" | "altered")) {
            let (time, came) = records.pop_front()?;
            // The log counts from the start of the link, captures from 1970.
            let origin = *origin.get_or_insert(time.checked_sub(out)?);
            delivered = (fate == "delivered").then_some(origin + out);
            octets = came;
        }
        passed.push(LinkPacket {
            entered: number(entered)?,
            delivered,
            late: number(late).unwrap_or(0),
            ip_octets: number(ip_octets)?,
            link_octets: number(link_octets)?,
            frames: number(frames)?,
            frame_octets: number(frame_octets)?,
            octets,
        });
    }
    if !records.is_empty() {
        return None;
    }
    // Undelivered packets have a time, from the same origin. Without any delivery there is none.
    for packet in &mut passed {
        packet.entered += origin.unwrap_or(0);
    }
    // The log has them in the order in which they ended.
    passed.sort_by_key(|packet| packet.entered);
    Some(passed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HEADER: &str = "number,from,in_ns,start_ns,tx_ns,out_ns,late_ns,ip_octets,link_octets,frames,frame_octets,fate,reason\n";

    #[test]
    fn lines_and_records_are_joined_in_their_order() {
        let log = format!(
            "{HEADER}0,A,10,10,20,40,3,30,20,1,20,delivered,\n2,A,15,,,,,30,20,0,0,dropped,queue\n1,B,12,12,22,42,,50,50,2,58,delivered,\n"
        );
        let records = || Records::from([(1_000_040, vec![1]), (1_000_042, vec![2, 3])]);
        let passed = join(&log, records()).unwrap();
        let times: Vec<_> = passed.iter().map(|packet| (packet.entered, packet.delivered)).collect();
        assert_eq!(times, [(1_000_010, Some(1_000_040)), (1_000_012, Some(1_000_042)), (1_000_015, None)]);
        assert_eq!((passed[0].late, &*passed[1].octets), (3, &[2, 3][..]));
        assert_eq!((passed[1].frames, passed[1].frame_octets), (2, 58));
        assert_eq!((passed[0].ip_octets, passed[0].link_octets), (30, 20));
    }

    /// Feedback, and packets that cannot be decompressed, arrive but are no packets.
    #[test]
    fn what_arrives_without_a_packet_has_no_record() {
        let log = format!(
            "{HEADER}0,B,10,10,20,40,,0,4,1,4,consumed,\n1,A,12,12,22,42,,30,9,1,9,not-decompressed,bad_crc\n\
            2,A,14,14,24,44,,30,9,1,9,delivered,\n"
        );
        let passed = join(&log, Records::from([(1_000_044, vec![1])])).unwrap();
        let times: Vec<_> = passed.iter().map(|packet| (packet.entered, packet.delivered)).collect();
        assert_eq!(times, [(1_000_010, None), (1_000_012, None), (1_000_014, Some(1_000_044))]);
        assert_eq!(passed.iter().map(|packet| packet.octets.len()).collect::<Vec<_>>(), [0, 0, 1]);
    }

    #[test]
    fn a_capture_of_another_run_is_refused() {
        let log = format!("{HEADER}0,A,10,10,20,40,3,30,20,1,20,delivered,\n");
        assert_eq!(join(&log, Records::new()), None);
        assert_eq!(join(&log, Records::from([(40, vec![1]), (41, vec![1])])), None);
        assert_eq!(join("", Records::new()), None);
        assert_eq!(join(HEADER, Records::new()), Some(Vec::new()));
    }
}
