#include <limits.h>
#include <stdarg.h>
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

static const struct {
    const char *key, *name; /* in older files a boolean per mode, in newer ones a name */
    encoder_pooling code;
} modes[] = {
    {"pooling_mode_cls_token", "cls", ENCODER_POOLING_FIRST},
    {"pooling_mode_max_tokens", "max", ENCODER_POOLING_MAX},
    {"pooling_mode_mean_tokens", "mean", ENCODER_POOLING_MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", ENCODER_POOLING_MEAN_SQRT},
    {"pooling_mode_weightedmean_tokens", "weightedmean", ENCODER_POOLING_WEIGHTED_MEAN},
    {"pooling_mode_lasttoken", "lasttoken", ENCODER_POOLING_LAST},
    {NULL, "mean_sqrt_len", ENCODER_POOLING_MEAN_SQRT},
};

static status add_mode(const char *mode, hf_pooling *out)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, mode) != 0)
            continue;
        if (out->mode_count == ENCODER_POOLINGS_MAX)
            return status_fail(STATUS_UNSUPPORTED, "more than %d pooling modes",
                               ENCODER_POOLINGS_MAX);
        out->modes[out->mode_count++] = modes[i].code;
        out->is_present = true;
        return STATUS_OK;
    }
    return status_fail(STATUS_UNSUPPORTED,
                       "pooling '%s' is not supported; supported: mean, cls, max, mean_sqrt_len, "
                       "weightedmean, lasttoken",
                       mode);
}

static status read_mode_flags(const json_t *json, hf_pooling *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        bool is_known = strncmp(key, "pooling_mode_", 13) != 0 || !json_is_true(value);
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
            is_known |= modes[i].key != NULL && strcmp(modes[i].key, key) == 0;
        if (!is_known)
            return status_fail(STATUS_UNSUPPORTED, "%s is not supported", key);
    }
    status s = STATUS_OK;
    for (size_t i = 0; s == STATUS_OK && i < sizeof modes / sizeof modes[0]; i++)
        if (modes[i].key != NULL && json_file_bool(json, modes[i].key, false))
            s = add_mode(modes[i].name, out);
    return s;
}

static status read_modes(const json_t *json, hf_pooling *out)
{
    const json_t *named = json_object_get(json, "pooling_mode");
    out->excludes_prompt = json_is_false(json_object_get(json, "include_prompt"));
    status s = named == NULL ? read_mode_flags(json, out) : STATUS_OK;
    if (s == STATUS_OK && json_is_string(named))
        s = add_mode(json_string_value(named), out);
    for (size_t i = 0; s == STATUS_OK && i < json_array_size(named); i++) {
        const char *mode = json_string_value(json_array_get(named, i));
        s = add_mode(mode != NULL ? mode : "", out);
    }
    return s || out->is_present ? s : status_fail(STATUS_CORRUPT, "it has no pooling mode");
}

static status read_pooling_file(const char *path, hf_pooling *out)
{
    json_t *json;
    status s = json_file_read(path, &json);
    if (s)
        return s;
    s = read_modes(json, out);
    json_decref(json);
    return s ? status_prefix(s, "%s", path) : STATUS_OK;
}

static status add_module(hf_module_kind kind, const char *name, const char *folder, hf_pooling *out)
{
    if (!out->is_present)
        return status_fail(STATUS_UNSUPPORTED, "modules.json: module '%s' comes before the pooling",
                           name);
    if (out->module_count == HF_MODULES_MAX)
        return status_fail(STATUS_UNSUPPORTED,
                           "modules.json: more than %d modules after the pooling", HF_MODULES_MAX);
    hf_module *m = &out->modules[out->module_count++];
    m->kind = kind;
    snprintf(m->folder, sizeof m->folder, "%s", folder);
    return STATUS_OK;
}

static status read_module(const char *folder, const json_t *module, hf_pooling *out)
{
    static const struct {
        const char *name;
        hf_module_kind kind;
    } after[] = {{"Dense", HF_DENSE}, {"LayerNorm", HF_LAYER_NORM}, {"Normalize", HF_NORMALIZE}};
    char path[PATH_MAX];
    const char *kind = last_part(json_file_string(module, "type", ""));
    const char *below = json_file_string(module, "path", "");
    if (below[0] == '/' || strstr(below, "..") != NULL || strlen(below) >= 64)
        return status_fail(STATUS_CORRUPT, "modules.json: path '%s' leaves the folder", below);
    if (strcmp(kind, "Transformer") == 0) {
        snprintf(out->transformer_folder, sizeof out->transformer_folder, "%s", below);
        return STATUS_OK;
    }
    if (strcmp(kind, "Pooling") == 0 && !out->is_present) {
        snprintf(path, sizeof path, "%s/%s/config.json", folder, below);
        return read_pooling_file(path, out);
    }
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        if (strcmp(kind, after[i].name) == 0)
            return add_module(after[i].kind, kind, below, out);
    if (strcmp(kind, "Dropout") == 0)
        return STATUS_OK;
    return status_fail(STATUS_UNSUPPORTED,
                       "modules.json: module '%s' is not supported here; supported: Transformer, "
                       "Pooling, and behind them Dense, LayerNorm, Normalize",
                       kind);
}

