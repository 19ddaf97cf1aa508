#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/http1/overrides/input_buffer.h"

static struct {
    size_t held, most, limit;
    int owners;
    bool is_short;
} rig;

static void *find_owner(h2o_buffer_t **slot)
{
    (void)slot;
    rig.owners++;
    return &rig;
}

static bool may_grow(void *owner, size_t bytes)
{
    cr_assert_eq(owner, &rig);
    if (rig.held + bytes > rig.limit)
        return false;
    rig.held += bytes;
    rig.most = rig.held > rig.most ? rig.held : rig.most;
    return true;
}

static bool is_short(void)
{
    return rig.is_short;
}

static void shrink(void *owner, size_t bytes)
{
    cr_assert(owner == &rig && bytes <= rig.held);
    rig.held -= bytes;
}

static void begin(size_t limit)
{
    memset(&rig, 0, sizeof rig);
    rig.limit = limit;
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
    input_buffer_install(&(input_buffer_hooks){find_owner, may_grow, is_short, shrink});
}

/* Fills it as a socket would, until it is full of `bytes` or may not grow. */
static size_t fill(h2o_buffer_t **b, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        h2o_iovec_t room = h2o_buffer_reserve(b, 4096);
        if (room.base == NULL)
            break;
        cr_assert(room.len >= 4096);
        size_t n = room.len < bytes - done ? room.len : bytes - done;
        for (size_t i = 0; i < n; i++)
            room.base[i] = (char)((done + i) * 31 % 251);
        (*b)->size += n;
        done += n;
    }
    return done;
}

Test(input_buffer, what_is_held_is_told)
{
    h2o_buffer_t *b;
    begin(SIZE_MAX);
    h2o_buffer_init(&b, &h2o_socket_buffer_prototype);
    cr_assert_eq(fill(&b, 40000), 40000);
    cr_assert(rig.owners == 0 && rig.held == 0, "small buffers are the library's");
    h2o_buffer_consume(&b, 40000);
    cr_assert_eq(fill(&b, 20000000), 20000000);
    cr_assert_eq(rig.owners, 1);
    cr_assert(rig.held >= 20000000 && rig.held <= 31000000, "%zu", rig.held);
    for (size_t i = 0; i < 20000000; i += 997)
        cr_assert_eq(b->bytes[i], (char)(i * 31 % 251));
    h2o_buffer_consume(&b, 5);
    cr_assert(rig.held > 0);
    h2o_buffer_consume(&b, 19999995);
    cr_assert_eq(rig.held, 0);
    h2o_buffer_dispose(&b);
}

Test(input_buffer, a_refusal_leaves_what_was_there)
{
    h2o_buffer_t *b;
    begin(1000000);
    h2o_buffer_init(&b, &h2o_socket_buffer_prototype);
    size_t n = fill(&b, 20000000);
    cr_assert(n > 200000 && n < 1000000, "%zu", n);
    cr_assert(b->size == n && rig.held > 0 && rig.held <= 1000000);
    cr_assert_eq(b->bytes[n - 1], (char)((n - 1) * 31 % 251));
    h2o_buffer_dispose(&b);
    cr_assert_eq(rig.held, 0);
}

Test(input_buffer, without_memory_the_first_bytes_are_not_read)
{
    h2o_buffer_t *b;
    begin(SIZE_MAX);
    rig.is_short = true;
    h2o_buffer_init(&b, &h2o_socket_buffer_prototype);
    cr_expect_eq(fill(&b, 10), 0);
    rig.is_short = false;
    cr_expect_eq(fill(&b, 10), 10);
    rig.is_short = true; /* there is room, and the request goes on */
    cr_expect_eq(fill(&b, 10), 10);
    h2o_buffer_dispose(&b);
}
