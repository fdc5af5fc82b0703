/* Layout, numbers, and every function of the interface. */
#include "rohc_pair.h"

#include <stdarg.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type " " #field)

SIZE(struct rohc_ts, 16);
SIZE(struct rohc_buf, 48);
AT(struct rohc_buf, data, 16);
AT(struct rohc_buf, max_len, 24);
AT(struct rohc_buf, offset, 32);
AT(struct rohc_buf, len, 40);
SIZE(rohc_cid_t, 2);
SIZE(rohc_comp_last_packet_info2_t, 58);
AT(rohc_comp_last_packet_info2_t, context_id, 4);
AT(rohc_comp_last_packet_info2_t, is_context_init, 8);
AT(rohc_comp_last_packet_info2_t, context_mode, 9);
AT(rohc_comp_last_packet_info2_t, context_state, 13);
AT(rohc_comp_last_packet_info2_t, context_used, 17);
AT(rohc_comp_last_packet_info2_t, profile_id, 18);
AT(rohc_comp_last_packet_info2_t, packet_type, 22);
AT(rohc_comp_last_packet_info2_t, total_last_uncomp_size, 26);
SIZE(rohc_comp_general_info_t, 36);
AT(rohc_comp_general_info_t, comp_bytes_nr, 28);
SIZE(rohc_decomp_general_info_t, 60);
AT(rohc_decomp_general_info_t, corrected_crc_failures, 36);
SIZE(rohc_decomp_context_info_t, 52);
AT(rohc_decomp_context_info_t, corrected_crc_failures, 28);
SIZE(rohc_decomp_last_packet_info_t, 93);
AT(rohc_decomp_last_packet_info_t, nr_lost_packets, 16);
AT(rohc_decomp_last_packet_info_t, is_duplicated, 32);
AT(rohc_decomp_last_packet_info_t, packet_type, 57);
AT(rohc_decomp_last_packet_info_t, total_last_comp_size, 61);
AT(rohc_decomp_last_packet_info_t, header_last_uncomp_size, 85);
_Static_assert(ROHC_LARGE_CID == 0 && ROHC_SMALL_CID == 1, "CID types");
_Static_assert(ROHC_PROFILE_MAX == 0x0109 && ROHC_PACKET_MAX == 66, "ends");
_Static_assert(ROHC_STATUS_ERROR == 6 && ROHC_PACKET_UOR_2_TS_EXT3 == 65, "numbers");

static const int v1[] = {0, 1, 2, 3, 4, 6, -1};
static rohc_pair p;
static uint8_t packet[MAX_PACKET];

static void creation(void) {
    CHECK(rohc_comp_new2(ROHC_SMALL_CID, 16, always_zero, NULL) == NULL);
    CHECK(rohc_comp_new2(ROHC_LARGE_CID, 16384, always_zero, NULL) == NULL);
    CHECK(rohc_comp_new2((rohc_cid_type_t)2, 1, always_zero, NULL) == NULL);
    CHECK(rohc_comp_new2(ROHC_SMALL_CID, 15, NULL, NULL) == NULL);
    CHECK(rohc_decomp_new2(ROHC_SMALL_CID, 16, ROHC_U_MODE) == NULL);
    CHECK(rohc_decomp_new2(ROHC_SMALL_CID, 15, ROHC_UNKNOWN_MODE) == NULL);
    rohc_comp_free(NULL);
    rohc_decomp_free(NULL);
    /* One context is enough. */
    open_pair(&p, ROHC_SMALL_CID, 0, ROHC_O_MODE, v1);
    size_t number;
    rohc_cid_type_t type;
    CHECK(rohc_comp_get_max_cid(p.comp, &number) && number == 0);
    CHECK(rohc_decomp_get_max_cid(p.decomp, &number) && number == 0);
    CHECK(rohc_comp_get_cid_type(p.comp, &type) && type == ROHC_SMALL_CID);
    CHECK(rohc_decomp_get_cid_type(p.decomp, &type) && type == ROHC_SMALL_CID);
    for (uint16_t i = 0; i < 50; i++) {
        carry(&p, packet, udp4(packet, (uint8_t)(1 + i % 2), i, 5000, 6000, 20), true);
    }
    close_pair(&p);
}