static status read_modules(const char *folder, const char *path, hf_pooling *out)
{
    json_t *json;
    status s = json_file_read(path, &json);
    if (s)
        return s;
    for (size_t i = 0; s == STATUS_OK && i < json_array_size(json); i++)
        s = read_module(folder, json_array_get(json, i), out);
    json_decref(json);
    return s;
}

status hf_read_pooling(const char *folder, const char *pooling, hf_pooling *out)
{
    char path[PATH_MAX];
    hf_pooling found = {0};
    status s = STATUS_OK;
    snprintf(path, sizeof path, "%s/modules.json", folder);
    if (access(path, F_OK) == 0) {
        s = read_modules(folder, path, &found);
    } else {
        snprintf(path, sizeof path, "%s/1_Pooling/config.json", folder);
        if (access(path, F_OK) == 0)
            s = read_pooling_file(path, &found);
        snprintf(path, sizeof path, "%s/2_Normalize", folder);
        if (s == STATUS_OK && found.is_present && access(path, F_OK) == 0)
            s = add_module(HF_NORMALIZE, "Normalize", "2_Normalize", &found);
    }
    if (pooling != NULL) {
        /* The option overrides the files, even where they are invalid. */
        s = STATUS_OK;
        found.is_present = found.excludes_prompt = false;
        found.mode_count = 0;
        if (strcmp(pooling, "none") != 0)
            s = add_mode(pooling, &found);
    }
    if (s == STATUS_OK)
        *out = found;
    return s;
}

static encoder_head_layer *add_layer(hf_builder *b, encoder_output *o)
{
    if (o->head_count < ENCODER_HEAD_LAYERS_MAX)
        return &o->head[o->head_count++];
    if (b->failed == STATUS_OK)
        b->failed = status_fail(STATUS_UNSUPPORTED, "more than %d modules behind the pooling",
                                ENCODER_HEAD_LAYERS_MAX);
    return &o->head[0];
}

/* Of torch.nn. */
static const struct {
    const char *name;
    encoder_head_activation code;
} dense_activations[] = {{"Identity", ENCODER_HEAD_NONE}, {"Tanh", ENCODER_HEAD_TANH},
                         {"ReLU", ENCODER_HEAD_RELU},     {"GELU", ENCODER_HEAD_GELU},
                         {"SiLU", ENCODER_HEAD_SILU},     {"Sigmoid", ENCODER_HEAD_SIGMOID}};

static const char *activation_name(encoder_head_activation code)
{
    size_t i = 0;
    while (dense_activations[i].code != code)
        i++;
    return dense_activations[i].name;
}

/* What a Dense module's config.json says besides sizes, which the weights have. */
static status read_dense(const json_t *json, encoder_head_activation *activation)
{
    static const hf_setting settings[] = {
        {"use_residual", HF_FALSE, NULL, 0},
        {"module_input_name", HF_TEXT, "sentence_embedding", 0},
        {"module_output_name", HF_TEXT, "sentence_embedding", 0},
    };
    status s = hf_check_settings(json, sizeof settings / sizeof settings[0], settings);
    if (s)
        return s;
    const char *full = json_file_string(json, "activation_function", "torch.nn.Tanh");
    bool is_torch = strncmp(full, "torch.nn.", 9) == 0;
    for (size_t i = 0; is_torch && i < sizeof dense_activations / sizeof dense_activations[0]; i++)
        if (strcmp(last_part(full), dense_activations[i].name) == 0) {
            *activation = dense_activations[i].code;
            return STATUS_OK;
        }
    return status_fail(STATUS_UNSUPPORTED,
                       "activation '%s'; supported: Identity, Tanh, ReLU, GELU, SiLU, Sigmoid of "
                       "torch.nn",
                       full);
}

static status describe_dense(hf_builder *b, const json_t *json, int64_t *width, encoder_output *o)
{
    encoder_head_layer *l = add_layer(b, o);
    status s = read_dense(json, &l->activation);
    int64_t out = -1, in = -1;
    if (s == STATUS_OK)
        s = hf_read_said(json, "out_features", &out);
    if (s == STATUS_OK)
        s = hf_read_said(json, "in_features", &in);
    if (s == STATUS_OK && in > 0 && in != *width)
        s = status_fail(STATUS_CORRUPT, "in_features is %lld; the module before gives %lld numbers",
                        (long long)in, (long long)*width);
    if (s)
        return s;
    l->linear = hf_linear(b, "linear", out > 0 ? out : -1, *width);
    if (json_is_false(json_object_get(json, "bias")))
        l->linear.bias = NULL;
    *width = hf_width(&l->linear);
    return b->failed;
}

