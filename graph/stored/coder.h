#ifndef GRAPH_STORED_CODER_H
#define GRAPH_STORED_CODER_H

#include "base/tensor.h"

/* Writes values into words, or reads them from there: one function for both, so that a format is
 * said once; a writer leaves what it is given as it is. The words of a reader are not trusted: a
 * value that cannot be makes it fail, and all that it reads from then on is zero, NULL or empty. */

typedef struct coder_constant {
    const void *data;
    uint64_t offset, bytes; /* in the file */
} coder_constant;

typedef struct coder {
    bool is_reading, has_failed; /* a writer fails where memory is out, or `why` says */
    const char *why;             /* a writer cannot keep it; or NULL */
    uint64_t *words;             /* a writer's belong to it: free() */
    size_t count, capacity;      /* of words; a reader: how many there are */
    size_t at;                   /* a reader: the next one */
    arena *memory;               /* a reader: for lists */
    /* Constants, aligned, from offset 0 of their part of the file. */
    const char *data;
    uint64_t data_bytes;
    coder_constant *constants; /* a writer's, in the order of the file: free() */
    size_t constant_count, constant_capacity;
    uint32_t *slots; /* of a hash table by address, number + 1: free() */
    size_t slot_count;
} coder;

#define CODER_ALIGNMENT 64
#define CODER_WORD_BYTES sizeof(uint64_t)

void coder_fail(coder *c);
void coder_u64(coder *c, uint64_t *value);
/* Within the bounds, which a reader checks. */
void coder_int(coder *c, int *value, int64_t least, int64_t most);
void coder_i64(coder *c, int64_t *value);
void coder_bool(coder *c, bool *value);
void coder_float(coder *c, float *value);
/* A count of items of at least `item_bytes` bytes each: they fit into what is left. */
void coder_count(coder *c, size_t *count, size_t item_bytes);
/* A text, or NULL. A reader's lies in the words. */
void coder_text(coder *c, const char **text);
/* `bytes` bytes as they are, 8-byte aligned; a reader's lie in the words. */
void coder_bytes(coder *c, const void **bytes, size_t count);
/* A list of `count` texts. */
void coder_texts(coder *c, const char *const **texts, size_t count);
/* Type and dims. */
void coder_shape(coder *c, tensor *t);
/* The same and its data; NULL stays NULL. */
void coder_tensor(coder *c, const tensor **t);
/* What data of so many bytes occupies; data of none has an address of its own, too. */
uint64_t coder_place_bytes(uint64_t bytes);
/* A reader's zeroed memory for `count` items; NULL when it fails. */
void *coder_allocate(coder *c, size_t count, size_t item_bytes);
/* Of a writer. */
void coder_dispose(coder *c);

#endif