static void settings(void) {
    struct rohc_comp *c = rohc_comp_new2(ROHC_SMALL_CID, 15, always_zero, NULL);
    struct rohc_decomp *d = rohc_decomp_new2(ROHC_SMALL_CID, 15, ROHC_U_MODE);
    size_t k[6], number;
    CHECK(rohc_comp_enable_profiles(c, 0, 1, 2, 3, 4, 6, 7, 8, -1));
    CHECK(rohc_comp_profile_enabled(c, ROHC_PROFILE_UDPLITE) && rohc_comp_profile_enabled(c, ROHC_PROFILE_UDP));
    CHECK(rohc_comp_disable_profiles(c, 7, 8, -1) && !rohc_comp_profile_enabled(c, ROHC_PROFILE_UDPLITE));
    CHECK(!rohc_comp_enable_profiles(c, 3, 5, -1) && !rohc_comp_profile_enabled(c, ROHC_PROFILE_RTP_LLA));
    CHECK(rohc_comp_disable_profile(c, ROHC_PROFILE_TCP) && !rohc_comp_profile_enabled(c, ROHC_PROFILE_TCP));
    CHECK(rohc_decomp_enable_profiles(d, 0, 1, 2, 3, 4, 6, 7, 8, -1) && rohc_decomp_profile_enabled(d, ROHC_PROFILE_UDPLITE));
    CHECK(rohc_decomp_disable_profiles(d, 7, -1) && !rohc_decomp_profile_enabled(d, ROHC_PROFILE_UDPLITE_RTP));
    CHECK(rohc_decomp_disable_profile(d, ROHC_PROFILE_TCP) && !rohc_decomp_profile_enabled(d, ROHC_PROFILE_TCP));
    CHECK(!rohc_comp_enable_profile(c, ROHC_PROFILE_RTP_LLA) && !rohc_comp_enable_profile(c, (rohc_profile_t)0x4242));
    CHECK(!rohc_comp_set_optimistic_approach(c, 0) && !rohc_comp_set_optimistic_approach(c, 256));
    CHECK(rohc_comp_set_optimistic_approach(c, 8) && rohc_comp_set_wlsb_window_width(c, 4) && rohc_comp_set_list_trans_nr(c, 4));
    CHECK(rohc_comp_set_reorder_ratio(c, ROHC_REORDERING_NONE) && rohc_comp_set_reorder_ratio(c, ROHC_REORDERING_THREEQUARTERS));
    CHECK(!rohc_comp_set_reorder_ratio(c, (rohc_reordering_offset_t)4));
    CHECK(!rohc_comp_set_periodic_refreshes(c, 100, 100) && !rohc_comp_set_periodic_refreshes(c, 100, 0));
    CHECK(rohc_comp_set_periodic_refreshes(c, 100, 50) && rohc_comp_set_periodic_refreshes_time(c, 1000, 500));
    CHECK(!rohc_comp_set_periodic_refreshes_time(c, 500, 500) && !rohc_comp_set_periodic_refreshes_time(c, 500, 0));
    CHECK(!rohc_comp_set_features(c, ROHC_COMP_FEATURE_COMPAT_1_6_x));
    CHECK(rohc_comp_set_features(c, ROHC_COMP_FEATURE_TIME_BASED_REFRESHES) && rohc_comp_set_periodic_refreshes_time(c, 1000, 500));
    CHECK(rohc_comp_get_mrru(c, &number) && number == 0 && !rohc_comp_set_mrru(c, 65536));
    CHECK(rohc_decomp_get_mrru(d, &number) && number == 0 && !rohc_decomp_set_mrru(d, 65536));
    CHECK(!rohc_decomp_set_features(d, ROHC_DECOMP_FEATURE_COMPAT_1_6_x));
    CHECK(rohc_decomp_set_features(d, ROHC_DECOMP_FEATURE_CRC_REPAIR));
    CHECK(rohc_decomp_get_prtt(d, &number) && number == 50 && rohc_decomp_set_prtt(d, 60));
    CHECK(rohc_decomp_get_prtt(d, &number) && number == 60 && !rohc_decomp_set_prtt(d, SIZE_MAX / 2));
    CHECK(rohc_decomp_set_prtt(d, 0) && rohc_decomp_set_prtt(d, SIZE_MAX / 2 - 1));
    CHECK(rohc_decomp_get_rate_limits(d, k, k + 1, k + 2, k + 3, k + 4, k + 5) && k[1] == 50 && k[2] == 30 && k[5] == 100);
    CHECK(rohc_decomp_set_rate_limits(d, 1, 10, 20, 100, 20, 100) && !rohc_decomp_set_rate_limits(d, 2, 1, 1, 1, 1, 1));
    CHECK(rohc_decomp_get_rate_limits(d, k, k + 1, k + 2, k + 3, k + 4, k + 5) && k[1] == 10);
    /* Nothing but profiles, callbacks and MRRU changes behind the first packet. */
    p.comp = c, p.decomp = d;
    memset(&p.time, 0, sizeof p.time);
    carry(&p, packet, udp4(packet, 1, 0, 5000, 6000, 20), false);
    CHECK(!rohc_comp_set_optimistic_approach(c, 8) && !rohc_decomp_set_mrru(d, 100));
    CHECK(rohc_comp_set_features(c, (rohc_comp_features_t)(ROHC_COMP_FEATURE_TIME_BASED_REFRESHES | ROHC_COMP_FEATURE_DUMP_PACKETS)));
    CHECK(!rohc_comp_set_features(c, ROHC_COMP_FEATURE_NONE));
    CHECK(rohc_decomp_set_features(d, ROHC_DECOMP_FEATURE_NONE));
    CHECK(rohc_comp_enable_profile(c, ROHC_PROFILE_TCP) && rohc_decomp_enable_profile(d, ROHC_PROFILE_TCP));
    for (uint16_t i = 0; i < 10; i++) {
        carry(&p, packet, tcp4(packet, i, i * 10u, 10), false);
    }
    CHECK(p.last.len < 30);
    CHECK(rohc_comp_disable_profile(c, ROHC_PROFILE_TCP) && rohc_comp_disable_profile(c, ROHC_PROFILE_IP));
    carry(&p, packet, tcp4(packet, 11, 110, 10), false);
    CHECK(p.last.len > 50);
    close_pair(&p);
    /* Without a handle nothing succeeds. */
    CHECK(!rohc_comp_set_mrru(NULL, 0) && !rohc_decomp_set_mrru(NULL, 0) && !rohc_comp_enable_profile(NULL, ROHC_PROFILE_UDP));
    CHECK(!rohc_comp_enable_profiles(NULL, 1, -1) && !rohc_decomp_disable_profiles(NULL, 1, -1));
    CHECK(!rohc_comp_set_traces_cb2(NULL, NULL, NULL) && !rohc_comp_force_contexts_reinit(NULL));
}

