#include "graph/stored/coder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/identity/content_hash.h"

#define WORD CODER_WORD_BYTES
#define NO_TEXT UINT64_MAX
#define NO_DATA UINT64_MAX

static size_t words_of(size_t bytes)
{
    return bytes / WORD + (bytes % WORD != 0);
}

void coder_fail(coder *c)
{
    c->has_failed = true;
    c->at = c->count;
}

/* Room for so many words more, zeroed; NULL when memory is out. */
static uint64_t *append(coder *c, size_t count)
{
    if (c->has_failed)
        return NULL;
    if (c->capacity - c->count < count) {
        size_t larger = 2 * (c->count + count) + 1024;
        uint64_t *moved = realloc(c->words, larger * WORD);
        if (moved == NULL) {
            coder_fail(c);
            return NULL;
        }
        c->words = moved;
        c->capacity = larger;
    }
    uint64_t *to = c->words + c->count;
    memset(to, 0, count * WORD);
    c->count += count;
    return to;
}

/* The next `count` words; NULL where there are not so many. */
static uint64_t *take(coder *c, size_t count)
{
    if (c->has_failed || c->count - c->at < count) {
        coder_fail(c);
        return NULL;
    }
    uint64_t *from = c->words + c->at;
    c->at += count;
    return from;
}

void *coder_allocate(coder *c, size_t count, size_t item_bytes)
{
    if (c->has_failed)
        return NULL;
    void *p = arena_allocate_zeroed(c->memory, count ? count : 1, item_bytes);
    if (p == NULL)
        coder_fail(c);
    return p;
}

void coder_u64(coder *c, uint64_t *value)
{
    uint64_t *word = c->is_reading ? take(c, 1) : append(c, 1);
    if (c->is_reading)
        *value = word ? *word : 0;
    else if (word)
        *word = *value;
}

void coder_i64(coder *c, int64_t *value)
{
    uint64_t word = (uint64_t)*value;
    coder_u64(c, &word);
    if (c->is_reading)
        *value = (int64_t)word;
}

void coder_int(coder *c, int *value, int64_t least, int64_t most)
{
    int64_t wide = *value;
    coder_i64(c, &wide);
    if (wide < least || wide > most) {
        assert(c->is_reading);
        coder_fail(c);
        wide = 0;
    }
    if (c->is_reading)
        *value = (int)wide;
}

void coder_bool(coder *c, bool *value)
{
    int number = *value;
    coder_int(c, &number, 0, 1);
    if (c->is_reading)
        *value = number != 0;
}

void coder_float(coder *c, float *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    uint64_t word = bits;
    coder_u64(c, &word);
    bits = (uint32_t)word;
    if (c->is_reading)
        memcpy(value, &bits, sizeof bits);
}

void coder_count(coder *c, size_t *count, size_t item_bytes)
{
    uint64_t word = *count;
    coder_u64(c, &word);
    if (c->is_reading && word > (c->count - c->at) * WORD / item_bytes) {
        coder_fail(c);
        word = 0;
    }
    *count = (size_t)word;
}

void coder_bytes(coder *c, const void **bytes, size_t count)
{
    uint64_t *words = c->is_reading ? take(c, words_of(count)) : append(c, words_of(count));
    if (c->is_reading)
        *bytes = words;
    else if (words && count)
        memcpy(words, *bytes, count);
}

void coder_text(coder *c, const char **text)
{
    uint64_t bytes = !c->is_reading && *text ? strlen(*text) : NO_TEXT;
    coder_u64(c, &bytes);
    if (c->is_reading)
        *text = NULL;
    if (c->has_failed || bytes == NO_TEXT)
        return;
    if (c->is_reading && bytes >= (c->count - c->at) * WORD) {
        coder_fail(c);
        return;
    }
    const void *from = *text;
    coder_bytes(c, &from, (size_t)bytes + 1);
    if (c->is_reading && from && strnlen(from, (size_t)bytes + 1) != bytes)
        coder_fail(c);
    else if (c->is_reading)
        *text = from;
}

void coder_texts(coder *c, const char *const **texts, size_t count)
{
    const char **list = c->is_reading ? coder_allocate(c, count, sizeof *list) : NULL;
    for (size_t i = 0; i < count && !c->has_failed; i++) {
        const char *text = c->is_reading ? NULL : (*texts)[i];
        coder_text(c, &text);
        if (c->is_reading)
            list[i] = text;
    }
    if (c->is_reading)
        *texts = list;
}

