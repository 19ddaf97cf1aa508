#include "loadtest/workload/request_source.h"

#include "loadtest/wire/memory.h"
#include "loadtest/workload/random.h"
#include "loadtest/workload/text_body.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX (64u << 20)
#define POOL_DEFAULT 512
#define BYTES_MAX_DEFAULT ((size_t)1 << 30)
#define UNASKED_SHARE 8 /* without --pool, an eighth of the limit */

/* How an input is filled. */
typedef enum filling { FILL_IDS, FILL_ONES, FILL_ZEROS, FILL_POSITIONS, FILL_RANDOM } filling;

static bool contains(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static filling filling_of(const metadata_input *input)
{
    if (contains(input->name, "mask"))
        return FILL_ONES;
    if (contains(input->name, "token_type") || contains(input->name, "segment"))
        return FILL_ZEROS;
    if (contains(input->name, "position"))
        return FILL_POSITIONS;
    if (dtype_is_integer(input->type) &&
        (contains(input->name, "ids") || contains(input->name, "token") ||
         contains(input->name, "tokens")))
        return FILL_IDS;
    return FILL_RANDOM;
}

/* The input that token ids of a file go to: the first that looks like one, else the first of
 * integers. SIZE_MAX if there is none. */
static size_t ids_input(const metadata *m)
{
    for (size_t i = 0; i < m->input_count; i++)
        if (filling_of(&m->inputs[i]) == FILL_IDS)
            return i;
    for (size_t i = 0; i < m->input_count; i++)
        if (dtype_is_integer(m->inputs[i].type))
            return i;
    return SIZE_MAX;
}

/* One input of one request, about to be written. */
typedef struct filled {
    const metadata_input *input;
    filling how;
    int64_t dimensions[METADATA_DIMENSIONS_MAX];
    uint64_t count;
    uint32_t length; /* of the last dimension, for position ids */
    const int64_t *ids;
    uint64_t ids_count;
    uint32_t vocabulary;
} filled;

static status plan(filled *f, const source_options *o, const metadata_input *input, uint32_t length)
{
    *f = (filled){.input = input, .how = filling_of(input), .count = 1};
    f->vocabulary = o->vocabulary;
    for (int d = 0; d < input->dimension_count; d++) {
        int64_t size = input->dimensions[d];
        if (size < 0)
            size = d == 0 && (input->dimension_count > 1 || o->format == SOURCE_TENSORFLOW)
                       ? o->rows
                       : length;
        f->dimensions[d] = size;
        f->count *= (uint64_t)size;
        if (f->count > ELEMENTS_MAX)
            return status_fail(STATUS_UNSUPPORTED, "input %s would have over %u values",
                               input->name, ELEMENTS_MAX);
    }
    f->length = input->dimension_count ? (uint32_t)f->dimensions[input->dimension_count - 1] : 1;
    return STATUS_OK;
}

static int64_t integer_at(const filled *f, uint64_t i, random_state *r)
{
    switch (f->how) {
    case FILL_ONES:
        return 1;
    case FILL_ZEROS:
        return 0;
    case FILL_POSITIONS:
        return (int64_t)(f->length ? i % f->length : 0);
    default:
        break;
    }
    if (f->ids != NULL)
        return f->ids[i % f->ids_count];
    uint64_t bound = f->how == FILL_IDS ? f->vocabulary : 100;
    uint64_t most = dtype_integer_max(f->input->type);
    return (int64_t)random_below(r, bound - 1 < most ? bound : most);
}

static double float_at(const filled *f, random_state *r)
{
    return f->how == FILL_ONES ? 1 : f->how == FILL_ZEROS ? 0 : random_unit(r);
}

/* The value of a BYTES input: five letters. */
static void word(char out[6], random_state *r)
{
    for (int i = 0; i < 5; i++)
        out[i] = (char)('a' + random_below(r, 26));
    out[5] = 0;
}

static void write_json_value(text_buffer *b, const filled *f, uint64_t i, random_state *r)
{
    char text[8];
    switch (f->input->type) {
    case DTYPE_BOOL:
        text_buffer_put(b, f->how == FILL_ONES || (f->how == FILL_RANDOM && random_below(r, 2))
                               ? "true"
                               : "false");
        break;
    case DTYPE_F16:
    case DTYPE_BF16:
    case DTYPE_F32:
    case DTYPE_F64:
        text_buffer_format(b, "%.6g", float_at(f, r));
        break;
    case DTYPE_BYTES:
        word(text, r);
        text_buffer_format(b, "\"%s\"", text);
        break;
    default:
        text_buffer_format(b, "%" PRId64, integer_at(f, i, r));
    }
}

static void write_binary_value(text_buffer *b, const filled *f, uint64_t i, random_state *r)
{
    char text[8];
    switch (f->input->type) {
    case DTYPE_BOOL:
        text_buffer_append(b, f->how == FILL_ONES ? "\1" : random_below(r, 2) ? "\1" : "\0", 1);
        break;
    case DTYPE_F16:
    case DTYPE_BF16: {
        float value = (float)float_at(f, r);
        uint16_t half =
            f->input->type == DTYPE_F16 ? dtype_f32_to_f16(value) : dtype_f32_to_bf16(value);
        text_buffer_append(b, &half, 2);
        break;
    }
    case DTYPE_F32:
        text_buffer_append(b, &(float){(float)float_at(f, r)}, 4);
        break;
    case DTYPE_F64:
        text_buffer_append(b, &(double){float_at(f, r)}, 8);
        break;
    case DTYPE_BYTES:
        word(text, r);
        text_buffer_append(b, &(uint32_t){5}, 4);
        text_buffer_append(b, text, 5);
        break;
    default: {
        int64_t value = integer_at(f, i, r); /* little-endian: its low bytes are the value */
        text_buffer_append(b, &value, dtype_bytes(f->input->type));
    }
    }
}

/* Values of one row as JSON lists nested by `dimensions`. */
static void write_nested(text_buffer *b, const filled *f, int dimension, uint64_t *i,
                         random_state *r)
{
    if (dimension == f->input->dimension_count) {
        write_json_value(b, f, (*i)++, r);
        return;
    }
    text_buffer_put(b, "[");
    for (int64_t k = 0; k < f->dimensions[dimension]; k++) {
        if (k != 0)
            text_buffer_put(b, ",");
        write_nested(b, f, dimension + 1, i, r);
    }
    text_buffer_put(b, "]");
}

static void write_kserve(text_buffer *b, uint64_t *header_json_bytes, const filled *all,
                         size_t count, bool binary, random_state *r)
{
    text_buffer blobs = {0};
    text_buffer_put(b, "{\"inputs\":[");
    for (size_t k = 0; k < count; k++) {
        const filled *f = &all[k];
        text_buffer_format(b, "%s{\"name\":\"%s\",\"shape\":[", k ? "," : "", f->input->name);
        for (int d = 0; d < f->input->dimension_count; d++)
            text_buffer_format(b, "%s%" PRId64, d ? "," : "", f->dimensions[d]);
        text_buffer_format(b, "],\"datatype\":\"%s\",", dtype_kserve_name(f->input->type));
        size_t before = blobs.bytes;
        for (uint64_t i = 0; i < f->count; i++) {
            if (binary) {
                write_binary_value(&blobs, f, i, r);
            } else {
                text_buffer_put(b, i ? "," : "\"data\":[");
                write_json_value(b, f, i, r);
            }
        }
        if (binary)
            text_buffer_format(b, "\"parameters\":{\"binary_data_size\":%zu}}",
                               blobs.bytes - before);
        else
            text_buffer_put(b, f->count ? "]}" : "\"data\":[]}");
    }
    text_buffer_put(b, binary ? "],\"parameters\":{\"binary_data_output\":true}}" : "]}");
    *header_json_bytes = binary ? b->bytes : 0;
    text_buffer_append(b, blobs.data, blobs.bytes);
    text_buffer_dispose(&blobs);
}

static void write_tensorflow(text_buffer *b, const filled *all, size_t count, uint32_t rows,
                             random_state *r)
{
    text_buffer_put(b, "{\"instances\":[");
    for (uint32_t row = 0; row < rows; row++) {
        text_buffer_put(b, row ? "," : "");
        if (count > 1)
            text_buffer_put(b, "{");
        for (size_t k = 0; k < count; k++) {
            const filled *f = &all[k];
            uint64_t i = f->count / rows * row;
            if (count > 1)
                text_buffer_format(b, "%s\"%s\":", k ? "," : "", f->input->name);
            write_nested(b, f, f->input->dimension_count ? 1 : 0, &i, r);
        }
        if (count > 1)
            text_buffer_put(b, "}");
    }
    text_buffer_put(b, "]}");
}

status request_source_write(text_buffer *body, uint64_t *header_json_bytes, const source_options *o,
                            const metadata *m, uint32_t length, const int64_t *ids, random_state *r)
{
    filled *all = memory_allocate(m->input_count, sizeof *all);
    size_t id_place = ids ? ids_input(m) : SIZE_MAX;
    status s = STATUS_OK;
    for (size_t k = 0; k < m->input_count && !s; k++) {
        s = plan(&all[k], o, &m->inputs[k], length);
        if (k == id_place) {
            all[k].ids = ids;
            all[k].ids_count = length;
        }
    }
    *header_json_bytes = 0;
    if (!s && o->format == SOURCE_TENSORFLOW)
        write_tensorflow(body, all, m->input_count, o->rows, r);
    else if (!s)
        write_kserve(body, header_json_bytes, all, m->input_count,
                     o->format == SOURCE_KSERVE_BINARY, r);
    text_buffer_require(body, 0);
    free(all);
    return s;
}

void request_source_payload(payload *p, const char *body, size_t body_bytes,
                            uint64_t header_json_bytes, const request_head *head)
{
    *p = (payload){.body = memory_copy_string(body, body_bytes),
                   .body_bytes = body_bytes,
                   .header_json_bytes = header_json_bytes};
    if (body_bytes != 0)
        p->content_type = header_json_bytes ? "application/octet-stream" : "application/json";
    snprintf(p->length_text, sizeof p->length_text, "%zu", body_bytes);
    snprintf(p->header_json_text, sizeof p->header_json_text, "%" PRIu64, header_json_bytes);
    text_buffer b = {0};
    text_buffer_format(&b, "%s %s HTTP/1.1\r\nhost: %s\r\n", head->method, head->path,
                       head->authority);
    for (size_t i = 0; i < head->header_count; i++)
        text_buffer_format(&b, "%s: %s\r\n", head->headers[i].name, head->headers[i].value);
    if (p->content_type != NULL)
        text_buffer_format(&b, "content-type: %s\r\ncontent-length: %s\r\n", p->content_type,
                           p->length_text);
    else if (strcmp(head->method, "GET") != 0)
        text_buffer_put(&b, "content-length: 0\r\n");
    if (header_json_bytes != 0)
        text_buffer_format(&b, "inference-header-content-length: %s\r\n", p->header_json_text);
    text_buffer_put(&b, "\r\n");
    text_buffer_append(&b, body, body_bytes);
    p->http1_bytes = b.bytes;
    p->http1 = text_buffer_string(&b);
}

/* Payloads as they are made. */
typedef struct collection {
    request_source *source;
    const request_head *head;
    size_t capacity, bytes, bytes_max;
} collection;

static status add_payload(collection *to, const text_buffer *body, uint64_t json_bytes,
                          uint32_t tokens)
{
    request_source *s = to->source;
    to->bytes += body->bytes;
    if (to->bytes > to->bytes_max)
        return status_fail(STATUS_TOO_LARGE,
                           "the bodies of the first %zu requests exceed the limit of %zu MiB: use "
                           "a smaller --pool, shorter --lengths, fewer --rows or fewer lines",
                           s->count + 1, to->bytes_max >> 20);
    if (s->count == to->capacity) {
        to->capacity = to->capacity ? to->capacity * 2 : 64;
        s->payloads = memory_resize(s->payloads, to->capacity, sizeof *s->payloads);
    }
    payload *p = &s->payloads[s->count];
    request_source_payload(p, body->data, body->bytes, json_bytes, to->head);
    p->index = (uint32_t)s->count++;
    p->tokens = tokens;
    return STATUS_OK;
}

static status no_ids(const char *found)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "expected token ids such as [101, 2054, 102], found \"%.40s\"", found);
}

