#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/hugging_face/hugging_face.h"

bool hf_is_there(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    return value != NULL && !json_is_null(value);
}

status hf_read_size(const json_t *json, const char *key, int64_t otherwise, int64_t at_least,
                    int64_t at_most, int64_t *out)
{
    const json_t *value = json_object_get(json, key);
    int64_t size = json_is_integer(value) ? json_integer_value(value) : otherwise;
    if (hf_is_there(json, key) && !json_is_integer(value))
        return status_fail(STATUS_CORRUPT, "config.json: %s is not an integer", key);
    if (size < at_least || size > at_most)
        return status_fail(STATUS_CORRUPT, "config.json: %s is %snot within %lld to %lld", key,
                           hf_is_there(json, key) ? "" : "missing, or ", (long long)at_least,
                           (long long)at_most);
    *out = size;
    return STATUS_OK;
}

status hf_read_said(const json_t *json, const char *key, int64_t *out)
{
    *out = 0;
    return hf_is_there(json, key) ? hf_read_size(json, key, 0, 1, INT_MAX, out) : STATUS_OK;
}

status hf_read_sizes(const json_t *json, const hf_keys *k, const hf_sizes *otherwise, hf_config *c)
{
    status s = hf_read_size(json, k->hidden, otherwise->hidden, 1, 65536, &c->hidden);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->layers, otherwise->layers, 1, HF_LAYERS_MAX, &c->layers);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->heads, otherwise->heads, 1, 4096, &c->heads);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->intermediate,
                         otherwise->intermediate > 0 ? otherwise->intermediate : 4 * c->hidden, 1,
                         1 << 24, &c->intermediate);
    if (s == STATUS_OK)
        s = hf_read_said(json, "vocab_size", &c->vocabulary);
    if (s == STATUS_OK && c->hidden % c->heads != 0)
        s = status_fail(STATUS_CORRUPT, "config.json: %s %lld is not a multiple of %s, %lld",
                        k->hidden, (long long)c->hidden, k->heads, (long long)c->heads);
    if (s)
        return s;
    c->kv_heads = c->heads;
    c->head_dim = c->hidden / c->heads;
    return STATUS_OK;
}

status hf_read_real(const json_t *json, const char *key, double otherwise, double at_least,
                    double at_most, double *out)
{
    const json_t *value = json_object_get(json, key);
    *out = otherwise;
    if (!hf_is_there(json, key))
        return STATUS_OK;
    *out = json_number_value(value);
    if (json_is_number(value) && *out >= at_least && *out <= at_most)
        return STATUS_OK;
    return status_fail(STATUS_CORRUPT, "config.json: %s is not a number within %g to %g", key,
                       at_least, at_most);
}

status hf_read_text(const json_t *json, const char *key, const char *otherwise, const char **out)
{
    const json_t *value = json_object_get(json, key);
    if (hf_is_there(json, key) && !json_is_string(value))
        return status_fail(STATUS_CORRUPT, "config.json: %s is not a string", key);
    *out = json_is_string(value) ? json_string_value(value) : otherwise;
    return STATUS_OK;
}

status hf_copy_text(const json_t *json, const char *key, const char *otherwise, char out[40])
{
    const char *text;
    status s = hf_read_text(json, key, otherwise, &text);
    if (s == STATUS_OK)
        snprintf(out, 40, "%s", text);
    return s;
}

static bool is_supported(const json_t *value, const hf_setting *s)
{
    switch (s->kind) {
    case HF_FALSE:
        return json_is_false(value);
    case HF_TRUE:
        return json_is_true(value);
    case HF_NULL:
        return false; /* it is there */
    case HF_TEXT:
        return json_is_string(value) && strcmp(json_string_value(value), s->text) == 0;
    case HF_NUMBER:
        return json_is_number(value) && json_number_value(value) == s->number;
    }
    return false;
}

