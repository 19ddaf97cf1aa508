#ifndef DEVICES_ACCURACY_H
#define DEVICES_ACCURACY_H

#include "base/arena.h"
#include "devices/device.h"

/* What an accuracy check has in common on all devices: the sequences that it runs on, what it
 * compares, and what a precision promises. */

/* Cosines to FP32 over sequences. */
typedef struct device_accuracy {
    double mean, lowest;
} device_accuracy;

/* `has_samples`: real ones. Generated ids are harder than text. */
device_accuracy device_accuracy_required(device_precision precision, bool has_samples);
bool device_accuracy_is_reached(device_accuracy reached, device_accuracy required);
/* Of several outputs: what the worst of them has. */
device_accuracy device_accuracy_worse(device_accuracy a, device_accuracy b);

#define DEVICE_SAMPLES_GENERATED 8
/* Sequences of up to `length` ids below `limit` for a model without samples: always the same.
 * STATUS_OUT_OF_MEMORY. */
status device_samples_generate(int64_t limit, int64_t length, arena *memory,
                               device_samples *out) MUST_CHECK;

/* Compares one output in FP32 and in another precision, sequence by sequence; begins as zero.
 * Where the reference is infinite or not a number, only the same is right, and does not count
 * further. A sequence with such a number on one side only is as wrong as can be: its cosine is
 * -1. No result of a comparison is NaN. */
typedef struct device_comparison {
    double both, one, other; /* dot products over all sequences */
    double cosines, least;   /* sum and lowest, of sequences */
    int count;
    bool is_wrong; /* in one sequence at least, a number was infinite or none on one side only */
} device_comparison;

/* One sequence: `count` numbers each. */
void device_comparison_add(device_comparison *c, const float *reference, const float *found,
                           size_t count);
/* `width`: elements of a row of the output. Narrow ones, scores of a few classes, are compared over
 * all sequences at once. */
device_accuracy device_comparison_read(const device_comparison *c, size_t width);

#endif
