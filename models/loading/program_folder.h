#ifndef MODELS_LOADING_PROGRAM_FOLDER_H
#define MODELS_LOADING_PROGRAM_FOLDER_H

#include "models/manifest/manifest.h"

/* A model given as StableHLO: a folder of program.<batch>.mlir, or program.<batch>x<length>.mlir
 * where its inputs have a sequence axis, one for each bucket; each a text or a portable artifact
 * (MLIR bytecode), as jax.export and torch_xla write them. model.json's "program" declares
 * their inputs and outputs. Such a model runs on PJRT devices only. */

/* Is there a file "program*.mlir"? */
bool program_folder_has(const char *folder);

/* Fills m->graph (inputs, outputs, weights; no node), m->on_device.exported, m->platform. Each
 * error names the file or the field: STATUS_INVALID_ARGUMENT, STATUS_NOT_FOUND, STATUS_CORRUPT. */
status program_folder_open(model *m, const char *folder, const manifest *file) MUST_CHECK;

/* Takes the place of the batching probe, which needs the CPU: m->buckets are the programs', and
 * m->batching follows from them and model.json. STATUS_INVALID_ARGUMENT: model.json declares other
 * buckets. */
status program_folder_make_buckets(model *m, const manifest *file) MUST_CHECK;

#endif