/* One token id at `*at`, which moves behind it. */
static status read_id(const char **at, dtype type, int64_t *id)
{
    char *end;
    errno = 0;
    *id = strtoll(*at, &end, 10);
    if (end == *at)
        return no_ids(*at);
    bool fits = errno != ERANGE && *id >= dtype_integer_min(type) &&
                (*id < 0 || (uint64_t)*id <= dtype_integer_max(type));
    if (!fits)
        return status_fail(STATUS_INVALID_ARGUMENT, "%.*s does not fit in %s", (int)(end - *at),
                           *at, dtype_kserve_name(type));
    *at = end;
    return STATUS_OK;
}

/* "[1, 2]", "1 2" or "1,2": numbers of that type, at most LENGTH_MAX. */
static status read_ids(const char *line, dtype type, int64_t *ids, size_t *count)
{
    const char *at = line + strspn(line, " \t");
    bool bracket = *at == '[';
    at += bracket;
    *count = 0;
    for (;;) {
        at += strspn(at, " \t");
        if (*count == LENGTH_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT, "a request has at most %d tokens",
                               LENGTH_MAX);
        status s = read_id(&at, type, &ids[*count]);
        if (s)
            return s;
        ++*count;
        size_t spaces = strspn(at, " \t");
        at += spaces;
        if (*at == ',')
            at++;
        else if (*at == 0 || *at == ']' || spaces == 0)
            break;
    }
    bool closed = *at == ']';
    at += closed;
    return closed == bracket && at[strspn(at, " \t")] == 0 ? STATUS_OK : no_ids(line);
}

