#ifndef SERVER_INFER_ADMIT_H
#define SERVER_INFER_ADMIT_H

#include "server/request/request.h"

/* What can be refused without reading the body, because any body would be: a refusal must cost less
 * than the request. Finds the request's tenant. STATUS_INVALID_ARGUMENT: it names two tenants;
 * STATUS_RESOURCE_EXHAUSTED as below. */
status admit_before_parsing(request *r, const model *m, uint64_t *retry_after_ns) MUST_CHECK;

/* Stage admit: the ceilings of the connection, the tenant's quota, the model's queue, and whether
 * the deadline can be met. What is admitted must be submitted. STATUS_RESOURCE_EXHAUSTED: too much
 * waits; `*retry_after_ns` is when it is worth to try again, 0 if that is not known. Other failures
 * are those of scheduler_admit(). */
status admit_request(request *r, uint64_t *retry_after_ns) MUST_CHECK;

#endif
