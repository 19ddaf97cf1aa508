#include "base/text/json_position.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(const char *key)
{
    if (*key == 0)
        return false;
    for (; *key != 0; key++)
        if (!isalnum((unsigned char)*key) && *key != '_' && *key != '-')
            return false;
    return true;
}

char *json_path_text(const json_path *path, char out[JSON_PATH_TEXT_BYTES])
{
    out[0] = 0;
    if (path->parent == NULL)
        return out;
    json_path_text(path->parent, out);
    size_t used = strlen(out), room = JSON_PATH_TEXT_BYTES - used;
    if (path->key == NULL)
        snprintf(out + used, room, "[%zu]", path->index);
    else if (is_plain(path->key))
        snprintf(out + used, room, "%s%s", used > 0 ? "." : "", path->key);
    else
        snprintf(out + used, room, "[\"%s\"]", path->key);
    return out;
}

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n", *c->at) != NULL)
        c->at++;
}

static void skip_string(cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
        if (*c->at == '\\')
            c->at++;
    c->at++;
}

/* Skips one value of any depth: counts brackets, skips strings. */
static void skip_value(cursor *c)
{
    int depth = 0;
    skip_space(c);
    while (c->at < c->end) {
        char ch = *c->at;
        if (ch == '"') {
            skip_string(c);
        } else if (ch == '{' || ch == '[') {
            depth++;
            c->at++;
        } else if (ch == '}' || ch == ']') {
            if (depth == 0)
                return;
            depth--;
            c->at++;
        } else if (depth == 0 && (ch == ',' || isspace((unsigned char)ch))) {
            return;
        } else {
            c->at++;
            continue;
        }
        if (depth == 0)
            return;
    }
}

/* Enters the object at the cursor and stops at the key; false: no such key. Keys are compared as
 * written: one with escapes is not found, and the message has the line of its parent. */
static bool find_member(cursor *c, const char *key)
{
    size_t key_bytes = strlen(key);
    if (c->at >= c->end || *c->at != '{')
        return false;
    c->at++;
    for (;;) {
        skip_space(c);
        if (c->at >= c->end || *c->at != '"')
            return false;
        const char *name = c->at + 1;
        cursor after = *c;
        skip_string(&after);
        if (after.at - 1 - name == (ptrdiff_t)key_bytes && memcmp(name, key, key_bytes) == 0)
            return true;
        *c = after;
        skip_space(c);
        c->at++; /* the colon */
        skip_value(c);
        skip_space(c);
        if (c->at >= c->end || *c->at != ',')
            return false;
        c->at++;
    }
}

static bool find_element(cursor *c, size_t index)
{
    if (c->at >= c->end || *c->at != '[')
        return false;
    c->at++;
    skip_space(c);
    for (; index > 0; index--) {
        skip_value(c);
        skip_space(c);
        if (c->at >= c->end || *c->at != ',')
            return false;
        c->at++;
        skip_space(c);
    }
    return c->at < c->end && *c->at != ']';
}

/* Moves the cursor to the value at `path`, and *start to where its key or element begins. */
static bool walk(cursor *c, const json_path *path, const char **start)
{
    if (path->parent == NULL) {
        skip_space(c);
        *start = c->at;
        return true;
    }
    if (!walk(c, path->parent, start))
        return false;
    bool found = path->key != NULL ? find_member(c, path->key) : find_element(c, path->index);
    if (!found)
        return false;
    *start = c->at;
    if (path->key != NULL) {
        skip_string(c);
        skip_space(c);
        c->at++; /* the colon */
        skip_space(c);
    }
    return true;
}

int json_position_line(const char *text, size_t bytes, const json_path *path)
{
    cursor c = {text, text + bytes};
    const char *start = text;
    (void)walk(&c, path, &start);
    int line = 1;
    for (const char *p = text; p < start && p < c.end; p++)
        line += *p == '\n';
    return line;
}
