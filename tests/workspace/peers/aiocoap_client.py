"""aiocoap as a client of one server: all methods, an observation, a large body both ways.

Usage: aiocoap_client.py URI FILE, where URI is that of a folder that may be written to, and FILE has the large body.
Prints a line for each thing that was so; ends with an error at the first that was not.
"""

import asyncio
import os
import sys

os.environ["AIOCOAP_CLIENT_TRANSPORT"] = "tcpclient:udp6"

from aiocoap import CHANGED, CONTENT, CREATED, DELETE, DELETED, GET, NOT_FOUND, POST, PUT, VALID, Context, Message

URI, FILE = sys.argv[1:]
BODY = open(FILE, "rb").read()


async def main():
    context = await Context.create_client_context()

    async def ask(code, path, **more):
        return await asyncio.wait_for(context.request(Message(code=code, uri=URI + path, **more)).response, 60)

    def so(what, is_so):
        if not is_so:
            sys.exit(f"not so: {what}")
        print(what, flush=True)

    so("PUT makes", (await ask(PUT, "/made.txt", payload=b"one")).code == CREATED)
    so("PUT changes", (await ask(PUT, "/made.txt", payload=b"two")).code == CHANGED)
    answer = await ask(GET, "/made.txt")
    so("GET gets", answer.code == CONTENT and answer.payload == b"two" and answer.opt.content_format == 0)
    so("an ETag holds", (await ask(GET, "/made.txt", etags=[answer.opt.etag])).code == VALID)
    posted = await ask(POST, "/", payload=b"posted", content_format=0)
    so("POST makes", posted.code == CREATED)
    so("where it says", (await ask(GET, "/" + "/".join(posted.opt.location_path))).payload == b"posted")
    so("DELETE deletes", (await ask(DELETE, "/made.txt")).code == DELETED)
    so("what is gone is gone", (await ask(GET, "/made.txt")).code == NOT_FOUND)
    so("a large body goes", (await ask(PUT, "/large.bin", payload=BODY)).code == CREATED)
    so("a large body comes", (await ask(GET, "/large.bin")).payload == BODY)

    await ask(PUT, "/seen.txt", payload=b"0")
    request = context.request(Message(code=GET, uri=URI + "/seen.txt", observe=0))
    so("an observation begins", (await asyncio.wait_for(request.response, 60)).payload == b"0")
    states = aiter(request.observation)
    for state in (b"1", b"2", b"3"):
        await ask(PUT, "/seen.txt", payload=state)
        seen = await asyncio.wait_for(anext(states), 60)
        so(f"state {state.decode()} is told", seen.payload == state)
    request.observation.cancel()
    await context.shutdown()


asyncio.run(main())
