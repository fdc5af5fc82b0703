"""Makes the captures of crates/analyze/tests/causes with programs as they are installed, between two network namespaces.

Usage, as root: causes.py FOLDER [NAME...]      Programs that are missing are named, and their captures left out.

Each capture has a pair of namespaces of its own, which are 192.0.2.1 and 192.0.2.2, 2001:db8::1 and 2001:db8::2, with fixed
Ethernet addresses and offloads off. tcpdump writes the frames of the first one's interface. PROGRAMS names folders that are
searched first, PYTHONPATH those of aioquic.
"""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
ADDRESS, SERVER = "192.0.2.1", "192.0.2.2"


class Hosts:
    """Two namespaces with a cable, and a folder."""

    def __init__(self, folder, capture, setup=None):
        self.folder, self.capture, self.processes = folder, capture, []
        self.names = [f"causes-{os.getpid()}-{end}" for end in "ab"]
        for name in self.names:
            run("ip", "netns", "add", name)
        a, b = self.names
        run("ip", "-n", a, "link", "add", "cable0", "type", "veth", "peer", "name", "cable0", "netns", b)
        for end, name in enumerate(self.names, 1):
            run("ip", "-n", name, "link", "set", "cable0", "address", f"02:00:00:00:00:0{end}")
            self.at(name, offloads_off)
            run("ip", "-n", name, "address", "add", f"192.0.2.{end}/24", "dev", "cable0")
            run("ip", "-n", name, "address", "add", f"2001:db8::{end}/64", "dev", "cable0")
            run("ip", "-n", name, "link", "set", "lo", "up")
        if setup:
            setup(self)
        else:
            self.up()
            time.sleep(4)
            run("ip", "netns", "exec", a, "ping", "-qc1", SERVER)
            self.record()

    def up(self):
        for name in self.names:
            run("ip", "-n", name, "link", "set", "cable0", "up")

    def record(self):
        options = ["-U", "-p", "-i", "cable0", "--time-stamp-precision=nano", "-w", self.capture]
        self.dump = self.start(0, "tcpdump", "-Z", "root", *options)
        time.sleep(1)

    def at(self, name, function):
        """Calls a function in a namespace."""
        with open("/proc/self/ns/net") as before, open(f"/run/netns/{name}") as there:
            LIBC.setns(there.fileno(), CLONE_NEWNET)
            try:
                function()
            finally:
                LIBC.setns(before.fileno(), CLONE_NEWNET)

    def start(self, end, *command, **options):
        program = shutil.which(command[0], path=os.environ.get("PROGRAMS", "") + ":" + os.environ["PATH"] + ":/usr/sbin")
        if program is None:
            raise FileNotFoundError(command[0])
        log = open(os.path.join(self.folder, f"{os.path.basename(command[0])}-{end}.log"), "a")
        settings = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": self.folder, **options}
        process = subprocess.Popen(["ip", "netns", "exec", self.names[end], program, *command[1:]], **settings)
        self.processes.append(process)
        return process

    def run(self, *command, **options):
        """Runs a program of the client to its end."""
        self.start(0, *command, **options).wait(60)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o600)
        return path

    def close(self):
        time.sleep(1)
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGINT if process is self.dump else signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for name in self.names:
            run("ip", "netns", "delete", name)


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def offloads_off():
    """linux/ethtool.h: checksums, scatter-gather, TSO, GSO, GRO."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in (0x17, 0x1F, 0x24, 0x2C, 0x19):
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
            request = struct.pack("16sP", b"cable0", ctypes.addressof(value))
            fcntl.ioctl(any_socket, 0x8946, request)


def certificate(hosts):
    names = "subjectAltName=DNS:server.example.net,IP:192.0.2.2"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
        "-subj", "/CN=server.example.net", "-addext", names, "-keyout", f"{hosts.folder}/key.pem", "-out", f"{hosts.folder}/cert.pem")  # fmt: skip
    os.chmod(f"{hosts.folder}/key.pem", 0o644)
    os.chmod(hosts.folder, 0o755)


def mqtt_tls(hosts):
    certificate(hosts)
    lines = ["listener 8883 192.0.2.2", "allow_anonymous true", "user root", f"cafile {hosts.folder}/cert.pem"]
    lines += [f"certfile {hosts.folder}/cert.pem", f"keyfile {hosts.folder}/key.pem"]
    hosts.start(1, "mosquitto", "-c", hosts.file("mosquitto.conf", "\n".join(lines) + "\n"))
    time.sleep(1)
    options = ["-h", SERVER, "-p", "8883", "--cafile", f"{hosts.folder}/cert.pem", "-q", "1"]
    hosts.start(0, "mosquitto_sub", *options, "-k", "5", "-i", "display", "-t", "field/#")
    for reading in range(3):
        time.sleep(7)
        hosts.run("mosquitto_pub", *options, "-i", f"sensor{reading}", "-t", "field/temperature", "-m", f"21.{reading}")
    time.sleep(11)


def mqtt_idle(hosts):
    conf = hosts.file("mosquitto.conf", "listener 1883 192.0.2.2\nallow_anonymous true\nuser root\n")
    hosts.start(1, "mosquitto", "-c", conf)
    time.sleep(1)
    hosts.start(0, "mosquitto_sub", "-h", SERVER, "-k", "5", "-i", "display", "-t", "field/#")
    time.sleep(6)
    hosts.run("mosquitto_pub", "-h", SERVER, "-i", "sensor", "-q", "1", "-t", "field/temperature", "-m", "21.5")
    time.sleep(25)


def coap_observe(hosts):
    hosts.start(1, "coap-server-notls", "-A", SERVER)
    time.sleep(1)
    hosts.run("coap-client-notls", "-s", "20", "-B", "30", f"coap://{SERVER}/time")


def coap_polling(hosts):
    hosts.start(1, "coap-server-notls", "-A", SERVER)
    time.sleep(1)
    for _ in range(12):
        hosts.run("coap-client-notls", "-B", "10", f"coap://{SERVER}/example_data")
        time.sleep(1)


def dtls_coap(hosts):
    hosts.start(1, "coap-server-openssl", "-A", SERVER, "-k", "1a2b3c4d")
    time.sleep(1)
    for _ in range(3):
        options = ["-u", "device", "-k", "1a2b3c4d", "-G", "4", "-B", "20"]
        hosts.run("coap-client-openssl", *options, f"coaps://{SERVER}/time")


def https_polling(hosts):
    certificate(hosts)
    hosts.file("status", '{"temperature": 21.5, "door": "closed"}\n')
    hosts.start(1, "openssl", "s_server", "-quiet", "-accept", "443", "-key", "key.pem", "-cert", "cert.pem", "-WWW")
    hosts.start(1, "dnsmasq", "-k", "-R", "-h", "-u", "root", "-a", SERVER, "-T", "300", "-H", hosts.file("hosts", f"{SERVER} server.example.net\n"))
    time.sleep(1)
    os.makedirs(f"/etc/netns/{hosts.names[0]}", exist_ok=True)
    with open(f"/etc/netns/{hosts.names[0]}/resolv.conf", "w") as resolver:
        resolver.write(f"nameserver {SERVER}\n")
    for _ in range(8):
        hosts.run("curl", "-s4", "--cacert", "cert.pem", "https://server.example.net/status")
        time.sleep(2)
    shutil.rmtree(f"/etc/netns/{hosts.names[0]}")


def http_polling(hosts):
    os.makedirs(f"{hosts.folder}/www")
    hosts.file("www/status", '{"temperature": 21.5, "door": "closed"}\n')
    hosts.start(1, sys.executable, "-m", "http.server", "80", "--bind", SERVER, "--directory", "www")
    time.sleep(1)
    for _ in range(8):
        hosts.run("curl", "-s", f"http://{SERVER}/status")
        time.sleep(1)


def ssh(hosts):
    for name in ("host", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", f"{hosts.folder}/{name}")
    shutil.copy(f"{hosts.folder}/user.pub", f"{hosts.folder}/authorized")
    lines = [f"HostKey {hosts.folder}/host", f"AuthorizedKeysFile {hosts.folder}/authorized", "StrictModes no", "UsePAM no"]
    conf = hosts.file("sshd.conf", "\n".join(lines + ["PermitRootLogin yes", f"PidFile {hosts.folder}/pid"]) + "\n")
    os.makedirs("/run/sshd", exist_ok=True)
    hosts.start(1, "sshd", "-D", "-e", "-f", conf)
    time.sleep(1)
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ServerAliveInterval=3"]
    command = "echo $((6 * 7)); sleep 10; head -c 3000 /dev/zero"
    hosts.run("ssh", *options, "-F", "none", "-i", f"{hosts.folder}/user", f"root@{SERVER}", command)


def call(hosts):
    def side(end, to):
        source = ["audiotestsrc", "wave=ticks", "num-buffers=200", "samplesperbuffer=320", "!", "audio/x-raw,rate=16000,channels=1"]
        encoder = ["opusenc", "bitrate=16000", "audio-type=voice", "frame-size=20", "!", "rtpopuspay"]
        rtp = ["rtp.send_rtp_sink_0", "rtp.send_rtp_src_0", "!", "udpsink", f"host={to}", "port=5004", "bind-port=5004"]
        rtcp = ["rtp.send_rtcp_src_0", "!", "udpsink", f"host={to}", "port=5005", "bind-port=5005", "sync=false", "async=false"]
        return hosts.start(end, "gst-launch-1.0", "rtpbin", "name=rtp", *source, "!", "audioconvert", "!", "audioresample", "!",
                           *encoder, "!", *rtp, *rtcp)  # fmt: skip

    ends = [side(0, SERVER), side(1, ADDRESS)]
    for end in ends:
        end.wait(30)


def dns(hosts):
    names = "".join(f"{SERVER} {name}.example.net\n" for name in ("api", "time", "files"))
    hosts.start(1, "dnsmasq", "-k", "-R", "-h", "-u", "root", "-a", SERVER, "-T", "30", "-H", hosts.file("hosts", names))
    time.sleep(1)
    for _ in range(5):
        for name in ("api", "time", "files"):
            hosts.run("dig", "+noall", f"@{SERVER}", f"{name}.example.net")
        time.sleep(2)


def update(hosts):
    git = ["git", "-C", f"{hosts.folder}/site/data", "-c", "user.name=site", "-c", "user.email=site@example.net"]
    os.makedirs(f"{hosts.folder}/site/data")
    run(*git, "init", "-q", "-b", "main")

    def commit(number):
        with open(f"{hosts.folder}/site/data/table", "a") as table:
            table.writelines(f"{number} {line * line % 977}\n" for line in range(400))
        run(*git, "add", "table")
        run(*git, "commit", "-qm", f"table {number}")

    commit(1)
    daemon = ["daemon", f"--listen={SERVER}", "--export-all", f"--base-path={hosts.folder}/site", "--reuseaddr"]
    safe = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    hosts.start(1, "git", *daemon, env=safe)
    time.sleep(1)
    hosts.run("git", "clone", "-q", f"git://{SERVER}/data", "copy")
    for number in (2, 3):
        hosts.run("git", "-C", "copy", "fetch", "-q")
        commit(number)
        hosts.run("git", "-C", "copy", "fetch", "-q")


def openvpn(hosts):
    certificate(hosts)
    files = ["--ca", "cert.pem", "--cert", "cert.pem", "--key", "key.pem", "--dev", "tun", "--dev-type", "tun", "--verb", "1"]
    common = [*files, "--proto", "udp", "--ping", "3", "--remote-cert-eku", "any"][:-2]
    hosts.start(1, "openvpn", *common, "--local", SERVER, "--tls-server", "--dh", "none", "--ifconfig", "10.8.0.1", "10.8.0.2")
    time.sleep(1)
    hosts.start(0, "openvpn", *common, "--remote", SERVER, "--tls-client", "--ifconfig", "10.8.0.2", "10.8.0.1")
    time.sleep(4)
    hosts.run("ping", "-qc2", "10.8.0.1")
    time.sleep(16)


def ntp(hosts):
    common = ["cmdport 0", "bindcmdaddress /", f"pidfile {hosts.folder}/%s.pid", f"driftfile {hosts.folder}/%s.drift"]
    server = "\n".join(["local stratum 3", "allow 192.0.2.0/24", *common]) % ("b", "b")
    client = "\n".join([f"server {SERVER} minpoll 1 maxpoll 1", *common]) % ("a", "a")
    hosts.start(1, "chronyd", "-x", "-d", "-u", "root", "-f", hosts.file("b.conf", server + "\n"))
    time.sleep(1)
    hosts.start(0, "chronyd", "-x", "-d", "-u", "root", "-f", hosts.file("a.conf", client + "\n"))
    time.sleep(20)


QUIC_SERVER = """
import asyncio
from aioquic.asyncio import serve
from aioquic.quic.configuration import QuicConfiguration
configuration = QuicConfiguration(is_client=False, alpn_protocols=["echo"])
configuration.load_cert_chain("cert.pem", "key.pem")
async def answer(reader, writer):
    writer.write(b"answer: " + await reader.read())
    writer.write_eof()
