#include "models/manifest/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "models/manifest/reader.h"

#define MANIFEST_BYTES_MAX (1 << 20)

static status read_bool(const manifest_reader *r, const json_t *v, bool *out)
{
    if (!json_is_boolean(v))
        return manifest_fail(r, "must be true or false", NULL);
    *out = json_is_true(v);
    return STATUS_OK;
}

static status read_choice(const manifest_reader *r, const json_t *v, const char *const *choices,
                          int count, int *out)
{
    const char *text = json_string_value(v);
    for (int i = 0; text && i < count; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *out = i;
            return STATUS_OK;
        }
    }
    char list[200] = "";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s\"%s\"", i ? ", " : "", choices[i]);
    }
    return manifest_fail(r, "must be one of ", list);
}

static status read_axis(manifest_reader *r, json_t *v)
{
    static const char *const keys[] = {"batch", "sequence"};
    const char *key = r->at->key;
    bool is_batch = strcmp(key, "batch") == 0;
    if (!is_batch && strcmp(key, "sequence") != 0)
        return manifest_fail_key(r, keys, 2);
    int64_t *sizes = is_batch ? r->out->batch_buckets : r->out->sequence_buckets;
    int *count = is_batch ? &r->out->batch_bucket_count : &r->out->sequence_bucket_count;
    if (!json_is_array(v) || json_array_size(v) == 0 || json_array_size(v) > MODEL_AXIS_MAX)
        return manifest_fail(r, "must be a list of 1 to 64 sizes", NULL);
    for (size_t i = 0; i < json_array_size(v); i++) {
        int64_t size;
        status failure = manifest_read_integer(r, json_array_get(v, i), 1, 1 << 20, &size);
        if (failure)
            return failure;
        if (i > 0 && size <= sizes[i - 1])
            return manifest_fail(r, "sizes must grow", NULL);
        sizes[i] = size;
    }
    *count = (int)json_array_size(v);
    return STATUS_OK;
}

static status read_input_key(manifest_reader *r, json_t *v)
{
    static const char *const keys[] = {"pad", "mask", "optional", "default"};
    manifest_input *in = &r->out->inputs[r->out->input_count - 1];
    const char *key = r->at->key;
    if (strcmp(key, "pad") == 0 || strcmp(key, "default") == 0) {
        if (!json_is_number(v))
            return manifest_fail(r, "must be a number", NULL);
        bool is_pad = key[0] == 'p';
        *(is_pad ? &in->pad_value : &in->default_value) = json_number_value(v);
        *(is_pad ? &in->has_pad : &in->is_optional) = true;
        if (!is_pad)
            in->has_optional = true;
        return STATUS_OK;
    }
    if (strcmp(key, "mask") == 0) {
        in->has_mask = true;
        return read_bool(r, v, &in->is_mask);
    }
    if (strcmp(key, "optional") == 0) {
        in->has_optional = true;
        return read_bool(r, v, &in->is_optional);
    }
    return manifest_fail_key(r, keys, 4);
}

static status read_input(manifest_reader *r, json_t *v)
{
    manifest *m = r->out;
    if (m->input_count == MODEL_TENSORS_MAX)
        return manifest_fail(r, "too many inputs", NULL);
    const char *key = r->at->key;
    m->inputs[m->input_count++] =
        (manifest_input){.name = arena_copy_string(&m->memory, key, strlen(key))};
    return manifest_read_object(r, v, read_input_key);
}

static status read_label(manifest_reader *r, json_t *v)
{
    manifest *m = r->out;
    if (m->label_count == MANIFEST_LABELS_MAX)
        return manifest_fail(r, "too many labels", NULL);
    const char *key = r->at->key;
    model_label *label = &m->labels[m->label_count++];
    label->name = arena_copy_string(&m->memory, key, strlen(key));
    return manifest_read_integer(r, v, 1, INT64_MAX, &label->version);
}

