#ifndef DEVICES_PJRT_CPU_RUN_H
#define DEVICES_PJRT_CPU_RUN_H

#include "devices/accuracy.h"
#include "devices/cpu/plan/plan.h"
#include "devices/device.h"
#include "graph/encoder/packed.h"

/* One run of an encoder in FP32 on the CPU, in a form that shows ranges or imitates int8: on the
 * model's samples or on generated ids. One thread. */

typedef struct pjrt_cpu_run {
    arena memory; /* of all but the outputs */
    const device_model *model;
    device_samples generated;
    const device_samples *samples;
    int64_t rows, length;
    graph *graph;
    cpu_plan *plan;
    void *workspace;
    tensor *inputs, *outputs;
} pjrt_cpu_run;

/* What it runs on; NULL: generated ids. */
const device_samples *pjrt_samples_of(const device_model *model);

/* Runs the encoder as `trial` has it. The outputs are in `memory`; after an error, too, the caller
 * disposes of `r`. Errors: those of building and running the graph. */
status pjrt_cpu_run_start(pjrt_cpu_run *r, const device_model *model, const encoder_trial *trial,
                          arena *memory) MUST_CHECK;
void pjrt_cpu_run_dispose(pjrt_cpu_run *r);

/* Of an output [rows, ...]: padding tokens, where it has tokens, do not count. */
device_accuracy pjrt_cpu_run_compare(const pjrt_cpu_run *r, const tensor *reference,
                                     const tensor *found);

#endif
