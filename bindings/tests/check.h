/* Checks of C tests: the first one that fails ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)

static void check(int holds, const char *condition, const char *file, int line) {
    if (!holds) {
        fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
        exit(1);
    }
}

/* SplitMix64. */
static uint64_t random_state = 1;

static inline uint64_t next_random(void) {
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline uint64_t below(uint64_t limit) { return next_random() % limit; }

#endif