static status read_dim(manifest_reader *r, json_t *v)
{
    manifest *m = r->out;
    if (m->fixed_dim_count == (int)(sizeof m->fixed_dims / sizeof *m->fixed_dims))
        return manifest_fail(r, "too many dims", NULL);
    const char *key = r->at->key;
    graph_fixed_dim *dim = &m->fixed_dims[m->fixed_dim_count++];
    dim->symbol = arena_copy_string(&m->memory, key, strlen(key));
    return manifest_read_integer(r, v, 1, 1 << 20, &dim->size);
}

/* true, or a list of sizes. */
static status read_dimensions(manifest_reader *r, json_t *v)
{
    manifest *m = r->out;
    if (json_is_true(v)) {
        m->dimensions[m->dimension_count++] = -1;
        return STATUS_OK;
    }
    if (!json_is_array(v) || json_array_size(v) > MANIFEST_DIMENSIONS_MAX)
        return manifest_fail(r, "must be true, or a list of at most 32 sizes", NULL);
    for (size_t i = 0; i < json_array_size(v); i++) {
        int64_t *size = &m->dimensions[m->dimension_count++];
        status failure = manifest_read_integer(r, json_array_get(v, i), 1, 1 << 20, size);
        if (failure)
            return failure;
    }
    return STATUS_OK;
}

typedef enum key {
    KEY_PRECISION,
    KEY_BUCKETS,
    KEY_BATCH_MAX,
    KEY_SEQUENCE_MAX,
    KEY_QUEUE_DELAY,
    KEY_QUEUE_ROWS,
    KEY_SLO,
    KEY_PRIORITY,
    KEY_WEIGHT,
    KEY_INPUTS,
    KEY_DIMS,
    KEY_LABELS,
    KEY_POOLING,
    KEY_CAN_BATCH,
    KEY_CAN_PAD,
    KEY_WARM_UP,
    KEY_PACKING,
    KEY_PROGRAM,
    KEY_VERSION_POLICY,
    KEY_DIMENSIONS,
    KEY_FIT,
    KEY_COUNT
} key;

static const char *const key_names[KEY_COUNT] = {
    "precision",      "buckets",    "batch_max", "sequence_max", "queue_delay_us", "queue_rows_max",
    "slo_ms",         "priority",   "weight",    "inputs",       "dims",           "labels",
    "pooling",        "can_batch",  "can_pad",   "warm_up",      "packing",        "program",
    "version_policy", "dimensions", "fit"};

static status read_flag(manifest_reader *r, json_t *v, int *out)
{
    bool flag = false;
    status failure = read_bool(r, v, &flag);
    if (!failure)
        *out = flag;
    return failure;
}

static status read_number_key(manifest_reader *r, json_t *v, key k)
{
    manifest *m = r->out;
    int64_t n = 0;
    status failure = STATUS_OK;
    switch (k) {
    case KEY_BATCH_MAX:
        return manifest_read_integer(r, v, 1, 65536, &m->batch_max);
    case KEY_SEQUENCE_MAX:
        return manifest_read_integer(r, v, 1, 1 << 20, &m->sequence_max);
    case KEY_QUEUE_ROWS:
        return manifest_read_integer(r, v, 1, 1000000000, &m->queue_rows_max);
    case KEY_QUEUE_DELAY:
        failure = manifest_read_integer(r, v, 0, 60000000, &n);
        m->has_queue_delay = true;
        m->queue_delay_ns = (uint64_t)n * 1000;
        return failure;
    case KEY_SLO:
        if (!json_is_number(v) || json_number_value(v) <= 0 || json_number_value(v) > 3.6e6)
            return manifest_fail(r, "must be milliseconds, over 0 and up to an hour", NULL);
        m->slo_ns = (uint64_t)(json_number_value(v) * 1e6);
        return STATUS_OK;
    case KEY_WEIGHT:
        failure = manifest_read_integer(r, v, 1, 1000, &n);
        m->weight = (int)n;
        return failure;
    default:
        failure = manifest_read_integer(r, v, 0, 255, &n);
        m->priority = (int)n;
        return failure;
    }
}

