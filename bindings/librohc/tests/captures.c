/* Every packet of the captures that are named comes back octet for octet. */
#include "rohc_pair.h"

int main(int count, char **paths) {
    static const int profiles[] = {0, 1, 2, 3, 4, 6, 7, 8, -1};
    static rohc_pair p;
    static uint8_t packet[MAX_PACKET];
    for (int i = 1; i < count; i++) {
        for (int mode = ROHC_U_MODE; mode <= ROHC_R_MODE; mode++) {
            capture c = open_capture(paths[i]);
            uint64_t now;
            size_t len, packets = 0;
            rohc_comp_last_packet_info2_t last = {0};
            unsigned long headers_in = 0, headers_out = 0;
            open_pair(&p, mode == ROHC_O_MODE ? ROHC_LARGE_CID : ROHC_SMALL_CID, mode == ROHC_O_MODE ? 300 : 15,
                      (rohc_mode_t)mode, profiles);
            while ((len = next_packet(&c, packet, &now)) > 0) {
                p.time.sec = now / 1000000000;
                p.time.nsec = now % 1000000000;
                carry(&p, packet, len, true);
                CHECK(rohc_comp_get_last_packet_info2(p.comp, &last));
                headers_in += last.header_last_uncomp_size;
                headers_out += last.header_last_comp_size;
                packets++;
            }
            printf("%s mode %d: %zu packets, headers %lu -> %lu\n", strrchr(paths[i], '/') + 1, mode, packets, headers_in,
                   headers_out);
            CHECK(packets > 0);
            close_pair(&p);
        }
    }
    return 0;
}
