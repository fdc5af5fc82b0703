/**
 * @file rohc_buf.h
 * Octets with room around them.
 *
 * Part of thinair, with the binary interface of rohc-lib; docs/c.md tells where the two differ.
 */
#ifndef ROHC_BUF_H
#define ROHC_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <rohc/rohc_time.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Octets `offset` to `offset + len` of a buffer of `max_len` octets. */
struct rohc_buf {
    struct rohc_ts time; /**< Time of the packet. */
    uint8_t *data;       /**< The buffer. */
    size_t max_len;      /**< Octets of the buffer. */
    size_t offset;       /**< Where the packet begins. */
    size_t len;          /**< Octets of the packet. */
};

/** Initial value of a buffer without a packet. */
#define rohc_buf_init_empty(buffer, size) { { 0, 0 }, (buffer), (size), 0, 0 }

/** Initial value of a buffer that a packet fills. */
#define rohc_buf_init_full(buffer, size, when) { when, (buffer), (size), 0, (size) }

/** Octet of a packet. */
#define rohc_buf_byte_at(buf, at) ((buf).data[(buf).offset + (at)])

/** First octet of a packet. */
#define rohc_buf_byte(buf) rohc_buf_byte_at((buf), 0)

/** True if there is no buffer, or the packet exceeds it. */
static inline bool rohc_buf_is_malformed(const struct rohc_buf buf)
{
    return buf.data == NULL || buf.max_len == 0 || buf.offset > buf.max_len || buf.len > buf.max_len - buf.offset;
}

/** True if the packet has no octets. */
static inline bool rohc_buf_is_empty(const struct rohc_buf buf)
{
    return buf.len == 0;
}

/** Takes octets off the front of the packet. */
static inline void rohc_buf_pull(struct rohc_buf *const buf, const size_t octets)
{
    buf->offset += octets;
    buf->len -= octets;
}

/** Gives octets back to the front of the packet. */
static inline void rohc_buf_push(struct rohc_buf *const buf, const size_t octets)
{
    buf->offset -= octets;
    buf->len += octets;
}

/** Octets from the beginning of the packet to the end of the buffer. */
static inline size_t rohc_buf_avail_len(const struct rohc_buf buf)
{
    return buf.max_len - buf.offset;
}

/** Address of an octet of the packet. */
static inline uint8_t *rohc_buf_data_at(const struct rohc_buf buf, const size_t at)
{
    return buf.data + buf.offset + at;
}

/** Address of the packet. */
static inline uint8_t *rohc_buf_data(const struct rohc_buf buf)
{
    return rohc_buf_data_at(buf, 0);
}

/** Puts octets in front of the packet. */
static inline void rohc_buf_prepend(struct rohc_buf *const buf, const uint8_t *const octets, const size_t len)
{
    rohc_buf_push(buf, len);
    memcpy(rohc_buf_data(*buf), octets, len);
}

/** Puts octets behind the packet. */
static inline void rohc_buf_append(struct rohc_buf *const buf, const uint8_t *const octets, const size_t len)
{
    memcpy(rohc_buf_data_at(*buf, buf->len), octets, len);
    buf->len += len;
}

/** Puts a packet behind the packet. */
static inline void rohc_buf_append_buf(struct rohc_buf *const buf, const struct rohc_buf other)
{
    rohc_buf_append(buf, rohc_buf_data(other), other.len);
}

/** Empties the packet. */
static inline void rohc_buf_reset(struct rohc_buf *const buf)
{
    buf->len = 0;
}

#ifdef __cplusplus
}
#endif

#endif
