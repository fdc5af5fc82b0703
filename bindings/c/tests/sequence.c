/* Sequences of calls of thinair_rohc.h: see sequence.h. */
#include "sequence.h"
#include "thinair_rohc.h"

_Static_assert(sizeof(thinair_rohc_config) <= HEAD, "a head holds a configuration");

static thinair_rohc *handles[2];
static uint64_t now;
/* Nothing was lost or made up on the way: what is delivered is right. */
static int is_clean;

static thinair_rohc *create(const uint8_t *head) {
    thinair_rohc_config config;
    thinair_rohc *handle;
    CHECK(thinair_rohc_config_init(&config) == THINAIR_ROHC_OK);
    for (size_t i = sizeof config.size; i < sizeof config; i++) {
        ((uint8_t *)&config)[i] ^= head[i];
    }
    /* Thousands of contexts would take the time of many sequences. */
    config.max_cid &= 0x1F;
    config.extension_flows &= 7;
    thinair_rohc_error error = thinair_rohc_create(&config, NULL, 0, &handle);
    CHECK((error == THINAIR_ROHC_OK) == (handle != NULL));
    return handle;
}

/* Hands feedback of one handle to the other. */
static void answer(thinair_rohc *from, thinair_rohc *to) {
    size_t len;
    do {
        uint8_t *element = room_of(THINAIR_ROHC_MAX_FEEDBACK);
        len = thinair_rohc_poll_feedback(from, element, THINAIR_ROHC_MAX_FEEDBACK);
        thinair_rohc_give_feedback(to, now, element, len);
        free(element);
    } while (len > 0);
}

static void decompress(thinair_rohc *to, const uint8_t *rohc, size_t len, const step *sent) {
    size_t back_len, room = sent && sent->how & 0x10 ? sent->len / 2 : len + THINAIR_ROHC_DECOMPRESS_ROOM;
    uint8_t *back = room_of(room);
    uint32_t lost = sent && sent->how & 8 ? THINAIR_ROHC_NOT_COUNTED : 0;
    thinair_rohc_error error = thinair_rohc_decompress(to, now, lost, rohc, len, back, room, &back_len);
    CHECK(back_len <= room && (error == THINAIR_ROHC_OK || back_len == 0));
    if (sent && is_clean && error == THINAIR_ROHC_OK) {
        CHECK(back_len == sent->len && memcmp(back, sent->octets, back_len) == 0);
    }
    free(back);
}

/* Compresses; the octets have to be freed. */
static uint8_t *compress(thinair_rohc *from, const step *s, size_t *len) {
    size_t room = s->how & 0x20 ? s->len / 2 : s->len + 2 * THINAIR_ROHC_COMPRESS_ROOM;
    uint8_t *rohc = room_of(room);
    thinair_rohc_error error = thinair_rohc_compress(from, now, s->octets, s->len, rohc, room, len);
    CHECK(*len <= room && (error == THINAIR_ROHC_OK || *len == 0));
    return rohc;
}

static void batch(thinair_rohc *from, thinair_rohc *to, const step *s) {
    thinair_rohc_packet packets[3];
    uint8_t rohc[3][256], back[512];
    memset(packets, 0, sizeof packets);
    for (size_t i = 0; i < 3; i++) {
        packets[i].input = s->octets + s->len / 3 * i;
        packets[i].input_len = s->len / 3;
        packets[i].output = rohc[i];
        packets[i].output_size = sizeof rohc[i];
    }
    CHECK(thinair_rohc_compress_batch(from, now, packets, 3) <= 3);
    for (size_t i = 0; i < 3; i++) {
        packets[i].input = rohc[i];
        packets[i].input_len = packets[i].output_len;
        packets[i].output = back;
        packets[i].output_size = sizeof back;
        packets[i].lost = s->how;
    }
    CHECK(thinair_rohc_decompress_batch(to, now, packets, 3) <= 3);
}

static void look(thinair_rohc *handle, const step *s) {
    thinair_rohc_statistics statistics;
    thinair_rohc_context context;
    size_t len;
    thinair_rohc_get_statistics(handle, &statistics);
    for (uint16_t cid = 0; cid < 40; cid++) {
        thinair_rohc_get_context(handle, (uint8_t)s->how, cid, &context);
    }
    const uint8_t *elements = thinair_rohc_feedback_in_front(s->octets, s->len, &len);
    CHECK(elements == NULL || (elements >= s->octets && elements + len <= s->octets + s->len));
}

static void take(const step *s) {
    thinair_rohc *from = handles[s->how & 1], *to = handles[~s->how & 1];
    size_t len;
    uint8_t *rohc;
    now += s->how & 0x40 ? 3600000000000ull : 20000000;
    is_clean &= s->call % 8 == 0 && s->how < 2;
    switch (s->call % 8) {
    case 1: /* A packet is lost. */
        free(compress(from, s, &len));
        break;
    case 2: /* Octets that nobody has sent. */
        decompress(to, s->octets, s->len, NULL);
        break;
    case 3:
        thinair_rohc_give_feedback(from, now, s->octets, s->len);
        break;
    case 4:
        s->how & 4 ? thinair_rohc_keep(from) : thinair_rohc_reset(from);
        break;
    case 5:
        look(from, s);
        break;
    case 6:
        batch(from, to, s);
        break;
    default: /* A packet is carried, by 7 with damage. */
        rohc = compress(from, s, &len);
        if (s->call % 8 == 7 && len > 0) {
            rohc[(s->call >> 3) % len] ^= (uint8_t)(1 << s->how % 8);
        }
        decompress(to, rohc, len, s);
        free(rohc);
    }
    answer(to, from);
}

static void run(const uint8_t *head, rest steps) {
    step s;
    handles[0] = create(head);
    handles[1] = create(head);
    now = 0;
    /* An ordinary configuration. */
    is_clean = head[0] == 0 && memcmp(head, head + 1, HEAD - 1) == 0;
    while (next_step(&steps, &s)) {
        take(&s);
        free(s.octets);
    }
    thinair_rohc_destroy(handles[0]);
    thinair_rohc_destroy(handles[1]);
}
