"""Lets a CoAP client and a CoAP server talk over the loopback interface, and captures what they say.

Usage: run.py STACK SCENARIO HOST OUT

HOST is 127.0.0.1 or ::1. OUT becomes a pcap file; OUT.log has what client and server printed. Exit status: 0 if the
capture is complete, 77 if this machine does not allow it (the last line printed says why), anything else is a
failure. No process outlives this one, and this one ends in SECONDS.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import libcoap
import aiocoap_peer
from capture import Capture

PORT = 5683
SECONDS = 30
IMPOSSIBLE = 77

STACKS = {"libcoap": libcoap, "aiocoap": aiocoap_peer}

PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


class Peers:
    """What a scenario needs: a place for files, and processes that are watched while packets are captured."""

    def __init__(self, host, folder, log, capture):
        self.host = host
        self.uri = f"coap://[{host}]" if ":" in host else f"coap://{host}"
        self.folder = folder
        self.log = log
        self.capture = capture

    def start(self, *command):
        print("$", *command, file=self.log, flush=True)
        output = {"stdout": self.log, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        return subprocess.Popen(command, preexec_fn=end_with_parent, **output)

    def wait(self, process):
        while process.poll() is None:
            self.capture.pump(0.01)
        if process.returncode != 0:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")

    def run(self, *command):
        self.wait(self.start(*command))

    def until(self, condition, server):
        while not condition():
            if server.poll() is not None:
                raise RuntimeError(f"{server.args} ended with {server.returncode}")
            time.sleep(0.01)

    def file(self, name, octets):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(octets)
        return path


def main():
    stack, scenario, host, out = sys.argv[1:]
    signal.alarm(SECONDS)
    try:
        bring_up("lo")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, PORT))
        capture = Capture(out, 6 if family == socket.AF_INET6 else 4, PORT)
    except OSError as error:
        print(f"{host}, port {PORT}: {error}")
        sys.exit(IMPOSSIBLE)

    with tempfile.TemporaryDirectory(dir=os.path.dirname(out) or ".") as folder, open(out + ".log", "w") as log:
        peers = Peers(host, folder, log, capture)
        server = STACKS[stack].server(peers)
        try:
            peers.until(lambda: is_bound(host), server)
            STACKS[stack].SCENARIOS[scenario](peers)
            # A client may have ended without waiting for the last answer.
            time.sleep(0.1)
        finally:
            server.kill()
            server.wait()
    capture.close()
    print(f"{capture.packets} packets")


def end_with_parent():
    """Whatever ends a process ends the child that calls this."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def bring_up(interface):
    """In a network namespace of one's own `lo` is down; elsewhere it is up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("@16sh14x", interface.encode(), 0)
        flags = struct.unpack("@16sh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        if not flags & IFF_UP:
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("@16sh14x", interface.encode(), flags | IFF_UP))


def is_bound(host):
    """Whether a socket has the address and port of the server. Asking the server would be a packet."""
    tables = ["/proc/net/udp6"] if ":" in host else ["/proc/net/udp", "/proc/net/udp6"]
    wanted = {table: local_address(host, table) for table in tables if os.path.exists(table)}
    for table, address in wanted.items():
        with open(table) as sockets:
            if any(line.split()[1] == address for line in sockets.readlines()[1:]):
                return True
    return False


def local_address(host, table):
    """As the kernel prints it: words of 32 bits in the order of the machine."""
    if ":" in host:
        octets = socket.inet_pton(socket.AF_INET6, host)
    else:
        mapped = bytes(10) + b"\xff\xff" if table.endswith("6") else b""
        octets = mapped + socket.inet_pton(socket.AF_INET, host)
    words = struct.unpack(f"={len(octets) // 4}I", octets)
    return "".join(f"{word:08X}" for word in words) + f":{PORT:04X}"


main()
