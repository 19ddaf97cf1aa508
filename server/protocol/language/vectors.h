#ifndef SERVER_PROTOCOL_LANGUAGE_VECTORS_H
#define SERVER_PROTOCOL_LANGUAGE_VECTORS_H

#include "server/protocol/infer.h"
#include "server/protocol/language/language.h"

/* The outputs of a request row by row, as floats. */

typedef struct row_values {
    const tensor *t; /* the job's output, with the row's block at `from` */
    int64_t from, count;
    int64_t length, width; /* of a row with tokens: count = length * width */
} row_values;

/* Output number `index` of r->outputs, row `row` of the request. */
row_values language_row(const infer_request *r, int index, int64_t row);
float language_value(const row_values *v, int64_t i);

/* The vector of a row: the output, or what is pooled from its tokens, cut and normalised as the
 * request has it. `out` has room for `language_vector_width()` floats and the model's width.
 * STATUS_INTERNAL: it is not finite. */
int64_t language_vector_width(const infer_request *r);
status language_vector(const infer_request *r, int64_t row, float *out) MUST_CHECK;

#endif
