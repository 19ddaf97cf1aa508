#include "server/protocol/language/language.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/protocol/language/fields.h"

void language_request_reset(language_request *r, size_t keep_bytes)
{
    arena kept = r->memory;
    arena_reset(&kept, keep_bytes);
    *r = (language_request){.memory = kept};
}

status language_fail(language_request *r, status code, const char *fault, const char *parameter,
                     const char *format, ...)
{
    char text[STATUS_MESSAGE_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->fault.code = fault;
    snprintf(r->fault.parameter, sizeof r->fault.parameter, "%s", parameter);
    return status_fail(code, "%s", text);
}

static language_task task_of(route_kind kind)
{
    switch (kind) {
    case ROUTE_EMBED_ALL:
        return LANGUAGE_EMBED_TOKENS;
    case ROUTE_EMBED_SPARSE:
        return LANGUAGE_EMBED_SPARSE;
    case ROUTE_RERANK:
    case ROUTE_V1_RERANK:
        return LANGUAGE_RERANK;
    case ROUTE_PREDICT:
        return LANGUAGE_PREDICT;
    case ROUTE_SIMILARITY:
        return LANGUAGE_SIMILARITY;
    case ROUTE_TOKENIZE:
        return LANGUAGE_TOKENIZE;
    case ROUTE_DECODE:
        return LANGUAGE_DECODE;
    default:
        assert(kind == ROUTE_EMBEDDINGS || kind == ROUTE_EMBED);
        return LANGUAGE_EMBED;
    }
}

/* So many bytes of text have been read: checked meanwhile, and not when all of it is there. */
static status check_bytes(const language_parser *p, size_t bytes)
{
    size_t most = p->limits->bytes_max;
    return bytes <= most ? STATUS_OK
                         : status_fail(STATUS_TOO_LARGE,
                                       "more than %zu bytes of text, which is the limit", most);
}

status language_parse(language_request *r, route_kind kind, const language_limits *l,
                      const char *body, size_t bytes)
{
    r->task = task_of(kind);
    r->normalizes = r->adds_special = r->skips_special = true;
    language_parser p = {.request = r, .limits = l};
    p.copies_texts = !l->keeps_body || r->task == LANGUAGE_RERANK || r->task == LANGUAGE_PREDICT;
    json_scan_init(&p.json, body, bytes, l->json_depth_max, true, &r->memory);
    p.json.cancel = l->cancel;
    r->dialect = kind == ROUTE_EMBEDDINGS  ? ROUTE_OPENAI
                 : kind == ROUTE_V1_RERANK ? ROUTE_COHERE
                                           : ROUTE_TEI;
    status failure = kind == ROUTE_EMBEDDINGS  ? language_parse_openai(&p)
                     : kind == ROUTE_V1_RERANK ? language_parse_rerank(&p)
                                               : language_parse_tei(&p);
    return failure ? failure : check_bytes(&p, r->texts.bytes);
}

static bool is_null(language_parser *p)
{
    return json_peek(&p->json) == 'n';
}

status language_read_text(language_parser *p, json_string *out)
{
    json_scan *s = &p->json;
    json_string text;
    status failure = json_read_string(s, &text);
    if (failure)
        return failure;
    if (p->copies_texts && text.text >= s->start && text.text < s->end)
        text.text = arena_copy_string(&p->request->memory, text.text, text.bytes);
    if (text.text == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a text");
    *out = text;
    return STATUS_OK;
}

/* What is needed after the body has gone: names. */
status language_read_optional_string(language_parser *p, json_string *out)
{
    json_string text;
    if (is_null(p))
        return json_skip_value(&p->json);
    status failure = json_read_string(&p->json, &text);
    if (failure)
        return failure;
    const char *kept = arena_copy_string(&p->request->memory, text.text, text.bytes);
    if (kept == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a string");
    *out = (json_string){kept, text.bytes};
    return STATUS_OK;
}

status language_read_optional_bool(language_parser *p, bool *out)
{
    return is_null(p) ? json_skip_value(&p->json) : json_read_bool(&p->json, out);
}

status language_read_ids(language_parser *p, text_item *out)
{
    arena *memory = &p->request->memory;
    int64_t count = 0, capacity = 0, *ids = NULL;
    bool is_first = true, has_element;
    status failure = json_open_array(&p->json);
    while (!failure && !(failure = json_step(&p->json)) &&
           !(failure = json_array_next(&p->json, &is_first, &has_element)) && has_element) {
        if (count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 64;
            int64_t *moved = arena_allocate(memory, (size_t)capacity * sizeof(*moved));
            if (moved == NULL)
                return status_fail(STATUS_OUT_OF_MEMORY, "no memory for token ids");
            if (count > 0)
                memcpy(moved, ids, (size_t)count * sizeof(*moved));
            ids = moved;
        }
        failure = json_read_i64(&p->json, &ids[count++]);
        if (!failure)
            failure = check_bytes(p, p->request->texts.bytes + (size_t)count * TEXT_ID_BYTES);
    }
    *out = (text_item){.ids = ids, .id_count = count};
    return failure;
}

status language_add(language_parser *p, text_item item)
{
    status failure = text_list_add(&p->request->texts, &p->request->memory, item);
    return failure ? failure : check_bytes(p, p->request->texts.bytes);
}

void language_pair_with(language_request *r, json_string query)
{
    for (int64_t i = 0; i < r->texts.count; i++) {
        text_item *item = &r->texts.items[i];
        item->pair = item->text;
        item->text = query;
        r->texts.bytes += query.bytes;
    }
}
