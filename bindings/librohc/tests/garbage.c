/* Calls that no program should make: null, overlapping, too small, damaged, in any order. Usage: garbage CALLS [SEED] */
#include "rohc_pair.h"

#define HANDLES 3
#define ROOM 2048

static struct rohc_comp *comps[HANDLES];
static struct rohc_decomp *decomps[HANDLES];
static uint8_t octets[ROOM];

static struct rohc_comp *any_comp(void) { return below(20) ? comps[below(HANDLES)] : NULL; }
static struct rohc_decomp *any_decomp(void) { return below(20) ? decomps[below(HANDLES)] : NULL; }
static rohc_profile_t any_profile(void) { return (rohc_profile_t)(below(8) ? below(9) | below(2) << 8 : next_random() & 0xFFFF); }

static int any_random(const struct rohc_comp *const comp, void *const private) {
    (void)comp, (void)private;
    return (int)next_random();
}

static bool perhaps(const unsigned char *const ip, const unsigned char *const udp, const unsigned char *const payload,
                    const unsigned int size, void *const private) {
    (void)private;
    return ((ip[0] ^ udp[0] ^ payload[size - 1]) & 1) != 0;
}

/* A part of the one buffer, so that they often overlap; often malformed. */
static struct rohc_buf any_buf(bool is_empty) {
    size_t at = below(4) ? below(2) * (ROOM / 2) : below(ROOM);
    struct rohc_buf buf = rohc_buf_init_empty(octets + at, (below(4) ? ROOM / 2 : ROOM) - (at % (ROOM / 2)));
    buf.max_len = buf.max_len > ROOM - at ? ROOM - at : buf.max_len;
    buf.offset = below(2) ? 0 : below(20);
    buf.len = is_empty ? 0 : below(300);
    switch (below(60)) {
    case 0: buf.data = NULL; break;
    case 1: buf.max_len = 0; break;
    case 2: buf.offset = next_random(); break;
    case 3: buf.len = next_random(); break;
    }
    buf.time.sec = below(2) ? 0 : next_random();
    buf.time.nsec = below(2) ? 0 : next_random();
    return buf;
}

