"""aiocoap on both sides: a server, and a client whose requests all have one port.

Usage, as a process of its own: aiocoap_peer.py server|SCENARIO HOST FOLDER
"""

import asyncio
import json
import os
import sys

# The sender of one is the recipient of the other. RFC 8613, appendix C.1.
SECRET = {"secret_hex": "0102030405060708090a0b0c0d0e0f10", "salt_hex": "9e7ca92223786340"}
OSCORE = {
    "client": {"sender-id_hex": "", "recipient-id_hex": "01", **SECRET},
    "server": {"sender-id_hex": "01", "recipient-id_hex": "", **SECRET},
}


def server(peers):
    for side, settings in OSCORE.items():
        os.mkdir(os.path.join(peers.folder, side))
        peers.file(f"{side}/settings.json", json.dumps(settings).encode())
    return peers.start(sys.executable, "-s", __file__, "server", peers.host, peers.folder)


def scenario(name):
    return lambda peers: peers.run(sys.executable, "-s", __file__, name, peers.host, peers.folder)


SCENARIOS = {name: scenario(name) for name in ("get", "put", "non", "observe", "block", "concurrent", "oscore")}

if __name__ == "__main__":
    # Without these there would also be sockets for TCP.
    os.environ["AIOCOAP_CLIENT_TRANSPORT"] = os.environ["AIOCOAP_SERVER_TRANSPORT"] = "oscore:udp6"

    import aiocoap
    import aiocoap.resource as resource
    from aiocoap import GET, PUT, CHANGED, CONTENT, Context, Message
    from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

    HOST, FOLDER = sys.argv[2:]
    URI = f"coap://[{HOST}]" if ":" in HOST else f"coap://{HOST}"
    BIG = bytes(number * number % 251 for number in range(3000))

    class Store(resource.Resource):
        """What was put last."""

        content = b"nothing yet"

        async def render_get(self, request):
            return Message(code=CONTENT, payload=self.content)

        async def render_put(self, request):
            self.content = request.payload
            return Message(code=CHANGED)

    class Reading(resource.Resource):
        """Takes as many milliseconds as the query says; beyond 100 the response is a separate one."""

        async def render_get(self, request):
            milliseconds = int((request.opt.uri_query or ["0"])[0])
            await asyncio.sleep(milliseconds / 1000)
            return Message(code=CONTENT, payload=b"%d ms" % milliseconds, content_format=0)

    class Counter(resource.ObservableResource):
        """Changes every 20 ms while somebody observes it."""

        def __init__(self):
            super().__init__()
            self.count = 0
            self.task = None

        def update_observation_count(self, observers):
            if observers and self.task is None:
                self.task = asyncio.get_running_loop().create_task(self.run())
            elif not observers and self.task is not None:
                self.task.cancel()
                self.task = None

        async def run(self):
            while True:
                await asyncio.sleep(0.02)
                self.count += 1
                self.updated_state()

        async def render_get(self, request):
            return Message(code=CONTENT, payload=b"count %d" % self.count, content_format=0)

    def credentials(side, key):
        loaded = aiocoap.credentials.CredentialsMap()
        loaded.load_from_dict({key: {"oscore": {"basedir": os.path.join(FOLDER, side) + "/"}}})
        return loaded

    async def serve():
        site = resource.Site()
        site.add_resource(["sensors", "temperature"], Reading())
        site.add_resource(["store"], Store())
        site.add_resource(["count"], Counter())
        site = OscoreSiteWrapper(site, credentials("server", ":client"))
        await Context.create_server_context(site, bind=(HOST, 5683))
        await asyncio.get_running_loop().create_future()

    async def ask(context, code, path, block_exponent=6, **fields):
        message = Message(code=code, uri=URI + path, **fields)
        # Blocks of 2 to the power of (exponent + 4) octets. RFC 7959, section 2.2.
        message.remote.maximum_block_size_exp = block_exponent
        return await context.request(message).response

    async def get(context):
        for _ in range(25):
            await ask(context, GET, "/sensors/temperature")
            await ask(context, GET, "/store")
        await ask(context, GET, "/sensors/temperature?120")
        await ask(context, GET, "/missing")

    async def put(context):
        for number in range(25):
            await ask(context, PUT, "/store", payload=b"reading %d" % number, content_format=0)
            stored = await ask(context, GET, "/store", accept=0)
            assert stored.payload == b"reading %d" % number

    async def non(context):
        for number in range(25):
            await ask(context, GET, "/sensors/temperature", transport_tuning=aiocoap.Unreliable)
            await ask(context, PUT, "/store", transport_tuning=aiocoap.Unreliable, payload=b"reading %d" % number)

    async def observe(context):
        request = context.request(Message(code=GET, uri=URI + "/count", observe=0))
        await request.response
        seen = 0
        async for _ in request.observation:
            seen += 1
            if seen == 40:
                break
        request.observation.cancel()
        # What follows a cancelled observation is refused with RST.
        await asyncio.sleep(0.3)
        await ask(context, GET, "/store")

    async def block(context):
        for exponent in (2, 4, 6):
            await ask(context, PUT, "/store", payload=BIG, block_exponent=exponent)
            stored = await ask(context, GET, "/store", block_exponent=exponent, block2=(0, False, exponent))
            assert stored.payload == BIG

    async def concurrent(context):
        for _ in range(4):
            times = [0, 30, 150, 5, 0, 200, 60, 0, 120, 10, 0, 0]
            await asyncio.gather(*(ask(context, GET, f"/sensors/temperature?{ms}") for ms in times))
            unreliable = {"transport_tuning": aiocoap.Unreliable}
            await asyncio.gather(
                *(ask(context, GET, f"/sensors/temperature?{ms}", **unreliable) for ms in times)
            )

    async def oscore(context):
        context.client_credentials = credentials("client", URI + "/*")
        await get(context)
        await put(context)
        await observe(context)

    async def ask_all():
        context = await Context.create_client_context()
        await asyncio.wait_for(globals()[sys.argv[1]](context), 20)
        await context.shutdown()

    asyncio.run(serve() if sys.argv[1] == "server" else ask_all())
