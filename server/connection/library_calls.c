#include "server/connection/library_calls.h"

#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Sanitizers have allocators of their own, which end the process when memory is out. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS_MALLOC
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEPS_MALLOC
#endif
#endif

/* Constant once loops run. */
static library_calls_hooks hooks;
static uintptr_t code_begin, code_end; /* the library's */

/* The segment of code that holds an address. */
static int find_code(struct dl_phdr_info *object, size_t bytes, void *context)
{
    uintptr_t address = *(uintptr_t *)context;
    (void)bytes;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && address >= begin &&
            address - begin < segment->p_memsz) {
            code_begin = begin;
            code_end = begin + segment->p_memsz;
            return 1;
        }
    }
    return 0;
}

void library_calls_install(const library_calls_hooks *to_call)
{
    uintptr_t inside = (uintptr_t)dlsym(RTLD_DEFAULT, "h2o_http1_accept");
    hooks = *to_call;
    dl_iterate_phdr(find_code, &inside);
    assert(code_begin < code_end);
    assert(dlsym(RTLD_DEFAULT, "read") == (void *)read);
    assert(dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
    assert(dlsym(RTLD_DEFAULT, "realloc") == (void *)realloc);
}

/* Is it the library that called, and will return to `caller`? */
static inline bool is_library(const void *caller)
{
    return (uintptr_t)caller - code_begin < code_end - code_begin;
}

/* The function behind ours. Threads that look at once find the same. */
#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (__builtin_expect(next == NULL, 0))                                                         \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *to, size_t bytes)
{
    NEXT(read);
    if (bytes > LIBRARY_CALLS_READ_BYTES && is_library(__builtin_return_address(0)))
        bytes = hooks.read_bytes_max(bytes);
    return next(fd, to, bytes);
}

#ifndef KEEPS_MALLOC

/* jemalloc's, in the program that has it inside (cli/CMakeLists.txt); elsewhere those of the next
 * library are behind ours. */
void *jemalloc_malloc(size_t bytes) __attribute__((weak));
void *jemalloc_calloc(size_t count, size_t bytes) __attribute__((weak));
void *jemalloc_realloc(void *old, size_t bytes) __attribute__((weak));

/* The allocator's function behind ours, as NEXT() says. */
#define BEHIND(name)                                                                               \
    static __typeof__(&name) next;                                                                 \
    if (__builtin_expect(next == NULL, 0))                                                         \
    *(void **)&next = jemalloc_##name != NULL ? (void *)jemalloc_##name : dlsym(RTLD_NEXT, #name)

/* A call got nothing: shall it be tried again? */
static bool may_try_again(const void *caller, size_t bytes)
{
    return bytes > 0 && is_library(caller) && hooks.on_shortage(bytes);
}

void *malloc(size_t bytes)
{
    BEHIND(malloc);
    void *p = next(bytes);
    while (__builtin_expect(p == NULL, 0) && may_try_again(__builtin_return_address(0), bytes))
        p = next(bytes);
    return p;
}

void *calloc(size_t count, size_t bytes)
{
    BEHIND(calloc);
    void *p = next(count, bytes);
    while (__builtin_expect(p == NULL, 0) &&
           may_try_again(__builtin_return_address(0), count * bytes))
        p = next(count, bytes);
    return p;
}

void *realloc(void *old, size_t bytes)
{
    BEHIND(realloc);
    void *p = next(old, bytes);
    while (__builtin_expect(p == NULL, 0) && may_try_again(__builtin_return_address(0), bytes))
        p = next(old, bytes);
    return p;
}

#endif