async def main():
    await serve("192.0.2.2", 443, configuration=configuration, stream_handler=lambda r, w: asyncio.ensure_future(answer(r, w)))
    await asyncio.Future()
asyncio.run(main())
"""
QUIC_CLIENT = """
import asyncio
from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
configuration = QuicConfiguration(alpn_protocols=["echo"], cafile="cert.pem", server_name="server.example.net")
async def main():
    for _ in range(2):
        async with connect("192.0.2.2", 443, configuration=configuration) as client:
            for number in range(4):
                reader, writer = await client.create_stream()
                writer.write(b"reading %d: 21.5" % number)
                writer.write_eof()
                await reader.read()
                await client.ping()
                await asyncio.sleep(1)
asyncio.run(main())
"""


def quic(hosts):
    certificate(hosts)
    hosts.start(1, sys.executable, hosts.file("server.py", QUIC_SERVER))
    time.sleep(2)
    hosts.run(sys.executable, hosts.file("client.py", QUIC_CLIENT))


def wireguard(hosts):
    keys = [subprocess.check_output(["openssl", "rand", "32"]) for _ in range(2)]
    publics = [public_key(hosts, key) for key in keys]
    for end, (own, other) in enumerate([(0, 1), (1, 0)]):
        hosts.start(end, "wireguard-go", "-f", f"wgc{end}", env={**os.environ, "LOG_LEVEL": "error"})
        time.sleep(1)
        lines = ["set=1", f"private_key={keys[own].hex()}", "listen_port=51820", f"public_key={publics[other].hex()}"]
        lines += [f"endpoint=192.0.2.{2 - end}:51820", "persistent_keepalive_interval=5", f"allowed_ip=10.8.0.{2 - end}/32"]
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(f"/var/run/wireguard/wgc{end}.sock")
            control.sendall(("\n".join(lines) + "\n\n").encode())
            control.recv(100)
        run("ip", "-n", hosts.names[end], "address", "add", f"10.8.0.{end + 1}/24", "dev", f"wgc{end}")
        run("ip", "-n", hosts.names[end], "link", "set", f"wgc{end}", "up")
    hosts.run("ping", "-qc2", "10.8.0.2")
    time.sleep(21)


def public_key(hosts, key):
    """X25519 by openssl: PKCS #8 around the private key, the last 32 octets of the public one."""
    private = bytes.fromhex("302e020100300506032b656e04220420") + key
    command = ["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"]
    return subprocess.run(command, input=private, stdout=subprocess.PIPE, check=True).stdout[-32:]


