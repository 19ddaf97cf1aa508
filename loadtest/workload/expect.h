#ifndef LOADTEST_WORKLOAD_EXPECT_H
#define LOADTEST_WORKLOAD_EXPECT_H

#include "base/status.h"
#include "loadtest/wire/response.h"

/* Right answers, line by line: line i belongs to line i of --data (or --ids). A line is JSON; an
 * answer is right when everything in the line is in the answer: objects by key, lists element by
 * element, numbers within `tolerance` (absolute, or relative to the expected one). Binary output
 * tensors are compared as if they had come as "data". Read-only after loading, except for a memory
 * of bytes that were found right. */
typedef struct expect expect;

status expect_load(expect **out, const char *path, double tolerance) MUST_CHECK;
void expect_destroy(expect *e);
size_t expect_count(const expect *e);

/* True if right, or if there is no line `index`; else `reason` tells the first difference. Any
 * thread. */
bool expect_check(expect *e, size_t index, const response *a, char *reason, size_t reason_bytes);

#endif