static void make(size_t i) {
    rohc_comp_free(comps[i]);
    rohc_decomp_free(decomps[i]);
    rohc_cid_t max_cid = (rohc_cid_t)(below(10) ? below(16) : next_random() % 400);
    rohc_cid_type_t type = (rohc_cid_type_t)below(3);
    comps[i] = rohc_comp_new2(type, max_cid, below(20) ? any_random : NULL, NULL);
    decomps[i] = rohc_decomp_new2(type, max_cid, (rohc_mode_t)below(5));
    for (int k = 0; k < 9; k++) {
        rohc_comp_enable_profile(comps[i], (rohc_profile_t)k);
        rohc_decomp_enable_profile(decomps[i], (rohc_profile_t)k);
    }
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

static void set_something(struct rohc_comp *c, struct rohc_decomp *d) {
    size_t n = below(3) ? below(300) : next_random(), k[6];
    switch (below(16)) {
    case 0: rohc_comp_set_optimistic_approach(c, n); break;
    case 1: rohc_comp_set_periodic_refreshes(c, n, below(300)); break;
    case 2: rohc_comp_set_periodic_refreshes_time(c, n, below(300)); break;
    case 3: rohc_comp_set_features(c, (rohc_comp_features_t)(next_random() & 0x1F)); break;
    case 4: rohc_comp_set_rtp_detection_cb(c, below(2) ? perhaps : NULL, NULL); break;
    case 5: rohc_comp_set_mrru(c, n); break;
    case 6: rohc_comp_enable_profile(c, any_profile()); break;
    case 7: rohc_comp_disable_profile(c, any_profile()); break;
    case 8: rohc_decomp_set_mrru(d, n); break;
    case 9: rohc_decomp_set_features(d, (rohc_decomp_features_t)(next_random() & 0xF)); break;
    case 10: rohc_decomp_set_rate_limits(d, n, below(300), below(300), below(300), n, n); break;
    case 11: rohc_decomp_enable_profile(d, any_profile()); break;
    case 12: rohc_decomp_disable_profile(d, any_profile()); break;
    case 13: rohc_decomp_get_rate_limits(d, k, k + 1, k + 2, below(2) ? NULL : k + 3, k + 4, k + 5); break;
    case 14: rohc_comp_enable_profiles(c, any_profile(), any_profile(), any_profile(), any_profile(), any_profile(), any_profile(), any_profile(), -1); break;
    case 15: rohc_comp_force_contexts_reinit(c); break;
    }
}

static void look(struct rohc_comp *c, struct rohc_decomp *d) {
    rohc_comp_last_packet_info2_t a;
    rohc_comp_general_info_t b;
    rohc_decomp_last_packet_info_t e;
    rohc_decomp_context_info_t f;
    rohc_decomp_general_info_t g;
    a.version_major = b.version_major = e.version_major = f.version_major = g.version_major = (unsigned short)below(2);
    a.version_minor = b.version_minor = e.version_minor = f.version_minor = g.version_minor = (unsigned short)below(4);
    rohc_comp_get_last_packet_info2(c, below(9) ? &a : NULL);
    rohc_comp_get_general_info(c, below(9) ? &b : NULL);
    rohc_decomp_get_last_packet_info(d, below(9) ? &e : NULL);
    rohc_decomp_get_context_info(d, (rohc_cid_t)next_random(), below(9) ? &f : NULL);
    rohc_decomp_get_general_info(d, below(9) ? &g : NULL);
    rohc_get_packet_descr((rohc_packet_t)(next_random() & 0xFF));
    rohc_get_profile_descr((rohc_profile_t)(next_random() & 0xFFFF));
}

int main(int count, char **arguments) {
    unsigned long calls = count > 1 ? strtoul(arguments[1], NULL, 10) : 100000, good = 0;
    random_state = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
    for (size_t i = 0; i < HANDLES; i++) {
        make(i);
    }
    for (unsigned long i = 0; i < calls; i++) {
        struct rohc_comp *c = any_comp();
        struct rohc_decomp *d = any_decomp();
        struct rohc_buf in = any_buf(false), out = any_buf(below(30) > 0), rcvd = any_buf(below(4)), send = any_buf(below(4));
        fill();
        switch (below(200) ? below(9) : 9) {
        case 0:
        case 1: good += rohc_compress4(c, in, below(50) ? &out : NULL) == ROHC_STATUS_OK; break;
        case 2:
        case 3: good += rohc_decompress3(d, in, below(50) ? &out : NULL, below(2) ? &rcvd : NULL, below(2) ? &send : NULL) == ROHC_STATUS_OK; break;
        case 4: good += rohc_comp_deliver_feedback2(c, in); break;
        case 5: rohc_comp_get_segment2(c, below(50) ? &out : NULL); break;
        case 6: rohc_comp_pad(c, below(50) ? &in : NULL, below(300)); break;
        case 7: below(3) ? look(c, d) : set_something(c, d); break;
        case 8: {
            uint8_t packet[256] = {0}, rohc[512], back[1024];
            const struct rohc_ts time = {0, 0};
            const struct rohc_buf p = rohc_buf_init_full(packet, udp4(packet, (uint8_t)below(20), (uint16_t)i, 5000, 6000, below(100)), time);
            struct rohc_buf q = rohc_buf_init_empty(rohc, sizeof rohc), r = rohc_buf_init_empty(back, sizeof back);
            if (rohc_compress4(c, p, &q) == ROHC_STATUS_OK) {
                rohc[below(q.len)] ^= (uint8_t)(1 << below(8));
                good += rohc_decompress3(d, q, &r, NULL, NULL) == ROHC_STATUS_OK;
            }
            break;
        }
        default: make(below(HANDLES));
        }
    }
    for (size_t i = 0; i < HANDLES; i++) {
        rohc_comp_free(comps[i]);
        rohc_decomp_free(decomps[i]);
    }
    printf("%lu calls, %lu of them did something\n", calls, good);
    return 0;
}
