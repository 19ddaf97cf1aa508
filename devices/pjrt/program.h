#ifndef DEVICES_PJRT_PROGRAM_H
#define DEVICES_PJRT_PROGRAM_H

#include "devices/compile_cache.h"
#include "devices/device.h"
#include "graph/stablehlo/emit.h"

/* Shared by the serving device and `penstock compile`, so that both make the same cache keys. */

/* The model at that bucket as StableHLO. The caller disposes of the program, then destroys the
 * graph (the program borrows its constants), which is NULL for a model of exported programs. */
status pjrt_program_emit(const device_model *model, device_bucket bucket, graph **specialised,
                         stablehlo_program *out) MUST_CHECK;

compile_cache_key pjrt_program_key(const device_model *model, device_bucket bucket,
                                   const stablehlo_program *program, const char *device_kind,
                                   const char *compiler);

/* The device kind for cache keys. For a CPU it includes the CPU's model, since programs use its
 * instruction set. */
void pjrt_program_cache_kind(const char *platform, const char *device_kind, char out[160]);

#define PJRT_SUMMARY_BYTES 2048
/* Lines "key value" that describe a cache entry; returns the bytes written. */
int pjrt_program_summary(char out[PJRT_SUMMARY_BYTES], const device_model *model,
                         device_bucket bucket, const stablehlo_program *program,
                         const char *device_kind, const char *compiler, double compile_seconds);

#endif
