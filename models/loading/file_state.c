#include "models/loading/file_state.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 4
#define FILES_MAX 16384 /* of one model; further ones are not looked at */
#define PRIME UINT64_C(1099511628211)
#define FIRST UINT64_C(14695981039346656037)

/* FNV-1a, then mixed so that sums of hashes do not collide. */
static uint64_t hash_bytes(const void *data, size_t bytes)
{
    uint64_t hash = FIRST;
    for (const unsigned char *p = data; bytes > 0; p++, bytes--)
        hash = (hash ^ *p) * PRIME;
    hash ^= hash >> 32;
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t file_state_add_number(uint64_t state, uint64_t number)
{
    uint64_t both[] = {state, number};
    return hash_bytes(both, sizeof both);
}

static uint64_t hash_stat(const struct stat *s)
{
    uint64_t numbers[] = {(uint64_t)s->st_size,         (uint64_t)s->st_dev,
                          (uint64_t)s->st_ino,          (uint64_t)s->st_mtim.tv_sec,
                          (uint64_t)s->st_mtim.tv_nsec, (uint64_t)s->st_ctim.tv_sec,
                          (uint64_t)s->st_ctim.tv_nsec};
    return hash_bytes(numbers, sizeof numbers);
}

/* Adds up what `folder` holds: the order in which the system lists it does not matter. A folder
 * itself counts by its name only; its times say nothing that its files do not. */
static uint64_t sum_folder(const char *folder, uint64_t seed, int depth, int *left)
{
    uint64_t sum = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && *left > 0 && (e = readdir(d)) != NULL;) {
        char path[PATH_MAX];
        struct stat s;
        if (e->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path)
            continue;
        --*left;
        uint64_t name = file_state_add_number(seed, hash_bytes(e->d_name, strlen(e->d_name)));
        if (stat(path, &s) != 0)
            sum += name;
        else if (!S_ISDIR(s.st_mode))
            sum += file_state_add_number(name, hash_stat(&s));
        else if (depth < DEPTH_MAX)
            sum += name + sum_folder(path, name, depth + 1, left);
    }
    if (d != NULL)
        closedir(d);
    return sum;
}

uint64_t file_state(const char *path)
{
    struct stat s;
    int left = FILES_MAX;
    if (stat(path, &s) != 0)
        return 0;
    uint64_t state = S_ISDIR(s.st_mode) ? sum_folder(path, FIRST, 1, &left) : hash_stat(&s);
    return state != 0 ? state : 1;
}

uint64_t file_state_add(uint64_t state, const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat s;
    bool is_there = snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
                    stat(path, &s) == 0;
    return file_state_add_number(state, is_there ? hash_stat(&s) : 0);
}
