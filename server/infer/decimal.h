#ifndef SERVER_INFER_DECIMAL_H
#define SERVER_INFER_DECIMAL_H

#include <stdint.h>

#include "server/request/transport.h"

/* A header's value that is a decimal number of at most 18 digits, and nothing else. */
static inline bool decimal_read(request_text digits, uint64_t *out)
{
    uint64_t v = 0;
    if (digits.bytes == 0 || digits.bytes > 18)
        return false;
    for (size_t i = 0; i < digits.bytes; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(digits.data[i] - '0');
    }
    *out = v;
    return true;
}

#endif
