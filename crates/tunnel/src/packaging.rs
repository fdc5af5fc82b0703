//! Units of several kinds become bodies of datagrams, and come out of them again.
