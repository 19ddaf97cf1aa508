#ifndef DEVICES_PJRT_PROGRAM_H
#define DEVICES_PJRT_PROGRAM_H

#include "devices/compile_cache.h"
#include "devices/device.h"
#include "devices/pjrt/choice.h"
#include "devices/pjrt/protocol/hlo_summary.h"
#include "graph/stablehlo/emit.h"

/* Shared by the serving device and `penstock compile`, so that both make the same cache keys. */

/* The graph of that bucket; NULL for a model of exported programs. The caller destroys it. */
status pjrt_program_specialise(const device_model *model, device_bucket bucket,
                               const pjrt_candidate *how, graph **out) MUST_CHECK;
/* It as StableHLO. The caller disposes of the program, which borrows constants of the graph. */
status pjrt_program_emit(const device_model *model, device_bucket bucket, const graph *specialised,
                         const pjrt_candidate *how, stablehlo_program *out) MUST_CHECK;

/* `candidate` is the name of how the program computes (devices/pjrt/choice.h). */
compile_cache_key pjrt_program_key(const device_model *model, device_bucket bucket,
                                   const stablehlo_program *program, const char *candidate,
                                   const char *device_kind, const char *compiler);

/* The device kind for cache keys. For a CPU it includes the CPU's model, since programs use its
 * instruction set. */
void pjrt_program_cache_kind(const char *platform, const char *device_kind, char out[160]);

/* What the compiler tells of a program. */
typedef struct pjrt_compiled {
    hlo_summary hlo;
    double seconds;                                                /* that compiling took */
    int64_t code_bytes, output_bytes, temporary_bytes, peak_bytes; /* -1: not known */
    int64_t scheduled_cycles; /* schedule/dump.h; 0: not counted */
} pjrt_compiled;

#define PJRT_SUMMARY_BYTES 2560
/* Lines "key value" that describe a cache entry; returns the bytes written. */
int pjrt_program_summary(char out[PJRT_SUMMARY_BYTES], const device_model *model,
                         device_bucket bucket, const stablehlo_program *program,
                         const char *candidate, const char *device_kind, const char *compiler,
                         const pjrt_compiled *made);
/* The figures in such lines. */
void pjrt_program_figures(const char *summary, pjrt_compiled *out);

/* What the dense layers are computed in, as the compiler left them: "int8", "bf16", "fp32",
 * "mixed"; "none" when it shows no matrix multiplication; "as exported". */
const char *pjrt_program_arithmetic(const device_model *model, const stablehlo_program *program,
                                    const hlo_summary *hlo);
/* Whose scales what int8 layers read has: "static" (calibrated), "dynamic" (of each row), "none".
 */
const char *pjrt_program_scales(const stablehlo_program *program);

#endif
