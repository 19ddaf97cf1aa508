#include "text/vocabulary/trie.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 256
#define OPEN_BLOCKS 16 /* blocks at the end whose free units are still tried */
#define NO_UNIT UINT32_MAX

/* While it is built: what is free is a list. */
typedef struct builder_unit {
    uint32_t next, previous;
    bool is_taken, is_base; /* the unit itself; the number as some node's base */
} builder_unit;

typedef struct builder {
    const trie_key *keys;
    trie_unit *units;
    builder_unit *state;
    size_t count, capacity;
    uint32_t free_head;
} builder;

/* Keys [begin, end) share their first `depth` bytes, which lead to `node`. */
typedef struct range {
    size_t begin, end, depth;
    uint32_t node;
} range;

static int compare(const void *a, const void *b)
{
    const trie_key *x = a, *y = b;
    size_t shorter = x->bytes < y->bytes ? x->bytes : y->bytes;
    int order = shorter ? memcmp(x->data, y->data, shorter) : 0;
    if (order != 0)
        return order;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void unlink_unit(builder *b, uint32_t unit)
{
    builder_unit *s = b->state + unit;
    if (b->free_head == unit)
        b->free_head = s->next == unit ? NO_UNIT : s->next;
    b->state[s->previous].next = s->next;
    b->state[s->next].previous = s->previous;
}

static void link_unit(builder *b, uint32_t unit)
{
    builder_unit *s = b->state + unit;
    if (b->free_head == NO_UNIT) {
        b->free_head = s->next = s->previous = unit;
        return;
    }
    builder_unit *head = b->state + b->free_head;
    s->next = b->free_head;
    s->previous = head->previous;
    b->state[head->previous].next = unit;
    head->previous = unit;
}

static status add_block(builder *b)
{
    if (b->count + BLOCK > TRIE_UNITS_MAX)
        return status_fail(STATUS_TOO_LARGE, "the vocabulary needs more than %u nodes",
                           TRIE_UNITS_MAX);
    if (b->count + BLOCK > b->capacity) {
        size_t capacity = b->capacity ? 2 * b->capacity : 16 * BLOCK;
        trie_unit *units = realloc(b->units, capacity * sizeof *units);
        if (units != NULL)
            b->units = units;
        builder_unit *state = realloc(b->state, capacity * sizeof *state);
        if (state != NULL)
            b->state = state;
        if (units == NULL || state == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a vocabulary");
        b->capacity = capacity;
    }
    if (b->count >= OPEN_BLOCKS * BLOCK) {
        size_t closed = b->count - OPEN_BLOCKS * BLOCK;
        for (size_t i = closed; i < closed + BLOCK; i++) {
            if (!b->state[i].is_taken)
                unlink_unit(b, (uint32_t)i);
        }
    }
    for (size_t i = b->count; i < b->count + BLOCK; i++) {
        b->units[i] = (trie_unit){0, TRIE_NONE};
        b->state[i] = (builder_unit){0};
        link_unit(b, (uint32_t)i);
    }
    b->count += BLOCK;
    return STATUS_OK;
}

static bool fits(const builder *b, uint32_t base, const uint8_t *labels, size_t count)
{
    if (b->state[base].is_base)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (b->state[base ^ labels[i]].is_taken)
            return false;
    }
    return true;
}

static status find_base(builder *b, const uint8_t *labels, size_t count, uint32_t *base)
{
    uint32_t unit = b->free_head;
    if (unit != NO_UNIT) {
        do {
            if (fits(b, unit ^ labels[0], labels, count)) {
                *base = unit ^ labels[0];
                return STATUS_OK;
            }
            unit = b->state[unit].next;
        } while (unit != b->free_head);
    }
    uint32_t first = (uint32_t)b->count;
    *base = first ^ labels[0];
    return add_block(b);
}

static void take(builder *b, uint32_t unit)
{
    unlink_unit(b, unit);
    b->state[unit].is_taken = true;
}

/* The distinct bytes at `depth`, in order. Skips a key that ends there. */
static size_t find_labels(const builder *b, range *r, uint8_t labels[256])
{
    size_t count = 0;
    while (r->begin < r->end && b->keys[r->begin].bytes == r->depth) {
        b->units[r->node].value = b->keys[r->begin].value;
        r->begin++;
    }
    for (size_t i = r->begin; i < r->end; i++) {
        uint8_t label = b->keys[i].data[r->depth];
        if (count == 0 || labels[count - 1] != label)
            labels[count++] = label;
    }
    return count;
}

/* Gives a node its children and puts their ranges on the stack. */
static status add_children(builder *b, range r, range **stack, size_t *depth, size_t *capacity)
{
    uint8_t labels[256];
    uint32_t base = 0;
    size_t count = find_labels(b, &r, labels);
    if (count == 0)
        return STATUS_OK;
    status s = find_base(b, labels, count, &base);
    if (s)
        return s;
    if (*depth + count > *capacity) {
        size_t larger = 2 * (*depth + count);
        range *moved = realloc(*stack, larger * sizeof *moved);
        if (moved == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a vocabulary");
        *stack = moved;
        *capacity = larger;
    }
    b->state[base].is_base = true;
    b->units[r.node].base_label = base << 8 | (b->units[r.node].base_label & 0xFF);
    size_t begin = r.begin;
    for (size_t i = 0; i < count; i++) {
        uint32_t child = base ^ labels[i];
        size_t end = begin;
        while (end < r.end && b->keys[end].data[r.depth] == labels[i])
            end++;
        take(b, child);
        b->units[child].base_label = labels[i];
        (*stack)[(*depth)++] = (range){begin, end, r.depth + 1, child};
        begin = end;
    }
    return STATUS_OK;
}

/* A free unit must look like nobody's child: its label belongs to a base that is not used. */
static void close_free_units(builder *b)
{
    for (uint32_t unit = 0; unit < b->count; unit++) {
        if (b->state[unit].is_taken)
            continue;
        uint32_t label = 0;
        while (label < 255 && b->state[unit ^ label].is_base)
            label++;
        assert(!b->state[unit ^ label].is_base); /* each base has a child in its block */
        b->units[unit].base_label = label;
    }
}

static status build(builder *b, size_t key_count)
{
    size_t depth = 0, capacity = 0;
    range *stack = NULL, all = {0, key_count, 0, TRIE_ROOT};
    status s = add_block(b);
    if (s)
        return s;
    take(b, TRIE_ROOT);
    /* Nobody has base 0, which nodes without children have: the root's label 0 belongs to none. */
    b->state[0].is_base = true;
    s = add_children(b, all, &stack, &depth, &capacity);
    while (!s && depth > 0)
        s = add_children(b, stack[--depth], &stack, &depth, &capacity);
    free(stack);
    if (!s)
        close_free_units(b);
    return s;
}

status trie_create(trie_key *keys, size_t count, trie **out)
{
    builder b = {.keys = keys, .free_head = NO_UNIT};
    trie *t = NULL;
    assert(keys != NULL || count == 0);
    /* glibc's qsort is a merge sort, stable; equal keys only arise where the file repeats one. */
    if (count > 1)
        qsort(keys, count, sizeof *keys, compare);
    status s = build(&b, count);
    if (s)
        goto end;
    t = malloc(sizeof *t + b.count * sizeof *t->units);
    if (t == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a vocabulary");
        goto end;
    }
    t->unit_count = b.count;
    memcpy(t->units, b.units, b.count * sizeof *t->units);
    *out = t;
end:
    free(b.units);
    free(b.state);
    return s;
}

void trie_destroy(trie *t)
{
    free(t);
}

uint32_t trie_walk(const trie *t, uint32_t node, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < bytes; i++) {
        node = trie_step(t, node, p[i]);
        if (node == TRIE_ROOT)
            return TRIE_ROOT;
    }
    return node;
}

uint32_t trie_find(const trie *t, const void *data, size_t bytes)
{
    uint32_t node = trie_walk(t, TRIE_ROOT, data, bytes);
    return node == TRIE_ROOT && bytes > 0 ? TRIE_NONE : trie_value(t, node);
}
