/**
 * @file rohc_profiles.h
 * Profiles, by the numbers of their RFCs.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_PROFILES_H
#define ROHC_PROFILES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the profiles of the first version. */
#define ROHCv1_PROFILE_UNCOMPRESSED ROHC_PROFILE_UNCOMPRESSED
#define ROHCv1_PROFILE_IP_UDP_RTP ROHC_PROFILE_RTP
#define ROHCv1_PROFILE_IP_UDP ROHC_PROFILE_UDP
#define ROHCv1_PROFILE_IP_ESP ROHC_PROFILE_ESP
#define ROHCv1_PROFILE_IP ROHC_PROFILE_IP
#define ROHCv1_PROFILE_IP_UDP_RTP_LLA ROHC_PROFILE_RTP_LLA
#define ROHCv1_PROFILE_IP_TCP ROHC_PROFILE_TCP
#define ROHCv1_PROFILE_IP_UDPLITE_RTP ROHC_PROFILE_UDPLITE_RTP
#define ROHCv1_PROFILE_IP_UDPLITE ROHC_PROFILE_UDPLITE

/** Stands for no profile in traces. */
#define ROHC_PROFILE_GENERAL 0xffff

#define ROHC_PROFILE_ID_MAJOR_MAX 0x01U
#define ROHC_PROFILE_ID_MINOR_MAX 0x08U

/** A profile. */
typedef enum {
    ROHC_PROFILE_UNCOMPRESSED = 0x0000,
    ROHC_PROFILE_RTP = 0x0001,
    ROHC_PROFILE_UDP = 0x0002,
    ROHC_PROFILE_ESP = 0x0003,
    ROHC_PROFILE_IP = 0x0004,
    ROHC_PROFILE_RTP_LLA = 0x0005,
    ROHC_PROFILE_TCP = 0x0006,
    ROHC_PROFILE_UDPLITE_RTP = 0x0007,
    ROHC_PROFILE_UDPLITE = 0x0008,
    ROHCv2_PROFILE_IP_UDP_RTP = 0x0101,
    ROHCv2_PROFILE_IP_UDP = 0x0102,
    ROHCv2_PROFILE_IP_ESP = 0x0103,
    ROHCv2_PROFILE_IP = 0x0104,
    ROHCv2_PROFILE_IP_UDPLITE_RTP = 0x0107,
    ROHCv2_PROFILE_IP_UDPLITE = 0x0108,
    ROHC_PROFILE_MAX = 0x0109
} rohc_profile_t;

/** Text of a profile. */
const char *rohc_get_profile_descr(const rohc_profile_t profile);

/** True for a number of the first version: 0x00... */
bool rohc_profile_is_rohcv1(const rohc_profile_t profile);

/** True for a number of the second version: 0x01... */
bool rohc_profile_is_rohcv2(const rohc_profile_t profile);

/** The same number in the other version; ROHC_PROFILE_MAX if there is no such version. */
rohc_profile_t rohc_profile_get_other_version(const rohc_profile_t profile);

#ifdef __cplusplus
}
#endif

#endif
