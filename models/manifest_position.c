#include "models/manifest_position.h"

#include <stdbool.h>
#include <string.h>

typedef struct cursor {
    const char *at, *end;
    int line;
} cursor;

static void skip_space(cursor *c)
{
    for (; c->at < c->end && strchr(" \t\r\n", *c->at); c->at++)
        c->line += *c->at == '\n';
}

/* A string; its raw text between the quotes. */
static void skip_string(cursor *c, const char **text, size_t *bytes)
{
    const char *start = ++c->at;
    while (c->at < c->end && *c->at != '"')
        c->at += *c->at == '\\' && c->at + 1 < c->end ? 2 : 1;
    *text = start;
    *bytes = (size_t)(c->at - start);
    c->at++;
}

static void skip_value(cursor *c)
{
    int depth = 0;
    do {
        skip_space(c);
        if (c->at >= c->end)
            return;
        const char *text;
        size_t bytes;
        if (*c->at == '"') {
            skip_string(c, &text, &bytes);
        } else if (*c->at == '{' || *c->at == '[') {
            depth++;
            c->at++;
        } else if (*c->at == '}' || *c->at == ']') {
            depth--;
            c->at++;
        } else if (*c->at == ',' || *c->at == ':') {
            c->at++;
        } else {
            while (c->at < c->end && !strchr(" \t\r\n,:]}", *c->at))
                c->at++;
        }
    } while (depth > 0);
}

/* Moves into the member `key` of the object at the cursor. */
static bool enter(cursor *c, const char *key)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != '{')
        return false;
    c->at++;
    for (;;) {
        skip_space(c);
        if (c->at >= c->end || *c->at != '"')
            return false;
        int line = c->line;
        const char *text;
        size_t bytes;
        skip_string(c, &text, &bytes);
        bool is_it = strlen(key) == bytes && memcmp(key, text, bytes) == 0;
        skip_space(c);
        c->at++; /* the colon */
        if (is_it) {
            c->line = line;
            return true;
        }
        skip_value(c);
        skip_space(c);
        if (c->at >= c->end || *c->at != ',')
            return false;
        c->at++;
    }
}

int manifest_line(const char *text, size_t bytes, const char *const *path, int depth)
{
    cursor c = {.at = text, .end = text + bytes, .line = 1};
    int line = 1;
    skip_space(&c);
    for (int i = 0; i < depth && enter(&c, path[i]); i++)
        line = c.line;
    return line;
}

#define WORD_MAX 40

/* Levenshtein. */
static int distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    int row[WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t k = 0; k <= m; k++)
        row[k] = (int)k;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t k = 1; k <= m; k++) {
            int change = diagonal + (a[i - 1] != b[k - 1]);
            diagonal = row[k];
            int best = row[k] + 1 < row[k - 1] + 1 ? row[k] + 1 : row[k - 1] + 1;
            row[k] = best < change ? best : change;
        }
    }
    return row[m];
}

const char *manifest_nearest(const char *word, const char *const *candidates, int count)
{
    const char *nearest = NULL;
    int least = (int)strlen(word) / 3;
    least = (least < 2 ? 2 : least) + 1;
    for (int i = 0; i < count; i++) {
        int d = distance(word, candidates[i]);
        if (d < least) {
            least = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}
