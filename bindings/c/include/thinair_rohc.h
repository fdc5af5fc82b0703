/**
 * @file thinair_rohc.h
 * Robust Header Compression (RFC 5795 and its profiles), one handle a bearer.
 *
 * A handle holds a compressor, a decompressor, or the pair of a bearer. Its memory is one block, lent by the caller or
 * allocated when the handle is created; after that nothing is allocated. No function blocks, logs, calls back, or keeps a
 * pointer that it is given, except the block of thinair_rohc_create().
 *
 * Threads: a handle may move from thread to thread, but two threads must not use it at the same time. Different handles
 * share nothing.
 *
 * Time: nanoseconds since an origin that the caller chooses. It never goes back within one handle. It paces refreshes in
 * U-mode and limits feedback, and behind losses the decompressor infers from it how many packets of a flow are missing
 * where the carrier does not count them. A compressor of another make does not send what that takes behind a pause: if the
 * carrier does not count either, give its decompressor the same time with every call.
 *
 * Pointers may be null and lengths may be anything: THINAIR_ROHC_ARGUMENT answers what cannot be used. The caller
 * guarantees that a handle was created and is not destroyed yet, and that buffers are as long as stated.
 */
#ifndef THINAIR_ROHC_H
#define THINAIR_ROHC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a function: one of the constants below. */
typedef int32_t thinair_rohc_error;

enum {
    /** Success. */
    THINAIR_ROHC_OK = 0,
    /** Not a failure: the packet holds feedback alone, or a segment of a packet that goes on. */
    THINAIR_ROHC_NOTHING_YET = 1,
    /** A pointer is null or not aligned, or a length is impossible. */
    THINAIR_ROHC_ARGUMENT = 2,
    /** Input and output overlap. */
    THINAIR_ROHC_OVERLAP = 3,
    /** MAX_CID is beyond the CID space: 15 for small CIDs, 16383 for large ones. */
    THINAIR_ROHC_MAX_CID = 4,
    /** Two variants of one profile (0x0002 and 0x0102), or a profile that is not in this build. */
    THINAIR_ROHC_PROFILES = 5,
    /** Another parameter of the configuration is out of range. */
    THINAIR_ROHC_CONFIG = 6,
    /** The memory is too small, or the allocator has none. */
    THINAIR_ROHC_MEMORY = 7,
    /** The handle has no compressor, or no decompressor. */
    THINAIR_ROHC_NO_SIDE = 8,
    /** The output buffer is too small. Nothing was sent or delivered; compression may be tried again. */
    THINAIR_ROHC_OUTPUT_TOO_SMALL = 9,
    /** The CID cannot be read, or is beyond MAX_CID. */
    THINAIR_ROHC_BAD_CID = 10,
    /** There is no context, and the packet does not establish one. */
    THINAIR_ROHC_NO_CONTEXT = 11,
    /** The channel does not have the profile that the packet names. */
    THINAIR_ROHC_UNSUPPORTED_PROFILE = 12,
    /** The octets are no packet of the profile. */
    THINAIR_ROHC_MALFORMED = 13,
    /** The state of the context does not allow this packet. */
    THINAIR_ROHC_NOT_ALLOWED = 14,
    /** The CRC does not match. */
    THINAIR_ROHC_BAD_CRC = 15,
    /** The packet refers to an item that was never received. */
    THINAIR_ROHC_UNKNOWN_ITEM = 16,
    /** The packet may be late or a duplicate, and would then mean something else (RFC 4224). */
    THINAIR_ROHC_AMBIGUOUS = 17,
    /** The context was repaired, and this packet is held back (RFC 3095, section 5.3.2.2.4 e). */
    THINAIR_ROHC_HELD_BACK = 18,
    /** No memory for the extension headers of the flow. */
    THINAIR_ROHC_CONTEXT_MEMORY = 19,
    /** The reassembled packet is larger than MRRU, or its CRC does not match. */
    THINAIR_ROHC_BAD_SEGMENT = 20,
    /** The feedback is damaged, or for a context that does not exist. */
    THINAIR_ROHC_BAD_FEEDBACK = 21
};

