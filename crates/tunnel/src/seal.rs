//! Bodies are sealed, and opened: by keys of a handshake between two, or of a group.
