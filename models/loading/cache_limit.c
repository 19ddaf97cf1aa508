#include "models/loading/cache_limit.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define FILES_MAX 65536 /* that are looked at */

typedef struct cached_file {
    char *path;
    int64_t bytes;
    struct timespec used;
} cached_file;

static bool is_ours(const char *name)
{
    static const char *const kinds[] = {".weights", ".encoder", ".graph", ".files", ".batching"};
    const char *dot = strchr(name, '.');
    for (size_t i = 0; dot != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t bytes = strlen(kinds[i]);
        if (strncmp(dot, kinds[i], bytes) == 0 && (dot[bytes] == 0 || dot[bytes] == '.'))
            return true; /* or KIND.PID, which is being written, or was when a process ended */
    }
    return false;
}

static int order_by_use(const void *a, const void *b)
{
    const struct timespec x = ((const cached_file *)a)->used, y = ((const cached_file *)b)->used;
    if (x.tv_sec != y.tv_sec)
        return x.tv_sec < y.tv_sec ? -1 : 1;
    return x.tv_nsec < y.tv_nsec ? -1 : x.tv_nsec > y.tv_nsec;
}

/* Adds the file; false: memory is out. */
static bool add(cached_file **files, size_t *count, const char *path, const struct stat *s)
{
    if ((*count & (*count - 1)) == 0) {
        size_t capacity = *count ? 2 * *count : 1;
        cached_file *moved = realloc(*files, capacity * sizeof *moved);
        if (moved == NULL)
            return false;
        *files = moved;
    }
    char *copy = strdup(path);
    if (copy != NULL)
        (*files)[(*count)++] = (cached_file){copy, s->st_size, s->st_mtim};
    return copy != NULL;
}

static int64_t list(const char *folder, cached_file **files, size_t *count)
{
    int64_t bytes = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && *count < FILES_MAX && (e = readdir(d)) != NULL;) {
        char path[PATH_MAX];
        struct stat s;
        if (!is_ours(e->d_name) ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path ||
            lstat(path, &s) != 0 || !S_ISREG(s.st_mode))
            continue;
        if (!add(files, count, path, &s))
            break;
        bytes += s.st_size;
    }
    if (d != NULL)
        closedir(d);
    return bytes;
}

void cache_limit_apply(const char *folder, int64_t bytes_max)
{
    cached_file *files = NULL;
    size_t count = 0, removed = 0;
    if (folder == NULL || bytes_max == 0)
        return;
    int64_t bytes = list(folder, &files, &count), before = bytes;
    if (count > 0)
        qsort(files, count, sizeof *files, order_by_use);
    for (size_t i = 0; i < count && bytes > bytes_max; i++) {
        if (unlink(files[i].path) != 0)
            continue;
        bytes -= files[i].bytes;
        removed++;
    }
    if (removed > 0)
        log_info("models",
                 "the cache folder held %.1f MiB, more than cache_bytes_max: removed the %zu files "
                 "that were not used longest, %.1f MiB",
                 (double)before / (1 << 20), removed, (double)(before - bytes) / (1 << 20));
    for (size_t i = 0; i < count; i++)
        free(files[i].path);
    free(files);
}
