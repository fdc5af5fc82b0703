//! Many senders around one node.
