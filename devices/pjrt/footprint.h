#ifndef DEVICES_PJRT_FOOTPRINT_H
#define DEVICES_PJRT_FOOTPRINT_H

#include <stddef.h>

#include "devices/device.h"
#include "devices/pjrt/program.h"

/* The memory that a device needs, known before anything is loaded: weights, code of all programs,
 * and for each batch in flight what the program with the largest one takes (inputs, outputs and the
 * compiler's scratch). */

/* What one program takes. */
typedef struct pjrt_claim {
    int64_t code_bytes, batch_bytes; /* unknown parts count as 0 */
    device_bucket bucket;
} pjrt_claim;

typedef struct pjrt_footprint {
    int64_t memory_bytes; /* of the device; 0: not known, and everything fits */
    int slots;            /* batches in flight, at least */
    int64_t weight_bytes;
    pjrt_claim *claims;
    int count, capacity;
} pjrt_footprint;

/* Accepts a zeroed one. */
void pjrt_footprint_dispose(pjrt_footprint *f);

/* Of the largest claim by batch; NULL: there is none. */
const pjrt_claim *pjrt_footprint_largest(const pjrt_footprint *f);
int64_t pjrt_footprint_bytes(const pjrt_footprint *f);
/* The same with so many batches in flight. */
int64_t pjrt_footprint_bytes_at(const pjrt_footprint *f, int slots);
/* The largest number of batches in flight, at most `slots`, that fits; never less than f->slots. */
int pjrt_footprint_depth(const pjrt_footprint *f, int slots);

/* Adds the claim, and weights of so many bytes in all; STATUS_RESOURCE_EXHAUSTED, and nothing is
 * added: the sum, part by part, is over the memory. */
status pjrt_footprint_add(pjrt_footprint *f, const pjrt_claim *claim,
                          int64_t weight_bytes) MUST_CHECK;
/* Ends one equal to it, which is there. */
void pjrt_footprint_remove(pjrt_footprint *f, const pjrt_claim *claim);

/* Of one program, as its compiler tells it; and the bytes of its weights. */
pjrt_claim pjrt_footprint_claim(const stablehlo_program *program, const pjrt_compiled *facts,
                                device_bucket bucket);
int64_t pjrt_footprint_weights(const stablehlo_program *program);
/* On the device: the type may be another one than the constant's. */
int64_t pjrt_argument_bytes(const stablehlo_argument *a);

/* Memory of a device of that kind, as published; 0: not known. */
int64_t pjrt_footprint_memory_of(const char *device_kind);

/* Operations per second in bf16 of such a device, as published; 0: not known. */
double pjrt_footprint_peak_of(const char *device_kind);

#endif
