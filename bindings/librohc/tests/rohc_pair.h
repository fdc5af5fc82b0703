/* A compressor and a decompressor of rohc-lib's interface, and packets between them. */
#ifndef ROHC_PAIR_H
#define ROHC_PAIR_H

#include <rohc/rohc.h>
#include <rohc/rohc_comp.h>
#include <rohc/rohc_decomp.h>

#include "packets.h"

static int always_zero(const struct rohc_comp *const comp, void *const private) {
    (void)comp;
    (void)private;
    return 0;
}

typedef struct {
    struct rohc_comp *comp;
    struct rohc_decomp *decomp;
    struct rohc_ts time;
    size_t octets_in, octets_out, feedback;
    uint8_t rohc[MAX_PACKET + 64], back[MAX_PACKET + 400], send[512];
    struct rohc_buf last;
} rohc_pair;

/* Profiles end with -1. */
static inline void open_pair(rohc_pair *p, rohc_cid_type_t cids, rohc_cid_t max_cid, rohc_mode_t mode, const int *profiles) {
    memset(p, 0, sizeof *p);
    p->comp = rohc_comp_new2(cids, max_cid, always_zero, NULL);
    p->decomp = rohc_decomp_new2(cids, max_cid, mode);
    CHECK(p->comp != NULL && p->decomp != NULL);
    for (; *profiles != -1; profiles++) {
        CHECK(rohc_comp_enable_profile(p->comp, (rohc_profile_t)*profiles));
        CHECK(rohc_decomp_enable_profile(p->decomp, (rohc_profile_t)*profiles));
    }
}

static inline void close_pair(rohc_pair *p) {
    rohc_comp_free(p->comp);
    rohc_decomp_free(p->decomp);
}

/* Compresses a packet, decompresses it, compares, and delivers feedback if there is a way for it. */
static inline void carry(rohc_pair *p, const uint8_t *octets, size_t len, bool two_way) {
    static uint8_t copy[MAX_PACKET];
    memcpy(copy, octets, len);
    const struct rohc_buf in = rohc_buf_init_full(copy, len, p->time);
    struct rohc_buf rohc = rohc_buf_init_empty(p->rohc, sizeof p->rohc);
    struct rohc_buf back = rohc_buf_init_empty(p->back, sizeof p->back);
    struct rohc_buf send = rohc_buf_init_empty(p->send, sizeof p->send);
    CHECK(rohc_compress4(p->comp, in, &rohc) == ROHC_STATUS_OK);
    CHECK(rohc.len > 0);
    rohc.time = p->time;
    p->last = rohc;
    CHECK(rohc_decompress3(p->decomp, rohc, &back, NULL, two_way ? &send : NULL) == ROHC_STATUS_OK);
    CHECK(back.len == len && memcmp(rohc_buf_data(back), octets, len) == 0);
    CHECK(memcmp(copy, octets, len) == 0);
    if (two_way && send.len > 0) {
        p->feedback++;
        send.time = p->time;
        CHECK(rohc_comp_deliver_feedback2(p->comp, send));
    }
    p->octets_in += len;
    p->octets_out += p->last.len;
}

#endif
