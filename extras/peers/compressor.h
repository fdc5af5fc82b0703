/* A compressor of rohc-lib with all profiles, and the ports of RTP. */
#ifndef PEER_COMPRESSOR_H
#define PEER_COMPRESSOR_H

#include <rohc/rohc_comp.h>

#include "peer.h"

/* UDP destination ports of RTP in the captures of rohc-lib (tests/workspace/src/peer.rs), and in our benchmarks. */
static inline bool is_rtp(const unsigned char *ip, const unsigned char *udp, const unsigned char *payload,
                          unsigned int payload_size, void *unused)
{
    static const unsigned ports[] = {1234, 36780, 33238, 5020, 5002, 5004, 5006, 37376};
    unsigned port = (unsigned)udp[2] << 8 | udp[3];
    (void)ip, (void)payload, (void)unused;
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        if (port == ports[i])
            return payload_size >= 12;
    return false;
}

/* The same number each time, so that runs can be compared. */
static inline int not_random(const struct rohc_comp *comp, void *unused)
{
    (void)comp, (void)unused;
    return 1;
}

static inline struct rohc_comp *compressor(rohc_cid_type_t cids, unsigned max_cid, int is_v2)
{
    struct rohc_comp *comp = rohc_comp_new2(cids, max_cid, not_random, NULL);
    if (comp == NULL ||
        !(is_v2 ? rohc_comp_enable_profiles(comp, PEER_PROFILES_V2) : rohc_comp_enable_profiles(comp, PEER_PROFILES)) ||
        !rohc_comp_set_rtp_detection_cb(comp, is_rtp, NULL))
        fail("the library gives no compressor");
    return comp;
}

#endif