/* A line of --ids as a request. `ids` has room for LENGTH_MAX. */
static status add_ids(collection *to, const source_options *o, const metadata *m, const char *line,
                      int64_t *ids, random_state *r)
{
    size_t place = ids_input(m), count;
    dtype type = place == SIZE_MAX ? DTYPE_I64 : m->inputs[place].type;
    status s = read_ids(line, type, ids, &count);
    if (s)
        return s;
    text_buffer body = {0};
    uint64_t json_bytes;
    s = request_source_write(&body, &json_bytes, o, m, (uint32_t)count, ids, r);
    if (!s)
        s = add_payload(to, &body, json_bytes, (uint32_t)count * o->rows);
    text_buffer_dispose(&body);
    return s;
}

/* A line of --text as a request. */
static status add_text(collection *to, const source_options *o, const char *line)
{
    text_buffer body = {0};
    status s = text_body_write(&body, o->format, o->model, line);
    if (!s)
        s = add_payload(to, &body, 0, 0);
    text_buffer_dispose(&body);
    return s;
}

static status add_lines(collection *to, const source_options *o, const metadata *m, random_state *r)
{
    const char *path = o->ids_file ? o->ids_file : o->text_file ? o->text_file : o->data_file;
    char *text;
    size_t bytes, number = 1;
    status failed = quantity_read_file(path, &text, &bytes);
    if (failed)
        return failed;
    int64_t *ids = o->ids_file ? memory_allocate(LENGTH_MAX, sizeof *ids) : NULL;
    for (char *at = text; at < text + bytes && !failed; number++) {
        char *newline = memchr(at, '\n', (size_t)(text + bytes - at));
        char *end = newline ? newline : text + bytes, *next = end + (newline != NULL);
        while (end > at && isspace((unsigned char)end[-1]))
            end--;
        *end = 0;
        if (end > at && ids != NULL) {
            failed = add_ids(to, o, m, at, ids, r);
        } else if (end > at && o->text_file != NULL) {
            failed = add_text(to, o, at);
        } else if (end > at) {
            text_buffer line = {.data = at, .bytes = (size_t)(end - at)};
            failed = add_payload(to, &line, 0, 0);
        }
        at = next;
    }
    free(ids);
    free(text);
    if (failed)
        return status_prefix(failed, "%s:%zu", path, number - 1);
    return to->source->count
               ? STATUS_OK
               : status_fail(STATUS_INVALID_ARGUMENT, "%s contains no requests", path);
}

