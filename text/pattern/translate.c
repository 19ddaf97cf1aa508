#include "text/pattern/translate.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const struct added {
    const char *property, *ranges;
} added[] = {
#define ADDED(property, ranges) {property, ranges},
#include "text/pattern/differences.inc"
#undef ADDED
};

#define SPACES "\\t-\\r\\x{85}\\p{Z}"
#define NO_SPACES                                                                                  \
    "\\x{0}-\\x{8}\\x{E}-\\x{1F}\\x{21}-\\x{84}\\x{86}-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{"     \
    "1FFF}"                                                                                        \
    "\\x{200B}-\\x{2027}\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{"   \
    "10FFFF}"
#define WORDS "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}"

typedef struct translation {
    const char *text;
    size_t bytes, at;
    int class_depth; /* 0: in no class */
    text_buffer *out;
} translation;

static const char *find_added(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        if (strlen(added[i].property) == bytes && memcmp(added[i].property, name, bytes) == 0)
            return added[i].ranges;
    }
    return NULL;
}

static status unsupported(size_t at, const char *what)
{
    return status_fail(STATUS_UNSUPPORTED, "regular expression, byte %zu: %s", at, what);
}

/* A class of its own, or its members where a class is open. */
static void put_members(translation *t, const char *members, const char *more, bool is_negated)
{
    if (t->class_depth == 0)
        text_buffer_put(t->out, is_negated ? "[^" : "[");
    text_buffer_put(t->out, members);
    text_buffer_put(t->out, more);
    if (t->class_depth == 0)
        text_buffer_put(t->out, "]");
}

/* Superscripts and fractions of Latin 1 are of words, but not in a class. */
static void put_words(translation *t, bool is_negated)
{
    put_members(t, t->class_depth > 0 ? WORDS : WORDS "\\xB2\\xB3\\xB9\\xBC-\\xBE",
                find_added("\\w", 2), is_negated);
}

/* Where a word begins or ends, or (negated) neither. */
static void put_boundary(translation *t, bool is_negated)
{
    static const char *const looks[2][4] = {{"(?:(?<=", ")(?!", ")|(?<!", ")(?="},
                                            {"(?:(?<=", ")(?=", ")|(?<!", ")(?!"}};
    for (int i = 0; i < 4; i++) {
        text_buffer_put(t->out, looks[is_negated][i]);
        put_words(t, false);
    }
    text_buffer_put(t->out, "))");
}

/* \p{L}, \pL is not of Oniguruma, \P{L}, \p{^L}. t->at is behind the p. */
static status translate_property(translation *t, bool is_negated)
{
    size_t begin = t->at - 2;
    const char *close = t->at < t->bytes && t->text[t->at] == '{'
                            ? memchr(t->text + t->at, '}', t->bytes - t->at)
                            : NULL;
    if (close == NULL)
        return unsupported(begin, "\\p without {name}");
    const char *name = t->text + t->at + 1;
    if (*name == '^') {
        is_negated = !is_negated;
        name++;
    }
    const char *ranges = find_added(name, (size_t)(close - name));
    if (ranges == NULL || close - name > 16)
        return unsupported(begin, "unknown property; general categories and a few scripts are "
                                  "supported, such as \\p{Lu} and \\p{Han}");
    if (is_negated && t->class_depth > 0)
        return unsupported(begin, "a negated property in a class");
    /* A script's name means its extensions in PCRE2; general categories have one or two letters. */
    char members[32] = "";
    strcpy(members, close - name > 2 ? "\\p{sc:" : "\\p{");
    strncat(members, name, (size_t)(close - name) + 1);
    put_members(t, members, ranges, is_negated);
    t->at = (size_t)(close - t->text) + 1;
    return STATUS_OK;
}

