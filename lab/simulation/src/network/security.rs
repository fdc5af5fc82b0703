//! OSCORE security contexts (RFC 8613) of simulated clients, and of their server.

use thinair_coap::oscore::{Context, ContextParameters};

use super::ip::Address;

/// Returns the context of the client at an address, and that of its server. The kid has one octet for the first 256 clients: a message
/// has as few octets as possible.
pub(super) fn contexts(client: Address) -> (Context, Context) {
    let number = client.number().to_be_bytes();
    let client_id = if number[0] == 0 { &number[1..] } else { &number };
    let context = |sender_id, recipient_id| {
        let parameters = ContextParameters {
            master_secret: b"not secret at all",
            master_salt: b"",
            id_context: None,
            sender_id,
            recipient_id,
        };
        // Numbers need no storage: no other simulation has this context.
        let context = Context::new(&parameters, 0, true, |next: u64| next.checked_add(1 << 20));
        context.expect("the secret is long, and the identifiers are short")
    };
    (context(client_id, b"server"), context(b"server", client_id))
}