def lossy_download(hosts):
    os.makedirs(f"{hosts.folder}/www")
    hosts.file("www/firmware", "0123456789abcdef" * 1500)
    hosts.start(1, sys.executable, "-m", "http.server", "8080", "--bind", SERVER, "--directory", "www")
    time.sleep(1)
    # Behind the capture, the client loses each seventh segment of the server.
    rule = "table inet loss { chain input { type filter hook input priority 0; tcp sport 8080 numgen inc mod 7 == 3 drop; }; }"
    hosts.run("nft", rule)
    hosts.run("curl", "-s", "-o", "firmware", f"http://{SERVER}:8080/firmware")


def lan(hosts):
    """From the first frame of the interface on: addresses, groups, routers, neighbors; then ping, mDNS and a closed port."""
    run("ip", "-n", hosts.names[0], "link", "set", "cable0", "up")
    hosts.record()
    hosts.up()
    time.sleep(6)
    hosts.run("ping", "-qc3", SERVER)
    hosts.run("ping", "-qc3", "2001:db8::2")
    hosts.run("dig", "+tries=1", "+time=1", "-p", "5353", "@224.0.0.251", "printer.local", "-b", ADDRESS)
    hosts.run("dig", "+tries=1", "+time=1", f"@{SERVER}", "server.example.net")


SCENARIOS = [mqtt_tls, mqtt_idle, coap_observe, coap_polling, dtls_coap, https_polling, http_polling, ssh, call, dns, update,
             openvpn, ntp, quic, wireguard, lossy_download, lan]  # fmt: skip


def main():
    target, *names = sys.argv[1:]
    for scenario in SCENARIOS:
        if names and scenario.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(os.path.abspath(target), f"{scenario.__name__}.pcap")
            hosts = Hosts(folder, path, scenario if scenario is lan else None)
            try:
                if scenario is not lan:
                    scenario(hosts)
            except FileNotFoundError as missing:
                print(f"{scenario.__name__} left out: {missing}")
            finally:
                hosts.close()
            print(f"{scenario.__name__}: {os.path.getsize(path)} octets")


main()