static status translate_escape(translation *t)
{
    size_t begin = t->at;
    if (begin + 1 >= t->bytes)
        return unsupported(begin, "it ends with \\");
    char c = t->text[begin + 1];
    t->at += 2;
    switch (c) {
    case 'p':
    case 'P':
        return translate_property(t, c == 'P');
    case 's':
        put_members(t, SPACES, "", false);
        return STATUS_OK;
    case 'S':
        put_members(t, t->class_depth > 0 ? NO_SPACES : SPACES, "", t->class_depth == 0);
        return STATUS_OK;
    case 'd':
        put_members(t, "\\p{Nd}", find_added("Nd", 2), false);
        return STATUS_OK;
    case 'D':
        if (t->class_depth > 0)
            return unsupported(begin, "\\D in a class");
        put_members(t, "\\p{Nd}", find_added("Nd", 2), true);
        return STATUS_OK;
    case 'b':
    case 'B':
        if (t->class_depth > 0)
            break;
        put_boundary(t, c == 'B');
        return STATUS_OK;
    case 'w':
        put_words(t, false);
        return STATUS_OK;
    case 'W':
        if (t->class_depth > 0)
            return unsupported(begin, "\\W in a class");
        put_words(t, true);
        return STATUS_OK;
    case 'h':
        put_members(t, "0-9A-Fa-f", "", false);
        return STATUS_OK;
    case 'H':
    case 'X':
    case 'R':
    case 'K':
    case 'g':
    case 'k':
    case 'G':
    case 'C':
    case 'N':
    case 'O':
    case 'y':
    case 'Y':
        return unsupported(begin, "this escape is not supported");
    default:
        break;
    }
    text_buffer_append(t->out, t->text + begin, 2);
    return STATUS_OK;
}

/* ( and what follows it. Options of Oniguruma: m is PCRE2's s. */
static status translate_group(translation *t)
{
    size_t begin = t->at, end = begin + 2;
    text_buffer_put(t->out, "(");
    t->at++;
    if (begin + 1 >= t->bytes || t->text[begin + 1] != '?')
        return begin + 1 < t->bytes && t->text[begin + 1] == '*'
                   ? unsupported(begin, "(* is not supported")
                   : STATUS_OK;
    while (end < t->bytes && strchr("imx-", t->text[end]) && t->text[end] != 0)
        end++;
    for (size_t i = begin + 2; i < end; i++) {
        if (t->text[i] == 'm' || t->text[i] == 'x')
            return unsupported(begin, "the options m and x are not supported");
    }
    if (end < t->bytes && !strchr(":=!<>)", t->text[end]))
        return unsupported(begin, "this kind of group is not supported");
    return STATUS_OK;
}

/* A class in a class adds its members. */
static status translate_in_class(translation *t, char c)
{
    char next = t->at + 1 < t->bytes ? t->text[t->at + 1] : 0;
    bool is_range = t->at > 0 && t->text[t->at - 1] == '-';
    if ((c == '[' && (next == '^' || next == ':' || next == ']' || is_range)) ||
        (c == '&' && next == '&'))
        return unsupported(t->at, "this class in a class is not supported");
    t->class_depth += (c == '[') - (c == ']');
    if (c != '[' && (c != ']' || t->class_depth == 0))
        text_buffer_append(t->out, &c, 1);
    t->at++;
    return STATUS_OK;
}

static status translate_one(translation *t)
{
    char c = t->text[t->at];
    if (c == '\\')
        return translate_escape(t);
    if (t->class_depth > 0) {
        return translate_in_class(t, c);
    } else if (c == '(') {
        return translate_group(t);
    } else if (c == '[') {
        t->class_depth = 1;
        text_buffer_put(t->out, "[");
        t->at++;
        if (t->at < t->bytes && t->text[t->at] == '^') {
            text_buffer_put(t->out, "^");
            t->at++;
        }
        if (t->at < t->bytes && t->text[t->at] == ']')
            return unsupported(t->at, "] first in a class: write \\]");
        return STATUS_OK;
    } else if (c == '}' && t->at + 1 < t->bytes && t->text[t->at + 1] == '+') {
        return unsupported(t->at, "{n,m}+ means something else there than in PCRE2");
    }
    text_buffer_append(t->out, &c, 1);
    t->at++;
    return STATUS_OK;
}

status pattern_translate(const char *text, size_t bytes, text_buffer *out)
{
    translation t = {.text = text, .bytes = bytes, .out = out};
    assert(text != NULL && out != NULL);
    while (t.at < t.bytes) {
        status s = translate_one(&t);
        if (s)
            return s;
    }
    return STATUS_OK;
}
