#ifndef DEVICES_PJRT_PROTOCOL_SIGNATURE_H
#define DEVICES_PJRT_PROTOCOL_SIGNATURE_H

#include "devices/device.h"
#include "devices/pjrt/protocol/protocol.h"
#include "graph/stablehlo/emit.h"

/* Compares the types and shapes that model.json declares for an exported program
 * (devices/exported.h) with those of the compiled program: types of equal size that are mixed up
 * would give wrong results silently. */

typedef struct pjrt_declaration {
    pjrt_declared *items; /* arguments, then outputs; malloc'd */
    int argument_count, output_count;
} pjrt_declaration;

/* For `program`, which pjrt_program_emit() made of an exported program. */
void pjrt_declaration_make(const device_model *model, device_bucket bucket,
                           const stablehlo_program *program, pjrt_declaration *out);
void pjrt_declaration_dispose(pjrt_declaration *d);

/* `hlo`: the optimized program, an HloModuleProto. STATUS_INVALID_ARGUMENT names the first
 * difference. */
status pjrt_declaration_check(const pjrt_declaration *d, const void *hlo,
                              size_t hlo_bytes) MUST_CHECK;

#endif
