//! Example configurations, with a comment for every key.

/// Kind of example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// Two ends over UDP.
    Pair,
    /// One end with several peers over UDP.
    Hub,
    /// One end with many peers over UDP, in a file of their own.
    Fleet,
    /// A site of a mesh.
    Mesh,
    /// Common settings of all sites of a mesh.
    Shared,
    /// A receiver of a one-way transport stream.
    OneWay,
    /// Two ends of a serial line.
    Serial,
}

impl Template {
    /// All examples.
    pub const ALL: [Self; 7] =
        [Self::Pair, Self::Hub, Self::Fleet, Self::Mesh, Self::Shared, Self::OneWay, Self::Serial];

    /// Returns the text of the file.
    pub fn text(self) -> &'static str {
        match self {
            Self::Pair => include_str!("templates/pair.toml"),
            Self::Hub => include_str!("templates/hub.toml"),
            Self::Fleet => include_str!("templates/fleet.toml"),
            Self::Mesh => include_str!("templates/mesh.toml"),
            Self::Shared => include_str!("templates/shared.toml"),
            Self::OneWay => include_str!("templates/one-way.toml"),
            Self::Serial => include_str!("templates/serial.toml"),
        }
    }
}
