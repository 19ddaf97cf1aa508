#include "server/protocol/write_infer.h"

#include <assert.h>
#include <string.h>

#include "server/protocol/text/base64.h"
#include "server/protocol/text/json_scan.h"
#include "server/protocol/text/number_write.h"
#include "server/protocol/text/text_write.h"

#define CHUNK 1024 /* elements between two checks of the room left */

static char *write_element(char *out, const tensor *t, int64_t i)
{
    switch (t->dtype) {
    case DTYPE_BOOL: {
        bool value = ((const uint8_t *)t->data)[i] != 0;
        memcpy(out, value ? "true" : "false", 5);
        return out + (value ? 4 : 5);
    }
    case DTYPE_U8:
        return number_write_u64(out, ((const uint8_t *)t->data)[i]);
    case DTYPE_U16:
        return number_write_u64(out, ((const uint16_t *)t->data)[i]);
    case DTYPE_U32:
        return number_write_u64(out, ((const uint32_t *)t->data)[i]);
    case DTYPE_U64:
        return number_write_u64(out, ((const uint64_t *)t->data)[i]);
    case DTYPE_I8:
        return number_write_i64(out, ((const int8_t *)t->data)[i]);
    case DTYPE_I16:
        return number_write_i64(out, ((const int16_t *)t->data)[i]);
    case DTYPE_I32:
        return number_write_i64(out, ((const int32_t *)t->data)[i]);
    case DTYPE_I64:
        return number_write_i64(out, ((const int64_t *)t->data)[i]);
    case DTYPE_F16:
        return number_write_f16(out, ((const uint16_t *)t->data)[i]);
    case DTYPE_BF16:
        return number_write_bf16(out, ((const uint16_t *)t->data)[i]);
    case DTYPE_F32:
        return number_write_f32(out, ((const float *)t->data)[i]);
    case DTYPE_F64:
        return number_write_f64(out, ((const double *)t->data)[i]);
    default:
        assert(false);
        return out;
    }
}

static void write_string(text_buffer *out, const tensor_string *s, bool as_base64)
{
    const char *data = (const char *)s->data;
    if (!as_base64 || json_is_utf8(data, s->bytes)) {
        text_write_json_string(out, data, s->bytes);
        return;
    }
    text_buffer_put(out, "{\"b64\":\"");
    char *room = text_buffer_reserve(out, (s->bytes + 2) / 3 * 4);
    if (room != NULL)
        out->bytes += (size_t)(base64_encode(room, s->data, s->bytes) - room);
    text_buffer_put(out, "\"}");
}

/* Elements [from, from + count), with commas. */
static void write_elements(text_buffer *out, const tensor *t, int64_t from, int64_t count,
                           bool as_base64)
{
    if (t->dtype == DTYPE_BYTES) {
        for (int64_t i = 0; i < count; i++) {
            if (i)
                text_buffer_put(out, ",");
            write_string(out, (const tensor_string *)t->data + from + i, as_base64);
        }
        return;
    }
    for (int64_t done = 0; done < count;) {
        int64_t n = count - done < CHUNK ? count - done : CHUNK;
        char *start = text_buffer_reserve(out, (size_t)n * (NUMBER_F64_CHARS + 1)), *at = start;
        if (start == NULL)
            return;
        for (int64_t i = 0; i < n; i++) {
            at = write_element(at, t, from + done + i);
            *at++ = ',';
        }
        done += n;
        if (done == count)
            at--;
        out->bytes += (size_t)(at - start);
    }
}

static void write_output(text_buffer *out, const infer_request *r, const infer_output *o)
{
    const job *j = r->jobs[0];
    const tensor *t = &j->outputs[o->index];
    const char *name = r->model->outputs[o->index].name;
    text_buffer_put(out, "{\"name\":");
    text_write_json_text(out, name);
    text_buffer_put(out, ",\"datatype\":\"");
    text_buffer_put(out, dtype_kserve_name(t->dtype));
    text_buffer_put(out, "\",\"shape\":[");
    for (int i = 0; i < t->rank; i++) {
        if (i)
            text_buffer_put(out, ",");
        text_write_i64(out, t->dims[i]);
    }
    if (o->region.name.bytes > 0) {
        /* Triton's C++ client takes "parameters" for a promise of binary bytes. */
        text_buffer_put(out, "]}");
        return;
    }
    if (o->is_binary) {
        text_buffer_put(out, "],\"parameters\":{\"binary_data_size\":");
        text_write_u64(out, write_binary_bytes(t));
        text_buffer_put(out, "}}");
        return;
    }
    text_buffer_put(out, "],\"data\":[");
    write_elements(out, t, 0, tensor_count(t), false);
    text_buffer_put(out, "]}");
}

void write_kserve(text_buffer *out, const infer_request *r)
{
    const model *m = r->model;
    text_buffer_put(out, "{\"model_name\":");
    text_write_json_text(out, m->name);
    text_buffer_put(out, ",\"model_version\":\"");
    text_write_i64(out, m->version);
    text_buffer_put(out, "\"");
    if (r->id.text != NULL) {
        text_buffer_put(out, ",\"id\":");
        text_write_json_string(out, r->id.text, r->id.bytes);
    }
    text_buffer_put(out, ",\"outputs\":[");
    for (int i = 0; i < r->output_count; i++) {
        if (i)
            text_buffer_put(out, ",");
        write_output(out, r, &r->outputs[i]);
    }
    text_buffer_put(out, "]}");
}

