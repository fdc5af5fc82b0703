/* Times of a library with the interface of rohc-lib, that of thinair or rohc-lib itself, whichever it is linked with:
 * `times CASE` prints `CASE COMPRESS DECOMPRESS VERSION`, nanoseconds a packet and the version of the library.
 *
 * Cases and packets are described in the head of crates/rohc/benches/beside.rs. Medians of batches, in processor
 * time; U-mode, large CIDs, room for 16,384 contexts, refreshes so rare that none falls into a batch that matters. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>

#include <rohc/rohc_decomp.h>

#include "compressor.h"

enum { CONTEXTS = 16384, BATCH = 1024, BATCHES = 128, LONGEST = 128 };

typedef struct {
    uint8_t octets[LONGEST];
    size_t len;
} octets_t;

static octets_t packets[BATCH], compressed[BATCH];

static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value & 0xFFFF);
}

/* Writes the Identification, and the checksum of an IPv4 header without options. */
static void finish_ipv4(uint8_t *ip, unsigned id)
{
    uint32_t sum = 0;
    put16(ip + 4, id & 0xFFFF);
    put16(ip + 10, 0);
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    sum = (sum & 0xFFFF) + (sum >> 16);
    put16(ip + 10, ~(sum + (sum >> 16)) & 0xFFFF);
}

static const uint8_t GET_IPV4[] = "\x45\0\0\x25\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\x63\0\x02"
                                  "\xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";
static const uint8_t GET_IPV6[] =
    "\x60\0\0\0\0\x11\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01"
    "\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";
static const uint8_t RTP_IPV4[] = "\x45\0\0\x3c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\x63\0\x02"
                                  "\x13\x8c\x13\x8c\0\x28\x12\x34\x80\x12\0\0\0\0\0\0\x12\x34\x56\x78";
static const uint8_t ESP_IPV4[] = "\x45\0\0\x2c\0\0\0\0\x40\x32\0\0\x0a\0\0\x01\x0a\x63\0\x02\0\0\x12\x34";

static const uint8_t TCP_IPV4[] = "\x45\0\0\0\0\0\0\0\x40\x06\0\0\x0a\0\0\x01\x0a\x63\0\x02"
                                  "\x0f\xa0\0\x50\0\0\0\0\0\0\0\0\x80\x10\x20\0\0\0\0\0\x01\x01\x08\x0a\0\0\0\0\0\0\0\0";

/* A segment with timestamps over IPv4: 20 octets, or an acknowledgment of two of 1,448. */
static void segment(uint32_t count, int is_ack, octets_t *to)
{
    uint8_t *tcp = to->octets + 20;
    uint32_t sum;
    to->len = sizeof TCP_IPV4 - 1 + (is_ack ? 0 : 20);
    memset(to->octets, 7, to->len);
    memcpy(to->octets, TCP_IPV4, sizeof TCP_IPV4 - 1);
    put16(to->octets + 2, (unsigned)to->len);
    put32(tcp + (is_ack ? 8 : 4), count * (is_ack ? 2896 : 20));
    put32(tcp + 24, count * 2);
    put32(tcp + 28, count * 2);
    finish_ipv4(to->octets, count);
    /* Of the pseudo-header the addresses stand in front of the segment. */
    sum = 6 + (uint32_t)to->len - 20;
    for (size_t i = 12; i < to->len; i += 2)
        sum += (uint32_t)to->octets[i] << 8 | to->octets[i + 1];
    sum = (sum & 0xFFFF) + (sum >> 16);
    put16(tcp + 16, ~(sum + (sum >> 16)) & 0xFFFF);
}

/* The case of ROHCv2. */
static const char V2[] = "udp-v2-ipv4";

