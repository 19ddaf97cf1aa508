#ifndef LOADTEST_WORKLOAD_EXPECT_H
#define LOADTEST_WORKLOAD_EXPECT_H

#include "base/status.h"
#include "loadtest/wire/response.h"

/* Expected responses: line i is JSON for line i of --data (or --ids). A response is correct if it
 * contains everything in the line: objects by key, lists element by element, numbers within
 * `tolerance` (absolute, or relative to the expected one). Binary output tensors are compared like
 * "data". Read-only after loading, except for a cache of bodies that were correct. */
typedef struct expect expect;

status expect_load(expect **out, const char *path, double tolerance) MUST_CHECK;
void expect_destroy(expect *e);
size_t expect_count(const expect *e);

/* True if correct, or if there is no line `index`; else `reason` has the first difference. Any
 * thread. */
bool expect_check(expect *e, size_t index, const response *a, char *reason, size_t reason_bytes);

#endif
