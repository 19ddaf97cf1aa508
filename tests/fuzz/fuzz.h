#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A fuzz target reads `bytes` bytes at `data` as its parser would get them from a stranger. It
 * asserts what must hold whatever they are; sanitizers see the rest. It leaves nothing behind. */
typedef void fuzz_run(const uint8_t *data, size_t bytes);

#define FUZZ_TARGET(name) fuzz_run fuzz_##name;
#include "tests/fuzz/targets.inc"
#undef FUZZ_TARGET

/* The input, consumed from its front. */
typedef struct fuzz_input {
    const uint8_t *data;
    size_t bytes;
} fuzz_input;

/* 0 at the end. */
static inline uint8_t fuzz_take_byte(fuzz_input *in)
{
    if (in->bytes == 0)
        return 0;
    in->bytes--;
    return *in->data++;
}

static inline size_t fuzz_take_u16(fuzz_input *in)
{
    size_t high = fuzz_take_byte(in);
    return high << 8 | fuzz_take_byte(in);
}

#endif
