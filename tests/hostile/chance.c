#include "chance.h"

#include "base/xorshift.h"

uint32_t chance_below(chance *c, uint32_t below)
{
    return (uint32_t)(xorshift_next(&c->state) >> 32) % below;
}

int64_t chance_number(chance *c)
{
    static const int64_t numbers[] = {
        0,
        1,
        2,
        3,
        -1,
        -2,
        7,
        64,
        255,
        3000,
        20000,
        65536,
        1000000,
        1 << 24,
        INT32_MAX,
        INT32_MIN,
        1LL << 31,
        1LL << 32,
        1LL << 40,
        1LL << 61,
        1LL << 62,
        INT64_MAX,
        INT64_MIN,
        INT64_MAX / 2 + 1,
        -(1LL << 32),
        INT64_MIN + 1,
        INT64_MAX - 1,
    };
    return numbers[chance_below(c, sizeof numbers / sizeof numbers[0])];
}
