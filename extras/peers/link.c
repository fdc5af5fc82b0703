/* A compressor and a decompressor of rohc-lib with a channel between them that loses packets:
 * `link v1|v2 u|o MICROSECONDS`, the time after which feedback arrives, counted from the packet that causes it.
 *
 * Each request is the time in nanoseconds since the start (64 bits), one octet that is 1 if the packet is lost, and the length (32 bits)
 * and octets of an IP packet. There are no answers. At the end of the input one line has packets that were decompressed wrongly, packets
 * that arrived and were not decompressed correctly, packets that arrived, and the largest number of those in a row that were not.
 *
 * crates/rohc/tests/pause_matrix.rs starts it. */
#include <rohc/rohc_decomp.h>

#include "compressor.h"

enum { WAITING = 4096, LONGEST = 64 };

/* Feedback on its way. */
static struct {
    uint64_t at;
    size_t len;
    uint8_t octets[LONGEST];
} waiting[WAITING];

static uint8_t packet[ROOM], rohc[ROOM], back[ROOM], other[ROOM], feedback[ROOM];

int main(int argc, char **argv)
{
    check_library();
    if (argc != 4)
        fail("usage: link v1|v2 u|o MICROSECONDS");
    int has_feedback = argv[2][0] == 'o';
    uint64_t delay = 1000 * strtoull(argv[3], NULL, 10);
    struct rohc_comp *comp = compressor(ROHC_SMALL_CID, 15, is_v2(argv[1]));
    struct rohc_decomp *decomp = rohc_decomp_new2(ROHC_SMALL_CID, 15, has_feedback ? ROHC_O_MODE : ROHC_U_MODE);
    if (decomp == NULL || !(is_v2(argv[1]) ? rohc_decomp_enable_profiles(decomp, PEER_PROFILES_V2)
                                           : rohc_decomp_enable_profiles(decomp, PEER_PROFILES)))
        fail("rohc-lib gives no decompressor");
    unsigned long wrong = 0, undelivered = 0, arrived = 0, row = 0, outage = 0;
    size_t first = 0, last = 0, len;
    uint64_t now;
    uint8_t is_lost;
    while (take_number(&now, 8)) {
        if (!take(&is_lost, 1) || !take_octets(packet, &len))
            fail("the input ends within a request");
        for (; first != last && waiting[first].at <= now; first = (first + 1) % WAITING)
            if (!rohc_comp_deliver_feedback2(comp, filled(waiting[first].octets, waiting[first].len, now)))
                fprintf(stderr, "feedback of %zu octets is refused\n", waiting[first].len);
        struct rohc_buf out = room(rohc, ROOM);
        if (rohc_compress4(comp, filled(packet, len, now), &out) != ROHC_STATUS_OK)
            out.len = 0;
        if (is_lost)
            continue;
        arrived++;
        struct rohc_buf whole = room(back, ROOM), received = room(other, ROOM), answer = room(feedback, ROOM);
        int is_right = 0;
        if (out.len > 0) {
            rohc_status_t status = rohc_decompress3(decomp, out, &whole, &received, &answer);
            int is_delivered = status == ROHC_STATUS_OK && whole.len > 0;
            is_right = is_delivered && whole.len == len && memcmp(rohc_buf_data(whole), packet, len) == 0;
            wrong += is_delivered && !is_right;
        }
        undelivered += !is_right;
        row = is_right ? 0 : row + 1;
        outage = row > outage ? row : outage;
        if (has_feedback && answer.len > 0 && answer.len <= LONGEST && (last + 1) % WAITING != first) {
            waiting[last].at = now + delay;
            waiting[last].len = answer.len;
            memcpy(waiting[last].octets, rohc_buf_data(answer), answer.len);
            last = (last + 1) % WAITING;
        }
    }
    printf("%lu %lu %lu %lu\n", wrong, undelivered, arrived, outage);
    rohc_comp_free(comp);
    rohc_decomp_free(decomp);
    return 0;
}
