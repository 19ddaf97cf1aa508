#include "server/protocol/route.h"

#include <assert.h>
#include <string.h>

#include "server/protocol/route_method.h"

#define SEGMENTS_MAX 8

typedef struct segment {
    const char *at;
    size_t bytes;
} segment;

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Percent-decodes into a name; false: bad escape, a zero byte, empty, or too long. */
static bool decode(segment s, char out[ROUTE_NAME_BYTES], size_t *bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < s.bytes; i++) {
        char c = s.at[i];
        if (c == '%') {
            if (s.bytes - i < 3 || hex(s.at[i + 1]) < 0 || hex(s.at[i + 2]) < 0)
                return false;
            c = (char)(hex(s.at[i + 1]) << 4 | hex(s.at[i + 2]));
            i += 2;
        }
        if (c == '\0' || n + 1 == ROUTE_NAME_BYTES)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    *bytes = n;
    return n > 0;
}

static bool is(segment s, const char *word)
{
    return strlen(word) == s.bytes && memcmp(s.at, word, s.bytes) == 0;
}

static bool read_version(segment s, int64_t *out)
{
    int64_t v = 0;
    for (size_t i = 0; i < s.bytes; i++) {
        if (s.at[i] < '0' || s.at[i] > '9' || v > INT64_MAX / 10 - 1)
            return false;
        v = v * 10 + (s.at[i] - '0');
    }
    *out = v;
    return s.bytes > 0 && v > 0;
}

static int split(const char *path, size_t bytes, segment out[SEGMENTS_MAX])
{
    int count = 0;
    size_t from = 1;
    for (size_t i = 1; i <= bytes; i++) {
        if (i < bytes && path[i] != '/')
            continue;
        if (i == bytes && from == i)
            break; /* a trailing slash changes nothing */
        if (count == SEGMENTS_MAX)
            return -1;
        out[count++] = (segment){path + from, i - from};
        from = i + 1;
    }
    return count;
}

static void set(route *out, route_kind kind, route_verb verb)
{
    out->kind = kind;
    out->verb = verb;
}

/* Bytes of the colon that `text` ends with, as it is or encoded; 0: it ends with none. */
static size_t colon_at_end(const char *text, size_t bytes)
{
    if (bytes > 0 && text[bytes - 1] == ':')
        return 1;
    bool is_encoded = bytes > 2 && memcmp(text + bytes - 3, "%3", 2) == 0;
    return is_encoded && (text[bytes - 1] | 32) == 'a' ? 3 : 0;
}

/* "digits:predict", "digits%3Apredict", "2:classify": cuts the verb off. ROUTE_UNKNOWN: none. */
static route_kind cut_verb(segment *s)
{
    static const struct {
        const char *word;
        route_kind kind;
    } verbs[] = {{"predict", ROUTE_TF_PREDICT},
                 {"classify", ROUTE_TF_CLASSIFY},
                 {"regress", ROUTE_TF_REGRESS}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        size_t n = strlen(verbs[i].word);
        if (s->bytes <= n || memcmp(s->at + s->bytes - n, verbs[i].word, n) != 0)
            continue;
        size_t colon = colon_at_end(s->at, s->bytes - n);
        if (colon > 0 && s->bytes > n + colon) {
            s->bytes -= n + colon;
            return verbs[i].kind;
        }
    }
    return ROUTE_UNKNOWN;
}

/* /v1/models/M[/versions/V|/labels/L][/metadata | :predict | :classify | :regress] */
static void parse_v1(segment *s, int count, route *out)
{
    bool is_tensorflow = count > 2 && is(s[1], "models");
    out->dialect = is_tensorflow ? ROUTE_TENSORFLOW : ROUTE_OPENAI;
    if (count == 2 && is(s[1], "models"))
        set(out, ROUTE_MODELS, ROUTE_GET);
    if (!is_tensorflow)
        return;
    route_kind verb = cut_verb(&s[count - 1]);
    int at = 3;
    if (count >= at + 2 && is(s[at], "versions")) {
        if (!read_version(s[at + 1], &out->version))
            return;
        at += 2;
    } else if (count >= at + 2 && is(s[at], "labels")) {
        if (!decode(s[at + 1], out->label, &out->label_bytes))
            return;
        at += 2;
    }
    if (!decode(s[2], out->name, &out->name_bytes))
        return;
    if (count == at)
        set(out, verb != ROUTE_UNKNOWN ? verb : ROUTE_TF_STATUS,
            verb != ROUTE_UNKNOWN ? ROUTE_POST : ROUTE_GET);
    else if (count == at + 1 && is(s[at], "metadata"))
        set(out, ROUTE_TF_METADATA, ROUTE_GET);
}

static void parse_repository(const segment *s, int count, route *out)
{
    if (count == 3 && is(s[2], "index"))
        set(out, ROUTE_INDEX, ROUTE_POST);
    if (count != 5 || !is(s[2], "models") || !decode(s[3], out->name, &out->name_bytes))
        return;
    if (is(s[4], "load"))
        set(out, ROUTE_LOAD, ROUTE_POST);
    else if (is(s[4], "unload"))
        set(out, ROUTE_UNLOAD, ROUTE_POST);
}

