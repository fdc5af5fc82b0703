/**
 * @file rohc_packets.h
 * Formats of packets.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_PACKETS_H
#define ROHC_PACKETS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Format of a packet, extension included. */
typedef enum {
    ROHC_PACKET_IR = 0,
    ROHC_PACKET_IR_DYN = 1,
    ROHC_PACKET_UO_0 = 2,
    ROHC_PACKET_UO_1 = 3,
    ROHC_PACKET_UO_1_ID = 4,
    ROHC_PACKET_UO_1_TS = 5,
    ROHC_PACKET_UO_1_RTP = 6,
    ROHC_PACKET_UOR_2 = 7,
    ROHC_PACKET_UOR_2_RTP = 8,
    ROHC_PACKET_UOR_2_ID = 9,
    ROHC_PACKET_UOR_2_TS = 10,
    ROHC_PACKET_NORMAL = 13,
    ROHC_PACKET_UNKNOWN = 14,
    ROHC_PACKET_TCP_CO_COMMON = 15,
    ROHC_PACKET_TCP_RND_1 = 16,
    ROHC_PACKET_TCP_RND_2 = 17,
    ROHC_PACKET_TCP_RND_3 = 18,
    ROHC_PACKET_TCP_RND_4 = 19,
    ROHC_PACKET_TCP_RND_5 = 20,
    ROHC_PACKET_TCP_RND_6 = 21,
    ROHC_PACKET_TCP_RND_7 = 22,
    ROHC_PACKET_TCP_RND_8 = 23,
    ROHC_PACKET_TCP_SEQ_1 = 24,
    ROHC_PACKET_TCP_SEQ_2 = 25,
    ROHC_PACKET_TCP_SEQ_3 = 26,
    ROHC_PACKET_TCP_SEQ_4 = 27,
    ROHC_PACKET_TCP_SEQ_5 = 28,
    ROHC_PACKET_TCP_SEQ_6 = 29,
    ROHC_PACKET_TCP_SEQ_7 = 30,
    ROHC_PACKET_TCP_SEQ_8 = 31,
    ROHC_PACKET_IR_CR = 32,
    ROHC_PACKET_CO_REPAIR = 33,
    ROHC_PACKET_PT_0_CRC3 = 34,
    ROHC_PACKET_NORTP_PT_0_CRC7 = 35,
    ROHC_PACKET_NORTP_PT_1_SEQ_ID = 36,
    ROHC_PACKET_NORTP_PT_2_SEQ_ID = 37,
    ROHC_PACKET_RTP_PT_0_CRC7 = 38,
    ROHC_PACKET_RTP_PT_1_RND = 39,
    ROHC_PACKET_RTP_PT_1_SEQ_ID = 40,
    ROHC_PACKET_RTP_PT_1_SEQ_TS = 41,
    ROHC_PACKET_RTP_PT_2_RND = 42,
    ROHC_PACKET_RTP_PT_2_SEQ_ID = 43,
    ROHC_PACKET_RTP_PT_2_SEQ_TS = 44,
    ROHC_PACKET_RTP_PT_2_SEQ_BOTH = 45,
    ROHC_PACKET_UO_1_ID_EXT0 = 46,
    ROHC_PACKET_UO_1_ID_EXT1 = 47,
    ROHC_PACKET_UO_1_ID_EXT2 = 48,
    ROHC_PACKET_UO_1_ID_EXT3 = 49,
    ROHC_PACKET_UOR_2_EXT0 = 50,
    ROHC_PACKET_UOR_2_EXT1 = 51,
    ROHC_PACKET_UOR_2_EXT2 = 52,
    ROHC_PACKET_UOR_2_EXT3 = 53,
    ROHC_PACKET_UOR_2_RTP_EXT0 = 54,
    ROHC_PACKET_UOR_2_RTP_EXT1 = 55,
    ROHC_PACKET_UOR_2_RTP_EXT2 = 56,
    ROHC_PACKET_UOR_2_RTP_EXT3 = 57,
    ROHC_PACKET_UOR_2_ID_EXT0 = 58,
    ROHC_PACKET_UOR_2_ID_EXT1 = 59,
    ROHC_PACKET_UOR_2_ID_EXT2 = 60,
    ROHC_PACKET_UOR_2_ID_EXT3 = 61,
    ROHC_PACKET_UOR_2_TS_EXT0 = 62,
    ROHC_PACKET_UOR_2_TS_EXT1 = 63,
    ROHC_PACKET_UOR_2_TS_EXT2 = 64,
    ROHC_PACKET_UOR_2_TS_EXT3 = 65,
    ROHC_PACKET_MAX = 66
} rohc_packet_t;

#define ROHC_PACKET_CO_COMMON ROHC_PACKET_TCP_CO_COMMON

/** Extension of a packet (RFC 3095, section 5.7.5). */
typedef enum {
    ROHC_EXT_0 = 0,
    ROHC_EXT_1 = 1,
    ROHC_EXT_2 = 2,
    ROHC_EXT_3 = 3,
    ROHC_EXT_NONE = 4,
    ROHC_EXT_UNKNOWN = 5
} rohc_ext_t;

/** Text of a format, as "UO-0". */
const char *rohc_get_packet_descr(const rohc_packet_t packet_type);

/** The format with that name, as "uo0", "tcp-rnd-1" and "uor2rtp-ext3"; ROHC_PACKET_UNKNOWN if there is none. */
rohc_packet_t rohc_get_packet_type(const char *const packet_id);

/** Text of an extension. */
const char *rohc_get_ext_descr(const rohc_ext_t ext_type);

/** True for IR, IR-DYN and IR-CR. */
bool rohc_packet_is_ir(const rohc_packet_t packet_type);

/** True for IR and IR-CR. */
bool rohc_packet_carry_static_info(const rohc_packet_t packet_type);

/** True for formats with a CRC of 7 or 8 bits. */
bool rohc_packet_carry_crc_7_or_8(const rohc_packet_t packet_type);

#ifdef __cplusplus
}
#endif

#endif
