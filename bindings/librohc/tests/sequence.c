/* Sequences of calls of rohc-lib's interface: see sequence.h. */
#include "sequence.h"

#include <rohc/rohc_comp.h>
#include <rohc/rohc_decomp.h>

#define ROOM (LONGEST + 500)

static struct rohc_comp *comps[2];
static struct rohc_decomp *decomps[2];
static struct rohc_ts now;
/* Nothing was lost or made up on the way: what is delivered is right. */
static bool is_clean;

static int any_random(const struct rohc_comp *const comp, void *const private) {
    (void)comp, (void)private;
    return 0x1234;
}

static bool first_bit(const unsigned char *const ip, const unsigned char *const udp, const unsigned char *const payload,
                      const unsigned int size, void *const private) {
    return ((ip[0] ^ udp[7] ^ payload[size - 1] ^ *(const uint8_t *)private) & 1) != 0;
}

/* A buffer of exactly `len` octets with room behind or not; its octets have to be freed. */
static struct rohc_buf empty(size_t len) {
    struct rohc_buf buf = rohc_buf_init_empty(room_of(len), len);
    buf.time = now;
    return buf;
}

static struct rohc_buf full(const uint8_t *octets, size_t len) {
    struct rohc_buf buf = empty(len);
    rohc_buf_append(&buf, octets, len);
    return buf;
}

static void create(size_t i, const uint8_t *head) {
    rohc_cid_type_t type = (rohc_cid_type_t)(ROHC_SMALL_CID ^ (head[0] & 3));
    rohc_cid_t max_cid = 15 ^ (head[1] & 0x1F);
    unsigned profiles = 0x15F ^ head[2] ^ (unsigned)head[3] << 8;
    comps[i] = rohc_comp_new2(type, max_cid, any_random, NULL);
    decomps[i] = rohc_decomp_new2(type, max_cid, (rohc_mode_t)(ROHC_U_MODE ^ (head[4] & 3)));
    for (int number = 0; number < 16; number++) {
        if (profiles >> number & 1) {
            rohc_profile_t profile = (rohc_profile_t)(number < 9 ? number : 0x100 | (number - 8));
            rohc_comp_enable_profile(comps[i], profile);
            rohc_decomp_enable_profile(decomps[i], profile);
        }
    }
    rohc_comp_set_features(comps[i], (rohc_comp_features_t)head[5]);
    rohc_decomp_set_features(decomps[i], (rohc_decomp_features_t)head[6]);
    rohc_comp_set_optimistic_approach(comps[i], head[7]);
    rohc_comp_set_periodic_refreshes(comps[i], head[8], head[9]);
    rohc_comp_set_periodic_refreshes_time(comps[i], head[10], head[11]);
    rohc_comp_set_reorder_ratio(comps[i], (rohc_reordering_offset_t)head[12]);
    rohc_comp_set_mrru(comps[i], (size_t)head[13] << 8);
    rohc_decomp_set_mrru(decomps[i], (size_t)head[14] << 8);
    rohc_decomp_set_rate_limits(decomps[i], head[15], head[16], head[17], head[18], head[19], head[20]);
    rohc_decomp_set_prtt(decomps[i], head[21]);
}

/* Decompresses at `to`, and hands feedback to the compressors of both ends. */
static void decompress(size_t to, struct rohc_buf rohc, const step *sent) {
    struct rohc_buf back = empty(sent && sent->how & 0x10 ? sent->len / 2 + 1 : ROOM);
    struct rohc_buf received = empty(sent && sent->how & 8 ? 1 : 200), send = empty(sent && sent->how & 8 ? 2 : 200);
    rohc_status_t status = rohc_decompress3(decomps[to], rohc, &back, sent && sent->how & 4 ? NULL : &received, &send);
    CHECK(status == ROHC_STATUS_OK || back.len == 0);
    CHECK(!rohc_buf_is_malformed(back) && !rohc_buf_is_malformed(received) && !rohc_buf_is_malformed(send));
    if (sent && is_clean && status == ROHC_STATUS_OK) {
        CHECK(back.len == sent->len && memcmp(back.data, sent->octets, back.len) == 0);
    }
    rohc_comp_deliver_feedback2(comps[to], received);
    rohc_comp_deliver_feedback2(comps[!to], send);
    free(back.data);
    free(received.data);
    free(send.data);
}