/* .../systemsharedmemory or cudasharedmemory[/region/R]/status | register | unregister */
static void parse_shared_memory(const segment *s, int count, bool is_cuda, route *out)
{
    route_kind kind = is_cuda ? ROUTE_CUDA_STATUS : ROUTE_SHARED_STATUS;
    bool has_region = count == 5 && is(s[2], "region");
    if (count != 3 && !has_region)
        return;
    if (has_region && !decode(s[3], out->name, &out->name_bytes))
        return;
    if (is(s[count - 1], "status"))
        set(out, kind, ROUTE_GET);
    else if (has_region && is(s[count - 1], "register"))
        set(out, kind + 1, ROUTE_POST);
    else if (is(s[count - 1], "unregister"))
        set(out, kind + 2, ROUTE_POST);
}

static void parse_v2(const segment *s, int count, route *out)
{
    if (count == 1) {
        set(out, ROUTE_SERVER_METADATA, ROUTE_GET);
        return;
    }
    if (is(s[1], "health") && count == 3) {
        if (is(s[2], "live"))
            set(out, ROUTE_LIVE, ROUTE_GET);
        else if (is(s[2], "ready"))
            set(out, ROUTE_READY, ROUTE_GET);
        return;
    }
    if (is(s[1], "repository")) {
        parse_repository(s, count, out);
        return;
    }
    if (is(s[1], "profile") && count == 2)
        set(out, ROUTE_PROFILE, ROUTE_POST);
    if (is(s[1], "systemsharedmemory") || is(s[1], "cudasharedmemory"))
        parse_shared_memory(s, count, is(s[1], "cudasharedmemory"), out);
    if (!is(s[1], "models") || count < 3)
        return;
    if (count == 3 && is(s[2], "stats")) {
        set(out, ROUTE_ALL_STATS, ROUTE_GET);
        return;
    }
    if (!decode(s[2], out->name, &out->name_bytes))
        return;
    int at = 3;
    if (count >= 5 && is(s[3], "versions")) {
        if (!read_version(s[4], &out->version))
            return;
        at = 5;
    }
    if (count == at)
        set(out, ROUTE_MODEL_METADATA, ROUTE_GET);
    else if (count != at + 1)
        return;
    else if (is(s[at], "infer"))
        set(out, ROUTE_INFER, ROUTE_POST);
    else if (is(s[at], "ready"))
        set(out, ROUTE_MODEL_READY, ROUTE_GET);
    else if (is(s[at], "config"))
        set(out, ROUTE_MODEL_CONFIG, ROUTE_GET);
    else if (is(s[at], "stats"))
        set(out, ROUTE_MODEL_STATS, ROUTE_GET);
}

/* The routes that take text, from segment `at` on; false: it is none of them. */
static bool parse_language(const segment *s, int count, int at, route *out)
{
    static const struct {
        const char *first, *second; /* second NULL: there is none */
        route_kind kind;
        route_verb verb;
        route_dialect dialect;
    } routes[] = {
        {"v1", "embeddings", ROUTE_EMBEDDINGS, ROUTE_POST, ROUTE_OPENAI},
        {"embeddings", NULL, ROUTE_EMBEDDINGS, ROUTE_POST, ROUTE_OPENAI},
        {"v1", "rerank", ROUTE_V1_RERANK, ROUTE_POST, ROUTE_COHERE},
        {"v2", "rerank", ROUTE_V1_RERANK, ROUTE_POST, ROUTE_COHERE},
        {"embed", NULL, ROUTE_EMBED, ROUTE_POST, ROUTE_TEI},
        {"embed_all", NULL, ROUTE_EMBED_ALL, ROUTE_POST, ROUTE_TEI},
        {"embed_sparse", NULL, ROUTE_EMBED_SPARSE, ROUTE_POST, ROUTE_TEI},
        {"rerank", NULL, ROUTE_RERANK, ROUTE_POST, ROUTE_TEI},
        {"predict", NULL, ROUTE_PREDICT, ROUTE_POST, ROUTE_TEI},
        {"similarity", NULL, ROUTE_SIMILARITY, ROUTE_POST, ROUTE_TEI},
        {"tokenize", NULL, ROUTE_TOKENIZE, ROUTE_POST, ROUTE_TEI},
        {"decode", NULL, ROUTE_DECODE, ROUTE_POST, ROUTE_TEI},
        {"info", NULL, ROUTE_INFO, ROUTE_GET, ROUTE_TEI},
        {"health", NULL, ROUTE_HEALTH, ROUTE_GET, ROUTE_TEI},
        {"ping", NULL, ROUTE_HEALTH, ROUTE_GET, ROUTE_TEI},
    };
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        bool has_second = routes[i].second != NULL;
        if (count != at + 1 + has_second || !is(s[at], routes[i].first) ||
            (has_second && !is(s[at + 1], routes[i].second)))
            continue;
        out->dialect = routes[i].dialect;
        set(out, routes[i].kind, routes[i].verb);
        return true;
    }
    return false;
}

