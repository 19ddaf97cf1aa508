#ifndef MODELS_BATCHING_COSTLY_BUCKETS_H
#define MODELS_BATCHING_COSTLY_BUCKETS_H

#include "models/manifest/manifest.h"

/* Drops the buckets whose execution on the CPU would cost more than m->budget allows, by an
 * estimate from shapes; batch_max and the batch axis follow. `*dropped`: the smallest batch that
 * costs too much, or 0; the thread's message then says why. Batches that model.json asks for are
 * not dropped: STATUS_TOO_LARGE, with the node's name. Nor are batches of one row. Errors: those of
 * graph_specialise() and graph_cost_check(). */
status costly_buckets_drop(model *m, const manifest *file, int64_t *dropped) MUST_CHECK;

/* Drops batches by which a core of the CPU gains nothing: one row already keeps it busy for a
 * while, and they take COSTLY_BUCKETS_OPERATIONS or COSTLY_BUCKETS_BYTES of activations. Batches of
 * one row stay. Errors as above, but for STATUS_TOO_LARGE. */
#define COSTLY_BUCKETS_OPERATIONS INT64_C(20000000000)
#define COSTLY_BUCKETS_BYTES ((int64_t)128 << 20)
status costly_buckets_cap(model *m) MUST_CHECK;

#endif
