#ifndef BASE_LARGE_MEMORY_H
#define BASE_LARGE_MEMORY_H

#include <stddef.h>

/* Memory that grows to many megabytes without being copied: from LARGE_MEMORY_BYTES on it has pages
 * of its own, which the kernel moves (mremap). Smaller is malloc's. Whoever holds it knows its
 * size. Any thread. */
#define LARGE_MEMORY_BYTES ((size_t)1 << 20)

/* Memory of one size, 64-byte aligned and uninitialised, for free(). From LARGE_MEMORY_PAGE on its
 * whole pages of that size are huge ones, where the system has them (Linux,
 * Documentation/admin-guide/mm/transhuge.rst): writing to it takes 1 fault instead of 512. NULL:
 * there is no memory. */
#define LARGE_MEMORY_PAGE ((size_t)2 << 20)
void *large_memory_allocate(size_t bytes);

/* Changes its size from `before` (0: there is none yet, `p` is NULL) to `bytes`, which is more.
 * Returns where it lies now; NULL: there is no memory, and `p` is as it was. */
void *large_memory_grow(void *p, size_t before, size_t bytes);
/* NULL: nothing happens. */
void large_memory_free(void *p, size_t bytes);

#endif
