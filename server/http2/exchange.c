#include "server/http2/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/large_memory.h"
#include "server/offload/pool.h"

#define IDLE_MAX 256             /* exchanges that a loop keeps */
#define MEMORY_BLOCK_BYTES 2048  /* of a response's headers */
#define MEMORY_KEEP_BYTES 8192   /* that an idle exchange keeps */
#define BODY_FIRST_BYTES 4096    /* of a body of unknown length */
#define BODY_TRUSTED_BYTES 65536 /* room made for a length that is only claimed */
#define BODY_KEEP_BYTES 65536

http2_exchange *http2_exchange_acquire(http2_exchange_pool *pool)
{
    http2_exchange *x = pool->idle;
    if (x != NULL) {
        pool->idle = x->next;
        pool->idle_count--;
        return x;
    }
    x = calloc(1, sizeof *x);
    if (x != NULL)
        arena_init(&x->memory, MEMORY_BLOCK_BYTES);
    return x;
}

static void free_body(http2_exchange_pool *pool, http2_exchange *x)
{
    offload_pool_free(pool->helpers, x->body, x->body_capacity);
    x->body = NULL;
    x->body_capacity = 0;
}

void http2_exchange_release(http2_exchange_pool *pool, http2_exchange *x)
{
    if (x->body_capacity > BODY_KEEP_BYTES)
        free_body(pool, x);
    if (pool->idle_count == IDLE_MAX) {
        free_body(pool, x);
        arena_dispose(&x->memory);
        free(x);
        return;
    }
    arena_reset(&x->memory, MEMORY_KEEP_BYTES);
    x->on = NULL;
    x->stream = NULL;
    x->head = NULL;
    x->request = NULL;
    x->is_arriving = x->is_running = x->is_waiting = false;
    x->body_bytes = x->response_bytes = x->body_held = x->response_held = 0;
    x->rate = (rate_window){0};
    x->field_count = x->trailer_count = x->piece_count = 0;
    x->parent = x->next_part = NULL;
    x->next = pool->idle;
    pool->idle = x;
    pool->idle_count++;
}

void http2_exchange_drop_body(http2_exchange_pool *pool, http2_exchange *x, budget_account *held)
{
    budget_subtract(held, x->body_held);
    x->body_held = x->body_bytes = 0;
    if (x->body_capacity > BODY_KEEP_BYTES)
        free_body(pool, x);
}

/* Small buffers are the pool's. */
static bool hold(http2_exchange *x, size_t bytes, budget_account *held)
{
    if (bytes <= x->body_held)
        return true;
    if (budget_add(held, bytes - x->body_held) != BUDGET_GRANTED)
        return false;
    x->body_held = bytes;
    return true;
}

status http2_exchange_add(http2_exchange *x, const void *data, size_t bytes, int64_t expected,
                          size_t bytes_max, budget_account *held)
{
    if (bytes > bytes_max || x->body_bytes > bytes_max - bytes)
        return status_fail(STATUS_TOO_LARGE, "the body is larger than the limit");
    size_t needed = x->body_bytes + bytes;
    if (needed > x->body_capacity) {
        size_t larger = x->body_capacity ? 2 * x->body_capacity : BODY_FIRST_BYTES;
        if (expected > 0 && (uint64_t)expected <= BODY_TRUSTED_BYTES)
            larger = (size_t)expected;
        else if (expected > 0 && (uint64_t)expected < larger)
            larger = (size_t)expected;
        larger = larger < needed ? needed : larger;
        if (!hold(x, larger > BODY_KEEP_BYTES ? larger : needed, held))
            return status_fail(STATUS_UNAVAILABLE, "there is no room for the body now");
        char *moved = large_memory_grow(x->body, x->body_capacity, larger);
        if (moved == NULL)
            return status_fail(STATUS_UNAVAILABLE, "there is no memory for the body now");
        x->body = moved;
        x->body_capacity = larger;
    } else if (!hold(x, needed, held)) {
        return status_fail(STATUS_UNAVAILABLE, "there is no room for the body now");
    }
    memcpy(x->body + x->body_bytes, data, bytes);
    x->body_bytes = needed;
    return STATUS_OK;
}

http2_head *http2_exchange_copy_head(arena *memory, const http2_head *head)
{
    http2_head *copy = arena_allocate(memory, sizeof *copy);
    size_t bytes = (size_t)head->field_count * sizeof *head->fields;
    if (copy == NULL)
        return NULL;
    *copy = *head;
    copy->fields = arena_allocate(memory, bytes + 1);
    copy->method.value = arena_copy_string(memory, head->method.value, head->method.value_bytes);
    copy->path.value = arena_copy_string(memory, head->path.value, head->path.value_bytes);
    if (copy->fields == NULL || copy->method.value == NULL || copy->path.value == NULL)
        return NULL;
    for (int i = 0; i < head->field_count; i++) {
        const http2_field *f = &head->fields[i];
        copy->fields[i] = *f;
        copy->fields[i].name = arena_copy_string(memory, f->name, f->name_bytes);
        copy->fields[i].value = arena_copy_string(memory, f->value, f->value_bytes);
        if (copy->fields[i].name == NULL || copy->fields[i].value == NULL)
            return NULL;
    }
    return copy;
}
