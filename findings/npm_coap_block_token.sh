#!/bin/sh
# A request in blocks fails if its blocks have tokens of their own.
#
# Expected: each block of a PUT with Block1 is a request with any token: the client chooses tokens for each exchange as it likes (RFC
# 7959, section 3.4). The first block is answered with 2.31, the last one with the code of the resource, 2.04, whether the tokens are
# equal or not.
# Version: coap 1.5.0 (npm).
# Behavior: the last block is answered with 5.00 where its token differs from that of the first one, from the same port.
# Output seen: "equal tokens 2.31 2.04, other tokens 2.31 5.00".
. "$(dirname "$0")/lib.sh"
node_packages coap@1.5.0
cat >server.js <<'END'
require('coap').createServer((request, response) => {
  response.code = '2.04'
  response.end()
}).listen(Number(process.argv[2]), '127.0.0.1')
END
cat >put.py <<'END'
import itertools
import socket
import sys
from coap_probe import message, ready
port = int(sys.argv[1])
ready(port, b"x")
message_ids = itertools.count(1000)


def codes(tokens):
    """Codes of the answers to a PUT in two blocks of 16 octets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(5)
        for number, token in enumerate(tokens):
            block = bytes([number << 4 | (1 - number) << 3])
            put = message(0, 3, next(message_ids), [(11, b"x"), (27, block)], b"b" * 16, token)
            one.sendto(put, ("127.0.0.1", port))
            code = one.recv(2048)[1]
            yield f"{code >> 5}.{code & 31:02}"


print("equal tokens", *codes([b"\x01", b"\x01"]), end=", ")
print("other tokens", *codes([b"\x02", b"\x03"]))
END
serve node server.js PORT
expect "coap 1.5.0, PUT in blocks" "$(python3 put.py "$port")" "equal tokens 2.31 2.04, other tokens 2.31 5.00"
