"""aiocoap as a client of one server, by OSCORE or DTLS: methods, blocks, an observation.

Usage: secure_client.py URI SECRETS, where URI is that of a folder that may be written to beside the test resources, and SECRETS a folder with a security context
or keys for EDHOC, or a file with a pre-shared key.
Prints a line for each thing that was so; ends with an error at the first that was not.
"""

import asyncio
import os
import sys

os.environ["AIOCOAP_CLIENT_TRANSPORT"] = "tinydtls" if sys.argv[1].startswith("coaps") else "oscore:udp6"

from aiocoap import CHANGED, CONTENT, CREATED, FETCH, GET, METHOD_NOT_ALLOWED, NOT_FOUND, PUT, Context, Message
from aiocoap.credentials import CredentialsMap

import security

URI, SECRETS = sys.argv[1:]


def so(what, is_so):
    if not is_so:
        sys.exit(f"not so: {what}")
    print(what, flush=True)


async def main():
    context = await Context.create_client_context()
    context.client_credentials = CredentialsMap()
    context.client_credentials.load_from_dict({URI + "/*": security.client(SECRETS)})

    async def ask(code, path, **more):
        return await asyncio.wait_for(context.request(Message(code=code, uri=URI + path, **more)).response, 60)

    so("GET of nothing", (await ask(GET, "/none.txt")).code == NOT_FOUND)
    so("PUT makes", (await ask(PUT, "/made.txt", payload=b"one")).code in (CREATED, CHANGED))
    answer = await ask(GET, "/made.txt")
    so("GET gets", answer.code == CONTENT and answer.payload == b"one")
    so("FETCH of a file is refused", (await ask(FETCH, "/made.txt", payload=b"x")).code == METHOD_NOT_ALLOWED)
    for names in (b"humidity", b"humidity\n" + 400 * b"unknown\n"):
        answer = await ask(FETCH, "/values", payload=names)
        so(f"FETCH selects by {len(names)} octets", answer.code == CONTENT and answer.payload == b"humidity=40\n")
    for octets in (3_000, 100_000):
        body = bytes(number * number % 251 for number in range(octets))
        so(f"{octets} octets go", (await ask(PUT, "/large.bin", payload=body)).code in (CREATED, CHANGED))
        so(f"{octets} octets come", (await ask(GET, "/large.bin")).payload == body)

    await ask(PUT, "/seen.txt", payload=b"0")
    request = context.request(Message(code=GET, uri=URI + "/seen.txt", observe=0))
    so("an observation begins", (await asyncio.wait_for(request.response, 60)).payload == b"0")
    states = aiter(request.observation)
    for state in (b"1", b"2", b"3"):
        await ask(PUT, "/seen.txt", payload=state)
        so(f"state {state.decode()} is told", (await asyncio.wait_for(anext(states), 60)).payload == state)
    request.observation.cancel()
    await context.shutdown()


asyncio.run(main())
