#include "server/protocol/tensor_scan.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "server/protocol/text/base64.h"
#include "server/protocol/text/number_scan.h"

/* To 16 bits in one rounding: binary32 rounded to odd keeps what the second step needs. */
static float round_to_odd(double value)
{
    float f = (float)value;
    if (!isfinite(f) || (double)f == value)
        return f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    if ((bits & 1) == 0) {
        bool is_away = fabs((double)f) > fabs(value);
        bits += is_away ? -1u : 1u;
        memcpy(&f, &bits, sizeof(f));
    }
    return f;
}

static status fail_range(const json_scan *s, dtype type)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "JSON at byte %zu: not a value of %s",
                       (size_t)(s->at - s->start), dtype_kserve_name(type));
}

static status store_integer(const json_scan *s, const number *n, dtype type, void *data,
                            int64_t index)
{
    if (dtype_is_signed(type)) {
        int64_t v;
        if (!number_to_i64(n, &v) || v < dtype_integer_min(type) ||
            (v > 0 && (uint64_t)v > dtype_integer_max(type)))
            return fail_range(s, type);
        switch (type) {
        case DTYPE_I8:
            ((int8_t *)data)[index] = (int8_t)v;
            break;
        case DTYPE_I16:
            ((int16_t *)data)[index] = (int16_t)v;
            break;
        case DTYPE_I32:
            ((int32_t *)data)[index] = (int32_t)v;
            break;
        default:
            ((int64_t *)data)[index] = v;
            break;
        }
        return STATUS_OK;
    }
    uint64_t v;
    if (!number_to_u64(n, &v) || v > dtype_integer_max(type))
        return fail_range(s, type);
    switch (type) {
    case DTYPE_U8:
        ((uint8_t *)data)[index] = (uint8_t)v;
        break;
    case DTYPE_U16:
        ((uint16_t *)data)[index] = (uint16_t)v;
        break;
    case DTYPE_U32:
        ((uint32_t *)data)[index] = (uint32_t)v;
        break;
    default:
        ((uint64_t *)data)[index] = v;
        break;
    }
    return STATUS_OK;
}

/* Whether a number that is written in digits has become infinite. */
static bool overflows(const number *n, double stored)
{
    return n->kind == NUMBER_DECIMAL && isinf(stored);
}

/* Floating point: rounded to the type; false: there is no such value. */
static bool store_float(const number *n, dtype type, void *data, int64_t index)
{
    switch (type) {
    case DTYPE_F32: {
        float value = number_to_f32(n);
        ((float *)data)[index] = value;
        return !overflows(n, value);
    }
    case DTYPE_F64: {
        double value = number_to_f64(n);
        ((double *)data)[index] = value;
        return !overflows(n, value);
    }
    case DTYPE_F16: {
        uint16_t value = dtype_f32_to_f16(round_to_odd(number_to_f64(n)));
        ((uint16_t *)data)[index] = value;
        return !overflows(n, dtype_f16_to_f32(value));
    }
    default: {
        uint16_t value = dtype_f32_to_bf16(round_to_odd(number_to_f64(n)));
        ((uint16_t *)data)[index] = value;
        return !overflows(n, dtype_bf16_to_f32(value));
    }
    }
}

static status store_number(json_scan *s, tensor_scan *t)
{
    number n;
    const char *after = number_scan(s->at, s->end, &n);
    if (after == NULL)
        return json_fail(s, "a number");
    if (n.kind != NUMBER_DECIMAL && s->is_strict)
        return json_fail(s, "a finite number");
    status failure = STATUS_OK;
    if (!dtype_is_float(t->dtype))
        failure = store_integer(s, &n, t->dtype, t->data, t->count);
    else if (!store_float(&n, t->dtype, t->data, t->count))
        failure = fail_range(s, t->dtype);
    if (failure)
        return failure;
    s->at = after;
    return STATUS_OK;
}

