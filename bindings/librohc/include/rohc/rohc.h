/**
 * @file rohc.h
 * Types and texts of both sides.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_H
#define ROHC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Ethertype of ROHC. */
#define ROHC_ETHERTYPE 0x22f1

/** Greatest MAX_CID of small CIDs, and of large ones. */
#define ROHC_SMALL_CID_MAX 15U
#define ROHC_LARGE_CID_MAX ((1U << 14) - 1)

/** Result of a function. */
typedef enum {
    ROHC_STATUS_OK = 0,
    ROHC_STATUS_SEGMENT = 1,
    ROHC_STATUS_MALFORMED = 2,
    ROHC_STATUS_NO_CONTEXT = 3,
    ROHC_STATUS_BAD_CRC = 4,
    ROHC_STATUS_OUTPUT_TOO_SMALL = 5,
    ROHC_STATUS_ERROR = 6
} rohc_status_t;

/** Mode of operation (RFC 3095, section 4.4). */
typedef enum {
    ROHC_UNKNOWN_MODE = 0,
    ROHC_U_MODE = 1,
    ROHC_O_MODE = 2,
    ROHC_R_MODE = 3
} rohc_mode_t;

/** CID space of a channel. */
typedef enum {
    ROHC_LARGE_CID = 0,
    ROHC_SMALL_CID = 1
} rohc_cid_type_t;

/** A CID, or MAX_CID. */
typedef uint16_t rohc_cid_t;

/** How far packets may be reordered (RFC 5225, section 5.1.3). */
typedef enum {
    ROHC_REORDERING_NONE = 0,
    ROHC_REORDERING_QUARTER = 1,
    ROHC_REORDERING_HALF = 2,
    ROHC_REORDERING_THREEQUARTERS = 3
} rohc_reordering_offset_t;

/** Version of the library. */
char *rohc_version(void);

/** Text of a result. */
const char *rohc_strerror(const rohc_status_t status);

/** Text of a mode. */
const char *rohc_get_mode_descr(const rohc_mode_t mode);

#ifdef __cplusplus
}
#endif

#endif
