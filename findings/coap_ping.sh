#!/bin/sh
# A CoAP ping gets an answer with a response code.
#
# Expected: an Empty Confirmable message ("CoAP ping") is rejected with a Reset message, RFC 7252, sections 4.2 and 4.3.
# Version: coap 1.5.0 (npm).
# Behavior: the server passes the Empty message to the resources as a request, and answers with an acknowledgment of code 4.04 and
# no token. A client that takes only Reset messages as answers to its pings finds the peer dead.
# Output seen: "ACK 4.04".
. "$(dirname "$0")/lib.sh"
node_packages coap@1.5.0
cat >server.js <<'END'
require('coap').createServer((request, response) => {
  response.code = request.url === '/x' ? '2.05' : '4.04'
  response.end()
}).listen(Number(process.argv[2]), '127.0.0.1')
END
cat >ask.py <<'END'
import sys
from coap_probe import ask, message, ready
port = int(sys.argv[1])
ready(port, b"x")
print(ask(port, message(0, 0, 1000, token=b"")))
END
serve node server.js PORT
expect "coap 1.5.0, ping" "$(python3 ask.py "$port")" "ACK 4.04"
