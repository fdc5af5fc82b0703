#!/bin/sh
# A request names another resource than its URI.
#
# Expected: percent-encoded octets of a URI are decoded when its path and query become options, RFC 7252, section 6.4, steps 8 and 9.
# Version: coap 1.5.0 (npm).
# Behavior: the client sends them as they are written: "/caf%C3%A9" becomes a Uri-Path of "caf%C3%A9", nine octets instead of five. A
# server that serves "café", or a segment "a/b", does not find it.
# Output seen: "a%2Fb | caf%C3%A9 | x=1%262".
. "$(dirname "$0")/lib.sh"
node_packages coap@1.5.0
cat >ask.js <<'END'
const coap = require("coap");
const { parse } = require("coap-packet");
const server = require("dgram").createSocket("udp4");
server.on("message", (datagram) => {
  console.log(parse(datagram).options.filter(({ name }) => /^Uri-(Path|Query)$/.test(name)).map(({ value }) => value).join(" | "));
  process.exit();
});
server.bind(0, "127.0.0.1", () => {
  coap.request(`coap://127.0.0.1:${server.address().port}/a%2Fb/caf%C3%A9?x=1%262`).end();
});
END
expect "coap 1.5.0, options of /a%2Fb/caf%C3%A9?x=1%262" "$(node ask.js)" "a%2Fb | caf%C3%A9 | x=1%262"
