//! Headers compressed towards one destination, and rebuilt.
