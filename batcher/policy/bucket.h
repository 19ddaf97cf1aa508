#ifndef BATCHER_POLICY_BUCKET_H
#define BATCHER_POLICY_BUCKET_H

#include "models/model.h"

/* A packed bucket that is ready: its rows hold several sequences each. */
typedef struct bucket_packed {
    int index; /* of model->buckets */
    int64_t rows, length, sequences;
} bucket_packed;
#define BUCKET_PACKED_MAX 64 /* more are not used */

/* Which buckets of a model one device can run, as a table over the two axes: entry
 * [sequence * MODEL_AXIS_MAX + batch] is an index of model->buckets, or -1. */
typedef struct bucket_table {
    int sequence_count, batch_count;
    int64_t sequences[MODEL_AXIS_MAX], batches[MODEL_AXIS_MAX]; /* ascending */
    _Atomic int16_t index[MODEL_AXIS_MAX * MODEL_AXIS_MAX];
    _Atomic bool has_any;
    bool is_ragged;
    bucket_packed packed[BUCKET_PACKED_MAX]; /* ascending by length, then rows */
    int packed_count;
} bucket_table;

/* Reads what is ready on that device. The table stays true: buckets are only added. */
void bucket_table_init(bucket_table *t, const model *m, int device_index);
/* Adds the buckets that were made after ready. One thread at a time; others may read meanwhile,
 * all but the packed ones. */
void bucket_table_add_made(bucket_table *t, const model *m, int device_index);

/* Position on the sequence axis of the smallest size that holds `length`, or -1: too long. A model
 * without a sequence axis has the one size 0, which holds length 0. */
int bucket_find_sequence(const bucket_table *t, int64_t length);

/* The smallest ready bucket that holds `rows` rows at `sequence` (an axis position) or a larger
 * sequence; when none holds so many rows, the one with the most rows. Returns an index of
 * model->buckets, or -1 when no ready bucket has that length. */
int bucket_choose(const bucket_table *t, int sequence, int64_t rows);
/* The same, as its place in the table: index[cell]. */
int bucket_choose_cell(const bucket_table *t, int sequence, int64_t rows);

/* Rows of the largest batch ready at that sequence or above; 0: none. */
int64_t bucket_rows_max(const bucket_table *t, int sequence);

#endif
