/* Body of POST /v1/rerank. Sources: Cohere API reference, "Rerank"; Jina reranker API: the same but
 * for `return_documents`, which is true there by default. */
#include "server/protocol/language/fields.h"

/* A document is a string, or an object with `text`. */
static status read_document(language_parser *p)
{
    text_item item = {.ids = NULL};
    json_object o;
    json_string key;
    bool has_key;
    status failure = STATUS_OK;
    if (json_peek(&p->json) != '{') {
        failure = language_read_text(p, &item.text);
    } else {
        failure = json_open_object(&p->json, &o);
        while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key)
            failure = json_string_is(key, "text") ? language_read_text(p, &item.text)
                                                  : json_skip_value(&p->json);
    }
    if (!failure && item.text.bytes == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "documents[%lld] has no text",
                           (long long)p->request->texts.count);
    return failure ? failure : language_add(p, item);
}

static status read_documents(language_parser *p)
{
    bool is_first = true, has_element;
    status failure = json_open_array(&p->json);
    while (!failure && !(failure = json_array_next(&p->json, &is_first, &has_element)) &&
           has_element) {
        if (p->request->texts.count == LANGUAGE_OPENAI_ITEMS_MAX)
            return status_fail(STATUS_TOO_LARGE, "more than %d documents",
                               LANGUAGE_OPENAI_ITEMS_MAX);
        failure = read_document(p);
    }
    return failure;
}

static status read_field(language_parser *p, json_string key, json_string *query)
{
    language_request *r = p->request;
    if (json_string_is(key, "query"))
        return language_read_text(p, query);
    if (json_string_is(key, "documents"))
        return read_documents(p);
    if (json_string_is(key, "model"))
        return language_read_optional_string(p, &r->model);
    if (json_string_is(key, "return_documents"))
        return language_read_optional_bool(p, &r->returns_text);
    if (json_string_is(key, "truncation"))
        return language_read_optional_bool(p, &r->options.truncates);
    if (json_string_is(key, "top_n") && json_peek(&p->json) != 'n') {
        status failure = json_read_i64(&p->json, &r->results_max);
        return !failure && r->results_max < 1
                   ? status_fail(STATUS_INVALID_ARGUMENT, "top_n must be at least 1")
                   : failure;
    }
    return json_skip_value(&p->json);
}

status language_parse_rerank(language_parser *p)
{
    json_object o;
    json_string key, query = {NULL, 0};
    bool has_key;
    p->request->options.truncates = true; /* as both of them do */
    status failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key)
        failure = read_field(p, key, &query);
    if (!failure)
        failure = json_expect_end(&p->json);
    if (failure)
        return failure;
    if (query.bytes == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "query is missing or empty");
    if (p->request->texts.count == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "documents is missing or empty");
    language_pair_with(p->request, query);
    return STATUS_OK;
}
