/**
 * @file rohc_time.h
 * Time of a packet.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_TIME_H
#define ROHC_TIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Time since an origin that the caller chooses; all zero if the caller has no clock. */
struct rohc_ts {
    uint64_t sec;  /**< Seconds. */
    uint64_t nsec; /**< Nanoseconds of the second. */
};

#ifdef __cplusplus
}
#endif

#endif
