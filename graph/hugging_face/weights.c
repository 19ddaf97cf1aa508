#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io/file_reader.h"
#include "graph/file_store.h"
#include "graph/hugging_face/hugging_face.h"
#include "graph/json_file.h"

#define FILE_BYTES_MAX_DEFAULT ((size_t)64 << 30)

static bool is_present(const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static status open_shard(hf_weights *w, graph *g, const char *folder, const char *name,
                         size_t bytes_max)
{
    char path[PATH_MAX];
    size_t bytes;
    uint64_t file_bytes;
    if (w->shard_count == HF_SHARDS_MAX)
        return status_fail(STATUS_TOO_LARGE, "more than %d weight files", HF_SHARDS_MAX);
    hf_shard *shard = &w->shards[w->shard_count];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    status s = file_store_map(g, path, bytes_max, &shard->data, &bytes);
    if (s)
        return s;
    s = file_reader_open(path, &shard->descriptor, &file_bytes);
    if (s)
        return s;
    w->shard_count++;
    if (file_bytes != bytes)
        return status_fail(STATUS_CORRUPT, "%s: the file changed while it was read", path);
    shard->is_large = bytes > FILE_STORE_READ_BYTES_MAX;
    s = safetensors_open(&shard->tensors, shard->data, bytes);
    return s ? status_prefix(s, "%s", path) : STATUS_OK;
}

/* model.safetensors.index.json: {"weight_map": {tensor: file}}; file names, not paths. */
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
    static const char *const others[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                         "tf_model.h5", "flax_model.msgpack"};
    size_t bytes_max = options != NULL && options->file_bytes_max != 0 ? options->file_bytes_max
                                                                       : FILE_BYTES_MAX_DEFAULT;
    if (is_present(folder, "model.safetensors"))
        return open_shard(w, g, folder, "model.safetensors", bytes_max);
    if (is_present(folder, "model.safetensors.index.json"))
        return open_index(w, g, folder, bytes_max);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (is_present(folder, others[i]))
            return status_fail(STATUS_UNSUPPORTED,
                               "%s/%s: only safetensors are read (pickles can run code); load the "
                               "model with transformers and save_pretrained(FOLDER, "
                               "safe_serialization=True), or export it to ONNX",
                               folder, others[i]);
    return status_fail(STATUS_NOT_FOUND, "%s: no model.safetensors", folder);
}

void hf_weights_close(hf_weights *w)
{
    for (int i = 0; i < w->shard_count; i++) {
        safetensors_close(&w->shards[i].tensors);
        close(w->shards[i].descriptor);
    }
    free(w->pending);
    w->pending = NULL;
    w->shard_count = 0;
}

const safetensors_entry *hf_weights_find(const hf_weights *w, const char *name)
{
    const safetensors_entry *found = NULL;
    for (int i = 0; i < w->shard_count && found == NULL; i++)
        found = safetensors_find(&w->shards[i].tensors, name);
    return found;
}

/* Older checkpoints call the weight of a LayerNorm gamma and its bias beta. */
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

/* The bytes of `name` before one of the endings; false: it has none of them. */
static bool find_ending(const char *name, size_t count, const char *const *endings, size_t *before)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < count; i++) {
        size_t end = strlen(endings[i]);
        if (bytes < end || strcmp(name + bytes - end, endings[i]) != 0)
            continue;
        *before = bytes - end;
        return true;
    }
    return false;
}

status hf_weights_find_prefix(hf_weights *w, size_t count, const char *const *endings)
{
    const char *best = NULL;
    size_t best_bytes = 0, bytes;
    for (int i = 0; i < w->shard_count; i++) {
        for (int32_t j = 0; j < w->shards[i].tensors.count; j++) {
            const char *name = w->shards[i].tensors.entries[j].name;
            if (find_ending(name, count, endings, &bytes) && (best == NULL || bytes < best_bytes)) {
                best = name;
                best_bytes = bytes;
            }
        }
    }
    if (best == NULL || best_bytes >= sizeof w->prefix)
        return status_fail(STATUS_CORRUPT, "the weights have no tensor '%s'", endings[0]);
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

/* Converts to F32 from data that may be unaligned. */
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

static const hf_shard *shard_of(const hf_weights *w, const safetensors_entry *e)
{
    for (int i = 0; i < w->shard_count; i++) {
        const safetensors *t = &w->shards[i].tensors;
        if (e >= t->entries && e < t->entries + t->count)
            return &w->shards[i];
    }
    return NULL;
}

static status add_pending(hf_weights *w, const hf_shard *shard, const tensor *from, void *to)
{
    if (w->pending_count == w->pending_capacity) {
        size_t more = w->pending_capacity ? 2 * w->pending_capacity : 64;
        file_range *larger = realloc(w->pending, more * sizeof *larger);
        if (larger == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a list of tensors");
        w->pending = larger;
        w->pending_capacity = more;
    }
    w->pending[w->pending_count++] =
        (file_range){.descriptor = shard->descriptor,
                     .offset = (uint64_t)((const uint8_t *)from->data - shard->data),
                     .bytes = tensor_bytes(from),
                     .data = to};
    return STATUS_OK;
}

status hf_weights_read(hf_weights *w)
{
    status s = file_reader_read(w->pending, w->pending_count);
    w->pending_count = 0;
    return s;
}

/* Uninitialised memory. Word tables are read at random: large pages save TLB misses, and page
 * faults now. */
static void *allocate_weights(graph *g, size_t bytes)
{
    const uintptr_t page = (uintptr_t)2 << 20;
    void *data = arena_allocate_aligned(&g->memory, bytes + 1, 64);
    uintptr_t first = ((uintptr_t)data + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)data + bytes) & ~(page - 1);
    if (data != NULL && first < end)
        madvise((char *)data + (first - (uintptr_t)data), end - first, MADV_HUGEPAGE);
    return data;
}

status hf_weights_load(hf_weights *w, graph *g, const char *name, int64_t rows, int64_t columns,
                       bool is_matrix, tensor *out)
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
    const hf_shard *shard = shard_of(w, e);
    bool is_f32 = t.dtype == DTYPE_F32;
    if (is_f32 && (uintptr_t)t.data % 4 == 0 && (is_matrix || shard->is_large)) {
        *out = t;
        return STATUS_OK;
    }
    t.dtype = DTYPE_F32;
    t.data = allocate_weights(g, tensor_bytes(&t));
    if (t.data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for tensor '%s'", name);
    if (is_f32)
        s = add_pending(w, shard, &e->value, t.data);
    else
        widen(e, t.data);
    *out = t;
    return s;
}
