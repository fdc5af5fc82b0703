//! Positions of nodes, their distances, and routes.

/// Positions of the nodes. Distances are whole hops, and only nodes one hop apart can communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Line of nodes, from node 0 to the last one.
    Chain {
        /// Number of hops: one less than nodes.
        hops: u16,
    },
    /// Rows of nodes, numbered row by row. Packets go along the row first.
    Grid {
        /// Nodes per row, at least 1.
        width: u16,
        /// Number of rows.
        height: u16,
    },
    /// Node 0 in the middle; all others are one hop from it and two from each other.
    Star {
        /// Number of nodes around the middle.
        leaves: u16,
    },
}

impl Topology {
    /// Number of nodes.
    pub const fn nodes(self) -> u16 {
        match self {
            Self::Chain { hops } => hops.saturating_add(1),
            Self::Grid { width, height } => width.saturating_mul(height),
            Self::Star { leaves } => leaves.saturating_add(1),
        }
    }

    /// Number of hops between two nodes.
    pub const fn distance(self, one: u16, other: u16) -> u16 {
        match self {
            Self::Chain { .. } => one.abs_diff(other),
            Self::Grid { width, .. } => {
                let width = if width == 0 { 1 } else { width };
                (one / width).abs_diff(other / width) + (one % width).abs_diff(other % width)
            }
            Self::Star { .. } if one == other => 0,
            Self::Star { .. } if one == 0 || other == 0 => 1,
            Self::Star { .. } => 2,
        }
    }

    /// Next node on the route to another one.
    pub const fn next_hop(self, from: u16, to: u16) -> u16 {
        match self {
            Self::Chain { .. } => toward(from, to, 1),
            Self::Grid { width, .. } => {
                let width = if width == 0 { 1 } else { width };
                if from % width == to % width {
                    toward(from, to, width)
                } else {
                    from / width * width + toward(from % width, to % width, 1)
                }
            }
            Self::Star { .. } if from == 0 => to,
            Self::Star { .. } => 0,
        }
    }
}

const fn toward(from: u16, to: u16, step: u16) -> u16 {
    if to > from {
        from + step
    } else if to < from {
        from - step
    } else {
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_gets_shorter_by_a_hop_each_hop() {
        for topology in [
            Topology::Chain { hops: 5 },
            Topology::Grid { width: 4, height: 3 },
            Topology::Grid { width: 1, height: 3 },
            Topology::Star { leaves: 6 },
        ] {
            for (from, to) in
                (0..topology.nodes()).flat_map(|from| (0..topology.nodes()).map(move |to| (from, to)))
            {
                let (mut at, mut left) = (from, topology.distance(from, to));
                assert_eq!(left, topology.distance(to, from), "{topology:?} {from} {to}");
                while at != to {
                    let next = topology.next_hop(at, to);
                    assert_eq!(topology.distance(at, next), 1, "{topology:?} {from} {to} at {at}");
                    assert_eq!(topology.distance(next, to) + 1, left);
                    (at, left) = (next, left - 1);
                }
            }
        }
    }
}
