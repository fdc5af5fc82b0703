/* Packets for C tests: those of captures, and flows that are made. */
#ifndef PACKETS_H
#define PACKETS_H

#include "check.h"

#define MAX_PACKET 10000

/* Ones' complement sum of RFC 1071, over `len` octets. */
static inline uint32_t sum16(uint32_t sum, const uint8_t *octets, size_t len) {
    for (size_t i = 0; i < len; i++) {
        sum += (uint32_t)octets[i] << (i % 2 ? 0 : 8);
    }
    return sum;
}

static inline uint16_t fold(uint32_t sum) {
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

static inline void put16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Writes an IPv4 header: host 10.0.0.`host`, a protocol, an Identification, and a payload of `len` octets behind it. */
static inline size_t ipv4(uint8_t *packet, uint8_t host, uint8_t protocol, uint16_t id, size_t len) {
    static const uint8_t header[20] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 0, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1};
    memcpy(packet, header, 20);
    put16(packet + 2, (uint32_t)(20 + len));
    put16(packet + 4, id);
    packet[9] = protocol;
    packet[15] = host;
    put16(packet + 10, fold(sum16(0, packet, 20)));
    return 20 + len;
}

/* Writes a UDP datagram with `len` octets of payload, which stand behind its header. */
static inline size_t udp4(uint8_t *packet, uint8_t host, uint16_t id, uint16_t source, uint16_t destination, size_t len) {
    uint8_t *udp = packet + 20;
    size_t octets = ipv4(packet, host, 17, id, 8 + len);
    put16(udp, source);
    put16(udp + 2, destination);
    put16(udp + 4, (uint32_t)(8 + len));
    put16(udp + 6, 0);
    uint32_t sum = sum16(17 + 8 + (uint32_t)len, packet + 12, 8);
    uint16_t checksum = fold(sum16(sum, udp, 8 + len));
    put16(udp + 6, checksum ? checksum : 0xFFFF);
    return octets;
}

/* Writes an ICMP echo request with `len` octets of data. */
static inline size_t ping4(uint8_t *packet, uint16_t number, size_t len) {
    uint8_t *icmp = packet + 20;
    size_t octets = ipv4(packet, 1, 1, number, 8 + len);
    memset(icmp, 0, 8);
    icmp[0] = 8;
    put16(icmp + 4, 0x1234);
    put16(icmp + 6, number);
    for (size_t i = 0; i < len; i++) {
        icmp[8 + i] = (uint8_t)i;
    }
    put16(icmp + 2, fold(sum16(0, icmp, 8 + len)));
    return octets;
}

/* Writes a TCP segment with `len` octets of payload. */
static inline size_t tcp4(uint8_t *packet, uint16_t number, uint32_t sequence, size_t len) {
    uint8_t *tcp = packet + 20;
    size_t octets = ipv4(packet, 1, 6, number, 20 + len);
    memset(tcp, 0, 20 + len);
    put16(tcp, 40000);
    put16(tcp + 2, 80);
    put16(tcp + 4, sequence >> 16);
    put16(tcp + 6, sequence);
    put16(tcp + 10, 1000);
    tcp[12] = 0x50;
    tcp[13] = 0x10;
    put16(tcp + 14, 8192);
    uint32_t sum = sum16(6 + 20 + (uint32_t)len, packet + 12, 8);
    put16(tcp + 16, fold(sum16(sum, tcp, 20 + len)));
    return octets;
}

/* Writes an RTP packet of voice: 160 units of time and `len` octets a packet. */
static inline size_t rtp4(uint8_t *packet, uint16_t number, uint16_t port, size_t len) {
    uint8_t *rtp = packet + 28;
    memset(rtp, 0, 12 + len);
    rtp[0] = 0x80;
    rtp[1] = 96;
    put16(rtp + 2, number);
    put16(rtp + 4, (number * 160u) >> 16);
    put16(rtp + 6, number * 160u);
    put16(rtp + 8, 0xCAFE);
    put16(rtp + 10, 0xF00D);
    for (size_t i = 0; i < len; i++) {
        rtp[12 + i] = (uint8_t)next_random();
    }
    return udp4(packet, 1, number, 30000, port, 12 + len);
}

/* A capture file: pcap in the byte order of this machine, Ethernet or raw IP. */
typedef struct {
    FILE *file;
    uint32_t link;
    uint32_t per_second;
} capture;

static inline capture open_capture(const char *path) {
    capture c = {fopen(path, "rb"), 0, 0};
    uint32_t head[6];
    CHECK(c.file != NULL);
    CHECK(fread(head, 4, 6, c.file) == 6);
    CHECK(head[0] == 0xA1B2C3D4 || head[0] == 0xA1B23C4D);
    c.link = head[5] & 0xFFFF;
    c.per_second = head[0] == 0xA1B2C3D4 ? 1000000 : 1000000000;
    CHECK(c.link == 1 || c.link == 101);
    return c;
}

/* Reads the next IP packet into MAX_PACKET octets; 0 at the end. Its time is in nanoseconds. */
static inline size_t next_packet(capture *c, uint8_t *packet, uint64_t *time) {
    uint32_t head[4];
    while (fread(head, 4, 4, c->file) == 4) {
        uint8_t frame[65536 + 64];
        size_t len = head[2], skip = 0;
        CHECK(len <= sizeof frame && fread(frame, 1, len, c->file) == len);
        *time = head[0] * 1000000000ull + head[1] * (1000000000ull / c->per_second);
        if (c->link == 1) {
            skip = 14;
            int is_ip = len > 14 && ((frame[12] == 8 && frame[13] == 0) || (frame[12] == 0x86 && frame[13] == 0xDD));
            if (!is_ip) {
                continue;
            }
        }
        len -= skip;
        if (len == 0 || len > MAX_PACKET) {
            continue;
        }
        memcpy(packet, frame + skip, len);
        return len;
    }
    fclose(c->file);
    return 0;
}

#endif
