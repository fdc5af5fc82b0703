/**
 * @file rohc_decomp.h
 * The decompressor.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_DECOMP_H
#define ROHC_DECOMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <rohc/rohc.h>
#include <rohc/rohc_buf.h>
#include <rohc/rohc_packets.h>
#include <rohc/rohc_profiles.h>
#include <rohc/rohc_time.h>
#include <rohc/rohc_traces.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A decompressor. */
struct rohc_decomp;

/** State of a context at the decompressor. */
typedef enum {
    ROHC_DECOMP_STATE_UNKNOWN = 0,
    ROHC_DECOMP_STATE_NC = 1,
    ROHC_DECOMP_STATE_SC = 2,
    ROHC_DECOMP_STATE_FC = 3
} rohc_decomp_state_t;

/** Features of a decompressor. */
typedef enum {
    ROHC_DECOMP_FEATURE_NONE = 0,
    ROHC_DECOMP_FEATURE_CRC_REPAIR = 1,
    ROHC_DECOMP_FEATURE_COMPAT_1_6_x = 2,
    ROHC_DECOMP_FEATURE_DUMP_PACKETS = 8
} rohc_decomp_features_t;

/** The last packet. Version 0.0, 0.1 or 0.2. */
typedef struct {
    unsigned short version_major; /**< Set by the caller: 0. */
    unsigned short version_minor; /**< Set by the caller. */
    rohc_mode_t context_mode; /**< Mode. */
    rohc_decomp_state_t context_state; /**< State. */
    rohc_profile_t profile_id; /**< Profile. */
    unsigned long nr_lost_packets; /**< Packets of the flow missing before this one. */
    unsigned long nr_misordered_packets; /**< Packets that this one comes late by. */
    bool is_duplicated; /**< The packet was received before. */
    unsigned long corrected_crc_failures; /**< Always 0. From version 0.1 on. */
    unsigned long corrected_sn_wraparounds; /**< Always 0. From version 0.1 on. */
    unsigned long corrected_wrong_sn_updates; /**< Always 0. From version 0.1 on. */
    rohc_packet_t packet_type; /**< Format. From version 0.1 on. */
    unsigned long total_last_comp_size; /**< Octets of the packet before. From version 0.2 on. */
    unsigned long header_last_comp_size; /**< Octets of its header. */
    unsigned long total_last_uncomp_size; /**< Octets of the packet behind. */
    unsigned long header_last_uncomp_size; /**< Octets of its header. */
} __attribute__((packed)) rohc_decomp_last_packet_info_t;

/** The packets of a context. Version 0.0. */
typedef struct {
    unsigned short version_major; /**< Set by the caller: 0. */
    unsigned short version_minor; /**< Set by the caller. */
    unsigned long packets_nr; /**< Packets decompressed. */
    unsigned long comp_bytes_nr; /**< Their octets before. */
    unsigned long uncomp_bytes_nr; /**< Their octets behind. */
    unsigned long corrected_crc_failures; /**< Always 0. */
    unsigned long corrected_sn_wraparounds; /**< Always 0. */
    unsigned long corrected_wrong_sn_updates; /**< Always 0. */
} __attribute__((packed)) rohc_decomp_context_info_t;

/** All packets. Version 0.0 or 0.1. */
typedef struct {
    unsigned short version_major; /**< Set by the caller: 0. */
    unsigned short version_minor; /**< Set by the caller. */
    size_t contexts_nr; /**< Contexts in use. */
    unsigned long packets_nr; /**< Packets decompressed. */
    unsigned long comp_bytes_nr; /**< Their octets before. */
    unsigned long uncomp_bytes_nr; /**< Their octets behind. */
    unsigned long corrected_crc_failures; /**< Always 0. From version 0.1 on. */
    unsigned long corrected_sn_wraparounds; /**< Always 0. From version 0.1 on. */
    unsigned long corrected_wrong_sn_updates; /**< Always 0. From version 0.1 on. */
} __attribute__((packed)) rohc_decomp_general_info_t;

/** Creates a decompressor without profiles; null if an argument is out of range. */
struct rohc_decomp *rohc_decomp_new2(const rohc_cid_type_t cid_type, const rohc_cid_t max_cid, const rohc_mode_t mode);
void rohc_decomp_free(struct rohc_decomp *const decomp);

bool rohc_decomp_set_traces_cb2(struct rohc_decomp *const decomp, rohc_trace_callback2_t callback, void *const priv_ctxt);

/**
 * Decompresses a packet.
 *
 * @param rcvd_feedback  receives feedback in front of the packet, for the compressor of this side; null drops it
 * @param feedback_send  receives feedback for the compressor of the other side, on failure, too; null keeps it for later
 */
rohc_status_t rohc_decompress3(struct rohc_decomp *const decomp, const struct rohc_buf rohc_packet,
                               struct rohc_buf *const uncomp_packet, struct rohc_buf *const rcvd_feedback,
                               struct rohc_buf *const feedback_send);

bool rohc_decomp_profile_enabled(const struct rohc_decomp *const decomp, const rohc_profile_t profile);
bool rohc_decomp_enable_profile(struct rohc_decomp *const decomp, const rohc_profile_t profile);
bool rohc_decomp_disable_profile(struct rohc_decomp *const decomp, const rohc_profile_t profile);
/* Profiles, and -1 behind the last one. */
bool rohc_decomp_enable_profiles(struct rohc_decomp *const decomp, ...);
bool rohc_decomp_disable_profiles(struct rohc_decomp *const decomp, ...);

/* Before the first packet. */
bool rohc_decomp_set_mrru(struct rohc_decomp *const decomp, const size_t mrru);
bool rohc_decomp_set_features(struct rohc_decomp *const decomp, const rohc_decomp_features_t features);
bool rohc_decomp_set_rate_limits(struct rohc_decomp *const decomp, const size_t k, const size_t n, const size_t k1,
                                 const size_t n1, const size_t k2, const size_t n2);

bool rohc_decomp_set_prtt(struct rohc_decomp *const decomp, const size_t prtt);
bool rohc_decomp_get_mrru(const struct rohc_decomp *const decomp, size_t *const mrru);
bool rohc_decomp_get_max_cid(const struct rohc_decomp *const decomp, size_t *const max_cid);
bool rohc_decomp_get_cid_type(const struct rohc_decomp *const decomp, rohc_cid_type_t *const cid_type);
bool rohc_decomp_get_prtt(const struct rohc_decomp *const decomp, size_t *const prtt);
bool rohc_decomp_get_rate_limits(const struct rohc_decomp *const decomp, size_t *const k, size_t *const n,
                                 size_t *const k1, size_t *const n1, size_t *const k2, size_t *const n2);

bool rohc_decomp_get_last_packet_info(const struct rohc_decomp *const decomp, rohc_decomp_last_packet_info_t *const info);
bool rohc_decomp_get_context_info(const struct rohc_decomp *const decomp, const rohc_cid_t cid,
                                  rohc_decomp_context_info_t *const info);
bool rohc_decomp_get_general_info(const struct rohc_decomp *const decomp, rohc_decomp_general_info_t *const info);
const char *rohc_decomp_get_state_descr(const rohc_decomp_state_t state);

#ifdef __cplusplus
}
#endif

#endif
