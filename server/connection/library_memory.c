#include "server/connection/library_memory.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>

/* Sanitizers have allocators of their own, which end the process when memory is out. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_OURS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_OURS false
#endif
#endif
#ifndef IS_OURS
#define IS_OURS true
#define REPLACES_MALLOC
#endif

/* Constant once loops run. */
static const void *library; /* where it lies */
static library_memory_hook *hook;

static const void *object_of(const void *address)
{
    Dl_info about;
    return dladdr(address, &about) != 0 ? about.dli_fbase : NULL;
}

void library_memory_install(library_memory_hook *on_shortage)
{
    library = object_of(dlsym(RTLD_DEFAULT, "h2o_http1_accept"));
    hook = on_shortage;
    assert(library != NULL);
    assert(!IS_OURS || dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
    assert(!IS_OURS || dlsym(RTLD_DEFAULT, "realloc") == (void *)realloc);
}

#ifdef REPLACES_MALLOC

/* A call from `caller` got nothing: shall it be tried again? */
static bool may_try_again(const void *caller, size_t bytes)
{
    return hook != NULL && bytes > 0 && object_of(caller) == library && hook(bytes);
}

/* The allocator's function behind ours. Threads that look at once find the same. */
#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (__builtin_expect(next == NULL, 0))                                                         \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

void *malloc(size_t bytes)
{
    NEXT(malloc);
    void *p = next(bytes);
    while (__builtin_expect(p == NULL, 0) && may_try_again(__builtin_return_address(0), bytes))
        p = next(bytes);
    return p;
}

void *calloc(size_t count, size_t bytes)
{
    NEXT(calloc);
    void *p = next(count, bytes);
    while (__builtin_expect(p == NULL, 0) &&
           may_try_again(__builtin_return_address(0), count * bytes))
        p = next(count, bytes);
    return p;
}

void *realloc(void *old, size_t bytes)
{
    NEXT(realloc);
    void *p = next(old, bytes);
    while (__builtin_expect(p == NULL, 0) && may_try_again(__builtin_return_address(0), bytes))
        p = next(old, bytes);
    return p;
}

#endif
