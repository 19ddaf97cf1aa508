#include "models/loading/fingerprint.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file_reader.h"
#include "base/io/file_use.h"
#include "base/log.h"
#include "models/loading/file_state.h"

#define FILES_MAX 256 /* of a model; the rest is ignored */
#define PIECE_BYTES ((size_t)4 << 20)
#define RECENT_SECONDS 2
#define FIRST_HASH UINT64_C(14695981039346656037)

/* FNV-1a over 8 bytes at a time: a key for caches, not a defence. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 29;
    }
    for (; bytes > 0; p++, bytes--)
        hash = (hash ^ *p) * UINT64_C(1099511628211);
    return hash;
}

/* What stat() says of the files, in the order of their names. */
typedef struct file_list {
    char *names[FILES_MAX];
    struct stat about[FILES_MAX];
    size_t count;
    bool is_file; /* `folder` itself is the only one */
} file_list;

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool path_of(const file_list *l, const char *folder, const char *name, char path[PATH_MAX])
{
    int n = l->is_file ? snprintf(path, PATH_MAX, "%s", folder)
                       : snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX;
}

/* False: out of memory, and some names are missing. */
static bool list_files(const char *folder, file_list *l)
{
    char path[PATH_MAX];
    struct stat s;
    *l = (file_list){.count = 0};
    l->is_file = stat(folder, &s) == 0 && S_ISREG(s.st_mode);
    char *names[FILES_MAX];
    size_t count = 0;
    bool is_whole = true;
    DIR *d = l->is_file ? NULL : opendir(folder);
    for (struct dirent *e; d != NULL && count < FILES_MAX && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "model.json") != 0)
            names[count++] = strdup(e->d_name);
    if (d != NULL)
        closedir(d);
    if (l->is_file)
        names[count++] = strdup("");
    for (size_t i = 0; i < count; i++) {
        if (names[i] != NULL)
            continue;
        names[i--] = names[--count];
        is_whole = false;
    }
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        if (path_of(l, folder, names[i], path) && stat(path, &s) == 0 && S_ISREG(s.st_mode)) {
            l->about[l->count] = s;
            l->names[l->count++] = names[i];
        } else {
            free(names[i]);
        }
    }
    return is_whole;
}

static void free_list(file_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->names[i]);
}

static uint64_t hash_file(uint64_t hash, const char *path)
{
    int descriptor;
    uint64_t bytes;
    char *piece = malloc(PIECE_BYTES);
    if (piece == NULL || file_reader_open(path, &descriptor, &bytes)) {
        free(piece);
        return hash;
    }
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t here = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
        file_range range = {.descriptor = descriptor, .offset = at, .bytes = here, .data = piece};
        if (file_reader_read(&range, 1))
            break;
        hash = hash_bytes(hash, piece, here);
    }
    close(descriptor);
    free(piece);
    return hash;
}

static uint64_t hash_contents(const file_list *l, const char *folder)
{
    uint64_t hash = FIRST_HASH;
    for (size_t i = 0; i < l->count; i++) {
        char path[PATH_MAX];
        if (!path_of(l, folder, l->names[i], path))
            continue;
        hash = hash_bytes(hash, l->names[i], strlen(l->names[i]));
        hash = hash_file(hash, path);
    }
    return hash ? hash : 1;
}

/* Hashes what stat() says. `is_recent`: a file changed too shortly before `now_wall_ns`. */
static uint64_t hash_stats(const file_list *l, const char *folder, uint64_t now_wall_ns,
                           bool *is_recent)
{
    int64_t now = (int64_t)(now_wall_ns / 1000000000);
    uint64_t hash = hash_bytes(FIRST_HASH, folder, strlen(folder));
    *is_recent = false;
    for (size_t i = 0; i < l->count; i++) {
        const struct stat *s = &l->about[i];
        int64_t numbers[] = {s->st_size,        (int64_t)s->st_dev, (int64_t)s->st_ino,
                             s->st_mtim.tv_sec, s->st_mtim.tv_nsec, s->st_ctim.tv_sec,
                             s->st_ctim.tv_nsec};
        hash = hash_bytes(hash, l->names[i], strlen(l->names[i]) + 1);
        hash = hash_bytes(hash, numbers, sizeof numbers);
        *is_recent |= s->st_ctim.tv_sec + RECENT_SECONDS >= now;
    }
    return hash;
}

/* A record is "CONTENTS STATS" in hexadecimal; STATS repeats the file's name, as a check. */
static bool read_record(const char *path, uint64_t stats, uint64_t *contents)
{
    unsigned long long found[2];
    FILE *f = fopen(path, "re");
    bool is_good = f != NULL && fscanf(f, "%16llx %16llx", &found[0], &found[1]) == 2 &&
                   found[0] != 0 && found[1] == stats;
    if (f != NULL) {
        file_use_mark(fileno(f));
        fclose(f);
    }
    if (is_good)
        *contents = found[0];
    return is_good;
}

static void write_record(const char *folder, const char *path, uint64_t stats, uint64_t contents)
{
    char temporary[PATH_MAX + 32];
    mkdir(folder, 0777);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *f = fopen(temporary, "we");
    bool is_good = f != NULL && fprintf(f, "%016llx %016llx\n", (unsigned long long)contents,
                                        (unsigned long long)stats) > 0;
    if (f != NULL)
        is_good &= fclose(f) == 0;
    if (is_good && rename(temporary, path) == 0)
        return;
    unlink(temporary);
    log_warning("models", "cannot write %s: the model's files are read again at the next start",
                path);
}

/* 0: it is not in the cache, and must not be read. */
static uint64_t find(const char *folder, const char *cache_folder, uint64_t now_wall_ns,
                     bool may_read)
{
    file_list *files = malloc(sizeof *files);
    if (files == NULL)
        return may_read ? file_state(folder) | 1 : 0;
    if (!list_files(folder, files)) {
        free_list(files);
        free(files);
        return may_read ? file_state(folder) | 1 : 0;
    }
    bool is_recent;
    uint64_t contents, stats = hash_stats(files, folder, now_wall_ns, &is_recent);
    char record[PATH_MAX];
    bool has_record = cache_folder != NULL && !is_recent &&
                      snprintf(record, sizeof record, "%s/%016llx.files", cache_folder,
                               (unsigned long long)stats) < (int)sizeof record;
    if (!has_record || !read_record(record, stats, &contents)) {
        contents = may_read ? hash_contents(files, folder) : 0;
        if (has_record && may_read)
            write_record(cache_folder, record, stats, contents);
    }
    free_list(files);
    free(files);
    return contents;
}

uint64_t fingerprint_model(const char *folder, const char *cache_folder, uint64_t now_wall_ns)
{
    return find(folder, cache_folder, now_wall_ns, true);
}

uint64_t fingerprint_recorded(const char *folder, const char *cache_folder, uint64_t now_wall_ns)
{
    return cache_folder == NULL ? 0 : find(folder, cache_folder, now_wall_ns, false);
}
