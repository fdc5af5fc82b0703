/* Every function of thinair_rohc.h does what the header promises. */
#include "packets.h"
#include "thinair_rohc.h"

#define OK THINAIR_ROHC_OK

static uint8_t in[MAX_PACKET], rohc[MAX_PACKET], back[MAX_PACKET];
static size_t rohc_len, back_len;

static thinair_rohc_config config_of(uint32_t profiles, uint8_t mode, uint8_t sides) {
    thinair_rohc_config config;
    CHECK(thinair_rohc_config_init(&config) == OK);
    config.profiles = profiles;
    config.mode = mode;
    config.sides = sides;
    return config;
}

static thinair_rohc *create(const thinair_rohc_config *config) {
    thinair_rohc *handle;
    CHECK(thinair_rohc_create(config, NULL, 0, &handle) == OK);
    return handle;
}

/* Carries a packet of `len` octets from one handle to the other, with `lost` before it. */
static void carry(thinair_rohc *from, thinair_rohc *to, uint64_t now, size_t len, uint32_t lost) {
    CHECK(thinair_rohc_compress(from, now, in, len, rohc, sizeof rohc, &rohc_len) == OK);
    CHECK(thinair_rohc_decompress(to, now, lost, rohc, rohc_len, back, sizeof back, &back_len) == OK);
    CHECK(back_len == len && memcmp(in, back, len) == 0);
}

static void configurations(void) {
    thinair_rohc *handle = (thinair_rohc *)&handle;
    thinair_rohc_config good = config_of(THINAIR_ROHC_PROFILE_0002, THINAIR_ROHC_U_MODE, THINAIR_ROHC_PAIR), bad;
    size_t size = thinair_rohc_size(&good);
    CHECK(size > 0);
#define REFUSED(change, result)                                        \
    bad = good, bad.change;                                            \
    CHECK(thinair_rohc_size(&bad) == 0);                               \
    CHECK(thinair_rohc_create(&bad, NULL, 0, &handle) == (result));    \
    CHECK(handle == NULL)
    REFUSED(size = 4, THINAIR_ROHC_CONFIG);
    REFUSED(max_cid = 16, THINAIR_ROHC_MAX_CID);
    REFUSED(profiles |= THINAIR_ROHC_PROFILE_0102, THINAIR_ROHC_PROFILES);
    REFUSED(profiles |= 1 << 13, THINAIR_ROHC_PROFILES);
    REFUSED(sides = 0, THINAIR_ROHC_CONFIG);
    REFUSED(sides = 4, THINAIR_ROHC_CONFIG);
    REFUSED(mode = 0, THINAIR_ROHC_CONFIG);
    REFUSED(repetitions = 0, THINAIR_ROHC_CONFIG);
    REFUSED(window = 17, THINAIR_ROHC_CONFIG);
    REFUSED(large_cids = 2, THINAIR_ROHC_CONFIG);
    REFUSED(integrity = 3, THINAIR_ROHC_CONFIG);
    REFUSED(rtp_port_count = 9, THINAIR_ROHC_CONFIG);
    bad = good, bad.large_cids = 1, bad.max_cid = 16383;
    CHECK(thinair_rohc_size(&bad) > 100 * size);
    CHECK(thinair_rohc_create(NULL, NULL, 0, &handle) == THINAIR_ROHC_ARGUMENT);
    CHECK(thinair_rohc_create(&good, NULL, 0, NULL) == THINAIR_ROHC_ARGUMENT);
    for (thinair_rohc_error error = 0; error <= THINAIR_ROHC_BAD_FEEDBACK; error++) {
        CHECK(strcmp(thinair_rohc_error_text(error), thinair_rohc_error_text(-1)) != 0);
    }
    CHECK(strlen(thinair_rohc_version()) >= 5);
}

/* Memory may begin at any address, and is not exceeded. */
static void lent_memory(void) {
    thinair_rohc_config config = config_of(0x1F, THINAIR_ROHC_O_MODE, THINAIR_ROHC_PAIR);
    size_t size = thinair_rohc_size(&config);
    uint8_t *memory = malloc(size + 64);
    for (size_t offset = 0; offset < 17; offset++) {
        thinair_rohc *a, *b = create(&config);
        memset(memory, 0xA5, size + 64);
        CHECK(thinair_rohc_create(&config, memory + offset, size - 16, &a) == THINAIR_ROHC_MEMORY || offset > 0);
        CHECK(thinair_rohc_create(&config, memory + offset, size, &a) == OK);
        for (uint16_t i = 0; i < 40; i++) {
            carry(a, b, i, udp4(in, (uint8_t)(1 + i % 20), i, 5000, 6000, 20), 0);
            carry(b, a, i, tcp4(in, i, i * 10u, 10), 0);
        }
        for (size_t i = 0; i < 64; i++) {
            CHECK(i < offset ? memory[i] == 0xA5 : memory[size + i] == 0xA5 || i < offset);
        }
        thinair_rohc_destroy(a);
        thinair_rohc_destroy(b);
    }
    free(memory);
}

