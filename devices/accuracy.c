#include "devices/accuracy.h"

#include <math.h>

#include "base/xorshift.h"

#define FEW_ELEMENTS 16 /* outputs narrower than this are compared over all sequences at once */

device_accuracy device_accuracy_required(device_precision precision, bool has_samples)
{
    if (precision != DEVICE_INT8)
        return (device_accuracy){0.9999, 0.9998};
    /* On generated ids the error of MiniLM is twice that on English sentences, whatever the plan.
     */
    return has_samples ? (device_accuracy){0.997, 0.99} : (device_accuracy){0.994, 0.985};
}

bool device_accuracy_is_reached(device_accuracy reached, device_accuracy required)
{
    return reached.mean >= required.mean && reached.lowest >= required.lowest;
}

device_accuracy device_accuracy_worse(device_accuracy a, device_accuracy b)
{
    return (device_accuracy){fmin(a.mean, b.mean), fmin(a.lowest, b.lowest)};
}

/* An id as text would have it: vocabularies are ordered by frequency, which falls as one over the
 * rank (Zipf), so the logarithms of the ranks are uniform. The first ids are special tokens, bytes
 * and reserved ones, which text hardly has. */
static int64_t next_id(uint64_t *state, int64_t limit)
{
    double least = (double)limit / 16,
           u = (double)(xorshift_next(state) >> 11) / 9007199254740992.0;
    int64_t id = (int64_t)(least * pow((double)limit / least, u));
    return id < limit ? id : limit - 1;
}

status device_samples_generate(int64_t limit, int64_t length, arena *memory, device_samples *out)
{
    uint64_t state = 7;
    *out = (device_samples){.count = DEVICE_SAMPLES_GENERATED};
    for (int i = 0; i < DEVICE_SAMPLES_GENERATED; i++) {
        int64_t own = length * (i + 1) / DEVICE_SAMPLES_GENERATED;
        own = own > 0 ? own : 1;
        int64_t *ids = arena_allocate(memory, (size_t)own * sizeof *ids);
        if (ids == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the accuracy check");
        for (int64_t k = 0; k < own; k++)
            ids[k] = next_id(&state, limit);
        out->samples[i] = (device_sample){.ids = ids, .length = own};
    }
    return STATUS_OK;
}

/* Of two vectors. A vector of zeros equals only itself. */
static double cosine(double both, double one, double other)
{
    if (one == 0 || other == 0)
        return one == other ? 1 : 0;
    return both / sqrt(one * other);
}

/* Of numbers that are not both finite. */
static bool is_same(float reference, float found)
{
    return isnan(reference) ? isnan(found) : reference == found;
}

void device_comparison_add(device_comparison *c, const float *reference, const float *found,
                           size_t count)
{
    double both = 0, one = 0, other = 0;
    bool is_wrong = false;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(reference[i]) || !isfinite(found[i])) {
            is_wrong |= !is_same(reference[i], found[i]);
            continue;
        }
        both += (double)reference[i] * found[i];
        one += (double)reference[i] * reference[i];
        other += (double)found[i] * found[i];
    }
    double here = is_wrong ? -1 : cosine(both, one, other);
    c->least = c->count == 0 ? here : fmin(c->least, here);
    c->cosines += here;
    c->count++;
    c->both += both;
    c->one += one;
    c->other += other;
    c->is_wrong |= is_wrong;
}

device_accuracy device_comparison_read(const device_comparison *c, size_t width)
{
    if (width >= FEW_ELEMENTS)
        return (device_accuracy){c->cosines / c->count, fmin(c->least, 1)};
    double all = c->is_wrong ? -1 : cosine(c->both, c->one, c->other);
    return (device_accuracy){all, all};
}