static void information(void) {
    rohc_comp_last_packet_info2_t last = {0};
    rohc_comp_general_info_t general = {0};
    rohc_decomp_last_packet_info_t d_last;
    rohc_decomp_general_info_t d_general;
    rohc_decomp_context_info_t context = {0};
    memset(&d_last, 0, sizeof d_last);
    memset(&d_general, 0, sizeof d_general);
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, v1);
    CHECK(!rohc_comp_get_last_packet_info2(p.comp, &last) && !rohc_decomp_get_last_packet_info(p.decomp, &d_last));
    CHECK(!rohc_decomp_get_context_info(p.decomp, 0, &context));
    size_t len = 0;
    for (uint16_t i = 0; i < 20; i++) {
        len = udp4(packet, 1, i, 5000, 6000, 20);
        carry(&p, packet, len, false);
        CHECK(rohc_comp_get_last_packet_info2(p.comp, &last) && last.is_context_init == (i == 0));
    }
    CHECK(last.context_id == 0 && last.context_used && last.profile_id == ROHC_PROFILE_UDP);
    CHECK(last.context_mode == ROHC_U_MODE && last.context_state == ROHC_COMP_STATE_SO && last.packet_type == ROHC_PACKET_UO_0);
    CHECK(last.total_last_uncomp_size == len && last.header_last_uncomp_size == 28);
    CHECK(last.total_last_comp_size == p.last.len && last.header_last_comp_size == p.last.len - 20);
    CHECK(rohc_comp_get_general_info(p.comp, &general));
    CHECK(general.contexts_nr == 1 && general.packets_nr == 20);
    CHECK(general.uncomp_bytes_nr == p.octets_in && general.comp_bytes_nr == p.octets_out);
    /* An older version has fewer fields, and the rest is left alone. */
    d_last.packet_type = ROHC_PACKET_MAX;
    CHECK(rohc_decomp_get_last_packet_info(p.decomp, &d_last) && d_last.packet_type == ROHC_PACKET_MAX);
    CHECK(d_last.nr_lost_packets == 0 && !d_last.is_duplicated && d_last.profile_id == ROHC_PROFILE_UDP);
    d_last.version_minor = 2;
    CHECK(rohc_decomp_get_last_packet_info(p.decomp, &d_last) && d_last.packet_type == ROHC_PACKET_UO_0);
    CHECK(d_last.total_last_uncomp_size == len && d_last.header_last_uncomp_size == 28);
    d_last.version_minor = 3;
    CHECK(!rohc_decomp_get_last_packet_info(p.decomp, &d_last));
    d_last.version_minor = 2;
    d_general.version_minor = 1;
    CHECK(rohc_decomp_get_general_info(p.decomp, &d_general) && d_general.packets_nr == 20 && d_general.contexts_nr == 1);
    CHECK(d_general.comp_bytes_nr == p.octets_out && d_general.uncomp_bytes_nr == p.octets_in);
    CHECK(rohc_decomp_get_context_info(p.decomp, 0, &context) && context.packets_nr == 20);
    CHECK(!rohc_decomp_get_context_info(p.decomp, 1, &context) && !rohc_decomp_get_context_info(p.decomp, 16, &context));
    general.version_major = 1;
    CHECK(!rohc_comp_get_general_info(p.comp, &general) && !rohc_comp_get_general_info(p.comp, NULL));
    /* Two packets are lost, and one is damaged. */
    for (uint16_t i = 20; i < 24; i++) {
        uint8_t rohc[200];
        len = udp4(packet, 1, i, 5000, 6000, 20);
        const struct rohc_buf in = rohc_buf_init_full(packet, len, p.time);
        struct rohc_buf out = rohc_buf_init_empty(rohc, sizeof rohc);
        struct rohc_buf back = rohc_buf_init_empty(p.back, sizeof p.back);
        CHECK(rohc_compress4(p.comp, in, &out) == ROHC_STATUS_OK);
        if (i == 22) {
            CHECK(rohc_decompress3(p.decomp, out, &back, NULL, NULL) == ROHC_STATUS_OK);
            CHECK(rohc_decomp_get_last_packet_info(p.decomp, &d_last) && d_last.nr_lost_packets == 2);
        } else if (i == 23) {
            out.data[out.offset] ^= 0x07;
            CHECK(rohc_decompress3(p.decomp, out, &back, NULL, NULL) == ROHC_STATUS_BAD_CRC && back.len == 0);
            CHECK(!rohc_decomp_get_last_packet_info(p.decomp, &d_last));
        }
    }
    CHECK(rohc_comp_force_contexts_reinit(p.comp));
    carry(&p, packet, udp4(packet, 1, 24, 5000, 6000, 20), false);
    CHECK(rohc_comp_get_last_packet_info2(p.comp, &last) && last.packet_type == ROHC_PACKET_IR);
    close_pair(&p);
}