static status set_text(char to[ROUTE_NAME_BYTES], size_t *to_bytes, const char *field,
                       const char *text, size_t bytes)
{
    if (bytes == 0 || bytes >= ROUTE_NAME_BYTES)
        return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\" has %zu bytes", field, bytes);
    memcpy(to, text, bytes);
    to[bytes] = 0;
    *to_bytes = bytes;
    return STATUS_OK;
}

status route_set_name(route *r, const char *field, const char *name, size_t bytes)
{
    return set_text(r->name, &r->name_bytes, field, name, bytes);
}

status route_set_label(route *r, const char *field, const char *label, size_t bytes)
{
    return set_text(r->label, &r->label_bytes, field, label, bytes);
}

/* /invocations: what SageMaker asks of an image, beside /ping. */
static bool parse_platform(const segment *s, int count, route *out)
{
    if (count != 1 || !is(s[0], "invocations"))
        return false;
    out->dialect = ROUTE_PLATFORM;
    set(out, ROUTE_INVOCATIONS, ROUTE_POST);
    return true;
}

/* /models[/M]: what it asks of one with many models. */
static void parse_multi(const segment *s, int count, route *out)
{
    if (count == 2 && !decode(s[1], out->name, &out->name_bytes))
        return;
    out->dialect = ROUTE_PLATFORM;
    set(out, count == 1 ? ROUTE_MULTI_LIST : ROUTE_MULTI_STATUS, ROUTE_GET);
}

/* /models/M/invoke, and the routes that take text. */
static void parse_of_model(const segment *s, int count, route *out)
{
    if (count != 3 || !is(s[2], "invoke")) {
        parse_language(s, count, 2, out);
        return;
    }
    out->dialect = ROUTE_PLATFORM;
    set(out, ROUTE_INVOCATIONS, ROUTE_POST);
}

void route_choose(route *r, const char *method, size_t bytes)
{
    segment asked = {method, bytes};
    if (r->kind == ROUTE_MULTI_LIST && is(asked, "POST"))
        set(r, ROUTE_MULTI_LOAD, ROUTE_POST);
    if (r->kind == ROUTE_MULTI_STATUS && is(asked, "DELETE"))
        set(r, ROUTE_MULTI_UNLOAD, ROUTE_DELETE);
}

const char *route_methods(const route *r)
{
    switch (r->kind) {
    case ROUTE_MULTI_LIST:
    case ROUTE_MULTI_LOAD:
        return "GET, HEAD, POST";
    case ROUTE_MULTI_STATUS:
    case ROUTE_MULTI_UNLOAD:
        return "GET, HEAD, DELETE";
    default:
        return r->verb == ROUTE_GET ? "GET, HEAD" : "POST";
    }
}

const char *route_dialect_name(route_dialect dialect)
{
    static const char *const names[ROUTE_DIALECT_COUNT] = {
        [ROUTE_KSERVE] = "kserve", [ROUTE_TENSORFLOW] = "tensorflow", [ROUTE_OPENAI] = "openai",
        [ROUTE_TEI] = "tei",       [ROUTE_COHERE] = "cohere",         [ROUTE_PLATFORM] = "platform",
        [ROUTE_GRPC] = "grpc",
    };
    assert((unsigned)dialect < ROUTE_DIALECT_COUNT);
    return names[dialect];
}

void route_parse(const char *path, size_t bytes, route *out)
{
    out->kind = ROUTE_UNKNOWN;
    out->verb = ROUTE_GET;
    out->dialect = ROUTE_KSERVE;
    out->name[0] = out->label[0] = '\0';
    out->name_bytes = out->label_bytes = 0;
    out->version = 0;
    segment s[SEGMENTS_MAX];
    if (bytes == 0 || path[0] != '/')
        return;
    int count = split(path, bytes, s);
    if (count == 0)
        set(out, ROUTE_STATUS_PAGE, ROUTE_GET);
    else if (count < 0)
        return;
    else if (is(s[0], "models") && count < 3)
        parse_multi(s, count, out);
    else if (is(s[0], "models") && count > 2 && decode(s[1], out->name, &out->name_bytes))
        parse_of_model(s, count, out);
    else if (parse_language(s, count, 0, out) || parse_platform(s, count, out))
        return;
    else if (is(s[0], "v2"))
        parse_v2(s, count, out);
    else if (is(s[0], "v1"))
        parse_v1(s, count, out);
    else if (is(s[0], "openapi.json") && count == 1)
        set(out, ROUTE_OPENAPI, ROUTE_GET);
    else if (is(s[0], "metrics") && count == 1)
        set(out, ROUTE_METRICS, ROUTE_GET);
    else if (route_method_find(path, bytes) != ROUTE_UNKNOWN)
        set(out, route_method_find(path, bytes), ROUTE_POST);
    if (out->kind >= ROUTE_GRPC_INFER)
        out->dialect = ROUTE_GRPC;
}
