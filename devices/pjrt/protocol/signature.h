#ifndef DEVICES_PJRT_PROTOCOL_SIGNATURE_H
#define DEVICES_PJRT_PROTOCOL_SIGNATURE_H

#include "devices/device.h"
#include "devices/pjrt/protocol/protocol.h"
#include "graph/stablehlo/emit.h"

/* Types and shapes of a given program (devices/exported.h): what model.json declares, beside
 * what the compiled program has. A program that takes other types of the same size would answer
 * nonsense. */

typedef struct pjrt_declaration {
    pjrt_declared *items; /* arguments, then outputs; malloc'd */
    int argument_count, output_count;
} pjrt_declaration;

/* Of `program`, which pjrt_program_emit made of a given program. */
void pjrt_declaration_make(const device_model *model, device_bucket bucket,
                           const stablehlo_program *program, pjrt_declaration *out);
void pjrt_declaration_dispose(pjrt_declaration *d);

/* Compares with the optimized program (an HloModuleProto, which says what the entry takes and
 * gives). STATUS_INVALID_ARGUMENT names the first difference. */
status pjrt_declaration_check(const pjrt_declaration *d, const void *hlo,
                              size_t hlo_bytes) MUST_CHECK;

#endif
