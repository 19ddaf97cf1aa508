#ifndef MODELS_BATCHING_EXPERIMENT_H
#define MODELS_BATCHING_EXPERIMENT_H

#include "models/model.h"

/* The experiments of the batching probe (probe.h): a row runs alone, then among others, on the CPU.
 * They support what the graph proves, and say what happens where it proves nothing; they prove
 * nothing themselves. */

/* What one experiment runs. */
typedef struct experiment {
    int64_t rows;         /* of the batch; the row of the comparison is the middle one */
    int64_t length;       /* of the row, in tokens */
    int64_t batch_length; /* at least `length`: the row is padded to it */
    bool is_thorough;     /* with inputs of many scales, constants, zeros and outliers, and other
                             rows that differ from it by orders of magnitude; else one run */
    bool is_optional;     /* it only supports a proof, or a note: skipped where m->start has not
                             enough time left */
} experiment;

typedef struct experiment_result {
    double difference;  /* the largest, as a fraction of the output's range; INFINITY: a batch did
                           not run, or what is not a number differed */
    bool is_same;       /* every difference is within the bound for its inputs */
    const char *inputs; /* with which the largest difference came, in words; static */
    bool is_skipped;    /* nothing ran: is_same is true, and says nothing */
} experiment_result;

/* Ends with the first difference that is over its bound: 1e-5 of the range for a row between -1 and
 * 1, 1e-3 for others, whose sums round worse. Errors: those of compile and execute, with a row
 * between -1 and 1; other inputs a model may reject. */
status experiment_run(const model *m, const experiment *what, experiment_result *out) MUST_CHECK;

#endif
