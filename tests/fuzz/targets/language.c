/* Bodies of the routes that take text: OpenAI's embeddings, TEI's routes, Cohere's rerank. What is
 * accepted is read in full and within the limits; what is not is answered with JSON. */
#include <string.h>

#include "server/protocol/language/error.h"
#include "server/protocol/language/language.h"
#include "server/protocol/text/json_scan.h"
#include "tests/fuzz/fuzz.h"

#define ITEMS_MAX 4
#define TEXT_BYTES_MAX 2000
#define KEPT_BYTES 65536

static void read_text(json_string s)
{
    volatile char sum = 0;
    for (size_t i = 0; i < s.bytes; i++)
        sum ^= s.text[i];
}

static void check(const language_request *r)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < r->texts.count; i++) {
        const text_item *item = &r->texts.items[i];
        read_text(item->text);
        read_text(item->pair);
        volatile int64_t sum = 0;
        for (int64_t k = 0; k < item->id_count; k++)
            sum ^= item->ids[k];
        bytes += item->text.bytes + item->pair.bytes + (size_t)item->id_count * TEXT_ID_BYTES;
    }
    read_text(r->model);
    read_text(r->options.prompt);
    assert(bytes <= TEXT_BYTES_MAX && r->texts.count > 0);
    assert(r->dimensions >= 0 && r->results_max >= 0);
}

static void answer(const language_request *r, status failure)
{
    static const size_t parameter_max = sizeof r->fault.parameter;
    text_buffer out = {0};
    arena memory = {0};
    json_scan s;
    int code = language_error_code(r->dialect, failure, &r->fault);
    assert(code >= 400 && code < 600 && strnlen(r->fault.parameter, parameter_max) < parameter_max);
    language_write_error(&out, r->dialect, code, status_message(), &r->fault);
    json_scan_init(&s, out.data, out.bytes, 8, true, &memory);
    assert(json_skip_value(&s) == STATUS_OK && json_expect_end(&s) == STATUS_OK);
    text_buffer_dispose(&out);
    arena_dispose(&memory);
}

void fuzz_language(const uint8_t *data, size_t bytes)
{
    static language_request r;
    fuzz_input in = {data, bytes};
    uint8_t options = fuzz_take_byte(&in);
    language_limits limits = {.items_max = ITEMS_MAX,
                              .bytes_max = TEXT_BYTES_MAX,
                              .json_depth_max = 16,
                              .keeps_body = options & 16};
    route_kind kind = ROUTE_EMBEDDINGS + (options & 15) % (ROUTE_DECODE - ROUTE_EMBEDDINGS + 1);
    language_request_reset(&r, KEPT_BYTES);
    status failure = language_parse(&r, kind, &limits, (const char *)in.data, in.bytes);
    if (failure) {
        assert(failure != STATUS_INTERNAL && status_message()[0] != 0);
        answer(&r, failure);
    } else {
        check(&r);
    }
}