static status read_base64_object(json_scan *s, json_string *out)
{
    json_object o;
    json_string key, text;
    bool has_key;
    status failure = json_open_object(s, &o);
    if (!failure)
        failure = json_object_next(s, &o, &key, &has_key);
    if (failure)
        return failure;
    if (!has_key || !json_string_is(key, "b64"))
        return json_fail(s, "{\"b64\": \"...\"}");
    if ((failure = json_read_string(s, &text)))
        return failure;
    uint8_t *bytes = arena_allocate(s->memory, text.bytes / 4 * 3 + 3);
    if (bytes == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of base64", text.bytes);
    size_t count;
    if (!base64_decode(text.text, text.bytes, bytes, &count))
        return json_fail(s, "base64 before this");
    if ((failure = json_object_next(s, &o, &key, &has_key)))
        return failure;
    if (has_key)
        return json_fail(s, "{\"b64\": \"...\"} alone");
    *out = (json_string){(const char *)bytes, count};
    return STATUS_OK;
}

static status store_element(json_scan *s, tensor_scan *t)
{
    status failure;
    if (t->count == t->capacity) {
        if (t->grow == NULL)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "JSON at byte %zu: more than the %lld elements of the shape",
                               (size_t)(s->at - s->start), (long long)t->capacity);
        if ((failure = t->grow(t)))
            return failure;
    }
    if (t->dtype == DTYPE_BYTES) {
        json_string text;
        failure = json_peek(s) == '{' && t->takes_base64 ? read_base64_object(s, &text)
                                                         : json_read_string(s, &text);
        if (failure)
            return failure;
        /* The JSON text may go before the job that reads the tensor is done. */
        if (text.text >= s->start && text.text < s->end)
            text.text = arena_copy_string(s->memory, text.text, text.bytes);
        if (text.text == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a string");
        ((tensor_string *)t->data)[t->count] =
            (tensor_string){(const uint8_t *)text.text, text.bytes};
    } else if (t->dtype == DTYPE_BOOL) {
        bool value;
        if ((failure = json_read_bool(s, &value)))
            return failure;
        ((uint8_t *)t->data)[t->count] = value;
    } else if ((failure = store_number(s, t))) {
        return failure;
    }
    t->count++;
    return STATUS_OK;
}

static status fail_ragged(const json_scan *s)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "JSON at byte %zu: nested arrays of different lengths",
                       (size_t)(s->at - s->start));
}

status tensor_scan_value(json_scan *s, tensor_scan *t)
{
    int depth = 0, leaf = -1, bottom = s->depth;
    int64_t found[TENSOR_RANK_MAX + 1] = {0}; /* elements so far of the open array at a depth */
    int64_t lengths[TENSOR_RANK_MAX + 1];     /* of the first closed one; -1: none yet */
    for (int i = 0; i <= TENSOR_RANK_MAX; i++)
        lengths[i] = -1;
    for (;;) {
        char c = json_peek(s);
        status failure = json_step(s);
        if (failure)
            return failure;
        if (c == '[') {
            if (depth == TENSOR_RANK_MAX || depth == leaf)
                return depth == leaf ? fail_ragged(s) : json_fail(s, "at most 8 dimensions");
            if ((failure = json_open_array(s)))
                return failure;
            found[++depth] = 0;
            if (json_peek(s) != ']')
                continue;
            if (leaf >= 0 && leaf != depth)
                return fail_ragged(s);
            leaf = depth;
        } else {
            if (leaf >= 0 && leaf != depth)
                return fail_ragged(s);
            leaf = depth;
            if ((failure = store_element(s, t)))
                return failure;
            found[depth]++;
        }
        for (;;) { /* after a value: the next, or the ends of arrays */
            if (depth == 0) {
                assert(s->depth == bottom);
                t->rank = leaf;
                for (int i = 0; i < leaf; i++)
                    t->dims[i] = lengths[i + 1];
                return STATUS_OK;
            }
            c = json_peek(s);
            if (c == ',' && found[depth] > 0) {
                s->at++;
                break;
            }
            if (c != ']')
                return json_fail(s, "',' or ']'");
            if (lengths[depth] >= 0 && lengths[depth] != found[depth])
                return fail_ragged(s);
            lengths[depth] = found[depth];
            s->at++;
            s->depth--;
            found[--depth]++;
        }
    }
}
