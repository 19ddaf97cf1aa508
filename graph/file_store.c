#include "graph/file_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file_map.h"
#include "base/io/file_reader.h"

typedef struct stored_file {
    struct stored_file *next;
    char *path;
    void *read; /* NULL when mapped */
    file_map map;
    size_t bytes;
} stored_file;

typedef struct file_store {
    stored_file *first;
} file_store;

static void free_file(stored_file *file)
{
    free(file->read);
    file_map_close(&file->map);
    free(file->path);
    free(file);
}

static void release_store(void *context)
{
    file_store *store = context;
    while (store->first != NULL) {
        stored_file *file = store->first;
        store->first = file->next;
        free_file(file);
    }
    free(store);
}

static const uint8_t *contents(const stored_file *file)
{
    return file->read != NULL ? file->read : file->map.data;
}

status file_store_reject_lfs_pointer(const void *data, size_t bytes)
{
    static const char start[] = "version https://git-lfs";
    if (bytes < sizeof start - 1 || memcmp(data, start, sizeof start - 1) != 0)
        return STATUS_OK;
    return status_fail(STATUS_CORRUPT, "a Git LFS pointer instead of the file: run `git lfs pull` "
                                       "where it was cloned");
}

static status load(stored_file *file, const graph *g, const char *path, size_t bytes_max,
                   bool is_mapped)
{
    int descriptor;
    uint64_t bytes;
    status s = file_reader_open(path, &descriptor, &bytes);
    if (s)
        return s;
    close(descriptor);
    if (g->copies_files || (bytes <= FILE_STORE_READ_BYTES_MAX && !is_mapped))
        return file_reader_read_whole(path, bytes_max, &file->read, &file->bytes);
    s = file_map_open(&file->map, path, bytes_max);
    file->bytes = file->map.bytes;
    return s;
}

static status open_file(graph *g, const char *path, size_t bytes_max, bool is_mapped,
                        const uint8_t **data, size_t *bytes)
{
    assert(g->release == NULL || g->release == release_store);
    file_store *store = g->release_context;
    if (store == NULL) {
        store = calloc(1, sizeof *store);
        if (store == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory");
        g->release = release_store;
        g->release_context = store;
    }
    stored_file *file = store->first;
    while (file != NULL && strcmp(file->path, path) != 0)
        file = file->next;
    if (file == NULL) {
        file = calloc(1, sizeof *file);
        if (file == NULL || (file->path = strdup(path)) == NULL) {
            free(file);
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory");
        }
        status s = load(file, g, path, bytes_max, is_mapped);
        if (s == STATUS_OK && (s = file_store_reject_lfs_pointer(contents(file), file->bytes)))
            s = status_prefix(s, "%s", path);
        if (s) {
            free_file(file);
            return s;
        }
        file->next = store->first;
        store->first = file;
    }
    *data = contents(file);
    *bytes = file->bytes;
    return STATUS_OK;
}

status file_store_open(graph *g, const char *path, size_t bytes_max, const uint8_t **data,
                       size_t *bytes)
{
    return open_file(g, path, bytes_max, false, data, bytes);
}

status file_store_map(graph *g, const char *path, size_t bytes_max, const uint8_t **data,
                      size_t *bytes)
{
    return open_file(g, path, bytes_max, true, data, bytes);
}