static void segments(void) {
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, v1);
    CHECK(rohc_comp_set_mrru(p.comp, 1500) && rohc_decomp_set_mrru(p.decomp, 1500));
    for (size_t room = 10; room < 900; room += 37) {
        size_t len = udp4(packet, 1, (uint16_t)room, 5000, 6000, 1000);
        const struct rohc_buf in = rohc_buf_init_full(packet, len, p.time);
        struct rohc_buf segment = rohc_buf_init_empty(p.rohc, room), back = rohc_buf_init_empty(p.back, sizeof p.back);
        CHECK(rohc_compress4(p.comp, in, &segment) == ROHC_STATUS_SEGMENT && segment.len == 0);
        rohc_status_t status;
        do {
            segment.len = 0;
            status = rohc_comp_get_segment2(p.comp, &segment);
            CHECK(status == ROHC_STATUS_SEGMENT || status == ROHC_STATUS_OK);
            CHECK(back.len == 0);
            CHECK(rohc_decompress3(p.decomp, segment, &back, NULL, NULL) == ROHC_STATUS_OK);
        } while (status == ROHC_STATUS_SEGMENT);
        CHECK(back.len == len && memcmp(back.data, packet, len) == 0);
        segment.len = 0;
        CHECK(rohc_comp_get_segment2(p.comp, &segment) == ROHC_STATUS_ERROR);
    }
    /* MRRU between the payload and the packet: refused, not overrun. */
    for (size_t mrru = 1; mrru < 1100; mrru += 9) {
        size_t len = udp4(packet, 1, 1, 5000, 6000, 1000);
        const struct rohc_buf in = rohc_buf_init_full(packet, len, p.time);
        struct rohc_buf out = rohc_buf_init_empty(p.rohc, 20);
        CHECK(rohc_comp_set_mrru(p.comp, mrru));
        rohc_status_t status = rohc_compress4(p.comp, in, &out);
        CHECK(mrru < 1004 ? status == ROHC_STATUS_OUTPUT_TOO_SMALL : status != ROHC_STATUS_OK);
    }
    close_pair(&p);
    /* Padding goes in front. */
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, v1);
    size_t len = udp4(packet, 1, 1, 5000, 6000, 10);
    const struct rohc_buf in = rohc_buf_init_full(packet, len, p.time);
    struct rohc_buf out = rohc_buf_init_empty(p.rohc, sizeof p.rohc), back = rohc_buf_init_empty(p.back, sizeof p.back);
    out.offset = 100;
    CHECK(rohc_compress4(p.comp, in, &out) == ROHC_STATUS_OK);
    CHECK(rohc_comp_pad(p.comp, &out, 90) == ROHC_STATUS_OK && out.len == 90 && rohc_buf_byte(out) == 0xE0);
    CHECK(rohc_comp_pad(p.comp, &out, 80) == ROHC_STATUS_OK && out.len == 90);
    CHECK(rohc_comp_pad(p.comp, &out, 1000) == ROHC_STATUS_ERROR && out.len == 90);
    CHECK(rohc_decompress3(p.decomp, out, &back, NULL, NULL) == ROHC_STATUS_OK);
    CHECK(back.len == len && memcmp(back.data, packet, len) == 0);
    close_pair(&p);
}

