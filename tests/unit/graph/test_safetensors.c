#include "graph/safetensors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of that header and `data_bytes` bytes of data, in a block of exactly its size. */
static uint8_t *make_file(const char *header, size_t data_bytes, size_t *bytes)
{
    uint64_t header_bytes = strlen(header);
    *bytes = 8 + header_bytes + data_bytes;
    uint8_t *file = calloc(1, *bytes);
    memcpy(file, &header_bytes, 8);
    memcpy(file + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++)
        file[8 + header_bytes + i] = (uint8_t)i;
    return file;
}

static status open_header(const char *header, size_t data_bytes)
{
    size_t bytes;
    safetensors file = {0};
    uint8_t *data = make_file(header, data_bytes, &bytes);
    status s = safetensors_open(&file, data, bytes);
    safetensors_close(&file);
    free(data);
    return s;
}

static const char good[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                           "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[4,12]},"
                           "\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]},"
                           "\"none\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[12,12]}}";

Test(import_safetensors, reads_names_types_and_shapes)
{
    size_t bytes;
    safetensors file;
    uint8_t *data = make_file(good, 12, &bytes);
    cr_assert_eq(safetensors_open(&file, data, bytes), STATUS_OK, "%s", status_message());
    cr_assert_eq(file.count, 3);
    const safetensors_entry *b = safetensors_find(&file, "b");
    cr_assert_eq(b->value.dtype, DTYPE_F32);
    cr_assert_eq(b->value.rank, 2);
    cr_assert_eq(((uint8_t *)b->value.data)[0], 4);
    cr_assert_eq(safetensors_find(&file, "a")->value.dtype, DTYPE_BF16);
    cr_assert_null(safetensors_find(&file, "__metadata__"));
    cr_assert_null(safetensors_find(&file, "c"));
    safetensors_close(&file);
    free(data);
}

Test(import_safetensors, rejects_headers_that_lie)
{
    static const struct {
        const char *header, *word;
        size_t data_bytes;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "of 4", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "its shape", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "after the last", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "gap", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}",
         "inside", 6},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "data_offsets", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", "data_offsets", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "data_offsets", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "dim", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]}}",
         "too large", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}",
         "shape", 4},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "dtype", 4},
        {"{\"a\":7}", "dtype", 0},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]}}",
         "JSON", 2},
        {"[]", "JSON object", 0},
        {"{", "JSON object", 0},
        {"", "JSON object", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(open_header(cases[i].header, cases[i].data_bytes), STATUS_CORRUPT, "%s",
                     cases[i].header);
        cr_assert(strstr(status_message(), cases[i].word) != NULL, "%s: %s", cases[i].header,
                  status_message());
    }
    cr_assert_eq(open_header("{}", 0), STATUS_OK);
}

Test(import_safetensors, never_crashes_on_cut_or_changed_files)
{
    size_t bytes;
    uint8_t *data = make_file(good, 12, &bytes);
    for (size_t n = 0; n < bytes; n++) {
        safetensors file = {0};
        uint8_t *cut = malloc(n ? n : 1);
        memcpy(cut, data, n);
        cr_assert_eq(safetensors_open(&file, cut, n), STATUS_CORRUPT);
        free(cut);
    }
    for (size_t i = 0; i < bytes * 8; i++) {
        safetensors file = {0};
        data[i / 8] ^= (uint8_t)(1 << i % 8);
        if (safetensors_open(&file, data, bytes) == STATUS_OK)
            safetensors_close(&file);
        data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    free(data);
}