/* Packet `count` of a case. */
static void packet(const char *name, uint32_t count, octets_t *to)
{
    memset(to->octets, 0, LONGEST);
    if (strcmp(name, "udp-ipv6") == 0) {
        to->len = sizeof GET_IPV6 - 1;
        memcpy(to->octets, GET_IPV6, to->len);
    } else if (strcmp(name, "rtp-ipv4") == 0) {
        to->len = 60;
        memcpy(to->octets, RTP_IPV4, sizeof RTP_IPV4 - 1);
        put16(to->octets + 30, count & 0xFFFF);
        put32(to->octets + 32, count * 160);
        finish_ipv4(to->octets, count);
    } else if (strcmp(name, "esp-ipv4") == 0) {
        to->len = 44;
        memcpy(to->octets, ESP_IPV4, sizeof ESP_IPV4 - 1);
        put32(to->octets + 24, count + 1);
        finish_ipv4(to->octets, count);
    } else if (strcmp(name, "tcp-ipv4") == 0 || strcmp(name, "tcp-acks-ipv4") == 0) {
        segment(count, strcmp(name, "tcp-ipv4") != 0, to);
    } else {
        uint32_t host = 0, id = count;
        if (strcmp(name, "udp-ipv4-16384") == 0) {
            host = count % CONTEXTS;
            id = count / CONTEXTS;
        } else if (strcmp(name, "new-flow-16384") == 0) {
            host = count;
            id = 0;
        } else if (strcmp(name, "udp-ipv4") != 0 && strcmp(name, V2) != 0) {
            fail("unknown case");
        }
        to->len = sizeof GET_IPV4 - 1;
        memcpy(to->octets, GET_IPV4, to->len);
        put16(to->octets + 13, host >> 8 & 0xFFFF);
        to->octets[15] = (uint8_t)host;
        finish_ipv4(to->octets, id);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, BATCHES, sizeof *values, by_value);
    return values[BATCHES / 2];
}

int main(int argc, char **argv)
{
    static double compress[BATCHES], decompress[BATCHES];
    static uint8_t out[ROOM], received[ROOM], sent[ROOM];
    if (argc != 2)
        fail("usage: times CASE");
    int is_v2 = strcmp(argv[1], V2) == 0;
    struct rohc_comp *comp = compressor(ROHC_LARGE_CID, CONTEXTS - 1, is_v2);
    struct rohc_decomp *decomp = rohc_decomp_new2(ROHC_LARGE_CID, CONTEXTS - 1, ROHC_U_MODE);
    if (decomp == NULL ||
        !(is_v2 ? rohc_decomp_enable_profiles(decomp, PEER_PROFILES_V2) : rohc_decomp_enable_profiles(decomp, PEER_PROFILES)) ||
        !rohc_comp_set_periodic_refreshes(comp, 1000000000, 999999999))
        fail("the library gives no compressor or decompressor");
    /* Each context is set up, and every one is in use, before the first batch that counts. */
    unsigned warm = 16 * CONTEXTS / BATCH;
    uint32_t count = 0;
    for (unsigned batch = 0; batch < warm + BATCHES; batch++) {
        for (unsigned i = 0; i < BATCH; i++)
            packet(argv[1], count++, &packets[i]);
        double start = now();
        for (unsigned i = 0; i < BATCH; i++) {
            struct rohc_buf to = room(compressed[i].octets, LONGEST);
            if (rohc_compress4(comp, filled(packets[i].octets, packets[i].len, 0), &to) != ROHC_STATUS_OK)
                fail("a packet is not compressed");
            compressed[i].len = to.len;
        }
        double between = now();
        for (unsigned i = 0; i < BATCH; i++) {
            struct rohc_buf to = room(out, ROOM), other = room(received, ROOM), feedback = room(sent, ROOM);
            rohc_status_t status = rohc_decompress3(
                decomp, filled(compressed[i].octets, compressed[i].len, 0), &to, &other, &feedback);
            if (status != ROHC_STATUS_OK || to.len != packets[i].len)
                fail("a packet is not decompressed");
        }
        double end = now();
        if (batch >= warm) {
            compress[batch - warm] = (between - start) / BATCH;
            decompress[batch - warm] = (end - between) / BATCH;
        }
    }
    printf("%s %.1f %.1f %s\n", argv[1], median(compress), median(decompress), rohc_version());
    rohc_comp_free(comp);
    rohc_decomp_free(decomp);
    return 0;
}
