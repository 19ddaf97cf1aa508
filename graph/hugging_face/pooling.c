#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/hugging_face/hugging_face.h"
#include "graph/json_file.h"

/* The last part of a dotted Python name. */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

static status fail_mode(const char *mode)
{
    return status_fail(STATUS_UNSUPPORTED,
                       "pooling '%s' is not supported; supported: mean, cls, max, mean_sqrt_len",
                       mode);
}

static status set_mode(const char *mode, hf_pooling *out)
{
    if (strcmp(mode, "mean") == 0)
        out->mean = true;
    else if (strcmp(mode, "cls") == 0)
        out->cls = true;
    else if (strcmp(mode, "max") == 0)
        out->max = true;
    else if (strcmp(mode, "mean_sqrt_len") == 0 || strcmp(mode, "mean_sqrt_len_tokens") == 0)
        out->mean_sqrt_length = true;
    else
        return fail_mode(mode);
    out->is_present = true;
    return STATUS_OK;
}

/* Older files have a boolean per mode, newer ones a name or a list of names. */
static status read_modes(const char *path, hf_pooling *out)
{
    static const char *const keys[][2] = {
        {"pooling_mode_cls_token", "cls"},
        {"pooling_mode_max_tokens", "max"},
        {"pooling_mode_mean_tokens", "mean"},
        {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len"},
        {"pooling_mode_weightedmean_tokens", "weightedmean"},
        {"pooling_mode_lasttoken", "lasttoken"},
    };
    json_t *json;
    status s = json_file_read(path, &json);
    if (s)
        return s;
    const json_t *modes = json_object_get(json, "pooling_mode");
    for (size_t i = 0; s == STATUS_OK && i < sizeof keys / sizeof keys[0]; i++)
        if (json_file_bool(json, keys[i][0], false))
            s = set_mode(keys[i][1], out);
    if (s == STATUS_OK && json_is_string(modes))
        s = set_mode(json_string_value(modes), out);
    for (size_t i = 0; s == STATUS_OK && i < json_array_size(modes); i++) {
        const char *mode = json_string_value(json_array_get(modes, i));
        s = set_mode(mode != NULL ? mode : "", out);
    }
    json_decref(json);
    if (s == STATUS_OK && !out->is_present)
        s = status_fail(STATUS_CORRUPT, "it has no pooling mode");
    return s ? status_prefix(s, "%s", path) : STATUS_OK;
}

static status read_module(const char *folder, const json_t *module, hf_pooling *out)
{
    char path[PATH_MAX];
    const char *kind = last_part(json_file_string(module, "type", ""));
    const char *below = json_file_string(module, "path", "");
    if (below[0] == '/' || strstr(below, "..") != NULL || strlen(below) >= 64)
        return status_fail(STATUS_CORRUPT, "modules.json: path '%s' leaves the folder", below);
    if (strcmp(kind, "Transformer") == 0) {
        snprintf(out->transformer_folder, sizeof out->transformer_folder, "%s", below);
        return STATUS_OK;
    }
    if (strcmp(kind, "Pooling") == 0) {
        snprintf(path, sizeof path, "%s/%s/config.json", folder, below);
        return read_modes(path, out);
    }
    if (strcmp(kind, "Normalize") == 0) {
        out->normalizes = true;
        return STATUS_OK;
    }
    if (strcmp(kind, "Dense") == 0 && !out->normalizes && out->dense_count < 4) {
        snprintf(out->dense_folders[out->dense_count++], 64, "%s", below);
        return STATUS_OK;
    }
    if (strcmp(kind, "Dropout") == 0)
        return STATUS_OK;
    return status_fail(STATUS_UNSUPPORTED,
                       "modules.json: module '%s' is not supported here; supported: "
                       "Transformer, Pooling, Dense, Normalize, in this order",
                       kind);
}

status hf_read_pooling(const char *folder, const char *pooling, hf_pooling *out)
{
    char path[PATH_MAX];
    hf_pooling found = {0};
    status s = STATUS_OK;
    snprintf(path, sizeof path, "%s/modules.json", folder);
    if (access(path, F_OK) == 0) {
        json_t *json;
        s = json_file_read(path, &json);
        if (s)
            return s;
        for (size_t i = 0; s == STATUS_OK && i < json_array_size(json); i++)
            s = read_module(folder, json_array_get(json, i), &found);
        json_decref(json);
    } else {
        snprintf(path, sizeof path, "%s/1_Pooling/config.json", folder);
        if (access(path, F_OK) == 0)
            s = read_modes(path, &found);
        snprintf(path, sizeof path, "%s/2_Normalize", folder);
        found.normalizes = found.is_present && access(path, F_OK) == 0;
    }
    if (pooling != NULL) {
        /* The option overrides the files, even where they are invalid. */
        s = STATUS_OK;
        found.is_present = found.mean = found.cls = found.max = found.mean_sqrt_length = false;
        if (strcmp(pooling, "none") != 0)
            s = set_mode(pooling, &found);
    }
    if (s == STATUS_OK)
        *out = found;
    return s;
}

typedef struct pooled {
    graph_value_index parts[4];
    int count;
} pooled;

/* sentence_transformers Pooling: the results are concatenated in this order. */
static graph_value_index pool(hf_builder *b, const hf_pooling *p, graph_value_index x)
{
    pooled all = {.count = 0};
    int64_t last = -1;
    graph_value_index mask = hf_cast(b, b->mask, DTYPE_F32);
    mask = hf_binary(b, GRAPH_OP_UNSQUEEZE, mask, hf_ints(b, 1, &last)); /* [B,S,1] */
    if (p->cls)
        all.parts[all.count++] = hf_first_token(b, x);
    if (p->max) {
        graph_value_index is_token = hf_cast(b, mask, DTYPE_BOOL);
        graph_value_index inputs[] = {is_token, x, hf_float(b, -1e9f)};
        graph_value_index tokens = graph_add(b->g, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
        all.parts[all.count++] = hf_reduce(b, GRAPH_OP_REDUCE_MAX, tokens, 1, false);
    }
    if (p->mean || p->mean_sqrt_length) {
        graph_value_index sum =
            hf_reduce(b, GRAPH_OP_REDUCE_SUM, hf_binary(b, GRAPH_OP_MUL, x, mask), 1, false);
        graph_value_index count = hf_reduce(b, GRAPH_OP_REDUCE_SUM, mask, 1, false);
        count = hf_binary(b, GRAPH_OP_MAX, count, hf_float(b, 1e-9f)); /* a row without tokens */
        if (p->mean)
            all.parts[all.count++] = hf_binary(b, GRAPH_OP_DIV, sum, count);
        if (p->mean_sqrt_length)
            all.parts[all.count++] =
                hf_binary(b, GRAPH_OP_DIV, sum, hf_unary(b, GRAPH_OP_SQRT, count));
    }
    if (all.count == 1)
        return all.parts[0];
    graph_attribute axis = graph_make_int("axis", -1);
    return graph_add(b->g, GRAPH_OP_CONCAT, all.count, all.parts, 1, &axis);
}

/* A Dense module: a folder with config.json and model.safetensors. */
static status add_dense(hf_builder *b, const char *folder, const char *below,
                        const graph_import_options *options, hf_weights *weights,
                        graph_value_index *x)
{
    char path[PATH_MAX];
    json_t *json;
    snprintf(path, sizeof path, "%s/%s/config.json", folder, below);
    status s = json_file_read(path, &json);
    if (s)
        return s;
    char activation[40];
    snprintf(activation, sizeof activation, "%s",
             last_part(json_file_string(json, "activation_function", "Tanh")));
    json_decref(json);
    snprintf(path, sizeof path, "%s/%s", folder, below);
    s = hf_weights_open(weights, b->g, path, options);
    if (s)
        return s;
    hf_weights *encoder = b->weights;
    b->weights = weights;
    graph_value_index y = hf_linear(b, *x, "linear");
    b->weights = encoder;
    s = b->failed ? b->failed : hf_weights_read(weights);
    if (s)
        return status_prefix(s, "%s", path);
    if (strcmp(activation, "Tanh") == 0)
        y = hf_unary(b, GRAPH_OP_TANH, y);
    else if (strcmp(activation, "ReLU") == 0)
        y = hf_unary(b, GRAPH_OP_RELU, y);
    else if (strcmp(activation, "GELU") == 0)
        y = hf_activation(b, y, "gelu");
    else if (strcmp(activation, "Identity") != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: activation '%s'; supported: Identity, Tanh, ReLU, GELU", path,
                           activation);
    *x = y;
    return STATUS_OK;
}

status hf_add_pooling(hf_builder *b, const char *folder, const hf_pooling *pooling,
                      const graph_import_options *options, graph_value_index hidden,
                      graph_value_index *out)
{
    graph_value_index x = pool(b, pooling, hidden);
    for (int i = 0; i < pooling->dense_count; i++) {
        hf_weights *weights = calloc(1, sizeof *weights);
        if (weights == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory");
        status s = add_dense(b, folder, pooling->dense_folders[i], options, weights, &x);
        hf_weights_close(weights);
        free(weights);
        if (s)
            return s;
    }
    if (pooling->normalizes) { /* torch.nn.functional.normalize */
        graph_value_index norm = hf_reduce(b, GRAPH_OP_REDUCE_L2, x, -1, true);
        norm = hf_binary(b, GRAPH_OP_MAX, norm, hf_float(b, 1e-12f));
        x = hf_binary(b, GRAPH_OP_DIV, x, norm);
    }
    *out = x;
    return STATUS_OK;
}
