#ifndef DEVICES_CPU_CACHE_WEIGHTS_CACHE_H
#define DEVICES_CPU_CACHE_WEIGHTS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The packed weights of one model on disk: one file for each kernel level, mapped read-only, so
 * that servers on one host share its pages. It is written under another name and renamed. What is
 * from other model files, another build of the program, another machine's kernels, or damaged, is
 * not used: those weights are packed again. */

typedef struct weights_cache weights_cache;

/* Which file, and what its content must have been made of. Texts are borrowed. */
typedef struct weights_cache_name {
    const char *folder; /* NULL: there is no cache */
    const char *level;  /* of the kernels */
    uint64_t model_key; /* hash of the model's files; 0: it is not known, and nothing is kept */
    uint64_t signature; /* of the constants that are named by their number */
} weights_cache_name;

/* One packed constant. The words are compared byte for byte. */
#define WEIGHTS_CACHE_WORDS 16
typedef struct weights_cache_item {
    uint64_t words[WEIGHTS_CACHE_WORDS]; /* which constant, in which storage format */
    const void *data;                    /* 64-byte aligned where it comes from a file */
    uint64_t bytes;
} weights_cache_item;

/* NULL: there is no file that can be used. */
weights_cache *weights_cache_open(const weights_cache_name *name);
/* NULL is accepted. Pointers from find() end here. */
void weights_cache_close(weights_cache *c);
/* Sets data and bytes where there is such an item and its checksum is right. One thread at a time.
 */
bool weights_cache_find(weights_cache *c, weights_cache_item *item);
/* Replaces the file. */
status weights_cache_write(const weights_cache_name *name, const weights_cache_item *items,
                           size_t count) MUST_CHECK;

#endif