void coder_shape(coder *c, tensor *t)
{
    int type = t->dtype, rank = t->rank;
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, t->dims, sizeof dims);
    coder_int(c, &type, 0, DTYPE_COUNT - 1);
    coder_int(c, &rank, 0, TENSOR_RANK_MAX);
    for (int d = 0; d < rank; d++)
        coder_i64(c, &dims[d]);
    if (c->is_reading && (c->has_failed || tensor_set_shape(t, (dtype)type, rank, dims))) {
        coder_fail(c);
        *t = (tensor){0};
    }
}

uint64_t coder_place_bytes(uint64_t bytes)
{
    return bytes ? (bytes + CODER_ALIGNMENT - 1) & ~(uint64_t)(CODER_ALIGNMENT - 1)
                 : CODER_ALIGNMENT;
}

static size_t slot_of(const coder *c, const void *data, uint64_t bytes)
{
    uint64_t hash = ((uint64_t)(uintptr_t)data >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(hash >> 20) & (c->slot_count - 1);
    while (c->slots[slot] && (c->constants[c->slots[slot] - 1].data != data ||
                              c->constants[c->slots[slot] - 1].bytes != bytes))
        slot = (slot + 1) & (c->slot_count - 1);
    return slot;
}

static bool grow_constants(coder *c)
{
    size_t larger = c->constant_capacity ? 2 * c->constant_capacity : 256;
    coder_constant *moved = realloc(c->constants, larger * sizeof *moved);
    uint32_t *slots = moved ? calloc(2 * larger, sizeof *slots) : NULL;
    c->constants = moved ? moved : c->constants;
    if (slots == NULL)
        return false;
    free(c->slots);
    c->slots = slots;
    c->slot_count = 2 * larger;
    c->constant_capacity = larger;
    for (size_t i = 0; i < c->constant_count; i++)
        slots[slot_of(c, c->constants[i].data, c->constants[i].bytes)] = (uint32_t)i + 1;
    return true;
}

/* Where that data goes: once, whoever shares it. */
static uint64_t place(coder *c, const void *data, uint64_t bytes)
{
    if (c->constant_count == c->constant_capacity && !grow_constants(c)) {
        coder_fail(c);
        return 0;
    }
    size_t slot = slot_of(c, data, bytes);
    if (c->slots[slot])
        return c->constants[c->slots[slot] - 1].offset;
    uint64_t offset = c->data_bytes;
    c->constants[c->constant_count++] = (coder_constant){data, offset, bytes};
    c->slots[slot] = (uint32_t)c->constant_count;
    c->data_bytes += coder_place_bytes(bytes);
    return offset;
}

void coder_tensor(coder *c, const tensor **t)
{
    bool is_there = !c->is_reading && *t != NULL;
    tensor it = is_there ? **t : (tensor){0};
    coder_bool(c, &is_there);
    if (c->is_reading)
        *t = NULL;
    if (!is_there || c->has_failed)
        return;
    if (!c->is_reading && it.dtype == DTYPE_BYTES) {
        c->why = "it has constants of strings";
        coder_fail(c);
        return;
    }
    coder_shape(c, &it);
    uint64_t bytes = tensor_bytes(&it);
    uint64_t offset = !c->is_reading && it.data ? place(c, it.data, bytes) : NO_DATA;
    uint64_t checksum = offset == NO_DATA ? 0 : content_hash(0, it.data, bytes);
    coder_u64(c, &offset);
    coder_u64(c, &checksum);
    if (!c->is_reading || c->has_failed)
        return;
    tensor *copy = coder_allocate(c, 1, sizeof *copy);
    bool is_inside =
        offset % CODER_ALIGNMENT == 0 && offset <= c->data_bytes && bytes <= c->data_bytes - offset;
    if (it.dtype == DTYPE_BYTES || (offset == NO_DATA ? bytes > 0 : !is_inside))
        coder_fail(c);
    if (c->has_failed)
        return;
    it.data = offset == NO_DATA ? NULL : (void *)(uintptr_t)(c->data + offset);
    if (it.data && content_hash(0, it.data, bytes) != checksum) {
        coder_fail(c);
        return;
    }
    *copy = it;
    *t = copy;
}

void coder_dispose(coder *c)
{
    free(c->words);
    free(c->constants);
    free(c->slots);
}
