#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_reader.h"
#include "graph/file_store.h"
#include "graph/hugging_face.h"
#include "graph/json_file.h"

#define FILE_BYTES_MAX_DEFAULT ((size_t)64 << 30)

static bool is_present(const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Files up to FILE_STORE_READ_BYTES_MAX are read and, once their tensors are copied, freed; larger
 * ones are mapped and kept, for F32 tensors to be used where they lie. */
static status open_shard(hf_weights *w, graph *g, const char *folder, const char *name,
                         size_t bytes_max)
{
    char path[PATH_MAX];
    struct stat about;
    const uint8_t *data;
    void *read = NULL;
    size_t bytes;
    status s;
    if (w->shard_count == HF_SHARDS_MAX)
        return status_fail(STATUS_TOO_LARGE, "more than %d weight files", HF_SHARDS_MAX);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (stat(path, &about) == 0 && (uint64_t)about.st_size > FILE_STORE_READ_BYTES_MAX) {
        s = file_store_open(g, path, bytes_max, &data, &bytes);
    } else {
        s = file_reader_read_whole(path, bytes_max, &read, &bytes);
        data = read;
    }
    if (s)
        return s;
    s = safetensors_open(&w->shards[w->shard_count], data, bytes);
    if (s) {
        free(read);
        return status_prefix(s, "%s", path);
    }
    w->read[w->shard_count++] = read;
    return STATUS_OK;
}

/* model.safetensors.index.json: {"weight_map": {tensor: file}}; names of files, not paths. */
static status open_index(hf_weights *w, graph *g, const char *folder, size_t bytes_max)
{
    char path[PATH_MAX];
    json_t *json, *file;
    const char *tensor_name, *files[HF_SHARDS_MAX];
    int count = 0;
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    status s = json_file_read(path, &json);
    if (s)
        return s;
    json_object_foreach(json_object_get(json, "weight_map"), tensor_name, file)
    {
        const char *name = json_string_value(file);
        int i = 0;
        if (name == NULL || name[0] == 0 || strchr(name, '/') != NULL || strcmp(name, "..") == 0) {
            s = status_fail(STATUS_CORRUPT, "%s: '%s' is not in a file of this folder", path,
                            tensor_name);
            break;
        }
        while (i < count && strcmp(files[i], name) != 0)
            i++;
        if (i < count)
            continue;
        s = open_shard(w, g, folder, name, bytes_max);
        if (s)
            break;
        files[count++] = name;
    }
    json_decref(json);
    if (s == STATUS_OK && count == 0)
        s = status_fail(STATUS_CORRUPT, "%s lists no tensors", path);
    return s;
}

status hf_weights_open(hf_weights *w, graph *g, const char *folder,
                       const graph_import_options *options)
{
    size_t bytes_max = options != NULL && options->file_bytes_max != 0 ? options->file_bytes_max
                                                                       : FILE_BYTES_MAX_DEFAULT;
    if (is_present(folder, "model.safetensors"))
        return open_shard(w, g, folder, "model.safetensors", bytes_max);
    if (is_present(folder, "model.safetensors.index.json"))
        return open_index(w, g, folder, bytes_max);
    if (is_present(folder, "pytorch_model.bin"))
        return status_fail(STATUS_UNSUPPORTED,
                           "%s/pytorch_model.bin: pickled weights are not read; save the model "
                           "with save_pretrained(safe_serialization=True)",
                           folder);
    return status_fail(STATUS_NOT_FOUND, "%s: no model.safetensors", folder);
}

void hf_weights_close(hf_weights *w)
{
    for (int i = 0; i < w->shard_count; i++) {
        safetensors_close(&w->shards[i]);
        free(w->read[i]);
    }
    w->shard_count = 0;
}

const safetensors_entry *hf_weights_find(const hf_weights *w, const char *name)
{
    const safetensors_entry *found = NULL;
    for (int i = 0; i < w->shard_count && found == NULL; i++)
        found = safetensors_find(&w->shards[i], name);
    return found;
}

/* Older checkpoints call a LayerNorm's weight gamma and its bias beta. */
static const safetensors_entry *find_by_old_name(const hf_weights *w, const char *name)
{
    static const char *const endings[][2] = {{".weight", ".gamma"}, {".bias", ".beta"}};
    char old[400];
    size_t bytes = strlen(name);
    for (int i = 0; i < 2; i++) {
        size_t end = strlen(endings[i][0]);
        if (bytes <= end || bytes + 8 > sizeof old ||
            strcmp(name + bytes - end, endings[i][0]) != 0)
            continue;
        snprintf(old, sizeof old, "%.*s%s", (int)(bytes - end), name, endings[i][1]);
        return hf_weights_find(w, old);
    }
    return NULL;
}

status hf_weights_find_prefix(hf_weights *w)
{
    static const char suffix[] = "embeddings.word_embeddings.weight";
    const char *best = NULL;
    size_t best_bytes = 0;
    for (int i = 0; i < w->shard_count; i++) {
        for (int32_t j = 0; j < w->shards[i].count; j++) {
            const char *name = w->shards[i].entries[j].name;
            size_t bytes = strlen(name);
            if (bytes < sizeof suffix - 1 ||
                strcmp(name + bytes - (sizeof suffix - 1), suffix) != 0)
                continue;
            bytes -= sizeof suffix - 1;
            if (best == NULL || bytes < best_bytes) {
                best = name;
                best_bytes = bytes;
            }
        }
    }
    if (best == NULL || best_bytes >= sizeof w->prefix)
        return status_fail(STATUS_CORRUPT, "the weights have no tensor '%s'", suffix);
    snprintf(w->prefix, sizeof w->prefix, "%.*s", (int)best_bytes, best);
    /* "model.bert." -> "model." */
    size_t root_bytes = best_bytes ? best_bytes - 1 : 0;
    while (root_bytes > 0 && w->prefix[root_bytes - 1] != '.')
        root_bytes--;
    snprintf(w->root, sizeof w->root, "%.*s", (int)root_bytes, w->prefix);
    return STATUS_OK;
}

static status check_shape(const safetensors_entry *e, int64_t rows, int64_t columns)
{
    char text[TENSOR_SHAPE_TEXT_BYTES];
    int rank = columns == 0 ? 1 : 2;
    if (e->value.rank == rank && (rows < 0 || e->value.dims[0] == rows) &&
        (rank == 1 || columns < 0 || e->value.dims[1] == columns))
        return STATUS_OK;
    return status_fail(STATUS_CORRUPT, "tensor '%s' is %s, which config.json contradicts", e->name,
                       tensor_shape_text(text, e->value.rank, e->value.dims));
}

/* Blocks of 16 x 16 keep both sides of the transposition in the cache. */
static void transpose(const float *from, float *to, int64_t rows, int64_t columns)
{
    enum { BLOCK = 16 };
    for (int64_t r0 = 0; r0 < rows; r0 += BLOCK)
        for (int64_t c0 = 0; c0 < columns; c0 += BLOCK)
            for (int64_t r = r0; r < rows && r < r0 + BLOCK; r++)
                for (int64_t c = c0; c < columns && c < c0 + BLOCK; c++)
                    to[c * rows + r] = from[r * columns + c];
}

/* To F32, reading bytes that may be unaligned. */
static void widen(const safetensors_entry *e, float *to)
{
    int64_t count = tensor_count(&e->value);
    const uint8_t *from = e->value.data;
    if (e->value.dtype == DTYPE_F32) {
        memcpy(to, from, (size_t)count * 4);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        double wide;
        if (e->value.dtype == DTYPE_F64) {
            memcpy(&wide, from + 8 * i, 8);
            to[i] = (float)wide;
            continue;
        }
        memcpy(&half, from + 2 * i, 2);
        to[i] = e->value.dtype == DTYPE_F16 ? dtype_f16_to_f32(half) : dtype_bf16_to_f32(half);
    }
}

static bool lies_in_kept_file(const hf_weights *w, const safetensors_entry *e)
{
    for (int i = 0; i < w->shard_count; i++)
        if (e >= w->shards[i].entries && e < w->shards[i].entries + w->shards[i].count)
            return w->read[i] == NULL;
    return false;
}

status hf_weights_add(const hf_weights *w, graph *g, const char *name, int64_t rows,
                      int64_t columns, bool is_transposed, graph_value_index *out)
{
    const safetensors_entry *e = hf_weights_find(w, name);
    if (e == NULL)
        e = find_by_old_name(w, name);
    if (e == NULL)
        return status_fail(STATUS_CORRUPT, "the weights have no tensor '%s'", name);
    if (!e->has_known_type || !dtype_is_float(e->value.dtype))
        return status_fail(STATUS_UNSUPPORTED,
                           "tensor '%s' is of type %s; supported: F64, F32, F16, BF16", name,
                           e->type_name);
    status s = check_shape(e, rows, columns);
    if (s)
        return s;
    tensor t = e->value;
    if (t.dtype == DTYPE_F32 && !is_transposed && (uintptr_t)t.data % 4 == 0 &&
        lies_in_kept_file(w, e)) {
        *out = graph_add_constant(g, name, &t);
        return STATUS_OK;
    }
    float *wide = NULL;
    int64_t dims[] = {t.dims[0], t.dims[1]};
    if (is_transposed) {
        dims[0] = e->value.dims[1];
        dims[1] = e->value.dims[0];
    }
    s = tensor_allocate(&t, &g->memory, DTYPE_F32, e->value.rank, dims);
    if (s)
        return s;
    if (!is_transposed) {
        widen(e, t.data);
    } else if (e->value.dtype == DTYPE_F32 && (uintptr_t)e->value.data % 4 == 0) {
        transpose(e->value.data, t.data, e->value.dims[0], e->value.dims[1]);
    } else {
        wide = malloc(tensor_bytes(&t) + 1);
        if (wide == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for tensor '%s'", name);
        widen(e, wide);
        transpose(wide, t.data, e->value.dims[0], e->value.dims[1]);
        free(wide);
    }
    *out = graph_add_constant(g, name, &t);
    return STATUS_OK;
}
