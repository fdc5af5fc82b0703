//! Growth of a flow's octets, packet by packet: start-up costs, and the packet from which on one scheme is
//! cheaper than another.
//!
//! Memory is proportional to the number of pairs of schemes; drawn flows also need memory logarithmic in
//! their packets.

use std::cmp::Ordering;

use crate::outcome::Milestone;

/// Octets of a flow so far, in each scheme.
#[derive(Debug)]
pub(crate) struct Course {
    now: Milestone,
    /// For each pair of schemes, in the order of [`pairs`].
    order: Vec<Order>,
    /// Schemes sorted by their sums, smallest first, each with the result of comparing it with the next one.
    /// While these results hold, `order` is unchanged.
    ranking: Vec<(usize, Ordering)>,
    /// `None` if the course is not drawn.
    milestones: Option<Vec<Milestone>>,
}

/// Comparison of the sums of two schemes.
#[derive(Clone, Copy, Debug)]
struct Order {
    is: Ordering,
    /// Packet of the flow that caused this result, from 1.
    since: u64,
}

/// A scheme that is cheaper than another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    pub(crate) cheaper: usize,
    pub(crate) than: usize,
    /// First packet of the flow from which on this holds, from 1.
    pub(crate) since: u64,
}

impl Course {
    /// Returns the course of an empty flow, with milestones if it is drawn.
    pub(crate) fn new(schemes: usize, is_drawn: bool) -> Self {
        Self {
            now: Milestone { packets: 0, bytes_in: 0, bytes_out: vec![0; schemes] },
            order: pairs(schemes).map(|_| Order { is: Ordering::Equal, since: 0 }).collect(),
            ranking: (0..schemes).map(|at| (at, Ordering::Equal)).collect(),
            milestones: is_drawn.then(Vec::new),
        }
    }

    /// Adds a packet: its original octets, and those that each scheme sent.
    pub(crate) fn add(&mut self, octets_in: u64, octets_out: &[u64]) {
        self.now.packets += 1;
        self.now.bytes_in += octets_in;
        for (sum, out) in self.now.bytes_out.iter_mut().zip(octets_out) {
            *sum += out;
        }
        if !self.is_ranked() {
            self.rank();
        }
        if let Some(milestones) = self.milestones.as_mut().filter(|_| is_milestone(self.now.packets)) {
            milestones.push(self.now.clone());
        }
    }

    /// True if comparing neighbors in the ranking still gives the stored results.
    fn is_ranked(&self) -> bool {
        let sums = &self.now.bytes_out;
        let mut neighbors = self.ranking.windows(2);
        neighbors.all(|pair| sums[pair[0].0].cmp(&sums[pair[1].0]) == pair[0].1)
    }

    fn rank(&mut self) {
        let sums = &self.now.bytes_out;
        for ((a, b), order) in pairs(sums.len()).zip(&mut self.order) {
            let is = sums[a].cmp(&sums[b]);
            if is != order.is {
                *order = Order { is, since: self.now.packets };
            }
        }
        self.ranking.sort_by_key(|(at, _)| sums[*at]);
        for at in 1..self.ranking.len() {
            let (before, here) = (self.ranking[at - 1].0, self.ranking[at].0);
            self.ranking[at - 1].1 = sums[before].cmp(&sums[here]);
        }
    }

    /// Returns the pairs in which one scheme is cheaper at the end, in the order of schemes.
    pub(crate) fn leads(&self) -> impl Iterator<Item = Lead> {
        pairs(self.now.bytes_out.len()).zip(&self.order).filter_map(|((a, b), order)| {
            let (cheaper, than) = match order.is {
                Ordering::Less => (a, b),
                Ordering::Greater => (b, a),
                Ordering::Equal => return None,
            };
            Some(Lead { cheaper, than, since: order.since })
        })
    }

    /// Returns the sums at some packets, including the last one: at each packet in the beginning, then less
    /// often. Empty if the course is not drawn.
    pub(crate) fn milestones(&self) -> Vec<Milestone> {
        let Some(mut milestones) = self.milestones.clone() else { return Vec::new() };
        if self.now.packets > 0 && !is_milestone(self.now.packets) {
            milestones.push(self.now.clone());
        }
        milestones
    }
}

/// Returns every pair of schemes.
fn pairs(schemes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..schemes).flat_map(move |a| (a + 1..schemes).map(move |b| (a, b)))
}

/// True for numbers of at most four significant bits, so that steps are at most an eighth.
fn is_milestone(packets: u64) -> bool {
    let width = u64::BITS - packets.leading_zeros();
    width <= 4 + packets.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(packets: &[[u64; 3]]) -> Course {
        let mut course = Course::new(3, true);
        for packet in packets {
            course.add(40, packet);
        }
        course
    }

    fn leads(course: &Course) -> Vec<(usize, usize, u64)> {
        course.leads().map(|lead| (lead.cheaper, lead.than, lead.since)).collect()
    }

    #[test]
    fn a_dear_start_is_made_up_for_by_cheap_packets() {
        // Sums: 60 10 10, 62 20 20, ..., 70 60 60, 72 70 70, 74 80 80.
        let mut packets = vec![[60, 10, 10]];
        packets.resize(8, [2, 10, 10]);
        let course = course(&packets);
        assert_eq!(leads(&course), [(0, 1, 8), (0, 2, 8)]);
        assert_eq!(course.now.bytes_out, [74, 80, 80]);
    }

    #[test]
    fn who_leads_for_a_while_only_does_not_lead_for_good() {
        let course = course(&[[5, 6, 4], [5, 3, 4], [5, 3, 4], [1, 9, 4], [1, 9, 4]]);
        // Sums: 5 6 4, 10 9 8, 15 12 12, 16 21 16, 17 30 20.
        assert_eq!(leads(&course), [(0, 1, 4), (0, 2, 5), (2, 1, 4)]);
    }

    #[test]
    fn what_costs_the_same_leads_nowhere() {
        assert!(leads(&course(&[[7, 7, 7], [1, 2, 3], [3, 2, 1]])).is_empty());
        assert!(leads(&course(&[])).is_empty() && course(&[]).milestones().is_empty());
    }

    #[test]
    fn milestones_are_dense_at_first_and_end_with_the_last_packet() {
        let mut course = Course::new(1, true);
        for _ in 0..100_001 {
            course.add(40, &[3]);
        }
        let milestones = course.milestones();
        let packets: Vec<_> = milestones.iter().map(|milestone| milestone.packets).collect();
        assert_eq!(packets[..20], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24]);
        assert_eq!(packets.last(), Some(&100_001));
        assert!(packets.len() < 130, "{}", packets.len());
        assert!(milestones.iter().all(|m| m.bytes_in == 40 * m.packets && m.bytes_out == [3 * m.packets]));
    }
}