/* Nested arrays from `axis` on; returns how many elements were written. */
static int64_t write_nested(text_buffer *out, const tensor *t, int axis, int64_t from)
{
    if (axis == t->rank) {
        write_elements(out, t, from, 1, true);
        return 1;
    }
    text_buffer_put(out, "[");
    int64_t written = 0;
    if (axis == t->rank - 1) {
        written = t->dims[axis];
        write_elements(out, t, from, written, true);
    } else {
        for (int64_t i = 0; i < t->dims[axis]; i++) {
            if (i)
                text_buffer_put(out, ",");
            written += write_nested(out, t, axis + 1, from + written);
        }
    }
    text_buffer_put(out, "]");
    return written;
}

/* Row `row` of the request, of one output. */
static void write_row(text_buffer *out, const infer_request *r, int output, int64_t row)
{
    const infer_row *where = &r->rows[row];
    const tensor *t = &r->jobs[where->job]->outputs[output];
    int64_t per_row = 1;
    for (int i = 1; i < t->rank; i++)
        per_row *= t->dims[i];
    write_nested(out, t, 1, where->row * per_row);
}

static void write_column(text_buffer *out, const infer_request *r, int output)
{
    /* An output without the batch axis is written once. */
    if (r->model->outputs[output].batch_axis != 0) {
        write_nested(out, &r->jobs[0]->outputs[output], 0, 0);
        return;
    }
    text_buffer_put(out, "[");
    for (int64_t row = 0; row < r->row_count; row++) {
        if (row)
            text_buffer_put(out, ",");
        write_row(out, r, output, row);
    }
    text_buffer_put(out, "]");
}

static void write_name(text_buffer *out, const infer_request *r, int output)
{
    const char *name = r->model->outputs[output].name;
    text_write_json_text(out, name);
    text_buffer_put(out, ":");
}

static void write_prediction(text_buffer *out, const infer_request *r, int64_t row)
{
    bool is_named = r->model->output_count != 1;
    for (int i = 0; i < r->output_count; i++) {
        text_buffer_put(out, is_named ? (i ? "," : "{") : "");
        if (is_named)
            write_name(out, r, i);
        if (r->model->outputs[i].batch_axis == 0)
            write_row(out, r, i, row);
        else
            write_nested(out, &r->jobs[0]->outputs[i], 0, 0);
    }
    text_buffer_put(out, is_named ? "}" : "");
}

/* The numbers of all outputs, one after the other. */
static void write_fields(text_buffer *out, const infer_request *r, int64_t row)
{
    const infer_row *where = &r->rows[row];
    for (int i = 0; i < r->output_count; i++) {
        bool is_row = r->model->outputs[i].batch_axis == 0;
        const tensor *t = &r->jobs[is_row ? where->job : 0]->outputs[i];
        int64_t count = 1;
        for (int d = is_row; d < t->rank; d++)
            count *= t->dims[d];
        text_buffer_put(out, i ? "," : "");
        write_elements(out, t, is_row ? where->row * count : 0, count, true);
    }
}

static void write_lines(text_buffer *out, const infer_request *r)
{
    for (int64_t row = 0; row < r->row_count; row++) {
        if (r->rows_as == INFER_ROWS_CSV)
            write_fields(out, r, row);
        else
            write_prediction(out, r, row);
        text_buffer_put(out, "\n");
    }
}

void write_tensorflow(text_buffer *out, const infer_request *r)
{
    bool is_rows = r->protocol == INFER_TENSORFLOW_ROWS, is_named = r->model->output_count != 1;
    if (is_rows && r->rows_as != INFER_ROWS_JSON) {
        write_lines(out, r);
        return;
    }
    text_buffer_put(out, is_rows ? "{\"predictions\":[" : "{\"outputs\":");
    if (is_rows) {
        for (int64_t row = 0; row < r->row_count; row++) {
            text_buffer_put(out, row ? "," : "");
            write_prediction(out, r, row);
        }
        text_buffer_put(out, "]}");
        return;
    }
    for (int i = 0; i < r->output_count; i++) {
        text_buffer_put(out, is_named ? (i ? "," : "{") : "");
        if (is_named)
            write_name(out, r, i);
        write_column(out, r, i);
    }
    text_buffer_put(out, is_named ? "}}" : "}");
}

size_t write_binary_bytes(const tensor *t)
{
    return t->dtype == DTYPE_BYTES ? write_strings_bytes(t) : tensor_bytes(t);
}

size_t write_strings_bytes(const tensor *t)
{
    const tensor_string *strings = t->data;
    size_t bytes = 0;
    for (int64_t i = 0, count = tensor_count(t); i < count; i++)
        bytes += sizeof(uint32_t) + strings[i].bytes;
    return bytes;
}

void write_strings(char *out, const tensor *t)
{
    const tensor_string *strings = t->data;
    for (int64_t i = 0, count = tensor_count(t); i < count; i++) {
        uint32_t length = (uint32_t)strings[i].bytes;
        memcpy(out, &length, sizeof(length)); /* little-endian hosts only, as all of ours */
        memcpy(out + sizeof(length), strings[i].data, length);
        out += sizeof(length) + length;
    }
}
