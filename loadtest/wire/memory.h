#ifndef LOADTEST_WIRE_MEMORY_H
#define LOADTEST_WIRE_MEMORY_H

#include <stddef.h>

/* Memory from the heap, freed with free(). When there is none left, the program says so and exits
 * with code 3: a load test that cannot hold its numbers has no result. */

/* Zeroed. */
void *memory_allocate(size_t count, size_t item_bytes);
void *memory_resize(void *old, size_t count, size_t item_bytes);
/* `bytes` bytes of `text` with a zero byte after them. */
char *memory_copy_string(const char *text, size_t bytes);

#endif
