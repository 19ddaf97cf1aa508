#ifndef MODELS_BATCHING_PROBE_CACHE_H
#define MODELS_BATCHING_PROBE_CACHE_H

#include "models/manifest/manifest.h"

/* What the experiments of probe.h found, on disk, so that they are done once per model and not at
 * each start: <cache>/<key>.batching, where the key is made of the model's contents, its model.json
 * as far as it bears on the experiments, the limits they were given, the precision, the device and
 * this program's version. Whatever does not fit is as if it were not there. */

/* Fills m->batching and m->batching_note as probe_model() would. False: it is to be asked. */
bool probe_cache_load(model *m, const manifest *file, const char *cache_folder) MUST_CHECK;

/* `before`: m->batching as probe_model() was given it. A failure is only logged. */
void probe_cache_store(const model *m, const manifest *file, const model_batching *before,
                       const char *cache_folder);

#endif
