#include "graph/quantise/smooth.h"

#include <math.h>
#include <stdbool.h>

#define FACTOR_MAX 64.0f

void quantise_smooth(const float *tops, const float *weight_tops, size_t count, float alpha,
                     float *factors)
{
    double logarithms = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_known = tops && tops[i] > 0 && weight_tops[i] > 0;
        factors[i] = is_known ? powf(weight_tops[i], 1 - alpha) / powf(tops[i], alpha) : 0;
        logarithms += is_known ? log(factors[i]) : 0;
        known += is_known;
    }
    float middle = known > 0 ? (float)exp(logarithms / (double)known) : 1;
    for (size_t i = 0; i < count; i++) {
        float factor = factors[i] > 0 ? factors[i] / middle : 1;
        factors[i] = fminf(fmaxf(factor, 1 / FACTOR_MAX), FACTOR_MAX);
    }
}
