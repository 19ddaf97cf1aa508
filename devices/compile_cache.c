#include "devices/compile_cache.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file_reader.h"
#include "base/io/file_writer.h"
#include "base/io/folders.h"
#include "base/log.h"

#define ROOM "devices"
#define ENTRY_BYTES_MAX ((size_t)4 << 30)

/* On disk: this header, the program, the summary. All numbers little-endian. `digest` covers
 * everything after itself. */
typedef struct entry_header {
    char magic[8];
    unsigned char digest[32];
    unsigned char key[COMPILE_CACHE_KEY_BYTES];
    uint64_t program_bytes, summary_bytes;
} entry_header;

static const char entry_magic[8] = {'p', 's', 't', 'k', 'x', 'l', 'a', '1'};

struct compile_cache {
    char *folder;
    _Atomic uint64_t hits, misses, corrupt, refused, stored, store_failures;
    _Atomic uint64_t last_temporary;
};

static void must(int ok)
{
    assert(ok == 1); /* SHA-256 in memory fails only when OpenSSL itself is broken */
}

static void digest_text(EVP_MD_CTX *digest, const char *text, size_t bytes)
{
    uint64_t length = bytes; /* so that ("ab","c") and ("a","bc") differ */
    must(EVP_DigestUpdate(digest, &length, sizeof length));
    must(EVP_DigestUpdate(digest, text, bytes));
}

compile_cache_key compile_cache_make_key(const compile_cache_identity *identity)
{
    compile_cache_key key;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    assert(digest != NULL);
    must(EVP_DigestInit_ex(digest, EVP_sha256(), NULL));
    digest_text(digest, identity->program, identity->program_bytes);
    digest_text(digest, identity->precision, strlen(identity->precision));
    digest_text(digest, identity->device_kind, strlen(identity->device_kind));
    digest_text(digest, identity->compiler, strlen(identity->compiler));
    digest_text(digest, identity->options, strlen(identity->options));
    if (identity->declared != NULL)
        digest_text(digest, identity->declared, identity->declared_bytes);
    must(EVP_DigestUpdate(digest, &identity->batch, sizeof identity->batch));
    must(EVP_DigestUpdate(digest, &identity->sequence, sizeof identity->sequence));
    must(EVP_DigestFinal_ex(digest, key.bytes, NULL));
    EVP_MD_CTX_free(digest);
    return key;
}

void compile_cache_file_name(const compile_cache_key *key, char out[80])
{
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", key->bytes[i]);
    strcpy(out + 32, ".program");
}

status compile_cache_open(const char *folder, compile_cache **out)
{
    compile_cache *c = calloc(1, sizeof *c);
    char *copy = strdup(folder);
    if (c == NULL || copy == NULL || *folder == 0) {
        free(c);
        free(copy);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory, or no name, for the compile cache");
    }
    c->folder = copy;
    if (folders_make(copy, 0755))
        log_warning(ROOM, "the compile cache cannot be kept: %s; every start will compile again",
                    status_message());
    else if (access(copy, W_OK) != 0)
        log_warning(ROOM, "the compile cache %s is read-only: new programs will not be kept", copy);
    *out = c;
    return STATUS_OK;
}

void compile_cache_close(compile_cache *c)
{
    if (c == NULL)
        return;
    free(c->folder);
    free(c);
}

static void digest_entry(const entry_header *h, const void *program, const void *summary,
                         unsigned char out[32])
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    assert(digest != NULL);
    size_t skipped = offsetof(entry_header, key);
    must(EVP_DigestInit_ex(digest, EVP_sha256(), NULL));
    must(EVP_DigestUpdate(digest, (const char *)h + skipped, sizeof *h - skipped));
    must(EVP_DigestUpdate(digest, program, h->program_bytes));
    must(EVP_DigestUpdate(digest, summary, h->summary_bytes));
    must(EVP_DigestFinal_ex(digest, out, NULL));
    EVP_MD_CTX_free(digest);
}

static void path_of(const compile_cache *c, const compile_cache_key *key, char *out, size_t bytes)
{
    char name[80];
    compile_cache_file_name(key, name);
    snprintf(out, bytes, "%s/%s", c->folder, name);
}

/* Why the bytes of a file are no entry of that key, or NULL. */
static const char *distrust(const unsigned char *data, size_t bytes, const compile_cache_key *key)
{
    entry_header h;
    if (bytes < sizeof h)
        return "it is cut short";
    memcpy(&h, data, sizeof h);
    if (memcmp(h.magic, entry_magic, sizeof entry_magic) != 0)
        return "it is no cache entry of this version";
    /* Each below 2^63: their sum cannot wrap. */
    if (h.program_bytes > bytes || h.summary_bytes > bytes ||
        h.program_bytes + h.summary_bytes != bytes - sizeof h)
        return "its size is wrong";
    if (memcmp(h.key, key->bytes, sizeof h.key) != 0)
        return "it belongs to another program";
    unsigned char digest[32];
    digest_entry(&h, data + sizeof h, data + sizeof h + h.program_bytes, digest);
    if (memcmp(digest, h.digest, sizeof digest) != 0)
        return "its checksum is wrong";
    return NULL;
}

static void *copy_bytes(const void *from, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    assert(copy != NULL);
    memcpy(copy, from, bytes);
    copy[bytes] = 0;
    return copy;
}

