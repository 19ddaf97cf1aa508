#ifndef TESTS_TORTURE_FAILING_H
#define TESTS_TORTURE_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocations that fail. The linker puts failing.c in front of the allocator, for our objects and
 * none of the libraries'. Any thread may allocate; one begins and ends. */

/* Counts allocations from 0; those with from <= n < to fail. */
void failing_begin(int64_t from, int64_t to);
/* None fails from here on. Returns how many there were. */
int64_t failing_end(void);
/* Counts one, and whether it fails. */
bool failing_next(void);

/* malloc() as our objects see it, and as it is, for libraries that take one. */
void *__wrap_malloc(size_t bytes);
void *__real_malloc(size_t bytes);

#endif
