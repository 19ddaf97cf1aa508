#include "base/large_memory.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

void *large_memory_allocate(size_t bytes)
{
    size_t whole = bytes & ~(LARGE_MEMORY_PAGE - 1);
    if (bytes > SIZE_MAX - 64)
        return NULL;
    void *p = NULL;
    if (posix_memalign(&p, whole ? LARGE_MEMORY_PAGE : 64, (bytes + 63) & ~(size_t)63) != 0)
        return NULL;
    if (whole > 0)
        madvise(p, whole, MADV_HUGEPAGE); /* refused: small pages */
    return p;
}

void *large_memory_grow(void *p, size_t before, size_t bytes)
{
    assert(bytes > before && (p == NULL) == (before == 0));
    if (bytes < LARGE_MEMORY_BYTES)
        return realloc(p, bytes);
    if (before >= LARGE_MEMORY_BYTES) {
        void *moved = mremap(p, before, bytes, MREMAP_MAYMOVE);
        return moved != MAP_FAILED ? moved : NULL;
    }
    void *moved = map(bytes);
    if (moved != NULL && before > 0) {
        memcpy(moved, p, before);
        free(p);
    }
    return moved;
}

void large_memory_free(void *p, size_t bytes)
{
    if (p == NULL || bytes < LARGE_MEMORY_BYTES)
        free(p);
    else
        munmap(p, bytes);
}
