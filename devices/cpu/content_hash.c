#include "devices/cpu/content_hash.h"

#include <string.h>

uint64_t content_hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3};
    const uint64_t prime = UINT64_C(1099511628211);
    for (; bytes >= 32; p += 32, bytes -= 32) {
        uint64_t words[4];
        memcpy(words, p, sizeof words);
        for (int i = 0; i < 4; i++) {
            lanes[i] = (lanes[i] ^ words[i]) * prime;
            lanes[i] ^= lanes[i] >> 29;
        }
    }
    for (; bytes > 0; p++, bytes--)
        lanes[0] = (lanes[0] ^ *p) * prime;
    for (int i = 1; i < 4; i++)
        lanes[0] = ((lanes[0] ^ lanes[i]) * prime) ^ (lanes[0] >> 31);
    return lanes[0];
}
