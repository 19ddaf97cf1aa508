#include <math.h>
#include <string.h>

#include "kernels/conv_u8s8.h"
#include "kernels/kernels_list.h"

void conv_pack_u8s8_scalar(const int8_t *w, size_t steps, size_t n, void *packed)
{
    int8_t *out = packed;
    for (size_t first = 0; first < n; first += CONV_U8S8_COLUMNS)
        for (size_t k = 0; k < steps * CONV_U8S8_STEP_BYTES; k += 4)
            for (size_t j = first; j < first + CONV_U8S8_COLUMNS; j++)
                for (size_t i = 0; i < 4; i++)
                    *out++ = j < n ? w[(k + i) * n + j] : 0;
}

/* W[k][column] of the packed form. */
static int8_t weight_at(const conv_u8s8 *c, size_t k, size_t column)
{
    size_t tile = column / CONV_U8S8_COLUMNS * c->steps + k / CONV_U8S8_STEP_BYTES;
    size_t group = k % CONV_U8S8_STEP_BYTES / 4;
    return (
        (const int8_t *)c->weights)[((tile * CONV_U8S8_STEP_BYTES / 4 + group) * CONV_U8S8_COLUMNS +
                                     column % CONV_U8S8_COLUMNS) *
                                        4 +
                                    k % 4];
}

static uint8_t finish(const conv_u8s8 *c, int32_t sum, size_t column)
{
    float x = fmaf((float)sum, c->scale[column], c->bias[column]);
    float q = x > 1e6f ? 1e6f : x < -1e6f ? -1e6f : nearbyintf(x);
    int32_t y = q != q ? 0 : (int32_t)q + c->zero;
    y = y < 0 ? 0 : y > 255 ? 255 : y;
    return (uint8_t)(y < c->low ? c->low : y);
}

void conv_u8s8_scalar(const struct conv_u8s8 *c)
{
    for (size_t image = 0; image < c->images; image++) {
        uint8_t *out = c->out + image * c->out_image_bytes;
        for (size_t p = 0; p < c->cells; p++) {
            if (p % c->pitch >= c->width)
                continue;
            const uint8_t *window = c->in + image * c->in_image_bytes + p * c->cell_bytes;
            for (size_t j = 0; j < c->n; j++) {
                uint32_t sum = (uint32_t)c->start[j];
                for (size_t k = 0; k < c->steps * CONV_U8S8_STEP_BYTES; k++)
                    sum += (uint32_t)((int32_t)window[c->offsets[k / CONV_U8S8_STEP_BYTES] +
                                                      k % CONV_U8S8_STEP_BYTES] *
                                      weight_at(c, k, j));
                out[j] = finish(c, (int32_t)sum, j);
            }
            out += c->out_stride;
        }
    }
}
