#include "server/access/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "base/text/nearest.h"

#define FILE_BYTES_MAX ((size_t)4 << 20)
#define WORDS_MAX 8
#define MODELS_MAX 256 /* of one line */

/* A file of keys while it is read: "NAME SECRET RIGHTS [models=A,B*] [tenant=T]", one a line. */
typedef struct key_reader {
    access_table *table;
    const server_options *options;
    const char *file;
    int line;
} key_reader;

static status fail(const key_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static status fail(const key_reader *r, const char *format, ...)
{
    char text[STATUS_MESSAGE_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: %.900s", r->file, r->line, text);
}

static status fail_memory(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for keys");
}

static status add(access_table *t, access_identity **out)
{
    if (t->count == ACCESS_IDENTITIES_MAX)
        return status_fail(STATUS_TOO_LARGE, "more than %d keys", ACCESS_IDENTITIES_MAX);
    if (t->count == t->capacity) {
        int capacity = t->capacity ? 2 * t->capacity : 16;
        access_identity *grown = realloc(t->identities, (size_t)capacity * sizeof(access_identity));
        if (grown == NULL)
            return fail_memory();
        t->identities = grown;
        t->capacity = capacity;
    }
    *out = &t->identities[t->count];
    **out = (access_identity){.name = ""};
    return STATUS_OK;
}

static const access_identity *find_same(const access_table *t, const access_identity *who)
{
    for (int i = 0; i < t->count; i++) {
        const access_identity *other = &t->identities[i];
        if (who->has_key && other->has_key && access_digest_is_same(other->digest, who->digest))
            return other;
        if (who->certificate != NULL && other->certificate != NULL &&
            strcmp(who->certificate, other->certificate) == 0)
            return other;
    }
    return NULL;
}

static status read_secret(key_reader *r, const char *word, access_identity *who)
{
    if (strncmp(word, "sha256:", 7) == 0) {
        who->has_key = access_digest_read(word + 7, strlen(word + 7), who->digest);
        return who->has_key ? STATUS_OK
                            : fail(r, "after sha256: stand 64 hexadecimal digits, as `penstock "
                                      "key` writes them");
    }
    if (strncmp(word, "cert:", 5) == 0 && word[5] != 0) {
        who->certificate = arena_copy_string(&r->table->memory, word + 5, strlen(word + 5));
        return who->certificate ? STATUS_OK : fail_memory();
    }
    return fail(r, "the second word is sha256:DIGEST, as `penstock key` writes it, or cert:NAME");
}

static status read_rights(key_reader *r, const char *word, access_identity *who)
{
    static const char *const names[] = {"infer", "read", "admin", "shared_memory"};
    for (const char *at = word; at != NULL;) {
        const char *comma = strchr(at, ',');
        size_t bytes = comma != NULL ? (size_t)(comma - at) : strlen(at);
        access_right right = access_right_named(at, bytes);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        const char *near = nearest_find(name, names, 4);
        if (right == 0)
            return fail(r, "\"%s\" is no right: infer, read, admin, shared_memory%s%s%s", name,
                        near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        who->rights |= right;
        at = comma != NULL ? comma + 1 : NULL;
    }
    return STATUS_OK;
}

static status read_models(key_reader *r, const char *list, access_identity *who)
{
    arena *memory = &r->table->memory;
    const char **models = arena_allocate(memory, MODELS_MAX * sizeof(char *));
    if (models == NULL)
        return fail_memory();
    for (const char *at = list; at != NULL;) {
        const char *comma = strchr(at, ',');
        size_t bytes = comma != NULL ? (size_t)(comma - at) : strlen(at);
        if (bytes == 0)
            return fail(r, "models= names no model");
        if (who->model_count == MODELS_MAX)
            return fail(r, "more than %d models", MODELS_MAX);
        models[who->model_count] = arena_copy_string(memory, at, bytes);
        if (models[who->model_count++] == NULL)
            return fail_memory();
        at = comma != NULL ? comma + 1 : NULL;
    }
    who->models = models;
    return STATUS_OK;
}

static status read_tenant(key_reader *r, const char *name, access_identity *who)
{
    for (int i = 0; i < r->options->tenant_count; i++)
        if (strcmp(r->options->tenants[i].name, name) == 0)
            who->tenant = i + 1;
    return who->tenant > 0 ? STATUS_OK : fail(r, "the configuration has no tenant \"%s\"", name);
}

static status read_line(key_reader *r, char *line)
{
    char *words[WORDS_MAX], *rest = NULL;
    int count = 0;
    for (char *w = strtok_r(line, " \t\r", &rest); w != NULL; w = strtok_r(NULL, " \t\r", &rest)) {
        if (w[0] == '#')
            break;
        if (count == WORDS_MAX)
            return fail(r, "too many words");
        words[count++] = w;
    }
    access_identity *who;
    if (count == 0)
        return STATUS_OK;
    if (count < 3)
        return fail(r, "a line is NAME SECRET RIGHTS [models=A,B] [tenant=T]");
    status failure = add(r->table, &who);
    if (!failure) {
        who->name = arena_copy_string(&r->table->memory, words[0], strlen(words[0]));
        failure = who->name == NULL ? fail_memory() : read_secret(r, words[1], who);
    }
    if (!failure)
        failure = read_rights(r, words[2], who);
    for (int i = 3; i < count && !failure; i++) {
        if (strncmp(words[i], "models=", 7) == 0)
            failure = read_models(r, words[i] + 7, who);
        else if (strncmp(words[i], "tenant=", 7) == 0)
            failure = read_tenant(r, words[i] + 7, who);
        else
            failure = fail(r, "\"%s\" is neither models= nor tenant=", words[i]);
    }
    if (failure)
        return failure;
    const access_identity *same = find_same(r->table, who);
    if (same != NULL)
        return fail(r, "%s has the key or certificate of %s", who->name, same->name);
    r->table->count++;
    return STATUS_OK;
}

static status read_file(access_table *t, const server_options *o)
{
    key_reader r = {.table = t, .options = o, .file = o->keys_file};
    void *data;
    size_t bytes;
    status failure = file_reader_read_whole(o->keys_file, FILE_BYTES_MAX, &data, &bytes);
    if (failure)
        return failure;
    char *at = data, *end = at + bytes; /* a zero byte follows */
    while (at < end && !failure) {
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end != NULL ? line_end : end;
        *line_end = 0;
        r.line++;
        failure = read_line(&r, at);
        at = line_end + 1;
    }
    free(data);
    return failure;
}

/* A tenant's key in the configuration: it may run every model. */
static status add_tenants(access_table *t, const server_options *o, access_hasher *h)
{
    for (int i = 0; i < o->tenant_count; i++) {
        const server_tenant *tenant = &o->tenants[i];
        access_identity *who;
        if (tenant->key == NULL)
            continue;
        status failure = add(t, &who);
        if (failure)
            return failure;
        *who = (access_identity){
            .name = tenant->name, .has_key = true, .rights = ACCESS_INFER, .tenant = i + 1};
        if (!access_digest(h, tenant->key, strlen(tenant->key), who->digest))
            return status_fail(STATUS_INTERNAL, "no digest of a key");
        t->count++;
    }
    return STATUS_OK;
}

status access_table_create(const server_options *o, access_table **out)
{
    access_table *t = calloc(1, sizeof *t);
    access_hasher *h = access_hasher_create();
    status failure = t == NULL || h == NULL ? fail_memory() : STATUS_OK;
    if (!failure) {
        atomic_init(&t->references, 1);
        t->is_enforced = o->keys_file != NULL;
        failure = add_tenants(t, o, h);
    }
    if (!failure && t->is_enforced)
        failure = read_file(t, o);
    if (!failure && t->count > 0 && !access_hasher_prepare(h))
        failure = status_fail(STATUS_INTERNAL, "no digests of keys");
    access_hasher_destroy(h);
    if (failure) {
        if (t != NULL)
            access_table_release(t);
        return failure;
    }
    *out = t;
    return STATUS_OK;
}

access_table *access_table_retain(access_table *t)
{
    atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
    return t;
}

void access_table_release(access_table *t)
{
    if (t == NULL || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) > 1)
        return;
    arena_dispose(&t->memory);
    free(t->identities);
    free(t);
}

const access_identity *access_find_key(const access_table *t, access_hasher *h, const char *key,
                                       size_t bytes)
{
    unsigned char digest[ACCESS_DIGEST_BYTES];
    const access_identity *found = NULL;
    if (t->count == 0 || !access_digest(h, key, bytes, digest))
        return NULL;
    for (int i = 0; i < t->count; i++) /* all of them, whichever it is */
        if (t->identities[i].has_key && access_digest_is_same(t->identities[i].digest, digest))
            found = &t->identities[i];
    return found;
}

const access_identity *access_find_certificate(const access_table *t, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (t->identities[i].certificate != NULL && strcmp(t->identities[i].certificate, name) == 0)
            return &t->identities[i];
    return NULL;
}

static bool fits(const char *pattern, const char *model, size_t bytes)
{
    size_t n = strlen(pattern);
    if (n > 0 && pattern[n - 1] == '*')
        return bytes >= n - 1 && memcmp(pattern, model, n - 1) == 0;
    return n == bytes && memcmp(pattern, model, n) == 0;
}

bool access_may_run(const access_identity *who, const char *model, size_t bytes)
{
    for (int i = 0; i < who->model_count; i++)
        if (fits(who->models[i], model, bytes))
            return true;
    return who->model_count == 0;
}
