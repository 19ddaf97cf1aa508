#include "tests/kernels/operands.h"

#include <string.h>

#include "base/dtype.h"
#include "kernels/gemm_scaled.h"
#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"

float *operand_floats(size_t count, float low, float high)
{
    float *x = check_floats(count);
    check_fill_floats(x, count, low, high);
    return x;
}

/* Panels in the common form, sorted into tiles as level amx has them; `k_bytes` of each column. */
static void *tiled(const void *packed, size_t header, size_t k_bytes, size_t n, size_t panel_bytes)
{
    size_t steps = k_bytes / 64, panels = (n + 63) / 64;
    uint8_t *out = check_buffer(panels * panel_bytes, 64);
    memcpy(out, packed, panels * panel_bytes);
    for (size_t i = 0; i < panels; i++) {
        const uint8_t *from = (const uint8_t *)packed + i * panel_bytes + header;
        uint8_t *to = out + i * panel_bytes + header;
        for (size_t at = 0; at < steps * 4096; at++) {
            size_t step = at / 4096, group = at / 256 % 16, tile = at / 64 % 4;
            to[((tile / 2 * steps + step) * 2 + tile % 2) * 1024 + group * 64 + at % 64] = from[at];
        }
    }
    return out;
}

void *operand_tiled_u8s8(const void *packed, size_t k, size_t n)
{
    return tiled(packed, 256, k, n, gemm_u8s8_panel_bytes(k));
}

void *operand_tiled_bf16(const void *packed, size_t k, size_t n)
{
    return tiled(packed, 0, 2 * k, n, gemm_s16_panel_bytes(k));
}

const int8_t *operand_weights(size_t count, unsigned turn)
{
    int8_t *w = check_buffer(count, 1);
    check_fill_bytes(w, count);
    if (turn % 9 == 8)
        memset(w, 0x80, count); /* all -128 */
    return w;
}

void *operand_packed_u8s8(size_t k, size_t n, unsigned turn)
{
    const int8_t *w = operand_weights(k * n, turn);
    void *packed = check_buffer(gemm_u8s8_packed_bytes(k, n), 64);
    gemm_pack_u8s8_scalar(w, n, 1, k, n, packed);
    return packed;
}

int16_t *operand_s16(size_t count, int limit)
{
    int16_t *x = check_buffer(count * 2, 2);
    for (size_t i = 0; i < count; i++)
        x[i] = (int16_t)((int)check_random_below(2 * (size_t)limit + 1) - limit);
    return x;
}

uint16_t *operand_bf16(size_t count)
{
    uint16_t *x = check_buffer(count * 2, 2);
    for (size_t i = 0; i < count; i++)
        x[i] = dtype_f32_to_bf16(check_random_float(-1, 1));
    return x;
}
