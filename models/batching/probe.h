#ifndef MODELS_BATCHING_PROBE_H
#define MODELS_BATCHING_PROBE_H

#include "models/manifest/manifest.h"

/* Experiments on the CPU at load: they decide how a model may be batched, because no file format
 * says it and a wrong guess changes answers silently. Sets can_batch, can_pad, batch_max,
 * sequence_max of m->batching and m->batching_note; what the manifest declares is believed.
 *
 * - The longest row: the largest length up to m->batching.sequence_max that compiles and runs
 *   (position tables end somewhere).
 * - can_batch: a row computed among strangers gives the outputs it gives alone.
 * - can_pad: a row padded (masked) among longer strangers does, too.
 * "Gives" means within 1e-5 of the output's range.
 *
 * Errors: those of compile and execute, when the model does not run at all. */
status probe_model(model *m, const manifest *file) MUST_CHECK;

/* Inputs a model can digest, for experiments and warm-up: ids below the size of the table they
 * index, masks of ones, small numbers elsewhere. Memory from `a`. The same seed gives the same. */
status probe_make_inputs(const model *m, device_bucket shape, uint64_t seed, arena *a,
                         tensor *inputs) MUST_CHECK;
/* Outputs of that shape, zeroed. STATUS_UNSUPPORTED when one is not known beforehand. */
status probe_make_outputs(const model *m, device_bucket shape, arena *a,
                          tensor *outputs) MUST_CHECK;
/* One execution on a slot of `d`. */
status probe_execute(device *d, device_program *program, const tensor *inputs,
                     tensor *outputs) MUST_CHECK;

#endif
