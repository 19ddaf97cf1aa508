/* Bodies of the routes of text-embeddings-inference. Source: its OpenAPI document, and
 * router/src/http/types.rs for what `inputs` may be. Fields that are not known are left. */
#include <stdio.h>

#include "server/protocol/language/fields.h"

/* Which fields were there. */
typedef struct seen {
    bool inputs, query, texts, ids, source;
} seen;

static status fail_empty(const language_parser *p, const char *field)
{
    return language_fail(p->request, STATUS_INVALID_ARGUMENT, "empty", field,
                         "`%s` cannot be empty", field);
}

static status check_count(const language_parser *p)
{
    const language_request *r = p->request;
    if (r->texts.count <= p->limits->items_max)
        return STATUS_OK;
    return status_fail(STATUS_TOO_LARGE, "batch size > maximum allowed batch size %lld",
                       (long long)p->limits->items_max);
}

static status add(language_parser *p, text_item item)
{
    status failure = language_add(p, item);
    return failure ? failure : check_count(p);
}

/* A text, or the ids of its tokens. */
static status read_item(language_parser *p, bool takes_text, bool takes_ids)
{
    text_item item = {.ids = NULL};
    char c = json_peek(&p->json);
    if (c == '"' && takes_text) {
        status failure = language_read_text(p, &item.text);
        if (!failure && item.text.bytes == 0)
            return fail_empty(p, "inputs");
        return failure ? failure : add(p, item);
    }
    if (c != '[' || !takes_ids)
        return json_fail(&p->json, takes_text ? "a string" : "an array of token ids");
    status failure = language_read_ids(p, &item);
    if (!failure && item.id_count == 0 && takes_text)
        return fail_empty(p, "inputs");
    return failure ? failure : add(p, item);
}

/* What the first element of the array at the cursor begins with; 0: it is empty, or no array. */
static char first_of(const language_parser *p)
{
    json_scan ahead = p->json;
    bool is_first = true, has_element;
    if (json_peek(&ahead) != '[' || json_open_array(&ahead) ||
        json_array_next(&ahead, &is_first, &has_element) || !has_element)
        return 0;
    return json_peek(&ahead);
}

static bool begins_number(char c)
{
    return c == '-' || (c >= '0' && c <= '9');
}

static status read_list(language_parser *p, const char *field, bool takes_text, bool takes_ids)
{
    bool is_first = true, has_element;
    int64_t before = p->request->texts.count;
    status failure = json_open_array(&p->json);
    while (!failure && !(failure = json_array_next(&p->json, &is_first, &has_element)) &&
           has_element)
        failure = read_item(p, takes_text, takes_ids);
    if (!failure && p->request->texts.count == before)
        return fail_empty(p, field);
    return failure;
}

static status read_inputs(language_parser *p)
{
    bool takes_ids = p->request->task != LANGUAGE_TOKENIZE;
    p->request->is_single = json_peek(&p->json) == '"' || (takes_ids && begins_number(first_of(p)));
    return p->request->is_single ? read_item(p, true, takes_ids)
                                 : read_list(p, "inputs", true, takes_ids);
}

/* [text] or [text, text]. */
static status read_pair(language_parser *p)
{
    text_item item = {.ids = NULL};
    bool is_first = true, has_element;
    int count = 0;
    status failure = json_open_array(&p->json);
    while (!failure && !(failure = json_array_next(&p->json, &is_first, &has_element)) &&
           has_element) {
        if (count == 2)
            return json_fail(&p->json, "one text, or a pair");
        failure = language_read_text(p, count++ == 0 ? &item.text : &item.pair);
    }
    if (!failure && (count == 0 || item.text.bytes == 0))
        return fail_empty(p, "inputs");
    return failure ? failure : add(p, item);
}

/* {"question": ..., "context": ...}, as pipelines that answer questions have it. */
static status read_question(language_parser *p)
{
    text_item item = {.ids = NULL};
    json_object o;
    json_string key;
    bool has_key;
    status failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "question"))
            failure = language_read_text(p, &item.text);
        else if (json_string_is(key, "context"))
            failure = language_read_text(p, &item.pair);
        else
            failure = json_skip_value(&p->json);
    }
    if (!failure && (item.text.bytes == 0 || item.pair.bytes == 0))
        return fail_empty(p, item.text.bytes == 0 ? "question" : "context");
    return failure ? failure : add(p, item);
}

/* A text, a pair, or a list of [text] and [text, text]. */
static status read_predict_inputs(language_parser *p)
{
    char c = json_peek(&p->json);
    p->request->is_single = c != '[' || first_of(p) == '"';
    if (c == '"')
        return read_item(p, true, false);
    if (c == '{')
        return read_question(p);
    if (first_of(p) == '"')
        return read_pair(p);
    bool is_first = true, has_element;
    status failure = json_open_array(&p->json);
    while (!failure && !(failure = json_array_next(&p->json, &is_first, &has_element)) &&
           has_element)
        failure = json_peek(&p->json) == '{' ? read_question(p) : read_pair(p);
    if (!failure && p->request->texts.count == 0)
        return fail_empty(p, "inputs");
    return failure;
}

