//! Octets of the longest packet, of what is added to it, and of what a carrier has room for.
