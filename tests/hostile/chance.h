#ifndef TESTS_HOSTILE_CHANCE_H
#define TESTS_HOSTILE_CHANCE_H

#include <stdint.h>

/* Numbers that look random and are the same in every run (base/xorshift.h). */
typedef struct chance {
    uint64_t state; /* not 0 */
} chance;

/* 0 <= result < below; below > 0. */
uint32_t chance_below(chance *c, uint32_t below);
/* A size, index or count as an attacker would choose it, now and then a sensible one. */
int64_t chance_number(chance *c);

#endif
