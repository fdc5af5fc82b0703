#!/bin/sh
# A client runs a key exchange for every request.
#
# Expected: EDHOC gives two ends keys for a security context, which protects the requests that follow (RFC 9528, appendix A.1). A client with
# one entry `edhoc-oscore` in its credentials agrees once with a server, and sends three requests in that context.
# Version: aiocoap 0.4.17 (PyPI), both ends, in their default settings.
# Behavior: each request is preceded by a key exchange of its own: 64 + 52 octets, and two key agreements at either end. A server that keeps a
# few contexts of each client ends the context of an observation after as many further requests.
# Guess before the first run: 3 requests, 3 exchanges.
# Output seen: 3 requests, 3 exchanges.
. "$(dirname "$0")/lib.sh"
python_packages 'aiocoap[oscore]==0.4.17' lakers-python==0.6.2 cbor-diag==1.1.0
cat >exchanges.py <<'END'
import asyncio, os, sys
os.environ["AIOCOAP_CLIENT_TRANSPORT"] = os.environ["AIOCOAP_SERVER_TRANSPORT"] = "oscore:udp6"
import aiocoap, coap_probe
from aiocoap import GET, Context, Message, edhoc, resource
from aiocoap.credentials import CredentialsMap
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

exchanges = 0

class Counting(OscoreSiteWrapper):
    def _process_edhoc_msg12(self, pipe):
        global exchanges
        exchanges += 1
        return super()._process_edhoc_msg12(pipe)

class Hello(resource.Resource):
    async def render_get(self, request):
        return Message(payload=b"hello")

def own(kid):
    key = edhoc.CoseKeyForEdhoc.generate()
    return {"suite": 2, "method": 3, "own_cred_style": "by-key-id", "own_cred": key.as_ccs(kid, ""), "private_key": key.secret_to_map()}

async def main():
    port = coap_probe.free_port()
    origin = f"coap://127.0.0.1:{port}"
    client, server = own(b"\1"), own(b"\2")
    site = resource.Site()
    site.add_resource(["hello"], Hello())
    credentials = CredentialsMap()
    credentials.load_from_dict({
        f"{origin}/*": {"edhoc-oscore": server},
        ":client": {"edhoc-oscore": {"suite": 2, "method": 3, "peer_cred": client["own_cred"]}},
    })
    await Context.create_server_context(Counting(site, credentials), bind=("127.0.0.1", port))
    asking = await Context.create_client_context()
    asking.client_credentials = CredentialsMap()
    asking.client_credentials.load_from_dict({f"{origin}/*": {"edhoc-oscore": client | {"peer_cred": server["own_cred"]}}})
    answers = 0
    for _ in range(3):
        answer = await asking.request(Message(code=GET, uri=f"{origin}/hello")).response
        answers += answer.payload == b"hello"
    print(f"{answers} requests, {exchanges} exchanges")
    sys.stdout.flush()
    os._exit(0)

asyncio.run(main())
END
expect "aiocoap 0.4.17, key exchanges" "$(python/bin/python exchanges.py)" "3 requests, 3 exchanges"