/* Whether requests can have lengths at all: a dimension beside the batch that is free. */
static bool has_length(const metadata *m)
{
    for (size_t i = 0; i < m->input_count; i++)
        for (int d = 1; d < m->inputs[i].dimension_count; d++)
            if (m->inputs[i].dimensions[d] < 0)
                return true;
    return false;
}

static status add_made(collection *to, const source_options *o, const metadata *m, random_state *r)
{
    size_t count = o->trace ? o->trace->count : o->pool ? o->pool : POOL_DEFAULT;
    size_t unasked_bytes = o->trace || o->pool ? SIZE_MAX : to->bytes_max / UNASKED_SHARE;
    bool counted = m != NULL && has_length(m);
    for (size_t i = 0; i < count && to->bytes < unasked_bytes; i++) {
        const trace_entry *entry = o->trace ? &o->trace->entries[i] : NULL;
        text_buffer body = {0};
        uint64_t json_bytes = 0;
        uint32_t length =
            entry != NULL && entry->length != 0 ? entry->length : length_draw(o->lengths, r);
        status failed = STATUS_OK;
        if (entry != NULL && entry->body != NULL) {
            text_buffer_put(&body, entry->body);
            length = entry->length;
        } else if (m != NULL) {
            failed = request_source_write(&body, &json_bytes, o, m, length, NULL, r);
        }
        if (!failed)
            failed = add_payload(to, &body, json_bytes, counted ? length * o->rows : 0);
        text_buffer_dispose(&body);
        if (failed)
            return failed;
    }
    return STATUS_OK;
}

