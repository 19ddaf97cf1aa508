#include "server/service/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/dev/shm/"

/* A region and its file, which is closed when nobody uses it any more. */
typedef struct entry {
    shared_region region;
    int fd;
    int users; /* the table is one; under the lock */
} entry;

struct shared_memory {
    pthread_mutex_t lock;
    uint64_t bytes, bytes_max;
    int count;
    _Atomic int published_count;
    entry *entries[SHARED_REGIONS_MAX]; /* by name */
};

shared_memory *shared_memory_create(uint64_t bytes_max)
{
    shared_memory *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    pthread_mutex_init(&m->lock, NULL);
    m->bytes_max = bytes_max;
    return m;
}

void shared_memory_destroy(shared_memory *m)
{
    if (m == NULL)
        return;
    shared_memory_unregister(m, NULL);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* Under the lock. */
static void let_go(entry *e)
{
    if (--e->users > 0)
        return;
    close(e->fd);
    free(e);
}

/* Where the name, of fewer than SHARED_NAME_BYTES, is or would be. Under the lock. */
static int place_of(const shared_memory *m, const char *name, size_t bytes, bool *is_there)
{
    int at = 0;
    *is_there = false;
    for (; at < m->count; at++) {
        const char *other = m->entries[at]->region.name;
        int order = strncmp(other, name, bytes);
        if (order == 0 && other[bytes] != 0)
            order = 1; /* it is longer */
        *is_there = order == 0;
        if (order >= 0)
            break;
    }
    return at;
}

/* "/name" and "name" are the same, as for shm_open(); no other folder is reached. */
static status open_file(const char *key, int *out)
{
    char path[sizeof FOLDER + SHARED_NAME_BYTES];
    const char *name = key + (key[0] == '/');
    if (name[0] == 0 || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "key \"%s\" is no name of shared memory", key);
    snprintf(path, sizeof path, FOLDER "%s", name);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "shared memory \"%s\": %s", key,
                           errno == ENOENT ? "there is none of that key" : strerror(errno));
    *out = fd;
    return STATUS_OK;
}

/* Is the whole region in its file, which is a plain one? */
static status check_file(int fd, const shared_region *r)
{
    struct stat facts;
    uint64_t end;
    if (fstat(fd, &facts) != 0)
        return status_fail(STATUS_IO, "fstat: %s", strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is no shared memory", r->key);
    if (__builtin_add_overflow(r->offset, r->bytes, &end) || end > (uint64_t)facts.st_size)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "shared memory region \"%s\": %llu bytes at %llu, but \"%s\" has %llu",
                           r->name, (unsigned long long)r->bytes, (unsigned long long)r->offset,
                           r->key, (unsigned long long)facts.st_size);
    return STATUS_OK;
}

/* Under the lock. */
static status add(shared_memory *m, entry *e)
{
    bool is_there;
    const shared_region *r = &e->region;
    int at = place_of(m, r->name, strlen(r->name), &is_there);
    if (is_there)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "shared memory region \"%s\" is registered already", r->name);
    if (m->count == SHARED_REGIONS_MAX)
        return status_fail(STATUS_RESOURCE_EXHAUSTED, "%d shared memory regions are registered",
                           SHARED_REGIONS_MAX);
    if (r->bytes > m->bytes_max - m->bytes)
        return status_fail(STATUS_RESOURCE_EXHAUSTED,
                           "shared memory regions of more than %llu bytes together",
                           (unsigned long long)m->bytes_max);
    memmove(&m->entries[at + 1], &m->entries[at], (size_t)(m->count - at) * sizeof(entry *));
    m->entries[at] = e;
    m->bytes += r->bytes;
    m->count++;
    atomic_store(&m->published_count, m->count);
    return STATUS_OK;
}

status shared_memory_register(shared_memory *m, const shared_region *region)
{
    entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a region");
    e->region = *region;
    e->users = 1;
    status failure = region->name[0] == 0 || region->bytes == 0
                         ? status_fail(STATUS_INVALID_ARGUMENT, "%s is empty",
                                       region->name[0] == 0 ? "the region's name" : "\"byte_size\"")
                         : open_file(region->key, &e->fd);
    if (failure) {
        free(e);
        return failure;
    }
    failure = check_file(e->fd, region);
    if (!failure) {
        pthread_mutex_lock(&m->lock);
        failure = add(m, e);
        pthread_mutex_unlock(&m->lock);
    }
    if (failure) {
        close(e->fd);
        free(e);
    }
    return failure;
}

