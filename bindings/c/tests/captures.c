/* Every packet of the captures that are named comes back octet for octet; pairs of packets go as batches. */
#include "packets.h"
#include "thinair_rohc.h"

static thinair_rohc *create(uint8_t mode, uint8_t large) {
    thinair_rohc_config config;
    thinair_rohc *handle;
    CHECK(thinair_rohc_config_init(&config) == THINAIR_ROHC_OK);
    config.profiles |= THINAIR_ROHC_PROFILE_0007 | THINAIR_ROHC_PROFILE_0008 | THINAIR_ROHC_PROFILE_0181;
    config.mode = mode;
    config.large_cids = large;
    config.max_cid = large ? 300 : 15;
    config.feedback_in_front = large;
    CHECK(thinair_rohc_create(&config, NULL, 0, &handle) == THINAIR_ROHC_OK);
    return handle;
}

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        for (uint8_t mode = THINAIR_ROHC_U_MODE; mode <= THINAIR_ROHC_R_MODE; mode++) {
            uint8_t large = mode == THINAIR_ROHC_O_MODE;
            thinair_rohc *a = create(mode, large), *b = create(mode, large);
            capture c = open_capture(paths[i]);
            static uint8_t in[2][MAX_PACKET], rohc[2][MAX_PACKET + 64], back[2][MAX_PACKET + 320];
            thinair_rohc_packet up[2], down[2];
            uint64_t now = 0;
            int is_open = 1;
            while (is_open) {
                size_t n = 0;
                memset(up, 0, sizeof up);
                memset(down, 0, sizeof down);
                for (; n < 2; n++) {
                    uint64_t time;
                    size_t len = next_packet(&c, in[n], &time);
                    if (len == 0) {
                        is_open = 0;
                        break;
                    }
                    now = time > now ? time : now;
                    up[n].input = in[n], up[n].input_len = len;
                    up[n].output = rohc[n], up[n].output_size = sizeof rohc[n];
                }
                CHECK(thinair_rohc_compress_batch(a, now, up, n) == n);
                for (size_t k = 0; k < n; k++) {
                    down[k].input = rohc[k], down[k].input_len = up[k].output_len;
                    down[k].output = back[k], down[k].output_size = sizeof back[k];
                    down[k].lost = 0;
                }
                CHECK(thinair_rohc_decompress_batch(b, now, down, n) == n);
                for (size_t k = 0; k < n; k++) {
                    CHECK(down[k].cid == up[k].cid && down[k].profile == up[k].profile);
                    CHECK(down[k].output_len == up[k].input_len);
                    CHECK(memcmp(back[k], in[k], up[k].input_len) == 0);
                }
                uint8_t element[THINAIR_ROHC_MAX_FEEDBACK];
                size_t len;
                while ((len = thinair_rohc_poll_feedback(b, element, sizeof element)) > 0) {
                    CHECK(thinair_rohc_give_feedback(a, now, element, len) == THINAIR_ROHC_OK);
                }
            }
            thinair_rohc_statistics s;
            CHECK(thinair_rohc_get_statistics(a, &s) == THINAIR_ROHC_OK);
            CHECK(s.compress_errors == 0 && s.compressed_packets > 0);
            printf("%s mode %d: %llu packets, headers %llu -> %llu\n", strrchr(paths[i], '/') + 1, mode,
                   (unsigned long long)s.compressed_packets, (unsigned long long)s.compressed_header_in,
                   (unsigned long long)s.compressed_header_out);
            thinair_rohc_destroy(a);
            thinair_rohc_destroy(b);
        }
    }
    return 0;
}
