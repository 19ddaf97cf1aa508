#include "models/manifest/pbtxt.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32
#define WORD_BYTES_MAX 4096

typedef struct scan {
    const char *name, *at, *end;
    int line, depth;
} scan;

static status fail(const scan *s, const char *what)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: %s", s->name, s->line, what);
}

static void skip_space(scan *s)
{
    while (s->at < s->end) {
        if (*s->at == '#') {
            while (s->at < s->end && *s->at != '\n')
                s->at++;
        } else if (isspace((unsigned char)*s->at)) {
            s->line += *s->at++ == '\n';
        } else {
            return;
        }
    }
}

/* Takes the character, if it comes next. */
static bool take(scan *s, char c)
{
    skip_space(s);
    if (s->at >= s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* A name, or a number: letters, digits, and for a number its signs and points. */
static status read_word(scan *s, char out[WORD_BYTES_MAX])
{
    size_t n = 0;
    skip_space(s);
    bool is_number = s->at < s->end && (isdigit((unsigned char)*s->at) || strchr("+-.", *s->at));
    while (s->at < s->end && n + 1 < WORD_BYTES_MAX &&
           (is_word(*s->at) || (is_number && strchr("+-.", *s->at))))
        out[n++] = *s->at++;
    out[n] = 0;
    return n > 0 ? STATUS_OK : fail(s, "a name or a value is missing");
}

static int value_of(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10
                                        : 99;
}

/* After a backslash. */
static bool read_escape(scan *s, char *out)
{
    static const char from[] = "abfnrtv\\'\"?", to[] = "\a\b\f\n\r\t\v\\'\"?";
    int base = 8, digits = 3, value = 0, count = 0;
    const char *at = s->at < s->end && *s->at != 0 ? strchr(from, *s->at) : NULL;
    if (at != NULL) {
        *out = to[at - from];
        s->at++;
        return true;
    }
    if (s->at < s->end && (*s->at | 32) == 'x') {
        s->at++;
        base = 16;
        digits = 2;
    }
    for (; count < digits && s->at < s->end && value_of(*s->at) < base; count++)
        value = value * base + value_of(*s->at++);
    *out = (char)value;
    return count > 0 && value > 0 && value < 256;
}

/* Strings that stand beside each other are one. */
static status read_string(scan *s, json_t **out)
{
    char text[WORD_BYTES_MAX];
    size_t n = 0;
    for (skip_space(s); s->at < s->end && (*s->at == '"' || *s->at == '\''); skip_space(s)) {
        char quote = *s->at++;
        for (; s->at < s->end && *s->at != quote; n++) {
            if (n + 1 >= sizeof text || *s->at == '\n')
                return fail(s, "a string does not end on its line, or is too long");
            text[n] = *s->at++;
            if (text[n] == '\\' && !read_escape(s, &text[n]))
                return fail(s, "an escape in a string is wrong");
        }
        if (!take(s, quote))
            return fail(s, "a string does not end");
    }
    *out = json_stringn(text, n);
    return *out ? STATUS_OK : fail(s, "a string is not UTF-8");
}

/* A number, true, false, or an enum's name. */
static json_t *scalar_of(const char *word)
{
    char *end;
    errno = 0;
    long long integer = strtoll(word, &end, 0);
    if (*end == 0 && errno == 0)
        return json_integer(integer);
    double real = strtod(word, &end);
    if (end != word && (*end == 0 || ((*end | 32) == 'f' && end[1] == 0)))
        return json_real(real);
    return strcmp(word, "true") == 0    ? json_true()
           : strcmp(word, "false") == 0 ? json_false()
                                        : json_string(word);
}

static status read_message(scan *s, char end, json_t **out);

static status read_one(scan *s, json_t **out)
{
    char word[WORD_BYTES_MAX];
    skip_space(s);
    if (s->at < s->end && (*s->at == '"' || *s->at == '\''))
        return read_string(s, out);
    if (take(s, '{'))
        return read_message(s, '}', out);
    if (take(s, '<'))
        return read_message(s, '>', out);
    status failure = read_word(s, word);
    if (failure)
        return failure;
    *out = scalar_of(word);
    return *out ? STATUS_OK : fail(s, "a value is not UTF-8, or not finite");
}

static status read_list(scan *s, json_t **out)
{
    json_t *list = json_array(), *value;
    status failure = STATUS_OK;
    while (!failure && !take(s, ']')) {
        failure = read_one(s, &value);
        if (!failure)
            json_array_append_new(list, value);
        skip_space(s);
        if (!failure && !take(s, ',') && (s->at >= s->end || *s->at != ']'))
            failure = fail(s, "a list does not end");
    }
    if (failure)
        json_decref(list);
    else
        *out = list;
    return failure;
}

/* Takes `value`. A field that is there already is a repeated one. */
static void add_field(json_t *message, const char *name, json_t *value)
{
    json_t *before = json_object_get(message, name);
    if (before == NULL) {
        json_object_set_new(message, name, value);
        return;
    }
    if (!json_is_array(before)) {
        json_t *list = json_array();
        json_array_append(list, before);
        json_object_set_new(message, name, list);
        before = list;
    }
    if (json_is_array(value)) {
        json_array_extend(before, value);
        json_decref(value);
    } else {
        json_array_append_new(before, value);
    }
}

static status read_field(scan *s, json_t *message)
{
    char name[WORD_BYTES_MAX];
    json_t *value;
    if (s->at < s->end && *s->at == '[')
        return fail(s, "extensions are not supported");
    status failure = read_word(s, name);
    if (failure)
        return failure;
    bool has_colon = take(s, ':');
    skip_space(s);
    char next = s->at < s->end ? *s->at : 0;
    if (!has_colon && next != '{' && next != '<' && next != '[')
        return fail(s, "after a field's name stands ':' or '{'");
    failure = take(s, '[') ? read_list(s, &value) : read_one(s, &value);
    if (failure)
        return failure;
    add_field(message, name, value);
    if (!take(s, ','))
        take(s, ';');
    return STATUS_OK;
}

/* Up to `end`, which is taken; 0: up to the end of the text. */
static status read_message(scan *s, char end, json_t **out)
{
    json_t *message = json_object();
    status failure = ++s->depth > DEPTH_MAX ? fail(s, "messages nest too deep") : STATUS_OK;
    while (!failure) {
        skip_space(s);
        if (s->at >= s->end && end != 0)
            failure = fail(s, "a message does not end");
        else if (s->at >= s->end || (end != 0 && take(s, end)))
            break;
        else
            failure = read_field(s, message);
    }
    s->depth--;
    if (failure)
        json_decref(message);
    else
        *out = message;
    return failure;
}

status pbtxt_read(const char *name, const char *text, size_t bytes, json_t **out)
{
    scan s = {.name = name, .at = text, .end = text + bytes, .line = 1};
    return read_message(&s, 0, out);
}
