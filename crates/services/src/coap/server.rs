//! Resources that are served on sockets, in one loop.
