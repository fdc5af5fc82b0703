"""ESP and AH around generated UDP packets: of the kernel where it has them, otherwise of scapy.

The keys are in this file and protect nothing.
"""

import socket

from media import INNER_HERE, INNER_THERE, INTERFACE, Impossible, ip

PACKETS = 120
PORTS = (5070, 5071)
SPI = 0x00C0FFEE

KEY = bytes(range(32))
# Transforms: for `ip xfrm`, and for scapy. RFC 3602 with RFC 4868; RFC 4106; RFC 4868.
CBC = (
    ("enc", "cbc(aes)", f"0x{KEY[:16].hex()}", "auth-trunc", "hmac(sha256)", f"0x{KEY.hex()}", "128"),
    {"crypt_algo": "AES-CBC", "crypt_key": KEY[:16], "auth_algo": "SHA2-256-128", "auth_key": KEY},
)
GCM = (
    ("aead", "rfc4106(gcm(aes))", f"0x{KEY[:20].hex()}", "128"),
    {"crypt_algo": "AES-GCM", "crypt_key": KEY[:20]},
)
HMAC = (
    ("auth-trunc", "hmac(sha256)", f"0x{KEY.hex()}", "128"),
    {"auth_algo": "SHA2-256-128", "auth_key": KEY},
)


def payload(number):
    """As long as other packets of its size: a call, with something longer now and then."""
    return bytes((number * place) % 251 for place in range(172 if number % 10 == 9 else 40))


def scenario(protocol, mode, transforms):
    def run(sender):
        inner = mode == "tunnel"
        here = INNER_HERE[sender.version] if inner else sender.here
        there = INNER_THERE[sender.version] if inner else sender.there
        try:
            protect(sender, here, there, protocol, mode, transforms[0])
        except Impossible as kernel:
            print(kernel, file=sender.log)
            return by_scapy(sender, here, there, protocol, mode, transforms[1])
        with socket.socket(sender.family, socket.SOCK_DGRAM) as udp:
            udp.bind((here, PORTS[0]))
            udp.connect((there, PORTS[1]))
            for number in range(PACKETS):
                udp.send(payload(number))
                sender.pause(0.01)
        return f"the {protocol.upper()} of Linux"

    return run


def protect(sender, here, there, protocol, mode, transform):
    """A security association by hand, and the policy that what goes `there` goes by it."""
    ends = ("src", sender.here, "dst", sender.there, "proto", protocol)
    ip("xfrm", "state", "add", *ends, "spi", hex(SPI), "reqid", "1", "mode", mode, *transform)
    ip(
        *("xfrm", "policy", "add", "src", here, "dst", there, "dir", "out"),
        *("tmpl", *ends, "reqid", "1", "mode", mode),
    )


def by_scapy(sender, here, there, protocol, mode, transform):
    """Packets that scapy makes, put on the link as they are."""
    try:
        from scapy.layers.inet import IP, UDP
        from scapy.layers.inet6 import IPv6
        from scapy.layers.ipsec import AH, ESP, SecurityAssociation
    except ImportError as error:
        raise Impossible(f"neither the kernel nor scapy: {error}") from None
    header = IP if sender.version == 4 else IPv6
    outer = header(src=sender.here, dst=sender.there) if mode == "tunnel" else None
    association = SecurityAssociation({"esp": ESP, "ah": AH}[protocol], SPI, tunnel_header=outer, **transform)
    kind = 0x0800 if sender.version == 4 else 0x86DD
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as link:
        for number in range(PACKETS):
            packet = header(src=here, dst=there) / UDP(sport=PORTS[0], dport=PORTS[1]) / payload(number)
            if sender.version == 4:
                packet.id = number
            octets = bytes(association.encrypt(header(bytes(packet))))
            link.sendto(octets, (INTERFACE, kind, 0, 0, bytes.fromhex("020000000002")))
            sender.pause(0.01)
    return f"scapy's {protocol.upper()}"


SCENARIOS = {
    "esp-transport-ipv4": (4, scenario("esp", "transport", CBC)),
    "esp-transport-ipv6": (6, scenario("esp", "transport", GCM)),
    "esp-tunnel-ipv4": (4, scenario("esp", "tunnel", GCM)),
    "esp-tunnel-ipv6": (6, scenario("esp", "tunnel", CBC)),
    "ah-transport-ipv4": (4, scenario("ah", "transport", HMAC)),
    "ah-transport-ipv6": (6, scenario("ah", "transport", HMAC)),
}
