#include "server/http1/overrides/input_buffer.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/large_memory.h"

#define DOUBLE_BYTES_MAX ((size_t)4 << 20) /* larger ones grow by a half */
#define FD_OF_OURS (-2)                    /* the library's are -1, or a file's */

typedef h2o_iovec_t reserve_function(h2o_buffer_t **slot, size_t bytes);
typedef void free_function(h2o_buffer_t *buffer);

/* Constant once loops run. */
static reserve_function *library_reserve;
static free_function *library_free;
static input_buffer_hooks hooks;

/* A buffer of ours is one of the library's with its owner behind it. */
#define HEAD_BYTES offsetof(h2o_buffer_t, _buf)

static size_t block_bytes(size_t capacity)
{
    return HEAD_BYTES + capacity + sizeof(void *);
}

static void *owner_of(const h2o_buffer_t *b)
{
    void *owner;
    memcpy(&owner, b->_buf + b->capacity, sizeof owner);
    return owner;
}

void input_buffer_install(const input_buffer_hooks *to_call)
{
    hooks = *to_call;
    library_reserve = (reserve_function *)dlsym(RTLD_NEXT, "h2o_buffer_reserve");
    library_free = (free_function *)dlsym(RTLD_NEXT, "h2o_buffer__do_free");
    assert(library_reserve != NULL && library_free != NULL);
    assert(dlsym(RTLD_DEFAULT, "h2o_buffer_reserve") == (void *)h2o_buffer_reserve);
    assert(dlsym(RTLD_DEFAULT, "h2o_buffer__do_free") == (void *)h2o_buffer__do_free);
}

bool input_buffer_is_counted(const h2o_buffer_t *b)
{
    return b->_fd == FD_OF_OURS;
}

/* Room is there, or made by moving what is in it to the front. */
static bool fits(const h2o_buffer_t *b, size_t bytes)
{
    size_t skipped = (size_t)(b->bytes - b->_buf);
    return bytes <= b->capacity - b->size - skipped || (b->size + bytes) * 2 <= b->capacity;
}

static size_t larger_capacity(const h2o_buffer_t *b, size_t bytes)
{
    size_t capacity = b->capacity;
    do {
        capacity = capacity < DOUBLE_BYTES_MAX ? 2 * capacity : capacity + capacity / 2;
    } while (capacity - (size_t)(b->bytes - b->_buf) - b->size < bytes);
    return capacity;
}

static void set_owner(h2o_buffer_t *b, size_t capacity, void *owner)
{
    b->capacity = capacity;
    memcpy(b->_buf + capacity, &owner, sizeof owner);
}

/* A buffer of the library's becomes ours. */
static bool replace(h2o_buffer_t **slot, size_t capacity)
{
    h2o_buffer_t *old = *slot;
    void *owner = hooks.owner(slot);
    if (!hooks.grow(owner, block_bytes(capacity)))
        return false;
    h2o_buffer_t *b = large_memory_grow(NULL, 0, block_bytes(capacity));
    if (b == NULL) {
        hooks.shrink(owner, block_bytes(capacity));
        return false;
    }
    *b = (h2o_buffer_t){
        .size = old->size, .bytes = b->_buf, ._prototype = old->_prototype, ._fd = FD_OF_OURS};
    memcpy(b->_buf, old->bytes, old->size);
    set_owner(b, capacity, owner);
    library_free(old);
    *slot = b;
    return true;
}

static bool grow(h2o_buffer_t **slot, size_t capacity)
{
    h2o_buffer_t *b = *slot;
    if (b->_fd != FD_OF_OURS)
        return replace(slot, capacity);
    void *owner = owner_of(b);
    size_t skipped = (size_t)(b->bytes - b->_buf), before = block_bytes(b->capacity);
    size_t more = block_bytes(capacity) - before;
    if (!hooks.grow(owner, more))
        return false;
    b = large_memory_grow(b, before, before + more);
    if (b == NULL) {
        hooks.shrink(owner, more);
        return false;
    }
    b->bytes = b->_buf + skipped;
    set_owner(b, capacity, owner);
    *slot = b;
    return true;
}

h2o_iovec_t h2o_buffer_reserve(h2o_buffer_t **slot, size_t bytes)
{
    h2o_buffer_t *b = *slot;
    if (b->bytes == NULL && hooks.is_short())
        return (h2o_iovec_t){NULL, 0};
    if (b->bytes == NULL || fits(b, bytes))
        return library_reserve(slot, bytes);
    size_t capacity = larger_capacity(b, bytes);
    if (capacity <= INPUT_BUFFER_LIBRARY_BYTES)
        return library_reserve(slot, bytes);
    if (!grow(slot, capacity))
        return (h2o_iovec_t){NULL, 0};
    b = *slot;
    char *end = b->bytes + b->size;
    return (h2o_iovec_t){end, (size_t)(b->_buf + capacity - end)};
}

void h2o_buffer__do_free(h2o_buffer_t *b)
{
    if (b->_fd != FD_OF_OURS) {
        library_free(b);
        return;
    }
    hooks.shrink(owner_of(b), block_bytes(b->capacity));
    large_memory_free(b, block_bytes(b->capacity));
}
