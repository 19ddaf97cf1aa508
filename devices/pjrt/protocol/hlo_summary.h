#ifndef DEVICES_PJRT_PROTOCOL_HLO_SUMMARY_H
#define DEVICES_PJRT_PROTOCOL_HLO_SUMMARY_H

#include "base/status.h"
#include "base/tensor.h"

#include <stddef.h>
#include <stdint.h>

/* Facts about an optimized program, read from the compiler's HloModuleProto
 * (xla/service/hlo.proto). */
typedef struct hlo_summary {
    int products;      /* dot and convolution instructions, also inside fusions */
    int products_s8;   /* of these, with two 8-bit integer operands */
    int products_bf16; /* ... with bf16 operands */
    int products_f32;
    int64_t estimated_cycles; /* sum of the compiler's estimates (backend_config), not measured;
                                 0: there are none */
    int unestimated;          /* instructions without a usable estimate: not in the sum */
    int instructions;
} hlo_summary;

/* `data` is an HloModuleProto, or one wrapped with its config (HloModuleProtoWithConfig).
 * STATUS_CORRUPT when it is neither. */
status hlo_summarise(const void *data, size_t bytes, hlo_summary *out) MUST_CHECK;

/* The type and shape of one argument or result of a program. */
typedef struct hlo_shape {
    bool has_dtype; /* false: of a type that tensors do not have */
    dtype dtype;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
} hlo_shape;

typedef struct hlo_signature {
    hlo_shape *shapes; /* parameters, then results; malloc'd */
    int parameter_count, result_count;
} hlo_signature;

/* Parameters and results of the entry computation (of a tuple: its members). STATUS_CORRUPT. */
status hlo_read_signature(const void *data, size_t bytes, hlo_signature *out) MUST_CHECK;
void hlo_signature_dispose(hlo_signature *s);

#endif