/** Profiles: bits of a set, the first nine in the order of RRC (TS 38.331) and E1AP (TS 38.463). Profile 0x0000 is always in. */
enum {
    THINAIR_ROHC_PROFILE_0001 = 1 << 0,  /**< RTP/UDP/IP, RFC 3095 */
    THINAIR_ROHC_PROFILE_0002 = 1 << 1,  /**< UDP/IP, RFC 3095 */
    THINAIR_ROHC_PROFILE_0003 = 1 << 2,  /**< ESP/IP, RFC 3095 */
    THINAIR_ROHC_PROFILE_0004 = 1 << 3,  /**< IP, RFC 3843 */
    THINAIR_ROHC_PROFILE_0006 = 1 << 4,  /**< TCP/IP, RFC 6846 */
    THINAIR_ROHC_PROFILE_0101 = 1 << 5,  /**< RTP/UDP/IP, RFC 5225 */
    THINAIR_ROHC_PROFILE_0102 = 1 << 6,  /**< UDP/IP, RFC 5225 */
    THINAIR_ROHC_PROFILE_0103 = 1 << 7,  /**< ESP/IP, RFC 5225 */
    THINAIR_ROHC_PROFILE_0104 = 1 << 8,  /**< IP, RFC 5225 */
    THINAIR_ROHC_PROFILE_0007 = 1 << 9,  /**< RTP/UDP-Lite/IP, RFC 4019 */
    THINAIR_ROHC_PROFILE_0008 = 1 << 10, /**< UDP-Lite/IP, RFC 4019 */
    THINAIR_ROHC_PROFILE_0181 = 1 << 11, /**< CoAP/UDP/IP, docs/coap-profile.md */
    THINAIR_ROHC_PROFILE_0182 = 1 << 12  /**< DTLS/UDP/IP, docs/dtls-profile.md */
};

/** Sides of a handle. */
enum {
    THINAIR_ROHC_COMPRESSOR = 1,
    THINAIR_ROHC_DECOMPRESSOR = 2,
    THINAIR_ROHC_PAIR = 3
};

/** Modes of operation (RFC 3095, section 4.4). */
enum {
    THINAIR_ROHC_U_MODE = 1,
    THINAIR_ROHC_O_MODE = 2,
    THINAIR_ROHC_R_MODE = 3
};

/** States of a context: IR, FO and SO at a compressor, NC, SC and FC at a decompressor. */
enum {
    THINAIR_ROHC_STATE_IR_NC = 1,
    THINAIR_ROHC_STATE_FO_SC = 2,
    THINAIR_ROHC_STATE_SO_FC = 3
};

/** Stands for a number of lost packets where the carrier does not count them. */
#define THINAIR_ROHC_NOT_COUNTED UINT32_MAX

/** Octets that always suffice for one feedback element. */
#define THINAIR_ROHC_MAX_FEEDBACK 32

/** Octets that the output of thinair_rohc_compress() needs beyond the input. */
#define THINAIR_ROHC_COMPRESS_ROOM 64

/** Octets that the output of thinair_rohc_decompress() needs beyond the input. */
#define THINAIR_ROHC_DECOMPRESS_ROOM 256

/** A handle. */
typedef struct thinair_rohc thinair_rohc;

/**
 * Parameters of a handle. thinair_rohc_config_init() fills in the defaults, which are given in brackets.
 * A pair has the same channel parameters in both directions, as RRC configures a PDCP entity.
 */
typedef struct thinair_rohc_config {
    /** sizeof(thinair_rohc_config): thinair_rohc_config_init() sets it. */
    uint32_t size;
    /** PROFILES: a set of bits [0x0001 to 0x0004 and 0x0006]. Of 0x0001 and 0x0101 and their like only one may be in. */
    uint32_t profiles;
    /** MAX_CID: 0 to 15, with large_cids 0 to 16383 [15]. There are max_cid + 1 contexts a side, each with its memory. */
    uint16_t max_cid;
    /** MRRU: largest reassembled packet that the decompressor takes, in octets [0: no segments]. */
    uint16_t mrru;
    /** LARGE_CIDS: 0 or 1 [0]. In RRC, maxCID above 15 means 1. */
    uint8_t large_cids;
    /** THINAIR_ROHC_COMPRESSOR, _DECOMPRESSOR or _PAIR [_PAIR]. */
    uint8_t sides;
    /** Mode that the decompressor asks for [THINAIR_ROHC_U_MODE: no feedback]. O-mode and R-mode need a way for feedback. */
    uint8_t mode;
    /** L: packets that repeat a change until it counts as known, 1 to 255 [4]. */
    uint8_t repetitions;
    /** Values of a W-LSB window, 1 to 16 [4]. */
    uint8_t window;
    /** 1: the peer's decompressor is given the number of lost packets [0]. */
    uint8_t counted;
    /** 1: a pair sends waiting feedback in front of packets; 0: only thinair_rohc_poll_feedback() gives it, as PDCP wants it [0]. */
    uint8_t feedback_in_front;
    /** What the carrier checks on every frame: 0 nothing, 1 a CRC of 32 bits or better, 2 a message integrity code [0]. */
    uint8_t integrity;
    /** 1: flows whose first packets look like RTP are RTP; 0: rtp_ports alone decide [1]. */
    uint8_t rtp_guess;
    /** Number of ports in rtp_ports, 0 to 8 [0]. */
    uint8_t rtp_port_count;
    /** UDP destination ports whose packets are RTP from the first one on. */
    uint16_t rtp_ports[8];
    /** Flows of a side that can have IPv6 extension headers, AH, GRE or CSRC lists at the same time [4]. */
    uint16_t extension_flows;
    /** Packets between two refreshes in U-mode; 0 does not count packets [0, and with refresh_ms 0 a share of 5 % of the octets]. */
    uint32_t refresh_packets;
    /** Milliseconds between two refreshes in U-mode; 0 does not look at the clock [0]. */
    uint32_t refresh_ms;
    /** Randomness for first sequence numbers and the hash of flows [0]. */
    uint64_t seed;
} thinair_rohc_config;

