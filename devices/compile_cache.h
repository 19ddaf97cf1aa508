#ifndef DEVICES_COMPILE_CACHE_H
#define DEVICES_COMPILE_CACHE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compiled programs on disk: one file per key, written under another name and renamed, so a reader
 * sees a whole entry or none. An entry is believed only when its magic, sizes, key and SHA-256
 * agree; anything else is counted, said once in the log and compiled again. Any thread; several
 * processes may share a folder. */

#define COMPILE_CACHE_KEY_BYTES 32

typedef struct compile_cache compile_cache;

/* What makes two compilations the same. Texts are borrowed. */
typedef struct compile_cache_identity {
    const char *program; /* StableHLO */
    size_t program_bytes;
    const char *precision;   /* "bf16" */
    int64_t batch, sequence; /* the bucket */
    const char *device_kind; /* "TPU v5 lite" */
    const char *compiler;    /* the plugin's version text */
    const char *options;     /* compile options, printable */
    const void *declared;    /* what was compared with the program when it was compiled, or NULL */
    size_t declared_bytes;
} compile_cache_identity;

typedef struct compile_cache_key {
    unsigned char bytes[COMPILE_CACHE_KEY_BYTES];
} compile_cache_key;

/* Everything one entry holds. `data` etc. are malloc'd by get and freed by
 * compile_cache_entry_dispose. */
typedef struct compile_cache_entry {
    void *program; /* serialised by the plugin */
    size_t program_bytes;
    char *summary; /* text: what was compiled, the compiler's figures, the optimized program's dense
                      layers */
    size_t summary_bytes;
} compile_cache_entry;

typedef struct compile_cache_counts {
    uint64_t hits, misses, corrupt, stored, store_failures;
    uint64_t refused; /* of the corrupt: by the plugin, after every check here was passed */
} compile_cache_counts;

/* `folder` is made when missing. A folder that cannot be made or written is no error: the cache
 * then only reads, or does nothing (log says so). */
status compile_cache_open(const char *folder, compile_cache **out) MUST_CHECK;
void compile_cache_close(compile_cache *c);

compile_cache_key compile_cache_make_key(const compile_cache_identity *identity);

/* STATUS_NOT_FOUND: no (believable) entry. */
status compile_cache_get(compile_cache *c, const compile_cache_key *key,
                         compile_cache_entry *out) MUST_CHECK;
/* Whether there is a file for that key, believable or not; counts nothing. */
bool compile_cache_has(const compile_cache *c, const compile_cache_key *key);
/* STATUS_IO when it could not be kept (disk full, read-only): the caller goes on without. */
status compile_cache_put(compile_cache *c, const compile_cache_key *key,
                         const compile_cache_entry *entry) MUST_CHECK;
/* Counts an entry that passed every check and that the plugin refuses. NULL is accepted. */
void compile_cache_refuse(compile_cache *c);
/* Calls `visit` with the summary of every believable entry of at most `bytes_max` bytes, in the
 * order of their names. Counts nothing. STATUS_IO: the folder cannot be read. */
status compile_cache_visit(const compile_cache *c, size_t bytes_max,
                           void (*visit)(void *context, const char *summary),
                           void *context) MUST_CHECK;
void compile_cache_entry_dispose(compile_cache_entry *e);

compile_cache_counts compile_cache_count(const compile_cache *c);
/* "<first 32 hex digits of the key>.program" */
void compile_cache_file_name(const compile_cache_key *key, char out[80]);

#endif
