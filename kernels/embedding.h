#ifndef KERNELS_EMBEDDING_H
#define KERNELS_EMBEDDING_H

#include "kernels/kernels.h"

#define EMBEDDING_TABLES_MAX 3

/* out[t] = sum over i of tables[i][ids[i][t]], in the order of the tables: words, positions and
 * token types of an encoder. The caller has checked that ids are within their table. */
typedef struct embedding_sum_f32 {
    size_t tokens, width, table_count;         /* 1 to EMBEDDING_TABLES_MAX */
    const float *tables[EMBEDDING_TABLES_MAX]; /* [rows, width] */
    const int64_t *ids[EMBEDDING_TABLES_MAX];  /* [tokens] */
    float *out;
    size_t out_stride;
} embedding_sum_f32;

#endif
