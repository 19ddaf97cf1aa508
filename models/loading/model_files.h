#ifndef MODELS_LOADING_MODEL_FILES_H
#define MODELS_LOADING_MODEL_FILES_H

#include "models/manifest/manifest.h"

/* Which of the formats a model folder holds: an .onnx file (or the path of one), config.json with
 * weights in safetensors (Hugging Face), or StableHLO programs (program_folder.h). */

/* Does the folder hold a model file itself? */
bool model_files_exist(const char *folder);
/* Where it does not: what it may have been meant to be, "; it has ...", or "". Static. */
const char *model_files_hint(const char *folder);

/* Imports what the folder holds: m->platform, m->graph with its shapes inferred; with programs also
 * m->on_device.given. The model owns the graph. `copies_files`: nothing of the files stays mapped,
 * so that they may be written into later. STATUS_NOT_FOUND: there is no model; else the importer's
 * errors. */
status model_files_import(model *m, const char *folder, const manifest *file, bool copies_files,
                          bool *is_hugging_face) MUST_CHECK;

#endif
