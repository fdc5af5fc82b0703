//! One exchange, or an observation, from a URI to its response.
