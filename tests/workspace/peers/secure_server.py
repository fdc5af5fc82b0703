"""aiocoap's server by OSCORE, or by DTLS one port above. Usage: secure_server.py HOST PORT SECRETS, where SECRETS is a folder with a
security context or keys for EDHOC, or a file with a pre-shared key.

/store has what was put last; FETCH gets as many octets of it as the payload says; /count can be observed, and changes every 50
ms. A request that is not protected is answered with 4.01.
"""

import asyncio
import os
import sys

IS_DTLS = os.path.isfile(sys.argv[3])
os.environ["AIOCOAP_SERVER_TRANSPORT"] = "tinydtls_server" if IS_DTLS else "oscore:udp6"

import aiocoap.resource as resource
from aiocoap import CHANGED, CONTENT, UNAUTHORIZED, Context, Message
from aiocoap.credentials import CredentialsMap
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

import security

HOST, PORT, SECRETS = sys.argv[1:]


def is_protected(request):
    return ":client" in request.remote.authenticated_claims


class Store(resource.Resource):
    content = b"nothing yet"

    async def render_get(self, request):
        if not is_protected(request):
            return Message(code=UNAUTHORIZED)
        return Message(code=CONTENT, payload=self.content, content_format=42)

    async def render_fetch(self, request):
        return Message(code=CONTENT, payload=self.content[: int(request.payload)], content_format=42)

    async def render_put(self, request):
        self.content = request.payload
        return Message(code=CHANGED)


class Counter(resource.ObservableResource):
    count = 0

    def __init__(self):
        super().__init__()
        self.task = asyncio.get_running_loop().create_task(self.run())

    async def run(self):
        while True:
            await asyncio.sleep(0.05)
            self.count += 1
            self.updated_state()

    async def render_get(self, request):
        return Message(code=CONTENT, payload=b"count %d" % self.count, content_format=0)


async def main():
    site = resource.Site()
    site.add_resource(["store"], Store())
    site.add_resource(["count"], Counter())
    credentials = CredentialsMap()
    credentials.load_from_dict(security.server(SECRETS, f"coap://{HOST}:{PORT}"))
    wrapped = site if IS_DTLS else OscoreSiteWrapper(site, credentials)
    await Context.create_server_context(wrapped, bind=(HOST, int(PORT)), server_credentials=credentials)
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
