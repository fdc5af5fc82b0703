/**
 * @file rohc_traces.h
 * Traces.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_TRACES_H
#define ROHC_TRACES_H

#ifdef __cplusplus
extern "C" {
#endif

/** Level of a trace. */
typedef enum {
    ROHC_TRACE_DEBUG = 0,
    ROHC_TRACE_INFO = 1,
    ROHC_TRACE_WARNING = 2,
    ROHC_TRACE_ERROR = 3,
    ROHC_TRACE_LEVEL_MAX = 4
} rohc_trace_level_t;

/** Side that traces. */
typedef enum {
    ROHC_TRACE_COMP = 0,
    ROHC_TRACE_DECOMP = 1,
    ROHC_TRACE_ENTITY_MAX = 2
} rohc_trace_entity_t;

/**
 * Receives traces.
 *
 * @param profile profile number, or ROHC_PROFILE_GENERAL
 * @param format  format of printf, with its arguments behind it; ends with a newline
 */
typedef void (*rohc_trace_callback2_t)(void *const priv_ctxt, const rohc_trace_level_t level,
                                       const rohc_trace_entity_t entity, const int profile, const char *const format,
                                       ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 5, 6)))
#endif
    ;

#ifdef __cplusplus
}
#endif

#endif