static void sides_and_feedback(void) {
    thinair_rohc_config up = config_of(THINAIR_ROHC_PROFILE_0002, THINAIR_ROHC_O_MODE, THINAIR_ROHC_COMPRESSOR);
    thinair_rohc_config down = up;
    down.sides = THINAIR_ROHC_DECOMPRESSOR;
    thinair_rohc *c = create(&up), *d = create(&down);
    uint8_t element[THINAIR_ROHC_MAX_FEEDBACK];
    size_t len = udp4(in, 1, 0, 5000, 6000, 20), elements_len;
    CHECK(thinair_rohc_compress(d, 0, in, len, rohc, sizeof rohc, &rohc_len) == THINAIR_ROHC_NO_SIDE);
    CHECK(thinair_rohc_decompress(c, 0, 0, in, len, rohc, sizeof rohc, &rohc_len) == THINAIR_ROHC_NO_SIDE);
    CHECK(thinair_rohc_poll_feedback(d, element, sizeof element) == 0);
    carry(c, d, 0, len, 0);
    size_t element_len = thinair_rohc_poll_feedback(d, element, sizeof element);
    CHECK(element_len > 0 && (element[0] & 0xF8) == 0xF0);
    CHECK(thinair_rohc_give_feedback(d, 0, element, element_len) == THINAIR_ROHC_NO_SIDE);
    CHECK(thinair_rohc_give_feedback(c, 0, element, element_len - 1) == THINAIR_ROHC_BAD_FEEDBACK);
    CHECK(thinair_rohc_give_feedback(c, 0, element, element_len) == OK);
    thinair_rohc_context context;
    CHECK(thinair_rohc_get_context(c, THINAIR_ROHC_COMPRESSOR, 0, &context) == OK);
    CHECK(context.profile == 2 && context.mode == THINAIR_ROHC_O_MODE && context.state == THINAIR_ROHC_STATE_SO_FC);
    CHECK(thinair_rohc_get_context(c, THINAIR_ROHC_COMPRESSOR, 1, &context) == THINAIR_ROHC_NO_CONTEXT);
    CHECK(thinair_rohc_get_context(d, THINAIR_ROHC_DECOMPRESSOR, 0, &context) == OK);
    CHECK(context.state == THINAIR_ROHC_STATE_SO_FC);
    /* Feedback in front of a packet is found for another handle. */
    memcpy(rohc, element, element_len);
    rohc[element_len] = 0xFD;
    CHECK(thinair_rohc_feedback_in_front(rohc, element_len + 1, &elements_len) == rohc && elements_len == element_len);
    CHECK(thinair_rohc_feedback_in_front(rohc + element_len, 1, &elements_len) == NULL && elements_len == 0);
    /* Feedback alone is no failure. */
    CHECK(thinair_rohc_decompress(d, 0, 0, element, element_len, back, sizeof back, &back_len) == THINAIR_ROHC_NOTHING_YET);
    thinair_rohc_statistics s;
    CHECK(thinair_rohc_get_statistics(d, &s) == OK);
    CHECK(s.decompressed_packets == 1 && s.decompress_errors == 0 && s.feedback_out == 1);
    CHECK(thinair_rohc_get_statistics(c, &s) == OK);
    CHECK(s.compressed_packets == 1 && s.feedback_in == 1 && s.compressed_octets_in == len);
    thinair_rohc_destroy(c);
    thinair_rohc_destroy(d);
}

/* A pair with feedback in front of its packets needs no other way for it. */
static void pairs(void) {
    thinair_rohc_config config = config_of(THINAIR_ROHC_PROFILE_0002, THINAIR_ROHC_O_MODE, THINAIR_ROHC_PAIR);
    config.feedback_in_front = 1;
    thinair_rohc *a = create(&config), *b = create(&config);
    size_t last = 0;
    for (uint16_t i = 0; i < 20; i++) {
        carry(a, b, i, udp4(in, 1, i, 5000, 6000, 20), 0);
        last = rohc_len;
        carry(b, a, i, udp4(in, 2, i, 6000, 5000, 20), 0);
    }
    CHECK(last <= 24);
    thinair_rohc_context context;
    CHECK(thinair_rohc_get_context(a, THINAIR_ROHC_COMPRESSOR, 0, &context) == OK);
    CHECK(context.mode == THINAIR_ROHC_O_MODE);
    /* Feedback in front for a context that does not exist is refused, and the packet is delivered. */
    thinair_rohc_statistics before, s;
    CHECK(thinair_rohc_get_statistics(b, &before) == OK && before.feedback_in > 0 && before.feedback_in_refused == 0);
    size_t len = udp4(in, 1, 20, 5000, 6000, 20);
    rohc[0] = 0xF2, rohc[1] = 0xE9, rohc[2] = 0;
    CHECK(thinair_rohc_compress(a, 20, in, len, rohc + 3, sizeof rohc - 3, &rohc_len) == OK);
    CHECK(thinair_rohc_decompress(b, 20, 0, rohc, 3 + rohc_len, back, sizeof back, &back_len) == OK && back_len == len);
    CHECK(thinair_rohc_get_statistics(b, &s) == OK && s.feedback_in > before.feedback_in && s.feedback_in_refused == 1);
    thinair_rohc_destroy(a);
    thinair_rohc_destroy(b);
}

