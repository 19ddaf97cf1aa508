#include "text/load/special.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/load/fields.h"

#define NUMBERED_MAX 65536
#define LIST_MAX 4096

static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};

/* A string, or an object with "content". */
static const char *content_of(const json_t *token)
{
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

/* special_tokens_map.json counts only where tokenizer_config.json does not list the tokens. */
static const json_t *find(const special_files *f, const char *name)
{
    const json_t *value = NULL;
    if (json_object_get(f->config, "added_tokens_decoder") == NULL)
        value = json_object_get(f->map, name);
    if (!field_is_there(value))
        value = json_object_get(f->config, name);
    return field_is_there(value) ? value : NULL;
}

const char *special_token(const special_files *f, const char *name, const char *fallback)
{
    const char *text = content_of(find(f, name));
    return text ? text : fallback;
}

bool special_flag(const special_files *f, const char *name, bool fallback)
{
    const json_t *value = json_object_get(f->config, name);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static bool is_listed(const json_t *added, const char *content)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const char *other = content_of(json_array_get(added, i));
        if (other != NULL && strcmp(other, content) == 0)
            return true;
    }
    return false;
}

static status append(json_t *added, json_t *token)
{
    if (token == NULL || json_array_append_new(added, token) != 0)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    return STATUS_OK;
}

status special_add(json_t *added, const char *content, bool is_special, bool strips_left)
{
    if (is_listed(added, content))
        return STATUS_OK;
    return append(added, json_pack("{s:s,s:b,s:b,s:b}", "content", content, "special", is_special,
                                   "normalized", 0, "lstrip", strips_left));
}

/* An object with the fields of an added token. */
static status append_object(json_t *added, const json_t *token, bool is_special)
{
    json_t *copy = json_copy((json_t *)token);
    bool failed = false;
    if (is_special)
        failed |= json_object_set_new(copy, "special", json_true()) != 0;
    /* Where the field is missing, a special token is looked for in the text as it comes. */
    if (json_object_get(copy, "normalized") == NULL) {
        bool is_normalized = !json_is_true(json_object_get(copy, "special"));
        failed |= json_object_set_new(copy, "normalized", json_boolean(is_normalized)) != 0;
    }
    return append(added, field_all_or_nothing(copy, failed));
}

/* A special token as a file has it: a string, or an object. */
static status add_token(json_t *added, const json_t *token)
{
    const char *content = content_of(token);
    if (content == NULL)
        return status_fail(STATUS_CORRUPT, "expected a token: a string, or an object with "
                                           "\"content\"");
    if (is_listed(added, content))
        return STATUS_OK;
    return json_is_object(token) ? append_object(added, token, true)
                                 : special_add(added, content, true, false);
}

typedef struct numbered {
    long long id;
    const json_t *token; /* of added_tokens_decoder; NULL: `content` */
    const char *content;
} numbered;

static int by_id(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_named(const special_files *f, const char *content)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *named = special_token(f, names[i], NULL);
        if (named != NULL && strcmp(named, content) == 0)
            return true;
    }
    return false;
}

/* added_tokens_decoder: {"id": token}; added_tokens.json: {"token": id}. */
static status read_numbered(const json_t *list, bool is_decoder, numbered *out)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach((json_t *)list, key, value)
    {
        char *end = NULL;
        numbered *n = &out[count++];
        *n = is_decoder ? (numbered){.id = strtoll(key, &end, 10), .token = value}
                        : (numbered){.id = json_integer_value(value), .content = key};
        if (is_decoder ? *end != 0 || !json_is_string(json_object_get(value, "content"))
                       : !json_is_integer(value))
            return status_fail(STATUS_CORRUPT, "\"%.64s\": expected %s", key,
                               is_decoder ? "a token" : "a token id");
    }
    return STATUS_OK;
}

static status add_numbered(const special_files *f, json_t *added)
{
    const json_t *list = json_object_get(f->config, "added_tokens_decoder");
    bool is_decoder = json_is_object(list);
    status s = STATUS_OK;
    if (!is_decoder)
        list = f->numbers;
    size_t count = json_object_size(list);
    if (count > NUMBERED_MAX)
        return status_fail(STATUS_TOO_LARGE, "more than %u added tokens", NUMBERED_MAX);
    numbered *all = calloc(count + 1, sizeof *all);
    if (all == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    s = read_numbered(list, is_decoder, all);
    qsort(all, count, sizeof *all, by_id);
    for (size_t i = 0; i < count && !s; i++) {
        if (all[i].token != NULL) {
            s = append_object(added, all[i].token, false);
            continue;
        }
        bool is_special = is_named(f, all[i].content);
        s = append(added, json_pack("{s:s,s:b,s:b}", "content", all[i].content, "special",
                                    is_special, "normalized", !is_special));
    }
    free(all);
    return s;
}

/* additional_special_tokens, extra_special_tokens: a list. */
static status add_list(const special_files *f, const char *name, json_t *added)
{
    const json_t *list = find(f, name);
    status s = json_array_size(list) <= LIST_MAX
                   ? STATUS_OK
                   : status_fail(STATUS_TOO_LARGE, "more than %d tokens", LIST_MAX);
    for (size_t i = 0; i < json_array_size(list) && !s; i++)
        s = add_token(added, json_array_get(list, i));
    return s ? status_prefix(s, "\"%s\"", name) : STATUS_OK;
}

status special_add_all(const special_files *f, json_t *added)
{
    assert(json_is_array(added));
    status s = add_numbered(f, added);
    for (size_t i = 0; i < sizeof names / sizeof *names && !s; i++) {
        const json_t *token = find(f, names[i]);
        if (token != NULL)
            s = add_token(added, token);
        if (s)
            s = status_prefix(s, "\"%s\"", names[i]);
    }
    if (!s)
        s = add_list(f, "additional_special_tokens", added);
    return s ? s : add_list(f, "extra_special_tokens", added);
}
