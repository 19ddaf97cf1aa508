#ifndef SERVER_SERVICE_SHARED_TENSORS_H
#define SERVER_SERVICE_SHARED_TENSORS_H

#include "server/budget/budget.h"
#include "server/protocol/infer.h"
#include "server/service/shared_memory.h"

/* Tensors in memory that clients share, on helper threads: a loop takes no lock for them, and does
 * not copy them. */

/* What a request's inputs are read by. */
typedef struct shared_tensors {
    infer_regions base; /* first */
    shared_memory *memory;
    budget_account *held; /* counts what is copied, while the request is parsed */
} shared_tensors;
void shared_tensors_init(shared_tensors *r, shared_memory *memory, budget_account *held);

/* Does the body name a region at all? As it would stand there; a JSON key with escapes does not. */
bool shared_tensors_are_named(const char *body, size_t bytes);

/* Does any output go to a region? */
bool shared_tensors_are_written(const infer_request *q);
/* Writes these outputs. STATUS_INVALID_ARGUMENT: one does not fit; STATUS_OUT_OF_MEMORY. */
status shared_tensors_write(const infer_request *q, shared_memory *memory) MUST_CHECK;

#endif