static void reset_and_keep(void) {
    thinair_rohc_config config = config_of(THINAIR_ROHC_PROFILE_0002, THINAIR_ROHC_O_MODE, THINAIR_ROHC_PAIR);
    thinair_rohc *a = create(&config), *b = create(&config);
    uint16_t i = 0;
    for (; i < 20; i++) {
        carry(a, b, i, udp4(in, 1, i, 5000, 6000, 20), 0);
    }
    size_t small = rohc_len;
    /* Both keep their contexts over 40 packets that are lost. */
    CHECK(thinair_rohc_keep(a) == OK && thinair_rohc_keep(b) == OK);
    i += 40;
    carry(a, b, i, udp4(in, 1, i, 5000, 6000, 20), THINAIR_ROHC_NOT_COUNTED);
    CHECK(rohc_len < small + 12);
    /* One that is reset knows nothing. */
    CHECK(thinair_rohc_reset(b) == OK);
    size_t len = udp4(in, 1, ++i, 5000, 6000, 20);
    CHECK(thinair_rohc_compress(a, i, in, len, rohc, sizeof rohc, &rohc_len) == OK);
    CHECK(thinair_rohc_decompress(b, i, 0, rohc, rohc_len, back, sizeof back, &back_len) == THINAIR_ROHC_NO_CONTEXT);
    CHECK(back_len == 0);
    CHECK(thinair_rohc_reset(a) == OK);
    carry(a, b, i, len, 0);
    CHECK(rohc_len > small + 20);
    thinair_rohc_destroy(a);
    thinair_rohc_destroy(b);
}

/* RTP by port from the first packet on, by guess later, and never. */
static void rtp(void) {
    for (int by = 0; by < 3; by++) {
        thinair_rohc_config config = config_of(3, THINAIR_ROHC_O_MODE, THINAIR_ROHC_PAIR);
        config.rtp_guess = by == 1;
        if (by == 0) {
            config.rtp_ports[config.rtp_port_count++] = 40000;
        }
        thinair_rohc *a = create(&config), *b = create(&config);
        for (uint16_t i = 0; i < 30; i++) {
            carry(a, b, i * 20000000ull, rtp4(in, i, 40000, 32), 0);
            CHECK(i > 0 || (rohc[1] == 1) == (by == 0));
        }
        CHECK(by < 2 ? rohc_len <= 32 + 5 : rohc_len > 32 + 12);
        thinair_rohc_destroy(a);
        thinair_rohc_destroy(b);
    }
}

/* What is no IP packet goes by profile 0x0000. */
static void no_ip(void) {
    thinair_rohc_config config = config_of(0x1F, THINAIR_ROHC_U_MODE, THINAIR_ROHC_PAIR);
    thinair_rohc *a = create(&config), *b = create(&config);
    for (size_t len = 0; len < 200; len++) {
        for (size_t i = 0; i < len; i++) {
            in[i] = (uint8_t)next_random();
        }
        carry(a, b, len, len, 0);
    }
    thinair_rohc_destroy(a);
    thinair_rohc_destroy(b);
}

static void buffers(void) {
    thinair_rohc_config config = config_of(THINAIR_ROHC_PROFILE_0002, THINAIR_ROHC_U_MODE, THINAIR_ROHC_PAIR);
    thinair_rohc *a = create(&config);
    size_t len = udp4(in, 1, 0, 5000, 6000, 20);
    CHECK(thinair_rohc_compress(a, 0, in, len, in + 10, len, &rohc_len) == THINAIR_ROHC_OVERLAP);
    CHECK(thinair_rohc_compress(a, 0, in, len, rohc, 10, &rohc_len) == THINAIR_ROHC_OUTPUT_TOO_SMALL);
    CHECK(thinair_rohc_compress(a, 0, NULL, len, rohc, 10, &rohc_len) == THINAIR_ROHC_ARGUMENT);
    CHECK(thinair_rohc_compress(a, 0, in, len, NULL, 10, &rohc_len) == THINAIR_ROHC_ARGUMENT);
    CHECK(thinair_rohc_compress(a, 0, in, SIZE_MAX, rohc, 10, &rohc_len) == THINAIR_ROHC_ARGUMENT);
    CHECK(thinair_rohc_compress(a, 0, in, len, rohc, sizeof rohc, NULL) == THINAIR_ROHC_ARGUMENT);
    CHECK(thinair_rohc_compress(NULL, 0, in, len, rohc, sizeof rohc, &rohc_len) == THINAIR_ROHC_ARGUMENT);
    CHECK(thinair_rohc_compress(a, 0, in, len, rohc, sizeof rohc, &rohc_len) == OK);
    thinair_rohc_destroy(a);
    thinair_rohc_destroy(NULL);
}

int main(void) {
    configurations();
    lent_memory();
    sides_and_feedback();
    pairs();
    reset_and_keep();
    rtp();
    no_ip();
    buffers();
    return 0;
}
