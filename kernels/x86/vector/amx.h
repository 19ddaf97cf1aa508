#ifndef KERNELS_X86_VECTOR_AMX_H
#define KERNELS_X86_VECTOR_AMX_H

#include <stddef.h>
#include <stdint.h>

/* AMX instructions, with operands that say what they read and write. gcc 12's <amxtileintrin.h>
 * does not: _tile_loadconfig() declares 8 bytes of 64 as read, and _tile_loadd() and the like no
 * memory at all, so that stores before them may be dropped or come too late.
 *
 * Every kernel uses the eight tiles alike (Intel SDM volume 1, 18.3; palette 1):
 *   0 to 3   sums, rows x 16 of 32 bits
 *   4, 5     rows of A, rows x 64 bytes
 *   6, 7     columns of B, 16 groups of k x 16 columns x 4 bytes
 * Tiles are numbers in the text of the instructions, so these are macros; `volatile` keeps their
 * order. Between amx_configure() and amx_release() a switch of threads saves and restores 8 KiB. */
#define AMX_ROWS_MAX 16
#define AMX_ROW_BYTES 64

typedef struct amx_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} __attribute__((aligned(64))) amx_configuration;

/* All tiles become zero. `rows`: of the tiles of sums and of A, 1 to 16. About 100 cycles. */
static inline void amx_configure(size_t rows)
{
    amx_configuration c = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        c.row_bytes[t] = AMX_ROW_BYTES;
        c.rows[t] = t < 6 ? (uint8_t)rows : AMX_ROWS_MAX;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
}

static inline void amx_release(void)
{
    __asm__ volatile("tilerelease");
}

#define AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)

/* All of the array that `base` points into, as an operand (GCC manual, "Extended Asm", clobbers and
 * scratch registers). Clang wants a size; it derives nothing from it. */
#ifdef __clang__
#define AMX_MEMORY(type, base) (*(type(*)[1 << 20])(base))
#else
#define AMX_MEMORY(type, base) (*(type(*)[])(base))
#endif

/* Rows of 64 bytes that begin `stride` bytes apart. */
#define AMX_LOAD(tile, base, stride)                                                               \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"(base), "r"((size_t)(stride)), "m"(AMX_MEMORY(const uint8_t, base)))

#define AMX_STORE(tile, base, stride)                                                              \
    __asm__ volatile("tilestored %%tmm" #tile ", (%1,%2,1)"                                        \
                     : "=m"(AMX_MEMORY(uint8_t, base))                                             \
                     : "r"(base), "r"((size_t)(stride)))

/* sums += a x b, of unsigned and signed bytes in int32, wrapping. */
#define AMX_DOT_U8S8(sums, a, b)                                                                   \
    __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

/* sums += a x b, of pairs of bf16 in float. */
#define AMX_DOT_BF16(sums, a, b)                                                                   \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

#endif
