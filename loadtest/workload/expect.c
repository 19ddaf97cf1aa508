#include "loadtest/workload/expect.h"

#include "base/dtype.h"
#include "loadtest/wire/memory.h"
#include "loadtest/workload/quantity.h"

#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct expect_line {
    json_t *json;
    _Atomic uint64_t right_hash; /* of the last correct body: equal bytes need no parsing */
} expect_line;

struct expect {
    expect_line *lines;
    size_t count;
    double tolerance;
};

status expect_load(expect **out, const char *path, double tolerance)
{
    char *text;
    size_t bytes, capacity = 0, number = 1;
    status s = quantity_read_file(path, &text, &bytes);
    if (s)
        return s;
    expect *e = memory_allocate(1, sizeof *e);
    e->tolerance = tolerance;
    for (char *at = text; at < text + bytes; number++) {
        char *newline = memchr(at, '\n', (size_t)(text + bytes - at));
        size_t line_bytes = newline ? (size_t)(newline - at) : (size_t)(text + bytes - at);
        if (strspn(at, " \t\r") < line_bytes) {
            if (e->count == capacity) {
                capacity = capacity ? capacity * 2 : 64;
                e->lines = memory_resize(e->lines, capacity, sizeof *e->lines);
            }
            json_error_t error;
            json_t *json =
                json_loadb(at, line_bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
            if (json == NULL) {
                s = status_fail(STATUS_INVALID_ARGUMENT, "%s:%zu: %s", path, number, error.text);
                break;
            }
            e->lines[e->count++] = (expect_line){.json = json};
        }
        at += line_bytes + 1;
    }
    free(text);
    if (!s && e->count == 0)
        s = status_fail(STATUS_INVALID_ARGUMENT, "%s contains no expected responses", path);
    if (s) {
        expect_destroy(e);
        return s;
    }
    *out = e;
    return STATUS_OK;
}

void expect_destroy(expect *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->count; i++)
        json_decref(e->lines[i].json);
    free(e->lines);
    free(e);
}

size_t expect_count(const expect *e)
{
    return e->count;
}

/* FNV-1a over words; equal hashes of 64 bits count as equal bytes. */
static uint64_t hash(const char *data, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; bytes >= 8; data += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)data[i]) * 0x100000001b3u;
    return h | 1; /* 0 means none yet */
}

static double number_at(dtype type, const char *data)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } v = {0};
    memcpy(&v, data, dtype_bytes(type));
    switch (type) {
    case DTYPE_BOOL:
    case DTYPE_U8:
        return v.u8;
    case DTYPE_I8:
        return v.i8;
    case DTYPE_U16:
        return v.u16;
    case DTYPE_I16:
        return v.i16;
    case DTYPE_U32:
        return v.u32;
    case DTYPE_I32:
        return v.i32;
    case DTYPE_U64:
        return (double)v.u64;
    case DTYPE_I64:
        return (double)v.i64;
    case DTYPE_F16:
        return dtype_f16_to_f32(v.u16);
    case DTYPE_BF16:
        return dtype_bf16_to_f32(v.u16);
    case DTYPE_F32:
        return v.f32;
    default:
        return v.f64;
    }
}

static json_t *decode_strings(const char *at, size_t bytes)
{
    json_t *data = json_array();
    while (bytes >= 4) {
        uint32_t length;
        memcpy(&length, at, 4);
        if (length > bytes - 4)
            break;
        json_array_append_new(data, json_stringn_nocheck(at + 4, length));
        at += 4 + length;
        bytes -= 4 + (size_t)length;
    }
    return data;
}

