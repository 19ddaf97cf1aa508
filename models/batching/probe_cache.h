#ifndef MODELS_BATCHING_PROBE_CACHE_H
#define MODELS_BATCHING_PROBE_CACHE_H

#include "models/manifest/manifest.h"

/* The results of the batching probe (probe.h) on disk, so that a model is probed once and not at
 * each start: <cache>/<key>.batching. The key is made of the model's contents, what model.json says
 * about batching, the limits given to the probe, the precision, the device and this program's
 * version. A file that is damaged or of another key is ignored. */

/* Fills m->batching and m->batching_note as probe_model() would. False: the model must be probed.
 */
bool probe_cache_load(model *m, const manifest *file, const char *cache_folder) MUST_CHECK;

/* `before`: m->batching as it was before probe_model(). A failure is only logged. */
void probe_cache_store(const model *m, const manifest *file, const model_batching *before,
                       const char *cache_folder);

#endif
