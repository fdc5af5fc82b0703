/*
 * One PDCP entity at either end of a radio link: voice every 20 ms, packets that are lost in bursts, and what goes back.
 *
 * A data PDU has a SN of 12 bits in front; a gap in it tells the decompressor how many packets are missing. Feedback is a control PDU:
 * the octet 0x10, and one element. Ciphering, integrity and reordering would stand between ROHC and these PDUs (TS 38.323).
 *
 *     cc pdcp-loop.c $(pkg-config --cflags --libs thinair-rohc) && ./a.out [PACKETS [PERCENT-LOST]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thinair_rohc.h"

#define HEADERS 40
#define PAYLOAD 32
#define INTERVAL 20000000ull /* nanoseconds */
#define CONTROL 0x10         /* D/C 0, PDU type 1: interspersed ROHC feedback */
#define DATA 0x80            /* D/C 1 */

static thinair_rohc *ue, *gnb;
static unsigned expected_sn, delivered, failed, wrong, control_pdus;
static size_t octets_before, octets_behind;

static void must(thinair_rohc_error error) {
    if (error != THINAIR_ROHC_OK) {
        fprintf(stderr, "%s\n", thinair_rohc_error_text(error));
        exit(1);
    }
}

/* An RTP packet without UDP checksum. */
static void voice(uint8_t packet[HEADERS + PAYLOAD], unsigned number) {
    static const uint8_t headers[HEADERS] = {0x45, 0, 0, 72, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
                                             0x75, 0x30, 0x9C, 0x40, 0, 52, 0, 0,
                                             0x80, 96, 0, 0, 0, 0, 0, 0, 0xCA, 0xFE, 0xF0, 0x0D};
    unsigned time = number * 160, sum = 0;
    memcpy(packet, headers, HEADERS);
    packet[4] = packet[30] = (uint8_t)(number >> 8);
    packet[5] = packet[31] = (uint8_t)number;
    packet[32] = (uint8_t)(time >> 24);
    packet[33] = (uint8_t)(time >> 16);
    packet[34] = (uint8_t)(time >> 8);
    packet[35] = (uint8_t)time;
    for (int i = 0; i < 20; i += 2) {
        sum += (unsigned)packet[i] << 8 | packet[i + 1];
    }
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = ~((sum & 0xFFFF) + (sum >> 16));
    packet[10] = (uint8_t)(sum >> 8);
    packet[11] = (uint8_t)sum;
    memset(packet + HEADERS, (int)number, PAYLOAD);
}

/* Makes a data PDU of a packet. */
static size_t send_data(unsigned number, uint8_t *pdu, size_t room) {
    uint8_t packet[HEADERS + PAYLOAD];
    size_t len;
    voice(packet, number);
    pdu[0] = (uint8_t)(DATA | (number >> 8 & 0x0F));
    pdu[1] = (uint8_t)number;
    must(thinair_rohc_compress(ue, number * INTERVAL, packet, sizeof packet, pdu + 2, room - 2, &len));
    octets_before += HEADERS;
    octets_behind += len - PAYLOAD;
    return len + 2;
}

/* Takes a data PDU, and sends the control PDUs that it causes. */
static void receive_data(unsigned number, const uint8_t *pdu, size_t pdu_len) {
    uint8_t packet[512], sent[HEADERS + PAYLOAD], control[1 + THINAIR_ROHC_MAX_FEEDBACK];
    unsigned sn = (pdu[0] & 0x0Fu) << 8 | pdu[1], lost = (sn - expected_sn) & 0xFFF;
    size_t len;
    expected_sn = sn + 1;
    thinair_rohc_error error = thinair_rohc_decompress(gnb, number * INTERVAL, lost, pdu + 2, pdu_len - 2, packet, sizeof packet, &len);
    voice(sent, number);
    if (error != THINAIR_ROHC_OK) {
        failed++;
    } else if (len == sizeof sent && memcmp(packet, sent, len) == 0) {
        delivered++;
    } else {
        wrong++;
    }
    control[0] = CONTROL;
    while ((len = thinair_rohc_poll_feedback(gnb, control + 1, sizeof control - 1)) > 0) {
        control_pdus++;
        must(thinair_rohc_give_feedback(ue, number * INTERVAL, control + 1, len));
    }
}

int main(int count, char **arguments) {
    unsigned packets = count > 1 ? (unsigned)atoi(arguments[1]) : 10000;
    unsigned percent = count > 2 ? (unsigned)atoi(arguments[2]) : 2;
    unsigned lost = 0, burst = 0, random = 1;

    thinair_rohc_config config;
    must(thinair_rohc_config_init(&config));
    config.profiles = THINAIR_ROHC_PROFILE_0001 | THINAIR_ROHC_PROFILE_0002;
    config.mode = THINAIR_ROHC_O_MODE;
    config.counted = 1;
    config.rtp_ports[config.rtp_port_count++] = 40000;
    must(thinair_rohc_create(&config, NULL, 0, &ue));
    must(thinair_rohc_create(&config, NULL, 0, &gnb));

    for (unsigned number = 0; number < packets; number++) {
        uint8_t pdu[256];
        size_t len = send_data(number, pdu, sizeof pdu);
        random = random * 1664525 + 1013904223;
        if (burst == 0 && (random >> 8) % 1000 < percent * 10 / 3) {
            burst = 1 + (random >> 20) % 5; /* three on average */
        }
        if (burst > 0) {
            burst--;
            lost++;
        } else {
            receive_data(number, pdu, len);
        }
    }
    printf("%u packets: %u lost, %u delivered, %u not decompressed, %u wrong; %u control PDUs\n", packets, lost, delivered,
           failed, wrong, control_pdus);
    printf("headers: %zu -> %zu octets, %.2f a packet\n", octets_before, octets_behind, (double)octets_behind / packets);
    thinair_rohc_destroy(ue);
    thinair_rohc_destroy(gnb);
    return wrong > 0;
}
