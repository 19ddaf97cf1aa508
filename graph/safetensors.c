#include "graph/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES_MAX ((uint64_t)100 << 20) /* as the format's own reader */

static const struct {
    const char *name;
    dtype type;
} types[] = {
    {"BOOL", DTYPE_BOOL}, {"U8", DTYPE_U8},   {"I8", DTYPE_I8},     {"U16", DTYPE_U16},
    {"I16", DTYPE_I16},   {"F16", DTYPE_F16}, {"BF16", DTYPE_BF16}, {"U32", DTYPE_U32},
    {"I32", DTYPE_I32},   {"F32", DTYPE_F32}, {"U64", DTYPE_U64},   {"I64", DTYPE_I64},
    {"F64", DTYPE_F64},
};

static status no_memory(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a safetensors header");
}

static status read_shape(const char *name, const json_t *shape, safetensors_entry *e)
{
    int64_t dims[TENSOR_RANK_MAX];
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > TENSOR_RANK_MAX)
        return status_fail(STATUS_CORRUPT, "tensor '%s' has no shape of at most %d dims", name,
                           TENSOR_RANK_MAX);
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return status_fail(STATUS_CORRUPT, "tensor '%s' has a dim that is no size", name);
        dims[i] = json_integer_value(dim);
    }
    status s = tensor_set_shape(&e->value, e->value.dtype, (int)rank, dims);
    return s ? status_prefix(STATUS_CORRUPT, "tensor '%s'", name) : STATUS_OK;
}

static status read_entry(safetensors *file, const char *name, const json_t *about,
                         uint64_t data_bytes, safetensors_entry *e)
{
    const json_t *offsets = json_object_get(about, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    const char *type = json_string_value(json_object_get(about, "dtype"));
    if (type == NULL || json_array_size(offsets) != 2 || !json_is_integer(begin) ||
        !json_is_integer(end) || json_integer_value(begin) < 0 ||
        json_integer_value(end) < json_integer_value(begin))
        return status_fail(STATUS_CORRUPT, "tensor '%s' lacks a dtype or data_offsets", name);
    e->begin = (uint64_t)json_integer_value(begin);
    e->end = (uint64_t)json_integer_value(end);
    if (e->end > data_bytes)
        return status_fail(STATUS_CORRUPT, "tensor '%s' ends at byte %llu of %llu", name,
                           (unsigned long long)e->end, (unsigned long long)data_bytes);
    e->name = arena_copy_string(&file->memory, name, strlen(name));
    e->type_name = arena_copy_string(&file->memory, type, strlen(type));
    if (e->name == NULL || e->type_name == NULL)
        return no_memory();
    e->value.dtype = DTYPE_U8;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, type) == 0) {
            e->value.dtype = types[i].type;
            e->has_known_type = true;
        }
    }
    status s = read_shape(name, json_object_get(about, "shape"), e);
    if (s)
        return s;
    if (e->has_known_type && tensor_bytes(&e->value) != e->end - e->begin)
        return status_fail(STATUS_CORRUPT, "tensor '%s' has %llu bytes where its shape has %zu",
                           name, (unsigned long long)(e->end - e->begin), tensor_bytes(&e->value));
    return STATUS_OK;
}

static int compare_begins(const void *a, const void *b)
{
    const safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The format wants every byte of the data to belong to exactly one tensor. */
static status check_cover(const safetensors *file, uint64_t data_bytes)
{
    uint64_t covered = 0;
    for (int32_t i = 0; i < file->count; i++) {
        const safetensors_entry *e = &file->entries[i];
        if (e->begin != covered)
            return status_fail(STATUS_CORRUPT, "tensor '%s' begins at byte %llu, %s", e->name,
                               (unsigned long long)e->begin,
                               e->begin < covered ? "inside another tensor" : "after a gap");
        covered = e->end;
    }
    if (covered != data_bytes)
        return status_fail(STATUS_CORRUPT, "%llu bytes after the last tensor",
                           (unsigned long long)(data_bytes - covered));
    return STATUS_OK;
}

static status read_header(safetensors *file, json_t *header, const uint8_t *data,
                          uint64_t data_bytes)
{
    const char *name;
    json_t *about;
    file->by_name.memory = &file->memory;
    file->entries =
        arena_allocate_zeroed(&file->memory, json_object_size(header) + 1, sizeof file->entries[0]);
    if (file->entries == NULL)
        return no_memory();
    json_object_foreach(header, name, about)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        status s = read_entry(file, name, about, data_bytes, &file->entries[file->count]);
        if (s)
            return s;
        file->entries[file->count].value.data = (void *)(data + file->entries[file->count].begin);
        file->count++;
    }
    qsort(file->entries, (size_t)file->count, sizeof file->entries[0], compare_begins);
    for (int32_t i = 0; i < file->count; i++)
        if (!name_map_put(&file->by_name, file->entries[i].name, i))
            return no_memory();
    return check_cover(file, data_bytes);
}

status safetensors_open(safetensors *file, const uint8_t *data, size_t bytes)
{
    uint64_t header_bytes = 0;
    json_error_t error;
    if (bytes < 8)
        return status_fail(STATUS_CORRUPT, "%zu bytes are too few for a safetensors file", bytes);
    for (int i = 0; i < 8; i++)
        header_bytes |= (uint64_t)data[i] << (8 * i);
    if (header_bytes > HEADER_BYTES_MAX || header_bytes > bytes - 8)
        return status_fail(STATUS_CORRUPT, "a header of %llu bytes in a file of %zu",
                           (unsigned long long)header_bytes, bytes);
    json_t *header =
        json_loadb((const char *)data + 8, (size_t)header_bytes, JSON_REJECT_DUPLICATES, &error);
    if (header == NULL || !json_is_object(header)) {
        json_decref(header);
        return status_fail(STATUS_CORRUPT, "the header is not a JSON object");
    }
    safetensors made = {0};
    uint64_t data_bytes = bytes - 8 - header_bytes;
    status s = read_header(&made, header, data + 8 + header_bytes, data_bytes);
    json_decref(header);
    if (s) {
        safetensors_close(&made);
        return s;
    }
    *file = made;
    file->by_name.memory = &file->memory; /* `made` moved */
    return STATUS_OK;
}

void safetensors_close(safetensors *file)
{
    arena_dispose(&file->memory);
    *file = (safetensors){0};
}

const safetensors_entry *safetensors_find(const safetensors *file, const char *name)
{
    int32_t index;
    return name_map_get(&file->by_name, name, &index) ? &file->entries[index] : NULL;
}
