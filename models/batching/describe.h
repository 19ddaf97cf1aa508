#ifndef MODELS_BATCHING_DESCRIBE_H
#define MODELS_BATCHING_DESCRIBE_H

#include "models/manifest/manifest.h"
#include "models/model.h"

/* Fills m->inputs and m->outputs from m->graph, whose outputs have symbolic shapes by now, and from
 * what the manifest says of inputs. Names are borrowed from the graph.
 * STATUS_UNSUPPORTED: too many tensors, an input dim that is neither batch nor sequence;
 * STATUS_INVALID_ARGUMENT: the manifest names an input that there is not. */
status describe_tensors(model *m, const manifest *file, bool is_hugging_face) MUST_CHECK;

/* Does any input have a batch (sequence) axis? */
bool describe_has_batch(const model *m);
bool describe_has_sequence(const model *m);

/* Rows of the smallest constant table, of at least that rank, whose rows graph value `value`
 * chooses, as it is or cast; INT64_MAX where there is none. */
int64_t describe_index_limit(const graph *g, graph_value_index value, int rank_least);

#endif
