#ifndef MODELS_BATCHING_INDEPENDENCE_H
#define MODELS_BATCHING_INDEPENDENCE_H

#include "graph/independence/independence.h"
#include "models/model.h"

/* What the graph proves about the rows of a model, at its sizes. */

/* Examines some batches of `length` tokens, or of the model's longest rows: the first answer that
 * is not GRAPH_INDEPENDENT. Where the model does not accept several rows: GRAPH_UNDECIDED.
 * STATUS_CANCELLED, STATUS_DEADLINE_EXCEEDED, STATUS_OUT_OF_MEMORY. */
status independence_examine(const model *m, int64_t length, graph_independence *out) MUST_CHECK;

/* The same for all of m->buckets. */
status independence_confirm(const model *m, graph_independence *out) MUST_CHECK;

/* Whether the tokens of a row of `length` are independent, so that padding changes nothing. Where
 * the model does not accept a row of one token: GRAPH_UNDECIDED. Errors as above. */
status independence_examine_tokens(const model *m, int64_t length,
                                   graph_independence *out) MUST_CHECK;

#endif