static void carry(size_t from, const step *s) {
    struct rohc_buf in = full(s->octets, s->len), rohc = empty(s->how & 0x20 ? s->len / 2 : s->len + 200);
    rohc.offset = s->how & 2 ? 20 : 0;
    rohc_status_t status = rohc_compress4(comps[from], in, &rohc);
    CHECK(!is_clean || status == ROHC_STATUS_OK || s->len == 0);
    for (int i = 0; status != ROHC_STATUS_ERROR && i < 300; i++) {
        if (status == ROHC_STATUS_SEGMENT) {
            rohc.len = 0;
            status = rohc_comp_get_segment2(comps[from], &rohc);
        }
        if (s->call % 8 == 7 && rohc.len > 0) {
            rohc_buf_byte_at(rohc, (s->call >> 3) % rohc.len) ^= (uint8_t)(1 << s->how % 8);
        }
        if (s->call % 8 == 6) {
            rohc_comp_pad(comps[from], &rohc, rohc.len + s->how % 32);
        }
        if (s->call % 8 != 1) {
            decompress(!from, rohc, status == ROHC_STATUS_OK ? s : NULL);
        }
        if (status != ROHC_STATUS_SEGMENT) {
            break;
        }
    }
    free(in.data);
    free(rohc.data);
}

static void look(size_t i, const step *s) {
    rohc_comp_last_packet_info2_t a = {0};
    rohc_comp_general_info_t b = {0};
    rohc_decomp_context_info_t f = {0};
    rohc_decomp_last_packet_info_t *e = calloc(1, sizeof *e);
    rohc_decomp_general_info_t *g = calloc(1, sizeof *g);
    e->version_minor = s->how % 4;
    g->version_minor = s->how % 3;
    rohc_comp_get_last_packet_info2(comps[i], &a);
    rohc_comp_get_general_info(comps[i], &b);
    rohc_decomp_get_last_packet_info(decomps[i], e);
    rohc_decomp_get_general_info(decomps[i], g);
    rohc_decomp_get_context_info(decomps[i], s->how, &f);
    CHECK(rohc_get_packet_descr(a.packet_type) != NULL && rohc_get_packet_descr(e->packet_type) != NULL);
    free(e);
    free(g);
}

static void set(size_t i, const step *s) {
    static uint8_t private;
    private = (uint8_t)s->how;
    int profile = (s->how & 0x0F) | (s->how & 0x10) << 4;
    switch (s->how >> 5) {
    case 0: rohc_comp_force_contexts_reinit(comps[i]); break;
    case 1: rohc_comp_enable_profile(comps[i], (rohc_profile_t)profile); break;
    case 2: rohc_comp_disable_profiles(comps[i], profile, 1, 2, 3, 4, 5, 6, 7, -1); break;
    case 3: rohc_decomp_enable_profiles(decomps[i], profile, -1); break;
    case 4: rohc_decomp_disable_profile(decomps[i], (rohc_profile_t)profile); break;
    case 5: rohc_comp_set_rtp_detection_cb(comps[i], s->how & 1 ? first_bit : NULL, &private); break;
    case 6: rohc_comp_set_mrru(comps[i], s->len); break;
    default: rohc_comp_enable_profiles(comps[i], 1, 2, 3, 4, 6, profile, -1);
    }
}

static void take(const step *s) {
    size_t from = s->how & 1;
    now.nsec += s->how & 0x80 ? 0 : 20000000;
    now.sec += s->how & 0x40 ? 3600 : 0;
    is_clean &= s->call % 8 == 0 && s->how < 2;
    struct rohc_buf octets = full(s->octets, s->len);
    switch (s->call % 8) {
    case 2: decompress(from, octets, NULL); break;
    case 3: rohc_comp_deliver_feedback2(comps[from], octets); break;
    case 4: set(from, s); break;
    case 5: look(from, s); break;
    default: carry(from, s);
    }
    free(octets.data);
}

static void run(const uint8_t *head, rest steps) {
    step s;
    create(0, head);
    create(1, head);
    now = (struct rohc_ts){0, 0};
    is_clean = head[0] == 0 && memcmp(head, head + 1, HEAD - 1) == 0;
    while (next_step(&steps, &s)) {
        take(&s);
        free(s.octets);
    }
    for (size_t i = 0; i < 2; i++) {
        rohc_comp_free(comps[i]);
        rohc_decomp_free(decomps[i]);
    }
}