/** One packet of a batch. The first four fields, and lost, are the caller's; the others are results. */
typedef struct thinair_rohc_packet {
    const uint8_t *input;  /**< Packet to be compressed or decompressed. */
    size_t input_len;      /**< Its octets. */
    uint8_t *output;       /**< Room for the result, apart from every input. */
    size_t output_size;    /**< Octets of room. */
    size_t output_len;     /**< Octets written; 0 on failure. */
    uint32_t lost;         /**< As for thinair_rohc_decompress(); not used to compress. */
    thinair_rohc_error error; /**< Result. */
    uint16_t cid;          /**< Context. */
    uint16_t profile;      /**< Its profile: 0x0002, 0x0006 and so on. */
    uint32_t header_in;    /**< Octets of the header before, without padding and feedback. */
    uint32_t header_out;   /**< Octets of the header behind. */
} thinair_rohc_packet;

/** Counters of a handle since its creation. */
typedef struct thinair_rohc_statistics {
    uint64_t compressed_packets;      /**< Packets compressed. */
    uint64_t compressed_octets_in;    /**< Their octets before. */
    uint64_t compressed_octets_out;   /**< Their octets behind, feedback in front included. */
    uint64_t compressed_header_in;    /**< Octets of the headers that were compressed. */
    uint64_t compressed_header_out;   /**< Octets of the ROHC headers, CID included. */
    uint64_t compress_errors;         /**< Packets that were not compressed. */
    uint64_t decompressed_packets;    /**< Packets delivered, or that refreshed a context. */
    uint64_t decompressed_octets_in;  /**< Their octets before. */
    uint64_t decompressed_octets_out; /**< Their octets behind. */
    uint64_t decompress_errors;       /**< Packets that were not delivered. */
    uint64_t feedback_in;             /**< Feedback elements received. */
    uint64_t feedback_in_refused;     /**< Those of them that were refused. */
    uint64_t feedback_out;            /**< Feedback elements that thinair_rohc_poll_feedback() gave. */
    uint64_t displaced_flows;         /**< Flows that lost their context to another one since the last reset, modulo 2^32. */
} thinair_rohc_statistics;

/** State of one context. */
typedef struct thinair_rohc_context {
    uint16_t profile; /**< Profile. */
    uint8_t state;    /**< THINAIR_ROHC_STATE_... */
    uint8_t mode;     /**< THINAIR_ROHC_U_MODE, _O_MODE or _R_MODE. */
    uint32_t sn;      /**< SN or MSN of the newest packet; 0 for profile 0x0000. */
} thinair_rohc_context;

/** Version of the library, as "0.1.0". */
const char *thinair_rohc_version(void);

/** Text of a result, never null. */
const char *thinair_rohc_error_text(thinair_rohc_error error);

/** Fills in the defaults. */
thinair_rohc_error thinair_rohc_config_init(thinair_rohc_config *config);

/** Octets of memory that a handle with that configuration needs, at any address; 0 if the configuration is invalid. */
size_t thinair_rohc_size(const thinair_rohc_config *config);

/**
 * Creates a handle.
 *
 * @param memory block that is lent until the handle is destroyed; null to allocate one (THINAIR_ROHC_MEMORY in a build
 *               without allocator)
 * @param size   octets of the block, thinair_rohc_size() or more; not used if memory is null
 * @param handle receives the handle, null on failure
 */
