#ifndef DEVICES_PJRT_PROGRAM_H
#define DEVICES_PJRT_PROGRAM_H

#include "devices/compile_cache.h"
#include "devices/device.h"
#include "graph/stablehlo/emit.h"

/* What the serving device and `penstock compile` share, so that the entries one writes are the ones
 * the other looks for. */

/* The model at that bucket as StableHLO. The caller disposes of the program, then destroys the
 * graph (the program borrows its constants), which is NULL for a model that gives its programs. */
status pjrt_program_emit(const device_model *model, device_bucket bucket, graph **specialised,
                         stablehlo_program *out) MUST_CHECK;

compile_cache_key pjrt_program_key(const device_model *model, device_bucket bucket,
                                   const stablehlo_program *program, const char *device_kind,
                                   const char *compiler);

/* What the key's device kind is for a device: programs for a CPU use what that CPU has, so its
 * model is part of it. */
void pjrt_program_cache_kind(const char *platform, const char *device_kind, char out[160]);

#define PJRT_SUMMARY_BYTES 2048
/* Lines "key value" for people and tools that look into an entry; returns the bytes written. */
int pjrt_program_summary(char out[PJRT_SUMMARY_BYTES], const device_model *model,
                         device_bucket bucket, const stablehlo_program *program,
                         const char *device_kind, const char *compiler, double compile_seconds);

#endif
