#include "server/protocol/text/text_fields.h"

static bool is_text_key(json_string key)
{
    return json_string_is(key, TEXT_INPUT) || json_string_is(key, TEXT_PAIR_INPUT);
}

/* Does an object at the cursor begin with "text" or "text_pair"? */
static bool is_text_object(const json_scan *s)
{
    json_scan ahead = *s;
    json_object o;
    json_string key;
    bool has_key;
    return !json_open_object(&ahead, &o) && !json_object_next(&ahead, &o, &key, &has_key) &&
           has_key && is_text_key(key);
}

bool text_is_next(const json_scan *s)
{
    json_scan ahead = *s;
    char c = json_peek(&ahead);
    return c == '"' || (c == '{' && is_text_object(&ahead));
}

bool text_columns_are_next(const json_scan *s)
{
    json_scan ahead = *s;
    bool is_first = true, has_element;
    if (json_peek(&ahead) == '{')
        return is_text_object(&ahead);
    return json_peek(&ahead) == '[' && !json_open_array(&ahead) &&
           !json_array_next(&ahead, &is_first, &has_element) && has_element &&
           json_peek(&ahead) == '"';
}

static status read_text(json_scan *s, json_string *out)
{
    status failure = json_read_string(s, out);
    if (failure)
        return failure;
    if (out->text >= s->start && out->text < s->end)
        out->text = arena_copy_string(s->memory, out->text, out->bytes);
    return out->text != NULL ? STATUS_OK
                             : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a text");
}

static status fail_key(json_string key)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "\"%.*s\" beside a text: there may be \"text\" and \"text_pair\"",
                       (int)(key.bytes < 200 ? key.bytes : 200), key.text);
}

status text_read_row(json_scan *s, text_list *out)
{
    text_item item = {.ids = NULL};
    json_object o;
    json_string key;
    bool has_key;
    status failure = STATUS_OK;
    if (json_peek(s) == '"') {
        failure = read_text(s, &item.text);
    } else {
        failure = json_open_object(s, &o);
        while (!failure && !(failure = json_object_next(s, &o, &key, &has_key)) && has_key) {
            if (!is_text_key(key))
                return fail_key(key);
            failure = read_text(s, json_string_is(key, TEXT_INPUT) ? &item.text : &item.pair);
        }
    }
    if (!failure && item.text.text == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "row %lld: \"text_pair\" without \"text\"",
                           (long long)out->count);
    return failure ? failure : text_list_add(out, s->memory, item);
}

static status fail_counts(void)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "inputs \"text\" and \"text_pair\" differ in their rows");
}

/* Sets text or pair `row`; the other may be there already. */
static status put(text_list *out, arena *memory, int64_t row, bool is_pair, json_string text)
{
    if (row == out->count) {
        status failure = text_list_add(out, memory, (text_item){.ids = NULL});
        if (failure)
            return failure;
    }
    *(is_pair ? &out->items[row].pair : &out->items[row].text) = text;
    out->bytes += text.bytes;
    return STATUS_OK;
}

static status read_column(json_scan *s, text_list *out, bool is_pair, bool is_second)
{
    bool is_first = true, has_element;
    int64_t row = 0;
    status failure = json_open_array(s);
    for (; !failure; row++) {
        json_string text;
        failure = json_array_next(s, &is_first, &has_element);
        if (failure || !has_element)
            break;
        if (is_second && row == out->count)
            return fail_counts();
        failure = read_text(s, &text);
        if (!failure)
            failure = put(out, s->memory, row, is_pair, text);
    }
    return !failure && row != out->count ? fail_counts() : failure;
}

status text_read_columns(json_scan *s, text_list *out)
{
    json_object o;
    json_string key;
    bool has_key;
    if (json_peek(s) == '[') {
        status failure = read_column(s, out, false, false);
        return failure ? failure : text_check(out);
    }
    status failure = json_open_object(s, &o);
    for (bool is_second = false; !failure; is_second = true) {
        failure = json_object_next(s, &o, &key, &has_key);
        if (failure || !has_key)
            break;
        if (!is_text_key(key))
            return fail_key(key);
        failure = read_column(s, out, json_string_is(key, TEXT_PAIR_INPUT), is_second);
    }
    return failure ? failure : text_check(out);
}

status text_take_tensor(const tensor *t, bool is_pair, arena *memory, text_list *out)
{
    const tensor_string *strings = t->data;
    const char *name = is_pair ? TEXT_PAIR_INPUT : TEXT_INPUT;
    if (t->dtype != DTYPE_BYTES)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": datatype %s, but texts are BYTES", name,
                           dtype_kserve_name(t->dtype));
    if (t->rank != 1 && (t->rank != 2 || t->dims[1] != 1)) {
        char found[TENSOR_SHAPE_TEXT_BYTES];
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": shape %s, but texts are [batch] or [batch,1]", name,
                           tensor_shape_text(found, t->rank, t->dims));
    }
    if (out->count > 0 && out->count != t->dims[0])
        return fail_counts();
    for (int64_t i = 0; i < t->dims[0]; i++) {
        json_string text = {strings[i].bytes > 0 ? (const char *)strings[i].data : "",
                            strings[i].bytes};
        status failure = put(out, memory, i, is_pair, text);
        if (failure)
            return failure;
    }
    return STATUS_OK;
}

status text_check(const text_list *l)
{
    if (l->count == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "no text is given");
    for (int64_t i = 0; i < l->count; i++) {
        if (l->items[i].text.text == NULL)
            return status_fail(STATUS_INVALID_ARGUMENT, "input \"text_pair\" without \"text\"");
    }
    return STATUS_OK;
}
