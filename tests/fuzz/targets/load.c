/* penstock-load: what servers answer, and the files it is given. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadtest/wire/http1_parse.h"
#include "loadtest/workload/expect.h"
#include "loadtest/workload/metadata.h"
#include "loadtest/workload/request_source.h"
#include "loadtest/workload/trace.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary.h"

static void ignore_metric(void *context, const char *name, uint64_t duration_ns)
{
    (void)context, (void)duration_ns;
    assert(strlen(name) < SERVER_TIMING_NAME_BYTES_MAX);
}

/* Responses one after another, in pieces of `step` bytes: how many, and a sum of what they said. */
static uint64_t read_responses(fuzz_input in, size_t step, bool has_no_body)
{
    http1_parser p = {0};
    response a = {.keep_body = true};
    uint64_t sum = 0;
    bool is_broken = false;
    http1_parser_reset(&p);
    p.no_body = has_no_body;
    while (in.bytes > 0 && !is_broken) {
        size_t n = in.bytes < step ? in.bytes : step, used = 0;
        is_broken = http1_parse(&p, &a, (const char *)in.data, n, &used) != STATUS_OK;
        assert(is_broken || used <= n);
        in.data += used;
        in.bytes -= used;
        if (is_broken || p.stage != HTTP1_DONE)
            continue;
        server_timing_parse(a.timing, a.timing_bytes, ignore_metric, NULL);
        sum = sum * 31 + (uint64_t)a.code * 7 + a.body_bytes + a.header_json_bytes;
        is_broken = !p.keep_alive;
        response_reset(&a);
        http1_parser_reset(&p);
    }
    if (!is_broken && http1_parse_end(&p) == STATUS_OK)
        sum++;
    text_buffer_dispose(&a.body);
    http1_parser_dispose(&p);
    return sum;
}

/* However the bytes arrive, the responses are the same. */
void fuzz_load_response(const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    size_t step = 1 + fuzz_take_byte(&in);
    bool has_no_body = step % 8 == 0;
    assert(read_responses(in, in.bytes + 1, has_no_body) == read_responses(in, step, has_no_body));
}

void fuzz_load_metadata(const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    metadata m = {0};
    status failure = fuzz_take_byte(&in) & 1
                         ? metadata_parse_tensorflow(&m, (const char *)in.data, in.bytes)
                         : metadata_parse_kserve(&m, (const char *)in.data, in.bytes);
    if (failure == STATUS_OK)
        metadata_dispose(&m);
}

static char *copy_text(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    memcpy(text, data, bytes);
    text[bytes] = 0;
    return text;
}

void fuzz_load_trace(const uint8_t *data, size_t bytes)
{
    trace t = {0};
    char *text = copy_text(data, bytes);
    if (trace_parse(&t, text, "trace", 1) == STATUS_OK) {
        for (size_t i = 1; i < t.count; i++)
            assert(t.entries[i].offset_ns >= t.entries[i - 1].offset_ns);
        trace_dispose(&t);
    }
    free(text);
}

static char folder[TEMPORARY_FOLDER_BYTES];

static void remove_folder(void)
{
    temporary_remove(folder);
}

/* Files of JSON lines: bodies, token ids, expected responses, a response to compare. */
void fuzz_load_lines(const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    uint8_t kind = fuzz_take_byte(&in) % 3;
    char path[TEMPORARY_FOLDER_BYTES + 8], reason[200];
    if (folder[0] == 0) {
        temporary_make(folder);
        atexit(remove_folder);
    }
    temporary_write(folder, "lines", in.data, in.bytes);
    strcat(strcpy(path, folder), "/lines");
    if (kind == 0) {
        expect *e;
        if (expect_load(&e, path, 1e-3))
            return;
        response a = {.keep_body = true, .code = 200, .header_json_bytes = in.bytes / 2};
        response_body(&a, in.data, in.bytes);
        for (size_t i = 0; i < expect_count(e) && i < 4; i++)
            expect_check(e, i, &a, reason, sizeof reason);
        text_buffer_dispose(&a.body);
        expect_destroy(e);
        return;
    }
    static const request_head head = {
        .method = "POST", .authority = "a", .path = "/", .scheme = "http"};
    metadata_input ids = {.name = "ids", .type = DTYPE_I64, .dimensions = {-1, -1}};
    ids.dimension_count = 2;
    metadata m = {&ids, 1};
    source_options o = {.format = SOURCE_KSERVE, .rows = 1, .vocabulary = 100, .pool = 8};
    o.bytes_max = 1 << 20;
    if (kind == 1)
        o.data_file = path;
    else
        o.ids_file = path;
    request_source source = {0};
    if (request_source_create(&source, &o, &m, &head) == STATUS_OK)
        request_source_dispose(&source);
}
