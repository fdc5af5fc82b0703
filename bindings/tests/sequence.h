/*
 * Sequences of calls out of files: each file as it is, then copies of it that are damaged by random numbers of a fixed seed.
 *
 * A sequence is HEAD octets, by which handles are configured, and steps. A step is an octet for the call, an octet for its
 * circumstances, a length of two octets, and as many octets for the call. All zero octets are ordinary. A capture stands for
 * the sequence that carries its packets.
 *
 * Usage: sequence CURRENT COPIES FILE... CURRENT is a file that holds the sequence that runs: it stays if the program ends early.
 */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include "packets.h"

#define HEAD 64
#define LONGEST 20000

typedef struct {
    unsigned call, how;
    size_t len;
    /* Allocated apart, so that each octet beyond them is found by a sanitizer. */
    uint8_t *octets;
} step;

/* A part of a sequence that is not read yet. */
typedef struct {
    const uint8_t *at;
    size_t len;
} rest;

/* Makes handles by HEAD octets, and takes the steps. */
static void run(const uint8_t *head, rest steps);

/* Allocates, also nothing. */
static inline uint8_t *room_of(size_t len) {
    uint8_t *octets = malloc(len + (len == 0));
    CHECK(octets != NULL);
    return octets;
}

/* The next step, whose octets have to be freed; 0 at the end. */
static inline int next_step(rest *r, step *s) {
    if (r->len < 4) {
        return 0;
    }
    s->call = r->at[0];
    s->how = r->at[1];
    s->len = (size_t)r->at[2] << 8 | r->at[3];
    r->at += 4, r->len -= 4;
    s->len = s->len < r->len ? s->len : r->len;
    s->octets = memcpy(room_of(s->len), r->at, s->len);
    r->at += s->len, r->len -= s->len;
    return 1;
}

static inline size_t read_sequence(const char *path, uint8_t *sequence) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t len = fread(sequence, 1, LONGEST, file);
    fclose(file);
    if (len < 4 || (memcmp(sequence, "\xD4\xC3\xB2\xA1", 4) != 0 && memcmp(sequence, "\x4D\x3C\xB2\xA1", 4) != 0)) {
        return len;
    }
    static uint8_t packet[MAX_PACKET];
    capture c = open_capture(path);
    uint64_t time;
    memset(sequence, 0, HEAD);
    for (size_t at = HEAD;;) {
        size_t n = next_packet(&c, packet, &time);
        if (n == 0 || at + 4 + n > LONGEST) {
            return at;
        }
        sequence[at] = sequence[at + 1] = 0;
        put16(sequence + at + 2, (uint32_t)n);
        memcpy(sequence + at + 4, packet, n);
        at += 4 + n;
    }
}

/* Damages a sequence at a few places. */
static inline size_t damage(uint8_t *sequence, size_t len) {
    for (uint64_t times = 1 + below(12); times > 0 && len > 0; times--) {
        size_t at = below(5) ? below(len) : below(len < HEAD ? len : HEAD), n = 1 + below(40);
        switch (below(6)) {
        case 0: sequence[at] ^= (uint8_t)(1 << below(8)); break;
        case 1: sequence[at] = (uint8_t)next_random(); break;
        case 2: sequence[at] = below(2) ? 0 : 0xFF; break;
        case 3: len = below(4) ? len : at; break;
        case 4:
            n = n < len - at ? n : len - at;
            memmove(sequence + at, sequence + at + n, len - at - n);
            len -= n;
            break;
        default:
            n = n < LONGEST - len ? n : LONGEST - len;
            memmove(sequence + at + n, sequence + at, len - at);
            len += n;
            for (size_t i = 0; i < n && below(2); i++) {
                sequence[at + i] = (uint8_t)next_random();
            }
        }
    }
    return len;
}

/* Another call for some of the steps, so that they are not all one. */
static inline void shuffle(uint8_t *sequence, size_t len) {
    for (size_t at = HEAD; at + 4 <= len; at += 4 + ((size_t)sequence[at + 2] << 8 | sequence[at + 3])) {
        if (below(3) == 0) {
            sequence[at] = (uint8_t)next_random();
            sequence[at + 1] = below(2) ? 0 : (uint8_t)next_random();
        }
    }
}

static inline void run_sequence(const char *current, const uint8_t *sequence, size_t len) {
    uint8_t head[HEAD] = {0};
    size_t head_len = len < HEAD ? len : HEAD;
    FILE *file = fopen(current, "wb");
    CHECK(file != NULL && fwrite(sequence, 1, len, file) == len && fclose(file) == 0);
    memcpy(head, sequence, head_len);
    run(head, (rest){sequence + head_len, len - head_len});
}

int main(int count, char **arguments) {
    static uint8_t sequence[LONGEST], copy[LONGEST];
    CHECK(count > 2);
    unsigned long copies = strtoul(arguments[2], NULL, 10);
    for (int i = 3; i < count; i++) {
        size_t len = read_sequence(arguments[i], sequence);
        run_sequence(arguments[1], sequence, len);
        for (unsigned long k = 0; k < copies; k++) {
            random_state = (uint64_t)i << 32 | k;
            memcpy(copy, sequence, len);
            if (below(4)) {
                shuffle(copy, len);
            }
            run_sequence(arguments[1], copy, damage(copy, len));
        }
    }
    printf("%lu sequences\n", (unsigned long)(count - 3) * (1 + copies));
    return 0;
}

#endif
