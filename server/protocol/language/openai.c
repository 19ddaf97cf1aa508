/* Body of POST /v1/embeddings. Source: OpenAI API reference, "Create embeddings"; the codes and
 * messages of its errors. */
#include <stdio.h>

#include "server/protocol/language/fields.h"

static status fail_type(language_parser *p, const char *parameter, const char *expected)
{
    const char *got;
    switch (json_peek(&p->json)) {
    case '"':
        got = "a string";
        break;
    case '{':
        got = "an object";
        break;
    case '[':
        got = "an array";
        break;
    case 't':
    case 'f':
        got = "a boolean";
        break;
    case 'n':
        got = "null";
        break;
    default:
        got = "a number";
        break;
    }
    return language_fail(p->request, STATUS_INVALID_ARGUMENT, "invalid_type", parameter,
                         "Invalid type for '%s': expected %s, but got %s instead.", parameter,
                         expected, got);
}

static status fail_empty(language_parser *p, const char *parameter, bool is_array)
{
    const char *code = is_array ? "empty_array" : "empty_string";
    return language_fail(p->request, STATUS_INVALID_ARGUMENT, code, parameter,
                         "Invalid '%s': %s. Expected %s with minimum length 1, but got an empty %s "
                         "instead.",
                         parameter, is_array ? "empty array" : "empty string",
                         is_array ? "an array" : "a string", is_array ? "array" : "string");
}

/* A string, or an array of token ids. */
static status read_item(language_parser *p, const char *parameter)
{
    text_item item = {.ids = NULL};
    char c = json_peek(&p->json);
    if (c != '"' && c != '[')
        return fail_type(p, parameter, "a string or an array of integers");
    status failure = c == '"' ? language_read_text(p, &item.text) : language_read_ids(p, &item);
    if (failure)
        return failure;
    if (c == '"' ? item.text.bytes == 0 : item.id_count == 0)
        return fail_empty(p, parameter, c == '[');
    return language_add(p, item);
}

/* [1, 2]: one item of token ids; else a list of strings or of such. */
static bool is_list_of_ids(language_parser *p)
{
    json_scan ahead = p->json;
    bool is_first = true, has_element;
    if (json_open_array(&ahead) || json_array_next(&ahead, &is_first, &has_element) || !has_element)
        return false;
    char c = json_peek(&ahead);
    return (c >= '0' && c <= '9') || c == '-';
}

static status read_input(language_parser *p)
{
    json_scan *s = &p->json;
    language_request *r = p->request;
    char parameter[32];
    char c = json_peek(s);
    if (c != '"' && c != '[')
        return fail_type(p, "input",
                         "one of a string, array of strings, array of integers, or array of "
                         "integer arrays");
    if (c == '"' || is_list_of_ids(p))
        return read_item(p, "input");
    bool is_first = true, has_element;
    status failure = json_open_array(s);
    while (!failure && !(failure = json_array_next(s, &is_first, &has_element)) && has_element) {
        if (r->texts.count == LANGUAGE_OPENAI_ITEMS_MAX)
            return language_fail(r, STATUS_INVALID_ARGUMENT, "array_above_max_length", "input",
                                 "Invalid 'input': array too long. Expected an array with maximum "
                                 "length %d, but got a longer one instead.",
                                 LANGUAGE_OPENAI_ITEMS_MAX);
        snprintf(parameter, sizeof parameter, "input[%lld]", (long long)r->texts.count);
        failure = read_item(p, parameter);
    }
    if (!failure && r->texts.count == 0)
        return fail_empty(p, "input", true);
    return failure;
}

static status read_format(language_parser *p)
{
    json_string name;
    language_request *r = p->request;
    if (json_peek(&p->json) != '"')
        return fail_type(p, "encoding_format", "a string");
    status failure = json_read_string(&p->json, &name);
    if (failure)
        return failure;
    r->as_base64 = json_string_is(name, "base64");
    if (!r->as_base64 && !json_string_is(name, "float"))
        return language_fail(r, STATUS_INVALID_ARGUMENT, "invalid_value", "encoding_format",
                             "Invalid value: '%.*s'. Supported values are: 'float' and 'base64'.",
                             (int)(name.bytes < 64 ? name.bytes : 64), name.text);
    return STATUS_OK;
}

static status read_dimensions(language_parser *p)
{
    language_request *r = p->request;
    char c = json_peek(&p->json);
    if (c == 'n')
        return json_skip_value(&p->json);
    if (c != '-' && (c < '0' || c > '9'))
        return fail_type(p, "dimensions", "an integer");
    status failure = json_read_i64(&p->json, &r->dimensions);
    if (!failure && r->dimensions < 1)
        return language_fail(r, STATUS_INVALID_ARGUMENT, "integer_below_min_value", "dimensions",
                             "Invalid 'dimensions': integer below minimum value. Expected a value "
                             ">= 1, but got %lld instead.",
                             (long long)r->dimensions);
    return failure;
}

static status read_name(language_parser *p, const char *parameter, json_string *out)
{
    if (json_peek(&p->json) != '"')
        return fail_type(p, parameter, "a string");
    return language_read_optional_string(p, out);
}

static status read_field(language_parser *p, json_string key, bool *has_input)
{
    language_request *r = p->request;
    json_string ignored;
    if (json_string_is(key, "input")) {
        *has_input = true;
        return read_input(p);
    }
    if (json_string_is(key, "model"))
        return read_name(p, "model", &r->model);
    if (json_string_is(key, "encoding_format"))
        return read_format(p);
    if (json_string_is(key, "dimensions"))
        return read_dimensions(p);
    if (json_string_is(key, "user"))
        return read_name(p, "user", &ignored);
    char parameter[48];
    snprintf(parameter, sizeof parameter, "%.*s", (int)(key.bytes < 40 ? key.bytes : 40), key.text);
    return language_fail(r, STATUS_INVALID_ARGUMENT, "unknown_parameter", parameter,
                         "Unknown parameter: '%s'.", parameter);
}

status language_parse_openai(language_parser *p)
{
    json_object o;
    json_string key;
    bool has_key, has_input = false;
    status failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key)
        failure = read_field(p, key, &has_input);
    if (!failure)
        failure = json_expect_end(&p->json);
    if (!failure && !has_input)
        return language_fail(p->request, STATUS_INVALID_ARGUMENT, "missing_required_parameter",
                             "input", "Missing required parameter: 'input'.");
    return failure;
}