status compile_cache_get(compile_cache *c, const compile_cache_key *key, compile_cache_entry *out)
{
    char path[4096];
    path_of(c, key, path, sizeof path);
    void *data = NULL;
    size_t bytes = 0;
    status s = file_reader_read_whole(path, ENTRY_BYTES_MAX, &data, &bytes);
    if (s) {
        if (s != STATUS_NOT_FOUND)
            log_warning(ROOM, "compile cache: %s", status_message());
        atomic_fetch_add(&c->misses, 1);
        return status_fail(STATUS_NOT_FOUND, "not in the compile cache");
    }
    const char *why = distrust(data, bytes, key);
    if (why != NULL) {
        log_warning(ROOM, "compile cache: %s is not trusted: %s; compiling again", path, why);
        free(data);
        atomic_fetch_add(&c->corrupt, 1);
        atomic_fetch_add(&c->misses, 1);
        return status_fail(STATUS_NOT_FOUND, "the compile cache's entry is not trusted: %s", why);
    }
    entry_header h;
    memcpy(&h, data, sizeof h);
    const char *program = (const char *)data + sizeof h;
    *out = (compile_cache_entry){copy_bytes(program, h.program_bytes), h.program_bytes,
                                 copy_bytes(program + h.program_bytes, h.summary_bytes),
                                 h.summary_bytes};
    free(data);
    atomic_fetch_add(&c->hits, 1);
    return STATUS_OK;
}

bool compile_cache_has(const compile_cache *c, const compile_cache_key *key)
{
    char path[4096];
    path_of(c, key, path, sizeof path);
    return access(path, R_OK) == 0;
}

status compile_cache_put(compile_cache *c, const compile_cache_key *key,
                         const compile_cache_entry *entry)
{
    entry_header h = {.program_bytes = entry->program_bytes, .summary_bytes = entry->summary_bytes};
    memcpy(h.magic, entry_magic, sizeof h.magic);
    memcpy(h.key, key->bytes, sizeof h.key);
    digest_entry(&h, entry->program, entry->summary, h.digest);
    char path[4096], temporary[4200];
    path_of(c, key, path, sizeof path);
    snprintf(temporary, sizeof temporary, "%s.%d.%llu.new", path, (int)getpid(),
             (unsigned long long)atomic_fetch_add(&c->last_temporary, 1));
    const file_part parts[3] = {{&h, sizeof h},
                                {entry->program, entry->program_bytes},
                                {entry->summary, entry->summary_bytes}};
    status s = file_writer_write(temporary, parts, 3);
    if (s == STATUS_OK && rename(temporary, path) != 0)
        s = status_fail(STATUS_IO, "%s: %m", path);
    if (s) {
        unlink(temporary);
        atomic_fetch_add(&c->store_failures, 1);
        return status_prefix(s, "the compile cache did not keep a program");
    }
    atomic_fetch_add(&c->stored, 1);
    return STATUS_OK;
}

static int is_entry(const struct dirent *e)
{
    const char *end = strstr(e->d_name, ".program");
    return end != NULL && strcmp(end, ".program") == 0;
}

static void visit_entry(const char *path, size_t bytes_max,
                        void (*visit)(void *context, const char *summary), void *context)
{
    void *data = NULL;
    size_t bytes = 0;
    struct stat file;
    entry_header h;
    compile_cache_key key;
    if (stat(path, &file) != 0 || file.st_size > (off_t)bytes_max ||
        file_reader_read_whole(path, bytes_max, &data, &bytes))
        return;
    if (bytes >= sizeof h) {
        memcpy(&h, data, sizeof h);
        memcpy(key.bytes, h.key, sizeof key.bytes);
        if (distrust(data, bytes, &key) == NULL) {
            char *summary =
                copy_bytes((const char *)data + sizeof h + h.program_bytes, h.summary_bytes);
            visit(context, summary);
            free(summary);
        }
    }
    free(data);
}

status compile_cache_visit(const compile_cache *c, size_t bytes_max,
                           void (*visit)(void *context, const char *summary), void *context)
{
    struct dirent **entries = NULL;
    int count = scandir(c->folder, &entries, is_entry, alphasort);
    if (count < 0)
        return status_fail(STATUS_IO, "%s: %m", c->folder);
    for (int i = 0; i < count; i++) {
        char path[4096];
        int written = snprintf(path, sizeof path, "%s/%s", c->folder, entries[i]->d_name);
        if (written < (int)sizeof path)
            visit_entry(path, bytes_max, visit, context);
        free(entries[i]);
    }
    free(entries);
    return STATUS_OK;
}

void compile_cache_refuse(compile_cache *c)
{
    if (c == NULL)
        return;
    atomic_fetch_add(&c->corrupt, 1);
    atomic_fetch_add(&c->refused, 1);
}

void compile_cache_entry_dispose(compile_cache_entry *e)
{
    free(e->program);
    free(e->summary);
    *e = (compile_cache_entry){0};
}

compile_cache_counts compile_cache_count(const compile_cache *c)
{
    return (compile_cache_counts){.hits = atomic_load(&c->hits),
                                  .misses = atomic_load(&c->misses),
                                  .corrupt = atomic_load(&c->corrupt),
                                  .refused = atomic_load(&c->refused),
                                  .stored = atomic_load(&c->stored),
                                  .store_failures = atomic_load(&c->store_failures)};
}
