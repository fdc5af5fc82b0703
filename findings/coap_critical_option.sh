#!/bin/sh
# An unknown critical option is ignored by two CoAP servers.
#
# Expected: a Confirmable request with a critical option (odd number) that the server does not recognize is answered with 4.02
# (Bad Option), RFC 7252, section 5.4.1.
# Versions: coap 1.5.0 (npm), aiocoap 0.4.12 (PyPI).
# Behavior: both pass the request to the resource, which has no part in the choice, and answer 2.05. Option 9999 is used; it is not
# registered. libcoap answers 4.02.
# Output seen: "ACK 2.05" from both.
. "$(dirname "$0")/lib.sh"
node_packages coap@1.5.0
python_packages aiocoap==0.4.12
cat >server.js <<'END'
require('coap').createServer((request, response) => response.end('hello')).listen(Number(process.argv[2]), '127.0.0.1')
END
cat >server.py <<'END'
import asyncio, sys
import aiocoap, aiocoap.resource

class Hello(aiocoap.resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=b"hello")

async def main():
    site = aiocoap.resource.Site()
    site.add_resource(["x"], Hello())
    await aiocoap.Context.create_server_context(site, bind=("127.0.0.1", int(sys.argv[1])))
    await asyncio.Event().wait()

asyncio.run(main())
END
cat >ask.py <<'END'
import sys
from coap_probe import ask, message, ready
port = int(sys.argv[1])
ready(port, b"x")
print(ask(port, message(0, 1, 1000, [(11, b"x"), (9999, b"a")]))[:8])
END
serve node server.js PORT
expect "coap 1.5.0, critical option 9999" "$(python3 ask.py "$port")" "ACK 2.05"
serve python/bin/python server.py PORT
expect "aiocoap 0.4.12, critical option 9999" "$(python3 ask.py "$port")" "ACK 2.05"
