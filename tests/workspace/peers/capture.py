"""The UDP packets of one IP version and port on the loopback interface, in a pcap file of raw IP packets.

A packet socket needs no other program than Python, and tells two things that the file of a capture program does
not: which of the two copies of a packet on `lo` is the one sent, and which checksums are still to be computed. `lo`
leaves the UDP checksum to a device that is not there, and that cannot be switched off (ethtool: "[fixed]"). Such
packets get the checksum that a device would have given them; others are written as they are.
"""

import select
import socket
import struct

# linux/if_packet.h and asm-generic/socket.h; Python has no names for them.
SOL_PACKET = 263
PACKET_AUXDATA = 8
TP_STATUS_CSUMNOTREADY = 1 << 3
SO_TIMESTAMPNS = 35
ETH_P_ALL = 3

LINKTYPE_RAW = 101
NANOSECONDS = 0xA1B23C4D
UDP = 17


class Capture:
    """Opened before the first packet, and pumped until after the last one."""

    def __init__(self, path, version, port, interface="lo"):
        self.version = version
        self.port = port
        self.packets = 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.setblocking(False)
        self.socket.bind((interface, ETH_P_ALL))
        self.file = open(path, "wb")
        self.file.write(struct.pack("=IHHiIII", NANOSECONDS, 2, 4, 0, 0, 65535, LINKTYPE_RAW))

    def pump(self, seconds):
        """Writes what has arrived; waits for it at most so long."""
        select.select([self.socket], [], [], seconds)
        while True:
            try:
                data, control, _, address = self.socket.recvmsg(65536, 256)
            except BlockingIOError:
                return
            if address[2] == socket.PACKET_OUTGOING:
                self.write(bytearray(data), control)

    def is_wanted(self, packet):
        udp = udp_header(packet)
        if udp is None or packet[0] >> 4 != self.version:
            return False
        return self.port in struct.unpack_from("!HH", packet, udp)

    def write(self, packet, control):
        if not self.is_wanted(packet):
            return
        for level, kind, value in control:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("@ll", value)
            elif (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                if struct.unpack_from("=I", value)[0] & TP_STATUS_CSUMNOTREADY:
                    complete(packet, udp_header(packet))
        self.file.write(struct.pack("=IIII", seconds, nanoseconds, len(packet), len(packet)))
        self.file.write(packet)
        self.packets += 1

    def close(self):
        self.pump(0)
        self.socket.close()
        self.file.close()


def udp_header(packet):
    """Where the UDP header begins, if there is one behind an IP header without extensions."""
    if packet[0] >> 4 == 4 and packet[9] == UDP:
        return 4 * (packet[0] & 0xF)
    if packet[0] >> 4 == 6 and packet[6] == UDP:
        return 40
    return None


def complete(packet, udp):
    """Computes the checksum in whose place the sum over the pseudo header stands. RFC 768; RFC 8200, section 8.1."""
    addresses = packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]
    pseudo = addresses + struct.pack("!HH", UDP, len(packet) - udp)
    assert struct.unpack_from("!H", packet, udp + 6)[0] == total(pseudo), "a checksum that was not left out"
    checksum = 0xFFFF - total(packet[udp:])
    struct.pack_into("!H", packet, udp + 6, checksum or 0xFFFF)


def total(octets):
    """The ones' complement sum of 16-bit words. RFC 1071."""
    if len(octets) % 2:
        octets = octets + b"\0"
    words = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while words > 0xFFFF:
        words = (words & 0xFFFF) + (words >> 16)
    return words
