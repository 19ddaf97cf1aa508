#ifndef SERVER_INFER_REGIONS_H
#define SERVER_INFER_REGIONS_H

#include "server/budget/budget.h"
#include "server/protocol/infer.h"
#include "server/service/shared_memory.h"

/* Tensors in memory that clients share, on helper threads: a loop takes no lock for them, and does
 * not copy them. */

/* What a request's inputs are read by. */
typedef struct regions_reader {
    infer_regions base; /* first */
    shared_memory *memory;
    budget_account *held; /* counts what is copied, while the request is parsed */
} regions_reader;
void regions_reader_init(regions_reader *r, shared_memory *memory, budget_account *held);

/* Does the body name a region at all? As it would stand there; a JSON key with escapes does not. */
bool regions_are_named(const char *body, size_t bytes);

/* Does any output go to a region? */
bool regions_are_written(const infer_request *q);
/* Writes these outputs. STATUS_INVALID_ARGUMENT: one does not fit; STATUS_OUT_OF_MEMORY. */
status regions_write(const infer_request *q, shared_memory *memory) MUST_CHECK;

#endif