/* Under the lock. */
static void remove_at(shared_memory *m, int at)
{
    entry *e = m->entries[at];
    m->count--;
    memmove(&m->entries[at], &m->entries[at + 1], (size_t)(m->count - at) * sizeof(entry *));
    m->bytes -= e->region.bytes;
    atomic_store(&m->published_count, m->count);
    let_go(e);
}

void shared_memory_unregister(shared_memory *m, const char *name)
{
    bool is_there, is_all = name == NULL || name[0] == 0;
    pthread_mutex_lock(&m->lock);
    int at = is_all ? 0 : place_of(m, name, strlen(name), &is_there);
    while (is_all && m->count > 0)
        remove_at(m, m->count - 1);
    if (!is_all && is_there)
        remove_at(m, at);
    pthread_mutex_unlock(&m->lock);
}

int shared_memory_list(shared_memory *m, const char *name, shared_region out[SHARED_REGIONS_MAX])
{
    int count = 0;
    bool is_all = name == NULL || name[0] == 0;
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < m->count; i++) {
        if (is_all || strcmp(m->entries[i]->region.name, name) == 0)
            out[count++] = m->entries[i]->region;
    }
    pthread_mutex_unlock(&m->lock);
    return count;
}

bool shared_memory_is_empty(const shared_memory *m)
{
    return atomic_load_explicit(&m->published_count, memory_order_relaxed) == 0;
}

/* The region with those bytes, one user more. */
static status find(shared_memory *m, const char *name, size_t name_bytes, uint64_t offset,
                   uint64_t bytes, entry **out)
{
    bool is_there = false;
    int shown = (int)(name_bytes < 200 ? name_bytes : 200), at = 0;
    bool is_name = name_bytes < SHARED_NAME_BYTES && memchr(name, 0, name_bytes) == NULL;
    pthread_mutex_lock(&m->lock);
    if (is_name)
        at = place_of(m, name, name_bytes, &is_there);
    entry *e = is_there ? m->entries[at] : NULL;
    if (e != NULL)
        e->users++;
    pthread_mutex_unlock(&m->lock);
    if (e == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "shared memory region \"%.*s\" is not registered", shown, name);
    *out = e;
    if (offset > e->region.bytes || bytes > e->region.bytes - offset)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "shared memory region \"%.*s\" has %llu bytes, not %llu at %llu", shown,
                           name, (unsigned long long)e->region.bytes, (unsigned long long)bytes,
                           (unsigned long long)offset);
    return STATUS_OK;
}

static void unuse(shared_memory *m, entry *e)
{
    if (e == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    let_go(e);
    pthread_mutex_unlock(&m->lock);
}

status shared_memory_check(shared_memory *m, const char *name, size_t name_bytes, uint64_t offset,
                           uint64_t bytes)
{
    entry *e = NULL;
    status failure = find(m, name, name_bytes, offset, bytes, &e);
    unuse(m, e);
    return failure;
}

static status fail_shorter(const shared_region *r)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "shared memory region \"%s\" is shorter than it was when it was registered",
                       r->name);
}

static status read_all(const entry *e, uint64_t at, uint64_t bytes, char *to)
{
    while (bytes > 0) {
        ssize_t n = pread(e->fd, to, bytes, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return status_fail(STATUS_IO, "shared memory region \"%s\": %s", e->region.name,
                               strerror(errno));
        if (n == 0)
            return fail_shorter(&e->region);
        to += n;
        at += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return STATUS_OK;
}

status shared_memory_read(shared_memory *m, const char *name, size_t name_bytes, uint64_t offset,
                          uint64_t bytes, void *to)
{
    entry *e = NULL;
    status failure = find(m, name, name_bytes, offset, bytes, &e);
    if (!failure)
        failure = read_all(e, e->region.offset + offset, bytes, to);
    unuse(m, e);
    return failure;
}

static status write_all(const entry *e, uint64_t at, uint64_t bytes, const char *from)
{
    status failure = check_file(e->fd, &e->region); /* a write would make it longer again */
    if (failure)
        return fail_shorter(&e->region);
    while (bytes > 0) {
        ssize_t n = pwrite(e->fd, from, bytes, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return status_fail(STATUS_IO, "shared memory region \"%s\": %s", e->region.name,
                               strerror(errno));
        from += n;
        at += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return STATUS_OK;
}

status shared_memory_write(shared_memory *m, const char *name, size_t name_bytes, uint64_t offset,
                           uint64_t bytes, const void *from)
{
    entry *e = NULL;
    status failure = find(m, name, name_bytes, offset, bytes, &e);
    if (!failure)
        failure = write_all(e, e->region.offset + offset, bytes, from);
    unuse(m, e);
    return failure;
}
