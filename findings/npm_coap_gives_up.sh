#!/bin/sh
# A client waits three times as long as it sends before it reports that there is no answer.
#
# Expected: a request to a server that does not answer has failed once the timeout behind the last transmission is over: MAX_TRANSMIT_WAIT,
# 93 s at most by default, RFC 7252, sections 4.2 and 4.8.2.
# Version: coap 1.5.0 (npm).
# Behavior: the error comes with the end of EXCHANGE_LIFETIME, the time for which a Message ID is not used again: 247 s by default, of which
# 35 to 45 s have transmissions. With the shorter times of this script, MAX_TRANSMIT_WAIT is 3.1 s, and EXCHANGE_LIFETIME 11.6 s.
# Output seen: "5 datagrams in 2 s | error after 12 s".
. "$(dirname "$0")/lib.sh"
node_packages coap@1.5.0
cat >ask.js <<'END'
const coap = require("coap");
coap.updateTiming({ ackTimeout: 0.1, ackRandomFactor: 1, maxLatency: 5 });
const server = require("dgram").createSocket("udp4");
const arrived = [];
const begun = Date.now();
const seconds = (time) => Math.round((time - begun) / 1000);
server.on("message", () => arrived.push(Date.now()));
server.bind(0, "127.0.0.1", () => {
  const request = coap.request(`coap://127.0.0.1:${server.address().port}/x`);
  request.on("error", () => {
    console.log(`${arrived.length} datagrams in ${seconds(arrived.at(-1))} s | error after ${seconds(Date.now())} s`);
    process.exit();
  });
  request.end();
});
END
expect "coap 1.5.0, a server that does not answer" "$(node ask.js)" "5 datagrams in 2 s | error after 12 s"