/* Feedback goes alone, and in front of packets of the other direction. */
static void feedback(void) {
    static rohc_pair q;
    uint8_t sent[512], received[512];
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_O_MODE, v1);
    open_pair(&q, ROHC_SMALL_CID, 15, ROHC_O_MODE, v1);
    size_t len = udp4(packet, 1, 1, 5000, 6000, 10);
    const struct rohc_buf in = rohc_buf_init_full(packet, len, p.time);
    struct rohc_buf out = rohc_buf_init_empty(p.rohc, sizeof p.rohc), back = rohc_buf_init_empty(p.back, sizeof p.back);
    struct rohc_buf send = rohc_buf_init_empty(sent, sizeof sent), rcvd = rohc_buf_init_empty(received, sizeof received);
    CHECK(rohc_compress4(p.comp, in, &out) == ROHC_STATUS_OK);
    CHECK(rohc_decompress3(p.decomp, out, &back, &rcvd, &send) == ROHC_STATUS_OK);
    CHECK(rcvd.len == 0 && send.len > 0 && (rohc_buf_byte(send) & 0xF8) == 0xF0);
    /* In front of a packet. */
    out.len = 0, out.offset = 100, back.len = 0;
    CHECK(rohc_compress4(q.comp, in, &out) == ROHC_STATUS_OK);
    rohc_buf_prepend(&out, rohc_buf_data(send), send.len);
    CHECK(rohc_decompress3(q.decomp, out, &back, &rcvd, NULL) == ROHC_STATUS_OK && back.len == len);
    CHECK(rcvd.len == send.len && memcmp(received, sent, send.len) == 0);
    CHECK(rohc_comp_deliver_feedback2(p.comp, rcvd));
    rohc_comp_last_packet_info2_t last = {0};
    CHECK(rohc_comp_get_last_packet_info2(p.comp, &last) && last.context_mode == ROHC_O_MODE);
    /* Alone: no packet, and no failure. */
    back.len = 0, rcvd.len = 0;
    CHECK(rohc_decompress3(q.decomp, send, &back, &rcvd, NULL) == ROHC_STATUS_OK && back.len == 0 && rcvd.len == send.len);
    /* Nothing at all is an error. */
    const struct rohc_buf nothing = rohc_buf_init_empty(received, sizeof received);
    CHECK(rohc_decompress3(q.decomp, nothing, &back, NULL, NULL) == ROHC_STATUS_ERROR);
    /* No room for it: the packet may be tried again. */
    struct rohc_buf small = rohc_buf_init_empty(received, 1);
    CHECK(rohc_decompress3(q.decomp, send, &back, &small, NULL) == ROHC_STATUS_OUTPUT_TOO_SMALL);
    /* A packet without context is answered though it fails. */
    uint8_t lonely[] = {0xE3, 0x12, 1, 2, 3};
    const struct rohc_buf bad = rohc_buf_init_full(lonely, sizeof lonely, p.time);
    send.len = 0;
    CHECK(rohc_decompress3(p.decomp, bad, &back, NULL, &send) == ROHC_STATUS_NO_CONTEXT && send.len > 0);
    /* Damaged, cut, and of unknown contexts. */
    uint8_t cut[] = {0xF3, 0x20}, unknown[] = {0xF2, 0xE9, 0};
    const struct rohc_buf a = rohc_buf_init_full(cut, sizeof cut, p.time), b = rohc_buf_init_full(unknown, sizeof unknown, p.time);
    CHECK(!rohc_comp_deliver_feedback2(p.comp, a) && !rohc_comp_deliver_feedback2(p.comp, b));
    /* Packets of U-mode: an acknowledgment for the first one, then seldom. */
    close_pair(&p);
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, v1);
    for (uint16_t i = 0; i < 100; i++) {
        carry(&p, packet, udp4(packet, 1, i, 5000, 6000, 20), true);
        CHECK(p.feedback <= (size_t)1 + i / 32);
    }
    CHECK(p.feedback > 0);
    close_pair(&p);
    close_pair(&q);
}

