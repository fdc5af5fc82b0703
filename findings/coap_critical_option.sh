#!/bin/sh
# An unknown critical option is ignored by two CoAP servers.
#
# Expected: a Confirmable request with a critical option (odd number) that the server does not recognize is answered with 4.02
# (Bad Option), RFC 7252, section 5.4.1.
# Versions: coap 1.5.0 (npm), aiocoap 0.4.12 (PyPI).
# Behavior: both pass the request to the resource, which has no part in the choice, and answer 2.05. Option 9999 is used; it is not
# registered. libcoap answers 4.02.
# Output seen: "ACK 2.05" from both.
set -eu
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || :; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
findings=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH="$findings" PYTHONDONTWRITEBYTECODE=1
cd "$folder"
expect() {
	if [ "$2" = "$3" ]; then echo "as recorded: $1: $2"; else echo "CHANGED: $1: $2; recorded: $3"; exit 1; fi
}
npm install --silent --no-audit --no-fund --prefix . coap@1.5.0
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check aiocoap==0.4.12
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
port=$(python3 -c 'import coap_probe; print(coap_probe.free_port())')
node server.js "$port" &
server=$!
expect "coap 1.5.0, critical option 9999" "$(python3 ask.py "$port")" "ACK 2.05"
kill "$server"
port=$(python3 -c 'import coap_probe; print(coap_probe.free_port())')
python/bin/python server.py "$port" &
server=$!
expect "aiocoap 0.4.12, critical option 9999" "$(python3 ask.py "$port")" "ACK 2.05"