thinair_rohc_error thinair_rohc_create(const thinair_rohc_config *config, void *memory, size_t size, thinair_rohc **handle);

/** Destroys a handle; memory that was lent is the caller's again. Null is allowed. */
void thinair_rohc_destroy(thinair_rohc *handle);

/** Forgets all contexts, as for a PDCP re-establishment without drb-ContinueROHC: IR and NC state, U-mode. Counters stay. */
thinair_rohc_error thinair_rohc_reset(thinair_rohc *handle);

/**
 * Keeps all contexts over an interruption in which packets may be lost, as for a PDCP re-establishment with
 * drb-ContinueROHC: the next packet of each flow carries more bits of its sequence number.
 */
thinair_rohc_error thinair_rohc_keep(thinair_rohc *handle);

/**
 * Compresses one packet. Octets that are no IP packet are sent by profile 0x0000.
 *
 * @param now        time in nanoseconds
 * @param output     room apart from the input: input_len + THINAIR_ROHC_COMPRESS_ROOM octets suffice, except for extension headers
 *                   that are longer than that
 * @param output_len receives the octets written, 0 on failure
 */
thinair_rohc_error thinair_rohc_compress(thinair_rohc *handle, uint64_t now, const uint8_t *input, size_t input_len,
                                         uint8_t *output, size_t output_size, size_t *output_len);

/**
 * Decompresses one packet. A pair hands feedback in front of it to its compressor; a decompressor alone skips it, see
 * thinair_rohc_feedback_in_front().
 *
 * @param lost       packets that are known to be lost between the one before and this one, as a gap in the PDCP SN tells;
 *                   THINAIR_ROHC_NOT_COUNTED if the carrier does not count
 * @param output     room apart from the input: input_len + THINAIR_ROHC_DECOMPRESS_ROOM octets suffice, except for extension
 *                   headers that are longer than that
 * @param output_len receives the octets written, 0 on failure and for packets that only update a context
 */
thinair_rohc_error thinair_rohc_decompress(thinair_rohc *handle, uint64_t now, uint32_t lost, const uint8_t *input,
                                           size_t input_len, uint8_t *output, size_t output_size, size_t *output_len);

/** Compresses packets in their order. Returns how many succeeded; each has its result. */
size_t thinair_rohc_compress_batch(thinair_rohc *handle, uint64_t now, thinair_rohc_packet *packets, size_t count);

/** Decompresses packets in their order. Returns how many succeeded; each has its result. */
size_t thinair_rohc_decompress_batch(thinair_rohc *handle, uint64_t now, thinair_rohc_packet *packets, size_t count);

/**
 * Gives received feedback to the compressor: one or more elements with their type octets, as a PDCP control PDU has one
 * behind its first octet. THINAIR_ROHC_BAD_FEEDBACK if one of them was refused; the others have their effect.
 */
thinair_rohc_error thinair_rohc_give_feedback(thinair_rohc *handle, uint64_t now, const uint8_t *elements, size_t len);

/**
 * Takes the next feedback element of the decompressor, type octet included: the octets of a PDCP control PDU behind its
 * first octet (0x10). Call it after each thinair_rohc_decompress() until it returns 0; eight elements are kept, then the
 * oldest is dropped.
 *
 * @param output_size room in octets; THINAIR_ROHC_MAX_FEEDBACK suffices
 * @return octets written, 0 if there is none
 */
size_t thinair_rohc_poll_feedback(thinair_rohc *handle, uint8_t *output, size_t output_size);

/**
 * Finds the feedback elements in front of a ROHC packet, for a compressor of another handle.
 *
 * @param elements_len receives their octets
 * @return the first of them, within the packet; null if there is none
 */
const uint8_t *thinair_rohc_feedback_in_front(const uint8_t *packet, size_t len, size_t *elements_len);

/** Reads the counters. */
thinair_rohc_error thinair_rohc_get_statistics(thinair_rohc *handle, thinair_rohc_statistics *statistics);

/**
 * Reads the state of a context; THINAIR_ROHC_NO_CONTEXT if the CID is not in use.
 *
 * @param side THINAIR_ROHC_COMPRESSOR or THINAIR_ROHC_DECOMPRESSOR
 */
thinair_rohc_error thinair_rohc_get_context(thinair_rohc *handle, uint8_t side, uint16_t cid, thinair_rohc_context *context);

#ifdef __cplusplus
}
#endif

#endif