static status describe_norm(hf_builder *b, int64_t width, encoder_output *o)
{
    encoder_head_layer *l = add_layer(b, o);
    l->norm = hf_norm(b, "norm", width);
    l->norm.epsilon = 1e-5f; /* torch.nn.LayerNorm's */
    return b->failed;
}

/* A module that has a folder with config.json and model.safetensors. */
static status describe_module(hf_builder *b, const char *folder, const hf_module *m,
                              const graph_import_options *options, int64_t *width,
                              encoder_output *o)
{
    char path[PATH_MAX];
    json_t *json = NULL;
    hf_weights *encoder_weights = b->weights, *weights = calloc(1, sizeof *weights);
    if (weights == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory");
    snprintf(path, sizeof path, "%s/%s/config.json", folder, m->folder);
    status s = json_file_read(path, &json);
    snprintf(path, sizeof path, "%s/%s", folder, m->folder);
    if (s == STATUS_OK)
        s = hf_weights_open(weights, b->g, path, options);
    b->weights = weights;
    if (s == STATUS_OK)
        s = m->kind == HF_DENSE ? describe_dense(b, json, width, o) : describe_norm(b, *width, o);
    b->weights = encoder_weights;
    if (s == STATUS_OK)
        s = hf_weights_read(weights);
    json_decref(json);
    hf_weights_close(weights);
    free(weights);
    return s ? status_prefix(s, "%s", path) : STATUS_OK;
}

static void normalise(hf_builder *b, bool is_last, encoder_output *o)
{
    const float epsilon = 1e-12f; /* torch.nn.functional.normalize's */
    if (is_last) {
        o->is_normalised = true;
        o->norm_epsilon = epsilon;
        return;
    }
    encoder_head_layer *l = o->head_count > 0 && !o->head[o->head_count - 1].is_normalised
                                ? &o->head[o->head_count - 1]
                                : add_layer(b, o);
    l->is_normalised = true;
    l->norm_epsilon = epsilon;
}

static const char *append(hf_builder *b, const char *text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static const char *append(hf_builder *b, const char *text, const char *format, ...)
{
    char more[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(more, sizeof more, format, arguments);
    va_end(arguments);
    return hf_text(b, arena_format(&b->g->memory, "%s%s", text, more));
}

static const char *mode_name(encoder_pooling code)
{
    size_t i = 0;
    while (modes[i].code != code)
        i++;
    return modes[i].name;
}

const char *hf_chain_text(hf_builder *b, const hf_pooling *pooling)
{
    const encoder_output *o = &b->e->outputs[0];
    const char *text = " > Pooling (";
    int64_t width = b->config->hidden * pooling->mode_count;
    for (int i = 0; i < pooling->mode_count; i++)
        text = append(b, text, "%s%s", i ? ", " : "", mode_name(pooling->modes[i]));
    text = append(b, text, ")%s", pooling->excludes_prompt ? " without prompts" : "");
    for (int i = 0; i < o->head_count; i++) {
        const encoder_head_layer *l = &o->head[i];
        if (l->linear.weight != NULL) {
            text = append(b, text, " > Dense (%lld to %lld, %s)", (long long)width,
                          (long long)hf_width(&l->linear), activation_name(l->activation));
            width = hf_width(&l->linear);
        }
        if (l->norm.scale != NULL)
            text = append(b, text, " > LayerNorm");
        if (l->is_normalised)
            text = append(b, text, " > Normalize");
    }
    return o->is_normalised ? append(b, text, " > Normalize") : text;
}

status hf_describe_pooling(hf_builder *b, const char *folder, const hf_pooling *pooling,
                           const graph_import_options *options)
{
    encoder_output *o = &b->e->outputs[0];
    int64_t width = b->config->hidden * pooling->mode_count;
    *o = (encoder_output){.pooling = pooling->modes[0], .also_count = pooling->mode_count - 1};
    for (int i = 1; i < pooling->mode_count; i++)
        o->also[i - 1] = pooling->modes[i];
    b->e->output_count = 1;
    b->e->excludes_prompt = pooling->excludes_prompt;
    status s = STATUS_OK;
    for (int i = 0; s == STATUS_OK && i < pooling->module_count; i++) {
        const hf_module *m = &pooling->modules[i];
        if (m->kind == HF_NORMALIZE)
            normalise(b, i + 1 == pooling->module_count, o);
        else
            s = describe_module(b, folder, m, options, &width, o);
    }
    return s ? s : b->failed;
}
