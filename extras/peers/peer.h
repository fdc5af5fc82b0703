/* What the programs around rohc-lib share: the profiles, the ports of RTP, and the numbers of the protocols. */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rohc/rohc.h>
#include <rohc/rohc_buf.h>

/* Longest packet, compressed or not, in octets. */
#define ROOM 70000

/* Profiles of RFC 3095, RFC 3843 and RFC 6846. */
#define PEER_PROFILES                                                                              \
    ROHC_PROFILE_UNCOMPRESSED, ROHC_PROFILE_RTP, ROHC_PROFILE_UDP, ROHC_PROFILE_ESP,               \
        ROHC_PROFILE_IP, ROHC_PROFILE_TCP, -1

/* Those of RFC 5225 that rohc-lib compresses: its profile 0x0101 sends and reads IR packets alone. */
#define PEER_PROFILES_V2                                                                           \
    ROHC_PROFILE_UNCOMPRESSED, ROHCv2_PROFILE_IP_UDP, ROHCv2_PROFILE_IP_ESP, ROHCv2_PROFILE_IP,     \
        ROHC_PROFILE_TCP, -1

static inline void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* The library of thinair has the same name. */
static inline void check_library(void)
{
    if (strstr(rohc_version(), "thinair") != NULL)
        fail("librohc is that of thinair, and no peer: give the folder of rohc-lib as ROHC_PREFIX");
}

/* Reads `len` octets. Returns 0 at the end of the input, if it is in front of the first octet. */
static inline int take(void *octets, size_t len)
{
    size_t done = fread(octets, 1, len, stdin);
    if (done != len && done != 0)
        fail("the input ends within a request");
    return done == len;
}

/* Reads a number of `octets` octets, least significant first. Returns 0 at the end of the input. */
static inline int take_number(uint64_t *number, unsigned octets)
{
    uint8_t raw[8];
    if (!take(raw, octets))
        return 0;
    *number = 0;
    while (octets-- > 0)
        *number = *number << 8 | raw[octets];
    return 1;
}

/* Reads a length and its octets. Returns 0 at the end of the input. */
static inline int take_octets(uint8_t *octets, size_t *len)
{
    uint64_t number;
    if (!take_number(&number, 4))
        return 0;
    if (number > ROOM)
        fail("the request is too long");
    *len = (size_t)number;
    if (*len > 0 && !take(octets, *len))
        fail("the input ends within a request");
    return 1;
}

/* Writes a length and its octets. */
static inline void put_octets(const uint8_t *octets, size_t len)
{
    for (unsigned i = 0; i < 4; i++)
        putchar((int)(len >> 8 * i & 0xFF));
    fwrite(octets, 1, len, stdout);
}

static inline rohc_cid_type_t cid_type(const char *name)
{
    return strcmp(name, "large") == 0 ? ROHC_LARGE_CID : ROHC_SMALL_CID;
}

static inline int is_v2(const char *name)
{
    return strcmp(name, "v2") == 0;
}

/* Buffer of `len` octets that has arrived `nanoseconds` after the start. */
static inline struct rohc_buf filled(uint8_t *octets, size_t len, uint64_t nanoseconds)
{
    struct rohc_buf buf = {
        .time = {.sec = nanoseconds / 1000000000, .nsec = nanoseconds % 1000000000},
        .data = octets,
        .max_len = len,
        .offset = 0,
        .len = len,
    };
    return buf;
}

/* Empty buffer. */
static inline struct rohc_buf room(uint8_t *octets, size_t max_len)
{
    struct rohc_buf buf = {.data = octets, .max_len = max_len};
    return buf;
}

#endif