/* The source is the first text, whether it comes first or not. */
static status read_similarity_inputs(language_parser *p)
{
    json_object o;
    json_string key;
    bool has_key, has_source = false, has_sentences = false;
    text_list *texts = &p->request->texts;
    status failure = add(p, (text_item){.ids = NULL});
    if (!failure)
        failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "source_sentence")) {
            has_source = true;
            failure = language_read_text(p, &texts->items[0].text);
            texts->bytes += texts->items[0].text.bytes;
        } else if (json_string_is(key, "sentences")) {
            has_sentences = true;
            failure = read_list(p, "inputs.sentences", true, false);
        } else {
            failure = json_skip_value(&p->json);
        }
    }
    if (failure)
        return failure;
    if (!has_source || !has_sentences)
        return status_fail(STATUS_INVALID_ARGUMENT, "missing field `%s`",
                           has_source ? "sentences" : "source_sentence");
    return texts->items[0].text.bytes > 0 ? STATUS_OK : fail_empty(p, "inputs.source_sentence");
}

static status read_direction(language_parser *p)
{
    json_string name = {"Right", 5};
    status failure = language_read_optional_string(p, &name);
    bool is_left = json_string_is(name, "Left") || json_string_is(name, "left");
    if (!failure && !is_left && !json_string_is(name, "Right") && !json_string_is(name, "right"))
        return json_fail(&p->json, "\"Left\" or \"Right\" before this");
    p->request->options.cuts_left = is_left;
    return failure;
}

/* Its OpenAPI document gives the default as the string "null", which generated clients send. */
static status read_prompt_name(language_parser *p)
{
    json_string name = {NULL, 0};
    status failure = language_read_optional_string(p, &name);
    if (!failure && name.text != NULL && !json_string_is(name, "null"))
        p->request->options.prompt = name;
    return failure;
}

static status read_option(language_parser *p, json_string key)
{
    language_request *r = p->request;
    if (json_string_is(key, "truncate"))
        return language_read_optional_bool(p, &r->options.truncates);
    if (json_string_is(key, "truncation_direction"))
        return read_direction(p);
    if (json_string_is(key, "prompt_name"))
        return read_prompt_name(p);
    if (json_string_is(key, "normalize"))
        return language_read_optional_bool(p, &r->normalizes);
    if (json_string_is(key, "raw_scores"))
        return language_read_optional_bool(p, &r->raw_scores);
    if (json_string_is(key, "return_text"))
        return language_read_optional_bool(p, &r->returns_text);
    if (json_string_is(key, "add_special_tokens"))
        return language_read_optional_bool(p, &r->adds_special);
    if (json_string_is(key, "skip_special_tokens"))
        return language_read_optional_bool(p, &r->skips_special);
    if (json_string_is(key, "model"))
        return language_read_optional_string(p, &r->model);
    if (json_string_is(key, "dimensions") && json_peek(&p->json) != 'n') {
        status failure = json_read_i64(&p->json, &r->dimensions);
        return !failure && r->dimensions < 1
                   ? json_fail(&p->json, "`dimensions` of at least 1 before this")
                   : failure;
    }
    return json_skip_value(&p->json);
}

static status read_parameters(language_parser *p)
{
    json_object o;
    json_string key;
    bool has_key;
    if (json_peek(&p->json) == 'n')
        return json_skip_value(&p->json);
    status failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key)
        failure = read_option(p, key);
    return failure;
}

static status read_field(language_parser *p, json_string key, seen *s, json_string *query)
{
    language_task task = p->request->task;
    if (json_string_is(key, "inputs") && task != LANGUAGE_RERANK && task != LANGUAGE_DECODE) {
        s->inputs = true;
        return task == LANGUAGE_PREDICT      ? read_predict_inputs(p)
               : task == LANGUAGE_SIMILARITY ? read_similarity_inputs(p)
                                             : read_inputs(p);
    }
    if (task == LANGUAGE_RERANK && json_string_is(key, "query")) {
        s->query = true;
        return language_read_text(p, query);
    }
    if (task == LANGUAGE_RERANK && json_string_is(key, "texts")) {
        s->texts = true;
        return read_list(p, "texts", true, false);
    }
    if (task == LANGUAGE_DECODE && json_string_is(key, "ids")) {
        s->ids = true;
        return begins_number(first_of(p)) ? read_item(p, false, true)
                                          : read_list(p, "ids", false, true);
    }
    if (task == LANGUAGE_SIMILARITY && json_string_is(key, "parameters"))
        return read_parameters(p);
    return read_option(p, key);
}

status language_parse_tei(language_parser *p)
{
    json_object o;
    json_string key, query = {NULL, 0};
    bool has_key;
    seen s = {false};
    language_request *r = p->request;
    status failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key)
        failure = read_field(p, key, &s, &query);
    if (!failure)
        failure = json_expect_end(&p->json);
    if (failure)
        return failure;
    const char *missing = r->task == LANGUAGE_RERANK   ? (!s.query   ? "query"
                                                          : !s.texts ? "texts"
                                                                     : NULL)
                          : r->task == LANGUAGE_DECODE ? (s.ids ? NULL : "ids")
                                                       : (s.inputs ? NULL : "inputs");
    if (missing != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "missing field `%s`", missing);
    if (r->task != LANGUAGE_RERANK)
        return STATUS_OK;
    if (query.bytes == 0)
        return fail_empty(p, "query");
    language_pair_with(r, query);
    return STATUS_OK;
}
