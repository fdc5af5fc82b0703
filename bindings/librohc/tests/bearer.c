/*
 * Demands of a PDCP entity, for each set of profiles: a compressor and a decompressor can be made; five echo requests, five
 * datagrams and five TCP segments come back, with feedback and without; they shrink where a profile fits, and nowhere else;
 * in U-mode, too, there is feedback, and the compressor takes it. Of two versions of one profile the second is refused.
 *
 * Sets with a profile that the library does not have are skipped, which the program prints.
 */
#include "rohc_pair.h"

#define PACKETS 5

static int warnings;

static void count_warnings(void *const private, const rohc_trace_level_t level, const rohc_trace_entity_t entity,
                           const int profile, const char *const format, ...) {
    (void)private, (void)entity, (void)profile, (void)format;
    warnings += level >= ROHC_TRACE_WARNING;
}

static bool has(const int *set, int profile) {
    for (; *set != -1; set++) {
        if (*set == profile) {
            return true;
        }
    }
    return false;
}

static size_t packet_of(int kind, uint8_t *packet, int number) {
    switch (kind) {
    case 0: return ping4(packet, (uint16_t)number, 56);
    case 1:
        for (int i = 0; i < 1348; i++) {
            packet[28 + i] = (uint8_t)(i * number);
        }
        return udp4(packet, 1, (uint16_t)number, 2000, 3000, 1348);
    default: return tcp4(packet, (uint16_t)number, 1000 + (uint32_t)number * 100, 100);
    }
}

static void bearer(const int *set, int kind, bool two_way) {
    static rohc_pair p;
    uint8_t packet[2000];
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, set);
    /* A clock that stands still, so that the load of the machine plays no part. */
    p.time.sec = 1;
    CHECK(rohc_comp_set_mrru(p.comp, 0));
    CHECK(rohc_comp_set_traces_cb2(p.comp, count_warnings, NULL));
    CHECK(rohc_decomp_set_traces_cb2(p.decomp, count_warnings, NULL));
    for (int i = 1; i <= PACKETS; i++) {
        carry(&p, packet, packet_of(kind, packet, i), two_way);
    }
    bool is_udp = has(set, 2) || has(set, 0x102), is_ip = has(set, 4) || has(set, 0x104);
    bool fits = is_ip || (kind == 1 && is_udp) || (kind == 2 && has(set, 6));
    CHECK(fits ? p.octets_out < p.octets_in : p.octets_out >= p.octets_in);
    CHECK(!two_way || p.feedback > 0);
    CHECK(warnings == 0);
    close_pair(&p);
}

int main(void) {
    static const int sets[][11] = {
        {0, -1}, {0, 1, -1}, {0, 2, -1}, {0, 3, -1}, {0, 4, -1}, {0, 6, -1}, {0, 1, 2, -1}, {0, 1, 2, 3, 4, 6, -1},
        {0, 0x101, -1}, {0, 0x102, -1}, {0, 0x103, -1}, {0, 0x104, -1}, {0, 0x101, 0x102, 0x103, 0x104, -1},
        {0, 6, 0x101, 0x102, 0x103, 0x104, -1}};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        struct rohc_comp *comp = rohc_comp_new2(ROHC_LARGE_CID, 16383, always_zero, NULL);
        int missing = 0;
        for (const int *profile = sets[s]; *profile != -1; profile++) {
            missing = rohc_comp_enable_profile(comp, (rohc_profile_t)*profile) || missing ? missing : *profile;
        }
        rohc_comp_free(comp);
        if (missing) {
            printf("skipped: set %zu needs profile 0x%04x, which the library does not have\n", s, missing);
            continue;
        }
        for (int kind = 0; kind < 3; kind++) {
            bearer(sets[s], kind, false);
            bearer(sets[s], kind, true);
        }
    }
    static const int rivals[][2] = {{1, 0x101}, {2, 0x102}, {3, 0x103}, {4, 0x104}};
    for (int i = 0; i < 4; i++) {
        struct rohc_comp *comp = rohc_comp_new2(ROHC_SMALL_CID, 15, always_zero, NULL);
        struct rohc_decomp *decomp = rohc_decomp_new2(ROHC_SMALL_CID, 15, ROHC_U_MODE);
        rohc_profile_t first = (rohc_profile_t)rivals[i][0], second = (rohc_profile_t)rivals[i][1];
        CHECK(rohc_comp_enable_profile(comp, first) && !rohc_comp_enable_profile(comp, second));
        CHECK(rohc_decomp_enable_profile(decomp, first) && !rohc_decomp_enable_profile(decomp, second));
        CHECK(rohc_comp_profile_enabled(comp, first) && !rohc_comp_profile_enabled(comp, second));
        rohc_comp_free(comp);
        rohc_decomp_free(decomp);
    }
    return 0;
}
