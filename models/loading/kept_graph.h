#ifndef MODELS_LOADING_KEPT_GRAPH_H
#define MODELS_LOADING_KEPT_GRAPH_H

#include "models/loading/load.h"
#include "models/manifest/manifest.h"

/* A model's graph in the cache folder (graph/stored): a later start neither reads nor parses the
 * model, folds nothing and searches no shapes. It is found by the hash of the model's files, the
 * sizes that model.json fixes, and the limits of the load. Kept for ONNX files without external
 * data, which the hash does not always cover. */

typedef struct kept_graph kept_graph;

/* Sets m->kept by the fingerprint. Where there is no cache folder or no fingerprint it stays NULL,
 * and the functions below do nothing. */
void kept_graph_name(model *m, const load_request *r, const manifest *file);
/* Makes m->graph, and what model_files_import() finds besides; false: the model must be imported.
 * What is damaged is logged. */
bool kept_graph_load(model *m);
/* Once, for a model that was imported; what fails is logged. The loading thread. */
void kept_graph_store(const model *m);

#endif
