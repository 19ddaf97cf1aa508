#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "devices/cpu/cache/weights_cache.h"
#include "tests/support/temporary.h"

#define KEY UINT64_C(0x123456789abcdef0)

static char folder[TEMPORARY_FOLDER_BYTES], path[400];
static unsigned char small[100], large[5000];

static void fill(void)
{
    for (size_t i = 0; i < sizeof small; i++)
        small[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (unsigned char)(i * 13 + i / 256);
}

static weights_cache_name name_of(void)
{
    return (weights_cache_name){
        .folder = folder, .level = "avx2", .model_key = KEY, .signature = 77};
}

static void write_items(void)
{
    fill();
    temporary_make(folder);
    snprintf(path, sizeof path, "%s/123456789abcdef0-avx2.weights", folder);
    const weights_cache_item items[] = {
        {.words = {1, 0, 5}, .data = small, .bytes = sizeof small},
        {.words = {1, 1, 5}, .data = large, .bytes = sizeof large},
        {.words = {0, 0, 9}, .data = small, .bytes = 0},
    };
    weights_cache_name name = name_of();
    cr_assert_eq(weights_cache_write(&name, items, 3), STATUS_OK, "%s", status_message());
}

/* What the cache says of an item is right, or it says nothing. Returns whether it is there. */
static bool check_item(weights_cache *c, uint64_t number, const void *data, size_t bytes)
{
    weights_cache_item item = {.words = {1, number, 5}};
    if (!weights_cache_find(c, &item))
        return false;
    cr_assert_eq(item.bytes, bytes);
    cr_assert_eq(memcmp(item.data, data, bytes), 0, "wrong weights");
    cr_assert_eq((uintptr_t)item.data % 64, 0);
    return true;
}

static int count_found(void)
{
    weights_cache_name name = name_of();
    weights_cache *c = weights_cache_open(&name);
    if (c == NULL)
        return 0;
    int found = check_item(c, 0, small, sizeof small) + check_item(c, 1, large, sizeof large);
    weights_cache_close(c);
    return found;
}

static size_t read_file(unsigned char **out)
{
    struct stat s;
    cr_assert_eq(stat(path, &s), 0);
    FILE *f = fopen(path, "rb");
    *out = malloc((size_t)s.st_size);
    cr_assert_eq(fread(*out, 1, (size_t)s.st_size, f), (size_t)s.st_size);
    fclose(f);
    return (size_t)s.st_size;
}

static void replace_file(const unsigned char *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    cr_assert_eq(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static void remove_folder(void)
{
    if (folder[0] != 0)
        temporary_remove(folder);
}

TestSuite(weights_cache, .fini = remove_folder);

Test(weights_cache, what_was_written_is_found)
{
    write_items();
    cr_assert_eq(count_found(), 2);
    weights_cache_name name = name_of();
    weights_cache *c = weights_cache_open(&name);
    weights_cache_item missing = {.words = {1, 2, 5}}, empty = {.words = {0, 0, 9}};
    cr_assert(!weights_cache_find(c, &missing));
    cr_assert(weights_cache_find(c, &empty) && empty.bytes == 0);
    weights_cache_close(c);
}

Test(weights_cache, files_of_others_are_not_used)
{
    write_items();
    weights_cache_name signature = name_of(), key = name_of(), level = name_of(), none = name_of();
    signature.signature++;
    key.model_key++;
    level.level = "avx512vnni";
    none.folder = NULL;
    cr_assert_null(weights_cache_open(&signature));
    cr_assert_null(weights_cache_open(&key));
    cr_assert_null(weights_cache_open(&level));
    cr_assert_null(weights_cache_open(&none));
    /* The file of another model under this one's name. */
    char other[420];
    snprintf(other, sizeof other, "%s/123456789abcdef1-avx2.weights", folder);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_null(weights_cache_open(&key));
}

Test(weights_cache, a_changed_byte_gives_no_wrong_weights)
{
    write_items();
    unsigned char *data;
    size_t bytes = read_file(&data);
    int lost = 0;
    for (size_t i = 0; i < bytes; i += i < 600 ? 1 : 17) {
        data[i] ^= 0x41;
        replace_file(data, bytes);
        lost += count_found() < 2;
        data[i] ^= 0x41;
    }
    cr_assert_gt(lost, 500); /* all but what fills up to the alignment */
    replace_file(data, bytes);
    cr_assert_eq(count_found(), 2);
    free(data);
}

Test(weights_cache, a_cut_file_is_not_used)
{
    write_items();
    unsigned char *data;
    size_t bytes = read_file(&data);
    for (size_t cut = 0; cut < bytes; cut += 61) {
        replace_file(data, cut);
        cr_assert_eq(count_found(), 0);
    }
    free(data);
}

Test(weights_cache, a_folder_that_cannot_be_written_is_an_error)
{
    fill();
    weights_cache_name name = name_of();
    name.folder = "/proc/none";
    const weights_cache_item item = {.words = {1}, .data = small, .bytes = sizeof small};
    cr_assert_eq(weights_cache_write(&name, &item, 1), STATUS_IO);
}
