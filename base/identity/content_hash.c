#include "base/identity/content_hash.h"

#include <string.h>

uint64_t content_hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t hashes[4] = {seed, seed + 1, seed + 2, seed + 3};
    const uint64_t prime = UINT64_C(1099511628211);
    for (; bytes >= 32; p += 32, bytes -= 32) {
        uint64_t words[4];
        memcpy(words, p, sizeof words);
        for (int i = 0; i < 4; i++) {
            hashes[i] = (hashes[i] ^ words[i]) * prime;
            hashes[i] ^= hashes[i] >> 29;
        }
    }
    for (; bytes > 0; p++, bytes--)
        hashes[0] = (hashes[0] ^ *p) * prime;
    for (int i = 1; i < 4; i++)
        hashes[0] = ((hashes[0] ^ hashes[i]) * prime) ^ (hashes[0] >> 31);
    return hashes[0];
}
