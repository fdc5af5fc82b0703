/**
 * @file rohc_comp.h
 * The compressor.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_COMP_H
#define ROHC_COMP_H

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

/** A compressor. */
struct rohc_comp;

/** State of a context at the compressor. */
typedef enum {
    ROHC_COMP_STATE_UNKNOWN = 0,
    ROHC_COMP_STATE_IR = 1,
    ROHC_COMP_STATE_FO = 2,
    ROHC_COMP_STATE_SO = 3,
    ROHC_COMP_STATE_CR = 4
} rohc_comp_state_t;

/** Features of a compressor. */
typedef enum {
    ROHC_COMP_FEATURE_NONE = 0,
    ROHC_COMP_FEATURE_COMPAT_1_6_x = 1,
    ROHC_COMP_FEATURE_NO_IP_CHECKSUMS = 4,
    ROHC_COMP_FEATURE_DUMP_PACKETS = 8,
    ROHC_COMP_FEATURE_TIME_BASED_REFRESHES = 16
} rohc_comp_features_t;

/** The last packet. Version 0.0. */
typedef struct {
    unsigned short version_major; /**< Set by the caller: 0. */
    unsigned short version_minor; /**< Set by the caller. */
    unsigned int context_id; /**< CID. */
    bool is_context_init; /**< The packet began the context. */
    rohc_mode_t context_mode; /**< Mode. */
    rohc_comp_state_t context_state; /**< State. */
    bool context_used; /**< The context is in use. */
    rohc_profile_t profile_id; /**< Profile. */
    rohc_packet_t packet_type; /**< Format. */
    unsigned long total_last_uncomp_size; /**< Octets of the packet before. */
    unsigned long header_last_uncomp_size; /**< Octets of its header. */
    unsigned long total_last_comp_size; /**< Octets of the packet behind. */
    unsigned long header_last_comp_size; /**< Octets of its header. */
} __attribute__((packed)) rohc_comp_last_packet_info2_t;

/** All packets. Version 0.0. */
typedef struct {
    unsigned short version_major; /**< Set by the caller: 0. */
    unsigned short version_minor; /**< Set by the caller. */
    size_t contexts_nr; /**< Contexts in use. */
    unsigned long packets_nr; /**< Packets compressed. */
    unsigned long uncomp_bytes_nr; /**< Their octets before. */
    unsigned long comp_bytes_nr; /**< Their octets behind. */
} __attribute__((packed)) rohc_comp_general_info_t;

/** Gives a random number; called when the compressor is created. */
typedef int (*rohc_comp_random_cb_t)(const struct rohc_comp *const comp, void *const user_context);

/** Tells RTP from other UDP; called for packets with 12 octets of UDP payload or more. */
typedef bool (*rohc_rtp_detection_callback_t)(const unsigned char *const ip, const unsigned char *const udp,
                                              const unsigned char *const payload, const unsigned int payload_size,
                                              void *const rtp_private);

/** Creates a compressor without profiles; null if an argument is out of range. */
struct rohc_comp *rohc_comp_new2(const rohc_cid_type_t cid_type, const rohc_cid_t max_cid,
                                 const rohc_comp_random_cb_t rand_cb, void *const rand_priv);
void rohc_comp_free(struct rohc_comp *const comp);

bool rohc_comp_set_traces_cb2(struct rohc_comp *const comp, rohc_trace_callback2_t callback, void *const priv_ctxt);

rohc_status_t rohc_compress4(struct rohc_comp *const comp, const struct rohc_buf uncomp_packet,
                             struct rohc_buf *const rohc_packet);
rohc_status_t rohc_comp_get_segment2(struct rohc_comp *const comp, struct rohc_buf *const segment);
rohc_status_t rohc_comp_pad(struct rohc_comp *const comp, struct rohc_buf *const rohc_packet, const size_t min_pkt_len);
bool rohc_comp_deliver_feedback2(struct rohc_comp *const comp, const struct rohc_buf feedback);
bool rohc_comp_force_contexts_reinit(struct rohc_comp *const comp);

bool rohc_comp_profile_enabled(const struct rohc_comp *const comp, const rohc_profile_t profile);
bool rohc_comp_enable_profile(struct rohc_comp *const comp, const rohc_profile_t profile);
bool rohc_comp_disable_profile(struct rohc_comp *const comp, const rohc_profile_t profile);
/* Profiles, and -1 behind the last one. */
bool rohc_comp_enable_profiles(struct rohc_comp *const comp, ...);
bool rohc_comp_disable_profiles(struct rohc_comp *const comp, ...);

/* Before the first packet. */
bool rohc_comp_set_optimistic_approach(struct rohc_comp *const comp, const size_t repetitions);
bool rohc_comp_set_wlsb_window_width(struct rohc_comp *const comp, const size_t width);
bool rohc_comp_set_list_trans_nr(struct rohc_comp *const comp, const size_t list_trans_nr);
bool rohc_comp_set_reorder_ratio(struct rohc_comp *const comp, const rohc_reordering_offset_t reorder_ratio);
bool rohc_comp_set_periodic_refreshes(struct rohc_comp *const comp, const size_t ir_timeout, const size_t fo_timeout);
bool rohc_comp_set_periodic_refreshes_time(struct rohc_comp *const comp, const uint64_t ir_timeout,
                                           const uint64_t fo_timeout);
bool rohc_comp_set_features(struct rohc_comp *const comp, const rohc_comp_features_t features);

bool rohc_comp_set_rtp_detection_cb(struct rohc_comp *const comp, rohc_rtp_detection_callback_t callback,
                                    void *const rtp_private);
bool rohc_comp_set_mrru(struct rohc_comp *const comp, const size_t mrru);
bool rohc_comp_get_mrru(const struct rohc_comp *const comp, size_t *const mrru);
bool rohc_comp_get_max_cid(const struct rohc_comp *const comp, size_t *const max_cid);
bool rohc_comp_get_cid_type(const struct rohc_comp *const comp, rohc_cid_type_t *const cid_type);

bool rohc_comp_get_last_packet_info2(const struct rohc_comp *const comp, rohc_comp_last_packet_info2_t *const info);
bool rohc_comp_get_general_info(const struct rohc_comp *const comp, rohc_comp_general_info_t *const info);
const char *rohc_comp_get_state_descr(const rohc_comp_state_t state);

#ifdef __cplusplus
}
#endif

#endif