status hf_check_settings(const json_t *json, size_t count, const hf_setting *settings)
{
    static const char *const kinds[] = {"false", "true", "null"};
    for (size_t i = 0; i < count; i++) {
        const hf_setting *s = &settings[i];
        const json_t *value = json_object_get(json, s->key);
        if (!hf_is_there(json, s->key) || is_supported(value, s))
            continue;
        if (s->kind <= HF_TRUE && !json_is_boolean(value))
            return status_fail(STATUS_CORRUPT, "config.json: %s is neither true nor false", s->key);
        char *is = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        char wanted[40];
        if (s->kind == HF_NUMBER)
            snprintf(wanted, sizeof wanted, "%g", s->number);
        else
            snprintf(wanted, sizeof wanted, "%s", s->kind == HF_TEXT ? s->text : kinds[s->kind]);
        status failure = status_fail(STATUS_UNSUPPORTED, "config.json: %s is %.100s; supported: %s",
                                     s->key, is != NULL ? is : "?", wanted);
        free(is);
        return failure;
    }
    return STATUS_OK;
}

/* The scaling that the object `rope` names; theta has been read. */
static status read_scaling(const json_t *rope, const char *theta_key, hf_rotary *out)
{
    const char *type;
    status s = hf_read_text(rope, "type", "default", &type);
    if (s == STATUS_OK)
        s = hf_read_text(rope, "rope_type", type, &type);
    if (s == STATUS_OK)
        s = hf_read_real(rope, "rope_theta", out->theta, 1, 1e12, &out->theta);
    double partial = 1, factor = 1;
    if (s == STATUS_OK)
        s = hf_read_real(rope, "partial_rotary_factor", 1, 0, 1, &partial);
    if (s == STATUS_OK)
        s = hf_read_real(rope, "factor", 1, 1, 1e6, &factor);
    if (s)
        return s;
    if (partial != 1)
        return status_fail(STATUS_UNSUPPORTED,
                           "config.json: partial_rotary_factor is %g; supported: 1", partial);
    if (hf_is_there(rope, "mixed_b"))
        return status_fail(STATUS_UNSUPPORTED, "config.json: mixed_b is not supported");
    if (strcmp(type, "linear") == 0)
        out->factor = factor;
    else if (strcmp(type, "ntk") == 0)
        out->ntk = factor;
    else if (strcmp(type, "default") != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "config.json: rope type '%s' (beside %s); supported: default, linear, "
                           "ntk",
                           type, theta_key);
    return STATUS_OK;
}

/* `rope` is the value of a key, or absent. */
static status read_scaling_of(const json_t *rope, const char *key, const char *theta_key,
                              hf_rotary *out)
{
    if (rope == NULL || json_is_null(rope))
        return STATUS_OK;
    if (!json_is_object(rope))
        return status_fail(STATUS_CORRUPT, "config.json: %s is not an object", key);
    status s = read_scaling(rope, theta_key, out);
    return s ? status_prefix(s, "%s", key) : STATUS_OK;
}

status hf_read_rotary(const json_t *json, const char *theta_key, double theta, const char *key,
                      hf_rotary *out)
{
    *out = (hf_rotary){.factor = 1, .ntk = 1};
    status s = hf_read_real(json, theta_key, theta, 1, 1e12, &out->theta);
    if (s == STATUS_OK)
        s = read_scaling_of(json_object_get(json, "rope_scaling"), "rope_scaling", theta_key, out);
    const json_t *parameters = json_object_get(json, "rope_parameters");
    if (s == STATUS_OK && key != NULL && json_is_object(parameters))
        parameters = json_object_get(parameters, key);
    return s ? s : read_scaling_of(parameters, "rope_parameters", theta_key, out);
}

status hf_read_layer_types(const json_t *json, hf_config *c)
{
    const json_t *types = json_object_get(json, "layer_types");
    for (int64_t i = 0; i < c->layers && hf_is_there(json, "layer_types"); i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        bool is_local = type != NULL && strcmp(type, "sliding_attention") == 0;
        if (type == NULL || (!is_local && strcmp(type, "full_attention") != 0))
            return status_fail(
                STATUS_UNSUPPORTED,
                "config.json: layer_types: layer %lld of num_hidden_layers, %lld, is "
                "'%.80s'; supported: full_attention, sliding_attention",
                (long long)i, (long long)c->layers, type != NULL ? type : "not there");
        c->is_local[i] = is_local;
    }
    return STATUS_OK;
}
