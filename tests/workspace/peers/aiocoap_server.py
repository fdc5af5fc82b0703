"""aiocoap's server over UDP and TCP, to try a client with. Usage: aiocoap_server.py HOST PORT

/store has what was put last; POST creates /store/made; /count can be observed, and changes every 50 ms; /late answers after
half a second.
"""

import asyncio
import os
import sys

os.environ["AIOCOAP_SERVER_TRANSPORT"] = "udp6:tcpserver"

import aiocoap.resource as resource
from aiocoap import CHANGED, CONTENT, CREATED, DELETED, Context, Message


class Store(resource.Resource):
    content = b"nothing yet"

    async def render_get(self, request):
        return Message(code=CONTENT, payload=self.content, content_format=42)

    async def render_put(self, request):
        self.content = request.payload
        return Message(code=CHANGED)

    async def render_post(self, request):
        return Message(code=CREATED, location_path=["store", "made"], payload=request.payload[:8])

    async def render_delete(self, request):
        self.content = b""
        return Message(code=DELETED)


class Late(resource.Resource):
    async def render_get(self, request):
        await asyncio.sleep(0.5)
        return Message(code=CONTENT, payload=b"late", content_format=0)


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
    site.add_resource([".well-known", "core"], resource.WKCResource(site.get_resources_as_linkheader))
    site.add_resource(["store"], Store())
    site.add_resource(["late"], Late())
    site.add_resource(["count"], Counter())
    await Context.create_server_context(site, bind=(sys.argv[1], int(sys.argv[2])))
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
