#include <math.h>
#include <string.h>

#include "graph/encoder/internal.h"

int64_t encoder_relative_bucket(int64_t buckets, int64_t distance_max, int64_t distance)
{
    int64_t half = buckets / 2, exact = half / 2, n = distance < 0 ? -distance : distance;
    int64_t bucket = n;
    if (n >= exact) {
        /* In binary32: the code that trained these models rounds there. */
        float ratio =
            logf((float)n / (float)exact) / (float)log((double)distance_max / (double)exact);
        bucket = exact + (int64_t)(ratio * (float)(half - exact));
        bucket = bucket < half ? bucket : half - 1;
    }
    return bucket + (distance > 0 ? half : 0);
}

/* DeBERTa-v2's buckets (arXiv 2111.09543, its code): half of them for each sign, half of those
 * exact, the rest logarithmic up to the longest distance. In binary32, as the code that trained
 * these models. */
static int64_t log_bucket(const encoder *e, int64_t away)
{
    int64_t exact = e->distance_buckets / 2;
    if (away <= exact)
        return away;
    float ratio = logf((float)away / (float)exact) /
                  logf((float)((double)(e->distance_longest - 1) / (double)exact));
    return (int64_t)ceilf(ratio * (float)(exact - 1)) + exact;
}

int64_t encoder_distance_row(const encoder *e, int64_t distance)
{
    int64_t away = distance < 0 ? -distance : distance, last = 2 * e->distance_span - 1;
    if (e->distance_buckets != 0)
        away = log_bucket(e, away);
    int64_t row = e->distance_span + (distance < 0 ? -away : away);
    return row < 0 ? 0 : row > last ? last : row;
}

/* Whether bias[h][i][j] is table[bucket(j - i)][h]. */
static bool is_table(const encoder_recogniser *r, const tensor *table, int64_t heads,
                     int64_t distance_max, const double *bias)
{
    int64_t n = r->length;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                int64_t bucket = encoder_relative_bucket(table->dims[0], distance_max, j - i);
                double want = tensor_get_number(table, bucket * heads + h);
                if (!(fabs(bias[(h * n + i) * n + j] - want) <= 1e-5 * (1 + fabs(want))))
                    return false;
            }
    return true;
}

status recogniser_read_relative_bias(encoder_recogniser *r, graph_value_index scores, int64_t heads,
                                     const double *bias)
{
    static const int64_t distances[] = {128, 64, 256, 512, 32, 1024};
    encoder *e = r->e;
    if (bias == NULL)
        return e->relative_table == NULL
                   ? STATUS_OK
                   : recogniser_reject(r, scores, "only some layers add a relative attention bias");
    if (e->relative_table != NULL)
        return is_table(r, e->relative_table, heads, e->relative_distance_max, bias)
                   ? STATUS_OK
                   : recogniser_reject(r, scores, "layers add different relative attention biases");
    for (int32_t v = 0; v < r->source->value_count; v++) {
        const tensor *t = r->source->values[v].constant;
        if (t == NULL || !dtype_is_float(t->dtype) || t->rank != 2 || t->dims[1] != heads ||
            t->dims[0] < 4 || t->dims[0] % 4 != 0)
            continue;
        for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
            if (!is_table(r, t, heads, distances[i], bias))
                continue;
            e->relative_distance_max = distances[i];
            return recogniser_keep_tensor(r, t, 2, &e->relative_table);
        }
    }
    return recogniser_reject(
        r, scores, "attention has an additive bias that is not a table of relative positions");
}