static unsigned asked;

static bool is_port_40000(const unsigned char *const ip, const unsigned char *const udp, const unsigned char *const payload,
                          const unsigned int size, void *const private) {
    CHECK(private == &asked && ip[0] == 0x45 && payload == udp + 8 && udp == ip + 20 && size >= 12);
    asked++;
    return (udp[2] << 8 | udp[3]) == 40000;
}

static bool never(const unsigned char *const ip, const unsigned char *const udp, const unsigned char *const payload,
                  const unsigned int size, void *const private) {
    (void)ip, (void)udp, (void)payload, (void)size, (void)private;
    return false;
}

static void rtp(void) {
    rohc_comp_last_packet_info2_t last = {0};
    for (int by = 0; by < 3; by++) {
        open_pair(&p, ROHC_SMALL_CID, 15, ROHC_O_MODE, v1);
        asked = 0;
        if (by > 0) {
            CHECK(rohc_comp_set_rtp_detection_cb(p.comp, by == 1 ? is_port_40000 : never, &asked));
        }
        for (uint16_t i = 0; i < 30; i++) {
            carry(&p, packet, rtp4(packet, i, 40000, 32), true);
        }
        CHECK(rohc_comp_get_last_packet_info2(p.comp, &last));
        if (by == 0 && getenv("THINAIR_ROHC_RTP") == NULL) {
            CHECK(last.profile_id == ROHC_PROFILE_UDP);
        } else if (by < 2) {
            CHECK(last.profile_id == ROHC_PROFILE_RTP);
        }
        CHECK(by != 2 || last.profile_id == ROHC_PROFILE_UDP);
        CHECK(asked == (by == 1 ? 30 : 0));
        close_pair(&p);
    }
}

