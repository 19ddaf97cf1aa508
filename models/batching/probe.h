#ifndef MODELS_BATCHING_PROBE_H
#define MODELS_BATCHING_PROBE_H

#include "models/manifest/manifest.h"

/* Decides at load how a model may be batched: no file format says so, and a wrong guess changes
 * results silently. Sets can_batch, can_pad and what they rest on, batch_max, sequence_max of
 * m->batching, and m->batching_note.
 *
 * - The longest row: the largest length up to m->batching.sequence_max that compiles and runs
 *   (position tables end somewhere). An encoder that the CPU recognised knows its own.
 * - can_batch: declared by the manifest; else the graph proves it (graph/independence), and an
 *   experiment agrees, unless it takes more than m->start has left. What is neither proved nor
 *   disproved is not batched; experiments tell how it looks (experiment.h), within m->start too.
 * - can_pad: declared; else by experiments: a row that is padded, and masked, in a batch of longer
 *   rows gives the outputs that it gives alone.
 *
 * Errors: those of compile and execute, when the model does not run at all. */
status probe_model(model *m, const manifest *file) MUST_CHECK;

/* After buckets_make(): the proof for the sizes of all buckets. `*is_changed`: it does not hold, so
 * that the model cannot be batched: its buckets must be made again. Errors: the load has ended. */
status probe_confirm(model *m, bool *is_changed) MUST_CHECK;

/* Inputs that the model accepts, for probe and warm-up: ids below the size of the table they index,
 * masks of ones, small numbers elsewhere. Memory from `a`. One seed always gives the same inputs.
 */
status probe_make_inputs(const model *m, device_bucket shape, uint64_t seed, arena *a,
                         tensor *inputs) MUST_CHECK;
/* The same for the shapes of `shapes`. */
status probe_fill_inputs(const model *m, const tensor *shapes, arena *a, tensor *inputs) MUST_CHECK;
/* Outputs for that shape, zeroed. STATUS_UNSUPPORTED: a shape does not follow from the inputs'. */
status probe_make_outputs(const model *m, device_bucket shape, arena *a,
                          tensor *outputs) MUST_CHECK;
/* Executes once, on any slot of `d`; blocks. Its operations count in m->start. */
status probe_execute(const model *m, device *d, device_program *program, const tensor *inputs,
                     tensor *outputs) MUST_CHECK;

#endif
