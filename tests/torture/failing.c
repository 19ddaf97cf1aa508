#include "tests/torture/failing.h"

#include <stdatomic.h>

static _Atomic int64_t calls, fails_from = INT64_MAX, fails_to = INT64_MAX;

void failing_begin(int64_t from, int64_t to)
{
    atomic_store(&calls, 0);
    fails_to = to;
    fails_from = from;
}

int64_t failing_end(void)
{
    fails_from = INT64_MAX;
    return atomic_load(&calls);
}

bool failing_next(void)
{
    int64_t n = atomic_fetch_add(&calls, 1);
    return n >= fails_from && n < fails_to;
}

void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
int __real_posix_memalign(void **p, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);

void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
int __wrap_posix_memalign(void **p, size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t bytes)
{
    return failing_next() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return failing_next() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
    return failing_next() ? NULL : __real_realloc(p, bytes);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t bytes)
{
    return failing_next() ? 12 /* ENOMEM */ : __real_posix_memalign(p, alignment, bytes);
}

char *__wrap_strdup(const char *text)
{
    return failing_next() ? NULL : __real_strdup(text);
}