static unsigned lines, dumps;

static void trace(void *const private, const rohc_trace_level_t level, const rohc_trace_entity_t entity, const int profile,
                  const char *const format, ...) {
    char line[300];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(private == &lines && level < ROHC_TRACE_LEVEL_MAX && entity < ROHC_TRACE_ENTITY_MAX && profile <= ROHC_PROFILE_GENERAL);
    CHECK(len > 5 && line[len - 1] == '\n');
    lines++;
    dumps += strncmp(line, "0000: 45", 8) == 0;
}

static void traces(void) {
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_O_MODE, v1);
    CHECK(rohc_comp_set_traces_cb2(p.comp, trace, &lines) && rohc_decomp_set_traces_cb2(p.decomp, trace, &lines));
    CHECK(rohc_comp_set_features(p.comp, ROHC_COMP_FEATURE_DUMP_PACKETS));
    carry(&p, packet, udp4(packet, 1, 1, 5000, 6000, 20), true);
    CHECK(lines >= 2 && dumps == 1);
    lines = 0;
    CHECK(rohc_comp_set_traces_cb2(p.comp, NULL, NULL) && rohc_decomp_set_traces_cb2(p.decomp, NULL, NULL));
    carry(&p, packet, udp4(packet, 1, 1, 5000, 6000, 20), true);
    CHECK(lines == 0);
    close_pair(&p);
}

/* Two live flows behind sixteen that are over, with a clock that is always zero: header octets stay small. */
static void zero_clock(void) {
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, v1);
    for (uint8_t host = 1; host <= 16; host++) {
        carry(&p, packet, udp4(packet, host, 0, 5000, 6000, 20), true);
    }
    p.octets_in = p.octets_out = 0;
    for (uint16_t i = 0; i < 1000; i++) {
        carry(&p, packet, udp4(packet, (uint8_t)(20 + i % 2), i / 2, 5000, 6000, 20), true);
    }
    double header = p.octets_out / 1000.0 - 20;
    printf("two live flows behind sixteen, without a clock: %.2f octets of header a packet\n", header);
    CHECK(header <= 4);
    close_pair(&p);
}

/* A refresh by time, set before or behind its feature; without it none comes. */
static void refreshes_by_time(void) {
    for (int by = 0; by < 3; by++) {
        open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, v1);
        CHECK(by != 1 || rohc_comp_set_features(p.comp, ROHC_COMP_FEATURE_TIME_BASED_REFRESHES));
        CHECK(rohc_comp_set_periodic_refreshes_time(p.comp, 2000, 500));
        CHECK(by != 2 || rohc_comp_set_features(p.comp, ROHC_COMP_FEATURE_TIME_BASED_REFRESHES));
        unsigned refreshes = 0;
        for (uint16_t i = 0; i < 50; i++) {
            rohc_comp_last_packet_info2_t last = {0};
            p.time.sec = 1 + i / 10, p.time.nsec = i % 10 * 100000000u;
            carry(&p, packet, udp4(packet, 1, i, 5000, 6000, 20), true);
            CHECK(rohc_comp_get_last_packet_info2(p.comp, &last));
            refreshes += i > 10 && last.packet_type == ROHC_PACKET_IR;
        }
        CHECK(by == 0 ? refreshes == 0 : refreshes > 0);
        close_pair(&p);
    }
}

