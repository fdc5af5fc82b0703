//! What a site tells of itself.