/* Gives every output that has a binary blob its "data". */
static void decode_binary(json_t *root, const char *at, size_t bytes)
{
    size_t i;
    json_t *output;
    json_array_foreach(json_object_get(root, "outputs"), i, output)
    {
        const json_t *size =
            json_object_get(json_object_get(output, "parameters"), "binary_data_size");
        const char *name = json_string_value(json_object_get(output, "datatype"));
        dtype type;
        if (!json_is_integer(size) || name == NULL ||
            !dtype_from_kserve_name(name, strlen(name), &type))
            continue;
        size_t blob = (size_t)json_integer_value(size);
        if (json_integer_value(size) < 0 || blob > bytes)
            return;
        json_t *data;
        if (type == DTYPE_BYTES) {
            data = decode_strings(at, blob);
        } else {
            data = json_array();
            for (size_t k = 0; k + dtype_bytes(type) <= blob; k += dtype_bytes(type))
                json_array_append_new(data, type == DTYPE_BOOL
                                                ? json_boolean(at[k])
                                                : json_real(number_at(type, at + k)));
        }
        json_object_set_new(output, "data", data);
        at += blob;
        bytes -= blob;
    }
}

typedef struct comparison {
    double tolerance;
    char path[128];
    char *reason;
    size_t reason_bytes;
} comparison;

static bool differ(const comparison *c, const char *what)
{
    snprintf(c->reason, c->reason_bytes, "%s: %s", c->path[0] ? c->path : "the response", what);
    return false;
}

static bool matches(comparison *c, const json_t *wanted, const json_t *got);

static bool object_matches(comparison *c, const json_t *wanted, const json_t *got)
{
    const char *key;
    json_t *value;
    size_t depth = strlen(c->path);
    json_object_foreach((json_t *)wanted, key, value)
    {
        snprintf(c->path + depth, sizeof c->path - depth, "%s%s", depth ? "." : "", key);
        const json_t *there = json_object_get(got, key);
        if (there == NULL)
            return differ(c, "missing");
        if (!matches(c, value, there))
            return false;
        c->path[depth] = 0;
    }
    return true;
}

static bool array_matches(comparison *c, const json_t *wanted, const json_t *got)
{
    size_t depth = strlen(c->path);
    if (json_array_size(wanted) != json_array_size(got))
        return differ(c, "the list has a different length");
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        snprintf(c->path + depth, sizeof c->path - depth, "[%zu]", i);
        if (!matches(c, json_array_get(wanted, i), json_array_get(got, i)))
            return false;
        c->path[depth] = 0;
    }
    return true;
}

static bool matches(comparison *c, const json_t *wanted, const json_t *got)
{
    if (json_is_number(wanted) && json_is_number(got)) {
        double a = json_number_value(wanted), b = json_number_value(got);
        double bound = c->tolerance * fmax(1, fabs(a));
        if (a == b || fabs(a - b) <= bound)
            return true;
        char text[80];
        snprintf(text, sizeof text, "expected %.9g, got %.9g", a, b);
        return differ(c, text);
    }
    if (json_typeof(wanted) != json_typeof(got))
        return differ(c, "the type differs");
    if (json_is_object(wanted))
        return object_matches(c, wanted, got);
    if (json_is_array(wanted))
        return array_matches(c, wanted, got);
    return json_equal(wanted, got) || differ(c, "the value differs");
}

bool expect_check(expect *e, size_t index, const response *a, char *reason, size_t reason_bytes)
{
    if (index >= e->count)
        return true;
    expect_line *line = &e->lines[index];
    uint64_t seen = hash(a->body.data, a->body.bytes);
    if (atomic_load_explicit(&line->right_hash, memory_order_relaxed) == seen)
        return true;
    size_t json_bytes = a->header_json_bytes ? a->header_json_bytes : a->body.bytes;
    if (json_bytes > a->body.bytes) {
        snprintf(reason, reason_bytes, "Inference-Header-Content-Length is beyond the body");
        return false;
    }
    json_error_t error;
    json_t *got = json_loadb(a->body.data ? a->body.data : "", json_bytes, JSON_DECODE_ANY, &error);
    if (got == NULL) {
        snprintf(reason, reason_bytes, "not JSON: %.120s", error.text);
        return false;
    }
    if (a->header_json_bytes != 0)
        decode_binary(got, a->body.data + json_bytes, a->body.bytes - json_bytes);
    comparison c = {.tolerance = e->tolerance, .reason = reason, .reason_bytes = reason_bytes};
    bool right = matches(&c, line->json, got);
    json_decref(got);
    if (right)
        atomic_store_explicit(&line->right_hash, seen, memory_order_relaxed);
    return right;
}
