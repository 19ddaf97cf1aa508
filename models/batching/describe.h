#ifndef MODELS_BATCHING_DESCRIBE_H
#define MODELS_BATCHING_DESCRIBE_H

#include "models/manifest/manifest.h"
#include "models/model.h"

/* Fills m->inputs and m->outputs from m->graph, whose shapes were inferred, and from the manifest's
 * "inputs". Names are borrowed from the graph.
 * STATUS_UNSUPPORTED: too many tensors; of a model whose requests do not run whole, an input dim
 * that is neither batch nor sequence;
 * STATUS_INVALID_ARGUMENT: the manifest names an input that the model does not have. */
status describe_tensors(model *m, const manifest *file, bool is_hugging_face) MUST_CHECK;

/* Does any input have a batch (sequence) axis? */
bool describe_has_batch(const model *m);
bool describe_has_sequence(const model *m);

/* Graph value `value`, as it is or cast, indexes constant tables of at least that rank: the rows of
 * the smallest; INT64_MAX: it indexes none. */
int64_t describe_index_limit(const graph *g, graph_value_index value, int rank_least);

#endif
