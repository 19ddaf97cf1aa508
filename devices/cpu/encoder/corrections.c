/* What int8 weights have beside them, so that one channel or one weight does not coarsen the
 * others. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "devices/cpu/encoder/internal.h"
#include "graph/quantise/smooth.h"

#define COLUMN_TOPS 9 /* largest weights of a column that are looked at */

void cpu_encoder_choose_factors(const float *w, size_t k, size_t n, const float *tops,
                                float *factors)
{
    for (size_t i = 0; i < k; i++)
        factors[i] = 0;
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < k; i++)
            factors[i] = fmaxf(factors[i], fabsf(w[c * k + i]));
    quantise_smooth(tops, factors, k, 0.5f, factors);
}

/* The largest weights of a column, in falling order. */
typedef struct column_tops {
    float weights[COLUMN_TOPS]; /* magnitudes */
    uint32_t rows[COLUMN_TOPS];
    size_t taken;
} column_tops;

static column_tops find_tops(const float *column, size_t k)
{
    column_tops t = {.taken = 0};
    for (size_t i = 0; i < k; i++) {
        float weight = fabsf(column[i]);
        if (!(weight > t.weights[COLUMN_TOPS - 1]))
            continue;
        size_t at = COLUMN_TOPS - 1;
        for (; at > 0 && t.weights[at - 1] < weight; at--) {
            t.weights[at] = t.weights[at - 1];
            t.rows[at] = t.rows[at - 1];
        }
        t.weights[at] = weight;
        t.rows[at] = (uint32_t)i;
    }
    return t;
}

/* How much less the squares of rounding errors become, for each weight, when `more` are taken. */
static double gain(const column_tops *t, size_t more)
{
    double now = t->weights[t->taken], then = t->weights[t->taken + more];
    return (now * now - then * then) / (double)more;
}

status cpu_encoder_take_outliers(float *w, size_t k, size_t n, cpu_encoder_outlier *out)
{
    column_tops *tops = calloc(n, sizeof *tops);
    if (tops == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to find outliers");
    for (size_t c = 0; c < n; c++)
        tops[c] = find_tops(w + c * k, k);
    for (size_t left = CPU_ENCODER_OUTLIERS; left > 0;) {
        size_t column = 0, count = 1;
        double best = 0;
        for (size_t c = 0; c < n; c++)
            for (size_t more = 1; more <= left && tops[c].taken + more < COLUMN_TOPS; more++)
                if (gain(&tops[c], more) > best) {
                    best = gain(&tops[c], more);
                    column = c;
                    count = more;
                }
        if (best <= 0)
            break;
        for (; count > 0; count--) {
            uint32_t row = tops[column].rows[tops[column].taken++];
            float *weight = w + column * k + row;
            out[--left] = (cpu_encoder_outlier){.k = row, .n = (uint32_t)column, .weight = *weight};
            *weight = 0;
        }
    }
    free(tops);
    return STATUS_OK;
}