static void shuffle(request_source *s, random_state *r)
{
    for (size_t i = s->count; i > 1; i--) {
        size_t j = random_below(r, i);
        payload swap = s->payloads[i - 1];
        s->payloads[i - 1] = s->payloads[j];
        s->payloads[j] = swap;
    }
}

status request_source_create(request_source *s, const source_options *o, const metadata *m,
                             const request_head *head)
{
    *s = (request_source){0};
    random_state r;
    random_seed(&r, o->seed ^ 0x706179u); /* not the arrivals' own sequence */
    bool of_trace = o->trace != NULL && (o->trace->entries[0].body || o->trace->entries[0].length);
    source_options made = *o;
    collection to = {
        .source = s, .head = head, .bytes_max = o->bytes_max ? o->bytes_max : BYTES_MAX_DEFAULT};
    status failed;
    if (o->data_file != NULL || o->ids_file != NULL || o->text_file != NULL) {
        failed = add_lines(&to, o, m, &r);
    } else if (m == NULL && !of_trace) {
        made.pool = 1; /* no bodies: the same request over and over */
        made.trace = NULL;
        failed = add_made(&to, &made, m, &r);
    } else {
        if (!of_trace)
            made.trace = NULL;
        s->one_to_one = of_trace;
        failed = add_made(&to, &made, m, &r);
    }
    if (failed) {
        request_source_dispose(s);
        return failed;
    }
    if (o->shuffle && !s->one_to_one)
        shuffle(s, &r);
    for (size_t i = 0; i < s->count; i++) {
        s->mean_tokens += (double)s->payloads[i].tokens / (double)s->count;
        s->mean_bytes += (double)s->payloads[i].body_bytes / (double)s->count;
    }
    return STATUS_OK;
}

void request_source_dispose(request_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free((char *)s->payloads[i].body);
        free((char *)s->payloads[i].http1);
    }
    free(s->payloads);
    *s = (request_source){0};
}