/* Any octets are carried, up to 9,000. */
static void anything(void) {
    open_pair(&p, ROHC_SMALL_CID, 15, ROHC_U_MODE, v1);
    for (size_t len = 1; len <= 9000; len += len < 200 ? 1 : 97) {
        for (size_t i = 0; i < len; i++) {
            packet[i] = (uint8_t)next_random();
        }
        carry(&p, packet, len, true);
    }
    close_pair(&p);
}

static void texts(void) {
    CHECK(strncmp(rohc_version(), "2.3.1", 5) == 0);
    for (int i = 0; i < 7; i++) {
        CHECK(strcmp(rohc_strerror((rohc_status_t)i), rohc_strerror((rohc_status_t)99)) != 0);
    }
    for (int i = 0; i < ROHC_PACKET_MAX; i++) {
        CHECK((strcmp(rohc_get_packet_descr((rohc_packet_t)i), "unknown ROHC packet") != 0) == (i < 11 || i == 13 || i > 14));
    }
    CHECK(rohc_get_packet_type("irdyn") == ROHC_PACKET_IR_DYN && rohc_get_packet_type("uor2rtp-ext3") == ROHC_PACKET_UOR_2_RTP_EXT3);
    CHECK(rohc_get_packet_type("uncomp-normal") == ROHC_PACKET_NORMAL && rohc_get_packet_type("tcp-seq-8") == ROHC_PACKET_TCP_SEQ_8);
    CHECK(rohc_get_packet_type("nortp-pt-1-seq-id") == ROHC_PACKET_NORTP_PT_1_SEQ_ID);
    CHECK(rohc_get_packet_type(NULL) == ROHC_PACKET_UNKNOWN && rohc_get_packet_type("x") == ROHC_PACKET_UNKNOWN);
    CHECK(rohc_get_mode_descr(ROHC_U_MODE) && rohc_get_profile_descr(ROHC_PROFILE_MAX) && rohc_get_ext_descr(ROHC_EXT_3));
    CHECK(strcmp(rohc_comp_get_state_descr(ROHC_COMP_STATE_CR), "CR") == 0);
    CHECK(strcmp(rohc_decomp_get_state_descr(ROHC_DECOMP_STATE_NC), "No Context") == 0);
    CHECK(strcmp(rohc_decomp_get_state_descr(ROHC_DECOMP_STATE_SC), "Static Context") == 0);
    CHECK(strcmp(rohc_decomp_get_state_descr(ROHC_DECOMP_STATE_FC), "Full Context") == 0);
    CHECK(strcmp(rohc_decomp_get_state_descr(ROHC_DECOMP_STATE_UNKNOWN), "no description") == 0);
    CHECK(strcmp(rohc_comp_get_state_descr(ROHC_COMP_STATE_UNKNOWN), "no description") == 0);
    CHECK(rohc_packet_is_ir(ROHC_PACKET_IR_CR) && !rohc_packet_is_ir(ROHC_PACKET_UO_0));
    CHECK(rohc_packet_carry_static_info(ROHC_PACKET_IR) && !rohc_packet_carry_static_info(ROHC_PACKET_IR_DYN));
    CHECK(rohc_packet_carry_crc_7_or_8(ROHC_PACKET_UOR_2) && !rohc_packet_carry_crc_7_or_8(ROHC_PACKET_UO_1));
    CHECK(rohc_profile_is_rohcv1(ROHC_PROFILE_TCP) && rohc_profile_is_rohcv2(ROHCv2_PROFILE_IP));
    CHECK(!rohc_profile_is_rohcv2(ROHC_PROFILE_TCP) && rohc_profile_get_other_version(ROHC_PROFILE_UDP) == ROHCv2_PROFILE_IP_UDP);
    CHECK(rohc_profile_get_other_version(ROHCv2_PROFILE_IP) == ROHC_PROFILE_IP);
}

int main(void) {
    creation();
    settings();
    information();
    segments();
    feedback();
    rtp();
    traces();
    zero_clock();
    refreshes_by_time();
    anything();
    texts();
    return 0;
}
