/* Calls that no program should make: null, overlapping, too small, damaged, in any order. Usage: garbage CALLS [SEED] */
#include "packets.h"
#include "thinair_rohc.h"

#define HANDLES 4
#define ROOM 2048

static thinair_rohc *handles[HANDLES];
static uint8_t octets[ROOM];

static thinair_rohc *any_handle(void) { return below(20) ? handles[below(HANDLES)] : NULL; }

/* Some octets of the one buffer, so that they often overlap. */
static uint8_t *any_octets(size_t *len) {
    size_t at = below(4) ? below(2) * (ROOM / 2) : below(ROOM);
    *len = below(4) ? (ROOM - at) / 2 : below(ROOM - at + 1);
    if (below(50) == 0) {
        *len = SIZE_MAX - below(100);
    }
    return below(50) ? octets + at : NULL;
}

static void make(size_t i) {
    thinair_rohc_config config;
    thinair_rohc_destroy(handles[i]);
    handles[i] = NULL;
    if (below(10) == 0) {
        for (size_t k = 0; k < sizeof config; k++) {
            ((uint8_t *)&config)[k] = (uint8_t)next_random();
        }
        config.max_cid %= 400;
    } else {
        thinair_rohc_config_init(&config);
        config.sides = (uint8_t)below(4);
        config.mode = (uint8_t)(1 + below(3));
        config.profiles = (uint32_t)below(0x1000);
        if (below(4)) {
            config.profiles &= 0xE1F;
        }
        config.max_cid = (uint16_t)below(20);
        config.large_cids = (uint8_t)below(2);
        config.mrru = (uint16_t)below(1500);
        config.feedback_in_front = (uint8_t)below(2);
        config.extension_flows = (uint16_t)below(3);
    }
    thinair_rohc_size(below(50) ? &config : NULL);
    thinair_rohc_create(below(50) ? &config : NULL, NULL, 0, below(50) ? &handles[i] : NULL);
}

static void fill(void) {
    switch (below(8)) {
    case 0: udp4(octets, (uint8_t)below(20), (uint16_t)next_random(), 5000, 6000, below(100)); break;
    case 1: rtp4(octets, (uint16_t)below(1000), 40000, below(100)); break;
    case 2: tcp4(octets, (uint16_t)below(1000), (uint32_t)next_random(), below(100)); break;
    case 3: ping4(octets, (uint16_t)below(1000), below(100)); break;
    default: octets[below(ROOM)] = (uint8_t)next_random();
    }
}

int main(int count, char **arguments) {
    unsigned long calls = count > 1 ? strtoul(arguments[1], NULL, 10) : 100000;
    random_state = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
    unsigned long good = 0;
    for (size_t i = 0; i < HANDLES; i++) {
        make(i);
    }
    for (unsigned long i = 0; i < calls; i++) {
        thinair_rohc *handle = any_handle();
        uint64_t now = below(10) ? i : next_random();
        size_t a_len, b_len, len;
        uint8_t *a = any_octets(&a_len), *b = any_octets(&b_len);
        size_t *len_at = below(50) ? &len : NULL;
        fill();
        switch (below(200) ? below(10) : 10) {
        case 0:
        case 1: good += !thinair_rohc_compress(handle, now, a, a_len, b, b_len, len_at); break;
        case 2:
        case 3: good += !thinair_rohc_decompress(handle, now, (uint32_t)next_random(), a, a_len, b, b_len, len_at); break;
        case 4: thinair_rohc_poll_feedback(handle, a, a_len); break;
        case 5: good += !thinair_rohc_give_feedback(handle, now, a, a_len); break;
        case 6: thinair_rohc_feedback_in_front(a, a_len, len_at); break;
        case 7: {
            thinair_rohc_packet packets[3];
            memset(packets, 0, sizeof packets);
            for (int k = 0; k < 3; k++) {
                packets[k].input = any_octets(&packets[k].input_len);
                packets[k].output = any_octets(&packets[k].output_size);
            }
            if (below(2)) {
                good += thinair_rohc_compress_batch(handle, now, below(50) ? packets : NULL, below(4));
            } else {
                good += thinair_rohc_decompress_batch(handle, now, below(50) ? packets : NULL, below(4));
            }
            break;
        }
        case 8: {
            thinair_rohc_statistics statistics;
            thinair_rohc_context context;
            thinair_rohc_get_statistics(handle, below(50) ? &statistics : NULL);
            thinair_rohc_get_context(handle, (uint8_t)below(4), (uint16_t)next_random(), &context);
            break;
        }
        case 9: {
            /* What was compressed is damaged, and decompressed by another handle. */
            uint8_t packet[256] = {0}, rohc[512], back[1024];
            size_t n = udp4(packet, (uint8_t)below(20), (uint16_t)i, 5000, 6000, below(100));
            if (thinair_rohc_compress(handle, now, packet, n, rohc, sizeof rohc, &n) == THINAIR_ROHC_OK) {
                rohc[below(n)] ^= (uint8_t)(1 << below(8));
                good += !thinair_rohc_decompress(any_handle(), now, 0, rohc, n, back, sizeof back, &n);
            }
            break;
        }
        default:
            thinair_rohc_reset(handle);
            thinair_rohc_keep(handle);
            make(below(HANDLES));
        }
    }
    for (size_t i = 0; i < HANDLES; i++) {
        thinair_rohc_destroy(handles[i]);
    }
    printf("%lu calls, %lu of them did something\n", calls, good);
    return 0;
}
