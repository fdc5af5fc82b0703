/*
 * One bearer with two ends in one program: voice goes up, feedback comes down, a packet is lost.
 *
 *     cc example.c $(pkg-config --cflags --libs thinair-rohc) && ./a.out
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thinair_rohc.h"

#define HEADERS 40 /* IPv4, UDP, RTP */
#define PAYLOAD 32

static void must(thinair_rohc_error error) {
    if (error != THINAIR_ROHC_OK) {
        fprintf(stderr, "%s\n", thinair_rohc_error_text(error));
        exit(1);
    }
}

/* An RTP packet of 20 ms, without UDP checksum. */
static size_t voice(uint8_t *packet, unsigned number) {
    static const uint8_t headers[HEADERS] = {
        0x45, 0, 0, 72, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,    /* IPv4 */
        0x75, 0x30, 0x9C, 0x40, 0, 52, 0, 0,                                      /* UDP */
        0x80, 96, 0, 0, 0, 0, 0, 0, 0xCA, 0xFE, 0xF0, 0x0D};                      /* RTP */
    unsigned time = number * 160, sum = 0;
    memcpy(packet, headers, HEADERS);
    packet[4] = packet[30] = (uint8_t)(number >> 8);
    packet[5] = packet[31] = (uint8_t)number;
    packet[33] = (uint8_t)(time >> 16);
    packet[34] = (uint8_t)(time >> 8);
    packet[35] = (uint8_t)time;
    for (int i = 0; i < 20; i += 2) {
        sum += (unsigned)packet[i] << 8 | packet[i + 1];
    }
    sum = ~((sum & 0xFFFF) + (sum >> 16));
    packet[10] = (uint8_t)(sum >> 8);
    packet[11] = (uint8_t)sum;
    memset(packet + HEADERS, (int)number, PAYLOAD);
    return HEADERS + PAYLOAD;
}

int main(void) {
    /* As RRC gives it: maxCID 15, profiles 0x0001 and 0x0002; O-mode, for PDCP carries feedback. */
    thinair_rohc_config config;
    must(thinair_rohc_config_init(&config));
    config.profiles = THINAIR_ROHC_PROFILE_0001 | THINAIR_ROHC_PROFILE_0002;
    config.mode = THINAIR_ROHC_O_MODE;
    config.rtp_ports[config.rtp_port_count++] = 40000;

    /* The user equipment lends memory, the base station has it allocated. */
    size_t size = thinair_rohc_size(&config);
    void *memory = malloc(size);
    thinair_rohc *ue, *gnb;
    must(thinair_rohc_create(&config, memory, size, &ue));
    must(thinair_rohc_create(&config, NULL, 0, &gnb));

    size_t before = 0, behind = 0;
    unsigned lost = 0;
    for (unsigned number = 0; number < 100; number++) {
        uint8_t packet[HEADERS + PAYLOAD], rohc[sizeof packet + THINAIR_ROHC_COMPRESS_ROOM];
        uint8_t back[sizeof rohc + THINAIR_ROHC_DECOMPRESS_ROOM], feedback[THINAIR_ROHC_MAX_FEEDBACK];
        uint64_t now = number * 20000000ull;
        size_t len = voice(packet, number), rohc_len, back_len, feedback_len;

        must(thinair_rohc_compress(ue, now, packet, len, rohc, sizeof rohc, &rohc_len));
        before += len;
        behind += rohc_len;
        if (number == 50) {
            lost++; /* PDCP sees a gap in its SN. */
            continue;
        }
        must(thinair_rohc_decompress(gnb, now, lost, rohc, rohc_len, back, sizeof back, &back_len));
        lost = 0;
        if (back_len != len || memcmp(back, packet, len) != 0) {
            fprintf(stderr, "packet %u is another one\n", number);
            return 1;
        }
        while ((feedback_len = thinair_rohc_poll_feedback(gnb, feedback, sizeof feedback)) > 0) {
            /* A PDCP control PDU would carry the octet 0x10 and these. */
            must(thinair_rohc_give_feedback(ue, now, feedback, feedback_len));
        }
    }
    printf("100 packets, %zu octets before and %zu behind; %zu octets of memory for both directions\n", before, behind,
           size);
    thinair_rohc_destroy(gnb);
    thinair_rohc_destroy(ue);
    free(memory);
    return 0;
}
