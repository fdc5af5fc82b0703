"""Lets a real stack send RTP, ESP, AH or UDP-Lite over a virtual link of a network namespace, and captures it.

Usage: media.py SCENARIO OUT      in a network namespace of its own (`unshare --net`)
       media.py --list

OUT becomes a pcap file of raw IP packets; OUT.log has what the sender printed. Exit status: 0 if the capture is
complete (the last line printed says whose packets these are), 77 if this machine does not allow it (the last line
says why), anything else is a failure. No process outlives this one, and this one ends in SECONDS.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from capture import Capture

SECONDS = 50
IMPOSSIBLE = 77

# One end sends, and the other one listens to nobody: there are no answers, and none are refused.
INTERFACE = "v0"
HERE = {4: "10.99.0.1", 6: "fd00:ec0::1"}
THERE = {4: "10.99.0.2", 6: "fd00:ec0::2"}
# What is inside of tunnels.
INNER_HERE = {4: "10.98.0.1", 6: "fd00:ec1::1"}
INNER_THERE = {4: "10.98.0.2", 6: "fd00:ec1::2"}

PR_SET_PDEATHSIG = 1


class Impossible(Exception):
    """Something that this machine has not."""


class Link(Capture):
    """What goes to the other end, whatever it is."""

    def __init__(self, path):
        super().__init__(path, None, None, INTERFACE)

    def is_wanted(self, packet):
        if packet[0] >> 4 == 4:
            return packet[16:20] == socket.inet_aton(THERE[4])
        return packet[24:40] == socket.inet_pton(socket.AF_INET6, THERE[6])


class Sender:
    """What a scenario needs: the link, and time that passes while packets are captured."""

    def __init__(self, version, log, capture, folder):
        self.version = version
        self.here, self.there = HERE[version], THERE[version]
        self.family = socket.AF_INET6 if version == 6 else socket.AF_INET
        self.log = log
        self.capture = capture
        self.folder = folder

    def start(self, *command):
        print("$", *command, file=self.log, flush=True)
        output = {"stdout": self.log, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        env = {**os.environ, "GST_REGISTRY": os.path.join(self.folder, "gstreamer-registry")}
        return subprocess.Popen(command, preexec_fn=end_with_parent, env=env, **output)

    def wait(self, process):
        while process.poll() is None:
            self.capture.pump(0.01)
        if process.returncode != 0:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")

    def run(self, *command):
        self.wait(self.start(*command))

    def pause(self, seconds):
        """Like a sender that has a clock: packets are so long apart."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.capture.pump(left)


def end_with_parent():
    """Whatever ends a process ends the child that calls this."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def ip(*arguments):
    """The command of iproute2; what it refuses is not possible here."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Impossible(f"ip {' '.join(arguments[:2])}: {done.stderr.strip()}")


def setting(path, value):
    with open("/proc/sys/net/" + path, "w") as file:
        file.write(value)


def build_link():
    """A pair of virtual Ethernet devices, of which one has addresses, and neighbours that need not be asked for."""
    if shutil.which("ip") is None:
        raise Impossible("no command ip (Debian: iproute2)")
    ip("link", "set", "lo", "up")
    ip("link", "add", INTERFACE, "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "v1")
    for name in (INTERFACE, "v1"):
        # Nothing is sent that nobody asked for.
        setting(f"ipv6/conf/{name}/addr_gen_mode", "1")
        ip("link", "set", name, "up")
    ip("address", "add", HERE[4] + "/24", "dev", INTERFACE)
    ip("address", "add", HERE[6] + "/64", "nodad", "dev", INTERFACE)
    ip("address", "add", INNER_HERE[4] + "/32", "dev", INTERFACE)
    ip("address", "add", INNER_HERE[6] + "/128", "nodad", "dev", INTERFACE)
    for version in (4, 6):
        ip("neighbour", "add", THERE[version], "lladdr", "02:00:00:00:00:02", "dev", INTERFACE)
        ip(f"-{version}", "route", "add", INNER_THERE[version], "via", THERE[version], "src", INNER_HERE[version])


def main():
    import gstreamer
    import ipsec
    import udp_lite

    scenarios = {}
    for stack in (gstreamer, ipsec, udp_lite):
        scenarios.update(stack.SCENARIOS)
    if sys.argv[1:] == ["--list"]:
        print(*scenarios, sep="\n")
        return
    name, out = sys.argv[1:]
    version, scenario = scenarios[name]
    signal.alarm(SECONDS)
    try:
        build_link()
        capture = Link(out)
    except (Impossible, OSError) as error:
        print(error)
        sys.exit(IMPOSSIBLE)
    try:
        with open(out + ".log", "w") as log:
            whose = scenario(Sender(version, log, capture, os.path.dirname(os.path.abspath(out))))
    except Impossible as error:
        print(error)
        sys.exit(IMPOSSIBLE)
    capture.pump(0.1)
    capture.close()
    print(f"{capture.packets} packets of {whose}")


if __name__ == "__main__":
    # Scenarios import this file: there is to be one of it.
    sys.modules["media"] = sys.modules["__main__"]
    main()
