#ifndef SERVER_PROTOCOL_TEXT_POWERS_OF_TEN_H
#define SERVER_PROTOCOL_TEXT_POWERS_OF_TEN_H

#include <stdint.h>

#define POWERS_OF_TEN_MIN (-342)
#define POWERS_OF_TEN_MAX 324

typedef struct power_of_ten {
    uint64_t high, low;
} power_of_ten;

/* The 128 leading bits of 10^k, truncated, at [k - POWERS_OF_TEN_MIN]. Exact for 0 <= k <= 55. */
extern const power_of_ten powers_of_ten[POWERS_OF_TEN_MAX - POWERS_OF_TEN_MIN + 1];

#endif