static status read_key(manifest_reader *r, json_t *v)
{
    static const char *const poolings[] = {"none",          "mean",         "cls",      "max",
                                           "mean_sqrt_len", "weightedmean", "lasttoken"};
    static const char *const packings[] = {"auto", "never", "always"}; /* as the enum */
    manifest *m = r->out;
    int choice = 0;
    status failure;
    key k = 0;
    while (k < KEY_COUNT && strcmp(key_names[k], r->at->key) != 0)
        k++;
    switch (k) {
    case KEY_PRECISION:
        failure = read_choice(r, v, device_precision_names, DEVICE_PRECISION_COUNT, &choice);
        m->has_precision = true;
        m->precision = (device_precision)choice;
        return failure;
    case KEY_BUCKETS:
        if (json_is_string(v) && strcmp(json_string_value(v), "auto") == 0)
            return STATUS_OK;
        if (!json_is_object(v))
            return manifest_fail(r, "must be \"auto\" or {\"batch\": [..], \"sequence\": [..]}",
                                 NULL);
        return manifest_read_object(r, v, read_axis);
    case KEY_INPUTS:
        return manifest_read_object(r, v, read_input);
    case KEY_DIMS:
        return manifest_read_object(r, v, read_dim);
    case KEY_LABELS:
        return manifest_read_object(r, v, read_label);
    case KEY_POOLING:
        failure = read_choice(r, v, poolings, 7, &choice);
        m->pooling = failure ? NULL : poolings[choice];
        return failure;
    case KEY_PACKING:
        failure = read_choice(r, v, packings, 3, &choice);
        m->has_packing = true;
        m->packing = (model_packing)choice;
        return failure;
    case KEY_CAN_BATCH:
        return read_flag(r, v, &m->can_batch);
    case KEY_CAN_PAD:
        return read_flag(r, v, &m->can_pad);
    case KEY_FIT:
        return read_bool(r, v, &m->fits);
    case KEY_WARM_UP:
        return manifest_read_string(r, v, &m->warm_up);
    case KEY_PROGRAM:
        return manifest_read_program(r, v);
    case KEY_VERSION_POLICY:
        return manifest_read_policy(r, v);
    case KEY_DIMENSIONS:
        return read_dimensions(r, v);
    case KEY_COUNT:
        return manifest_fail_key(r, key_names, KEY_COUNT);
    default:
        return read_number_key(r, v, k);
    }
}

static void set_defaults(manifest *m)
{
    *m = (manifest){.can_batch = -1, .can_pad = -1, .weight = 1};
}

status manifest_read_text(const char *name, const char *text, size_t bytes, manifest *out)
{
    json_error_t error;
    set_defaults(out);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: not JSON: %s", name, error.line,
                           error.text);
    static const json_path top;
    manifest_reader r = {.name = name, .text = text, .bytes = bytes, .at = &top, .out = out};
    status failure = json_is_object(root)
                         ? manifest_read_object(&r, root, read_key)
                         : status_fail(STATUS_INVALID_ARGUMENT, "%s:1: must be an object", name);
    json_decref(root);
    if (failure) {
        manifest_dispose(out);
        set_defaults(out);
    }
    return failure;
}

status manifest_read(const char *path, manifest *out)
{
    void *text;
    size_t bytes;
    set_defaults(out);
    status failure = file_reader_read_whole(path, MANIFEST_BYTES_MAX, &text, &bytes);
    if (failure)
        return failure == STATUS_NOT_FOUND ? STATUS_OK : failure;
    failure = manifest_read_text(path, text, bytes, out);
    free(text);
    return failure;
}

void manifest_dispose(manifest *m)
{
    arena_dispose(&m->memory);
}

const manifest_input *manifest_find_input(const manifest *m, const char *name)
{
    for (int i = 0; i < m->input_count; i++)
        if (strcmp(m->inputs[i].name, name) == 0)
            return &m->inputs[i];
    return NULL;
}
