/* The compile cache: entries are believed whole or not at all; a folder that fails stops nobody. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "devices/compile_cache.h"
#include "tests/support/temporary.h"

static char folder[TEMPORARY_FOLDER_BYTES];

static void make_folder(void)
{
    log_configure(LOG_ERROR, LOG_FORMAT_TEXT);
    temporary_make(folder);
}

static void remove_folder(void)
{
    temporary_remove(folder);
}

static compile_cache_identity identity(void)
{
    return (compile_cache_identity){.program = "module",
                                    .program_bytes = 6,
                                    .precision = "bf16",
                                    .batch = 8,
                                    .sequence = 128,
                                    .device_kind = "TPU v5 lite",
                                    .compiler = "api 0.81",
                                    .options = "none"};
}

static compile_cache_key key_of(compile_cache_identity i)
{
    return compile_cache_make_key(&i);
}

static const compile_cache_entry entry = {"program\0bytes", 13, "a summary", 9};

static compile_cache *open_cache(const char *path)
{
    compile_cache *c;
    cr_assert_eq(compile_cache_open(path, &c), STATUS_OK);
    return c;
}

static void path_of_entry(const compile_cache_key *key, char path[256])
{
    char name[80];
    compile_cache_file_name(key, name);
    snprintf(path, 256, "%s/%s", folder, name);
}

static size_t read_file(const char *path, unsigned char *data, size_t room)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f);
    size_t bytes = fread(data, 1, room, f);
    fclose(f);
    return bytes;
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

Test(compile_cache, gives_back_what_it_took, .init = make_folder, .fini = remove_folder,
     .timeout = 300)
{
    compile_cache *c = open_cache(folder);
    compile_cache_key key = key_of(identity());
    compile_cache_entry got;
    cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_NOT_FOUND);
    cr_assert_eq(compile_cache_put(c, &key, &entry), STATUS_OK);
    cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_OK);
    cr_assert_eq(got.program_bytes, entry.program_bytes);
    cr_assert_eq(memcmp(got.program, entry.program, entry.program_bytes), 0);
    cr_assert_str_eq(got.summary, entry.summary);
    compile_cache_entry_dispose(&got);
    compile_cache_counts n = compile_cache_count(c);
    cr_assert(n.hits == 1 && n.misses == 1 && n.stored == 1 && n.corrupt == 0);
    compile_cache_close(c);
}

Test(compile_cache, everything_is_part_of_the_key, .init = make_folder, .fini = remove_folder,
     .timeout = 300)
{
    compile_cache_identity all[8];
    for (int i = 0; i < 8; i++)
        all[i] = identity();
    all[1].program = "modulf";
    all[2].precision = "int8";
    all[3].batch = 16;
    all[4].sequence = 64;
    all[5].device_kind = "TPU v6 lite";
    all[6].compiler = "api 0.82";
    all[7].options = "other";
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) {
            compile_cache_key a = key_of(all[i]), b = key_of(all[k]);
            cr_assert_neq(memcmp(a.bytes, b.bytes, sizeof a.bytes), 0, "%d and %d", i, k);
        }
}

Test(compile_cache, distrusts_every_damage, .init = make_folder, .fini = remove_folder,
     .timeout = 300)
{
    compile_cache *c = open_cache(folder);
    compile_cache_key key = key_of(identity());
    cr_assert_eq(compile_cache_put(c, &key, &entry), STATUS_OK);
    char path[256];
    unsigned char good[512], bad[512];
    path_of_entry(&key, path);
    size_t bytes = read_file(path, good, sizeof good);
    uint64_t damaged = 0;
    compile_cache_entry got;
    for (size_t cut = 0; cut < bytes; cut++, damaged++) {
        write_file(path, good, cut);
        cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_NOT_FOUND, "cut to %zu", cut);
    }
    for (size_t i = 0; i < bytes; i++, damaged++) {
        memcpy(bad, good, bytes);
        bad[i] ^= 16;
        write_file(path, bad, bytes);
        cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_NOT_FOUND, "byte %zu", i);
    }
    memcpy(bad, good, bytes);
    bad[bytes] = 0;
    write_file(path, bad, bytes + 1); /* longer than it says */
    cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_NOT_FOUND);
    damaged++;
    cr_assert_eq(compile_cache_count(c).corrupt, damaged);
    /* Written again, it is believed again. */
    cr_assert_eq(compile_cache_put(c, &key, &entry), STATUS_OK);
    cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_OK);
    compile_cache_entry_dispose(&got);
    compile_cache_close(c);
}

Test(compile_cache, an_entry_of_another_program_is_foreign, .init = make_folder,
     .fini = remove_folder, .timeout = 300)
{
    compile_cache *c = open_cache(folder);
    compile_cache_identity other = identity();
    other.batch = 32;
    compile_cache_key key = key_of(identity()), foreign = key_of(other);
    cr_assert_eq(compile_cache_put(c, &foreign, &entry), STATUS_OK);
    char from[256], to[256];
    path_of_entry(&foreign, from);
    path_of_entry(&key, to);
    cr_assert_eq(rename(from, to), 0);
    compile_cache_entry got;
    cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_NOT_FOUND);
    cr_assert_eq(compile_cache_count(c).corrupt, 1);
    compile_cache_close(c);
}

static bool is_empty_folder(const char *path)
{
    return rmdir(path) == 0 && mkdir(path, 0755) == 0;
}

Test(compile_cache, a_full_disk_leaves_nothing_behind, .init = make_folder, .fini = remove_folder,
     .timeout = 300)
{
    compile_cache *c = open_cache(folder);
    compile_cache_key key = key_of(identity());
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 20;
    setrlimit(RLIMIT_FSIZE, &small);
    status s = compile_cache_put(c, &key, &entry);
    setrlimit(RLIMIT_FSIZE, &before);
    cr_assert_eq(s, STATUS_IO);
    cr_assert_eq(compile_cache_count(c).store_failures, 1);
    cr_assert(is_empty_folder(folder));
    compile_cache_close(c);
}

Test(compile_cache, a_folder_that_cannot_be_is_no_error, .init = make_folder, .fini = remove_folder,
     .timeout = 300)
{
    char file[128], below[160];
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(below, sizeof below, "%s/cache", file);
    write_file(file, "x", 1);
    compile_cache *c = open_cache(below);
    compile_cache_key key = key_of(identity());
    compile_cache_entry got;
    cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_NOT_FOUND);
    cr_assert_eq(compile_cache_put(c, &key, &entry), STATUS_IO);
    compile_cache_close(c);
}

Test(compile_cache, a_read_only_folder_is_read, .init = make_folder, .fini = remove_folder,
     .timeout = 300)
{
    compile_cache *c = open_cache(folder);
    compile_cache_key key = key_of(identity());
    cr_assert_eq(compile_cache_put(c, &key, &entry), STATUS_OK);
    cr_assert_eq(chmod(folder, 0555), 0);
    bool can_write_anyway = access(folder, W_OK) == 0; /* root */
    compile_cache_entry got;
    cr_assert_eq(compile_cache_get(c, &key, &got), STATUS_OK);
    compile_cache_entry_dispose(&got);
    status s = compile_cache_put(c, &key, &entry);
    cr_assert(can_write_anyway || s == STATUS_IO);
    cr_assert_eq(chmod(folder, 0755), 0);
    compile_cache_close(c);
}
