/* Decompressor of rohc-lib for THINAIR_PEER_DECOMPRESSOR: `decompressor small|large MAX_CID v1|v2 u|o`.
 *
 * The protocol is in the head of tests/workspace/tests/peer_decompressor.rs. */
#include <rohc/rohc_decomp.h>

#include "peer.h"

static uint8_t rohc[ROOM], packet[ROOM], received[ROOM], sent[ROOM];

int main(int argc, char **argv)
{
    check_library();
    if (argc != 5)
        fail("usage: decompressor small|large MAX_CID v1|v2 u|o");
    int has_feedback = argv[4][0] == 'o';
    struct rohc_decomp *decomp = rohc_decomp_new2(cid_type(argv[1]), (rohc_cid_t)strtoul(argv[2], NULL, 10),
                                                  has_feedback ? ROHC_O_MODE : ROHC_U_MODE);
    if (decomp == NULL || !(is_v2(argv[3]) ? rohc_decomp_enable_profiles(decomp, PEER_PROFILES_V2)
                                           : rohc_decomp_enable_profiles(decomp, PEER_PROFILES)))
        fail("rohc-lib gives no decompressor");
    size_t len;
    while (take_octets(rohc, &len)) {
        struct rohc_buf out = room(packet, ROOM), other = room(received, ROOM), feedback = room(sent, ROOM);
        rohc_status_t status = rohc_decompress3(decomp, filled(rohc, len, 0), &out, &other, &feedback);
        if (status != ROHC_STATUS_OK)
            out.len = 0;
        put_octets(rohc_buf_data(out), out.len);
        putchar((int)status);
        /* In U-mode there is no channel for feedback. */
        put_octets(rohc_buf_data(feedback), has_feedback ? feedback.len : 0);
        fflush(stdout);
    }
    rohc_decomp_free(decomp);
    return 0;
}
