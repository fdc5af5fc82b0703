/* Compressor of rohc-lib for THINAIR_PEER_COMPRESSOR: `compressor small|large MAX_CID v1|v2`.
 *
 * The protocol is in the head of tests/workspace/tests/peer_compressor.rs. */
#include "compressor.h"

static uint8_t packet[ROOM], rohc[ROOM], feedback[ROOM];

int main(int argc, char **argv)
{
    check_library();
    if (argc != 4)
        fail("usage: compressor small|large MAX_CID v1|v2");
    struct rohc_comp *comp = compressor(cid_type(argv[1]), (unsigned)strtoul(argv[2], NULL, 10), is_v2(argv[3]));
    uint64_t now;
    size_t len, feedback_len;
    while (take_number(&now, 8)) {
        if (!take_octets(packet, &len) || !take_octets(feedback, &feedback_len))
            fail("the input ends within a request");
        /* Feedback that rohc-lib refuses does not end the stream: the test sees what it sends then. */
        if (feedback_len > 0 && !rohc_comp_deliver_feedback2(comp, filled(feedback, feedback_len, now)))
            fprintf(stderr, "feedback of %zu octets is refused\n", feedback_len);
        struct rohc_buf out = room(rohc, ROOM);
        rohc_status_t status = rohc_compress4(comp, filled(packet, len, now), &out);
        if (status != ROHC_STATUS_OK)
            out.len = 0;
        put_octets(rohc_buf_data(out), out.len);
        putchar((int)status);
        fflush(stdout);
    }
    rohc_comp_free(comp);
    return 0;
}
