#include "base/io/file_map.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io/file_reader.h"

status file_map_open(file_map *map, const char *path, size_t bytes_max)
{
    int descriptor = -1;
    uint64_t bytes = 0;
    status s = file_reader_open(path, &descriptor, &bytes);
    if (s)
        return s;
    if (bytes > bytes_max) {
        close(descriptor);
        return status_fail(STATUS_TOO_LARGE, "%s: %llu bytes; the limit is %zu", path,
                           (unsigned long long)bytes, bytes_max);
    }
    void *data = NULL;
    if (bytes > 0) {
        data = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED)
            s = status_fail(STATUS_IO, "%s: mmap: %s", path, strerror(errno));
    }
    close(descriptor);
    if (s)
        return s;
    *map = (file_map){data, (size_t)bytes};
    return STATUS_OK;
}

void file_map_close(file_map *map)
{
    if (map->data != NULL)
        munmap((void *)map->data, map->bytes);
    *map = (file_map){0};
}
