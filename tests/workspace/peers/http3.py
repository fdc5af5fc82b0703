"""HTTP/3 by aioquic, for tests/workspace/tests/http_peers.rs.

http3.py server FOLDER        serves 127.0.0.1:PORT: /N is N times "x"; its certificate is FOLDER/aioquic.pem. Prints the port
http3.py client PORT PEM PATH...   fetches from 127.0.0.1 over one connection: path, status, octets, SHA-256 of each
"""

import asyncio
import datetime
import hashlib
import ipaddress
import os
import sys

from aioquic.asyncio import connect, serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


class Server(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for said in self.http.handle_event(event):
            if isinstance(said, HeadersReceived):
                path = dict(said.headers)[b":path"][1:]
                found = path.isdigit()
                self.http.send_headers(said.stream_id, [(b":status", b"200" if found else b"404"), (b"server", b"aioquic")])
                self.http.send_data(said.stream_id, b"x" * int(path) if found else b"", end_stream=True)
        self.transmit()


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)
        self.waiting = {}

    async def get(self, authority, path):
        stream = self._quic.get_next_available_stream_id()
        done = self._loop.create_future()
        self.waiting[stream] = [None, b"", done]
        names = {":method": "GET", ":scheme": "https", ":authority": authority, ":path": path}
        headers = [(name.encode(), value.encode()) for name, value in names.items()]
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        return await asyncio.wait_for(done, 30)

    def quic_event_received(self, event):
        for said in self.http.handle_event(event):
            waits = self.waiting[said.stream_id]
            if isinstance(said, HeadersReceived):
                waits[0] = dict(said.headers)[b":status"].decode()
            elif isinstance(said, DataReceived):
                waits[1] += said.data
            if said.stream_ended:
                waits[2].set_result((waits[0], waits[1]))


def identity(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "aioquic")])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
    made = made.add_extension(address, critical=False).sign(key, hashes.SHA256())
    path = os.path.join(folder, "aioquic.pem")
    with open(path, "wb") as file:
        file.write(made.public_bytes(serialization.Encoding.PEM))
    return made, key


async def run_server(folder):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.certificate, configuration.private_key = identity(folder)
    server = await serve(HOST, 0, configuration=configuration, create_protocol=Server)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Future()


async def run_client(port, certificate, paths):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, cafile=certificate)
    async with connect(HOST, port, configuration=configuration, create_protocol=Client) as client:
        for path in paths:
            status, body = await client.get(f"{HOST}:{port}", path)
            print(path, status, len(body), hashlib.sha256(body).hexdigest(), flush=True)


def main():
    role, *arguments = sys.argv[1:]
    if role == "server":
        asyncio.run(run_server(*arguments))
    else:
        port, certificate, *paths = arguments
        asyncio.run(run_client(int(port), certificate, paths))


main()
