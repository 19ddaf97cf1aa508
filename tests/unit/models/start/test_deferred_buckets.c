#include "models/start/deferred_buckets.h"

#include <criterion/criterion.h>

static int released;

static void release(device *d, device_program *program)
{
    (void)d, (void)program;
    released++;
}

static const device_interface counting = {.release = release};
static device cpu = {.interface = &counting};
static device *devices[] = {&cpu};
static device_program *first[1];
static int wanted;

static void on_wanted(void *owner)
{
    (void)owner;
    wanted++;
}

/* Buckets of 1, 2, 4 and 8 rows; all but the first are deferred. */
static model *make(void)
{
    static device_program one;
    model *m = model_create();
    first[0] = &one;
    m->devices = devices;
    m->device_count = 1;
    for (int i = 0; i < 4; i++)
        m->buckets[m->bucket_count++] = (model_bucket){.shape = {1 << i, 0}};
    m->buckets[0].programs = first;
    m->deferred = deferred_buckets_create();
    m->deferred->on_wanted = on_wanted;
    for (int i = 1; i < 4; i++)
        atomic_store(&m->deferred->states[i], DEFERRED_PENDING);
    released = wanted = 0;
    return m;
}

static void end(model *m)
{
    deferred_buckets_dispose(m);
    model_destroy(m);
}

Test(deferred_buckets, finds_the_smallest_with_room_or_the_largest)
{
    model *m = make();
    cr_expect_eq(deferred_buckets_find(m, 0, 1, 2), 1);
    cr_expect_eq(deferred_buckets_find(m, 0, 1, 3), 2);
    cr_expect_eq(deferred_buckets_find(m, 0, 1, 100), 3);
    cr_expect_eq(deferred_buckets_find(m, 0, 8, 100), -1);
    cr_expect_eq(deferred_buckets_find(m, 16, 1, 2), -1, "another length");
    end(m);
}

Test(deferred_buckets, are_asked_for_once_and_made)
{
    model *m = make();
    static device_program made;
    cr_expect_eq(deferred_buckets_next(m), -1);
    deferred_buckets_want(m, 2);
    deferred_buckets_want(m, 2);
    cr_expect_eq(wanted, 1);
    cr_expect_eq(deferred_buckets_next(m), 2);
    cr_expect_eq(deferred_buckets_find(m, 0, 1, 3), 3, "that one is on its way");
    cr_expect_null(deferred_buckets_program(m, 2, 0));
    deferred_buckets_finish(m, 2, &made);
    cr_expect_eq(deferred_buckets_program(m, 2, 0), &made);
    cr_expect_eq(deferred_buckets_program(m, 0, 0), first[0], "made before ready");
    cr_expect_eq(deferred_buckets_made(m), 1u);
    cr_expect_eq(deferred_buckets_next(m), -1);
    end(m);
    cr_expect_eq(released, 1, "the one that was made after ready");
}

Test(deferred_buckets, that_cannot_be_made_are_not_tried_again)
{
    model *m = make();
    deferred_buckets_want(m, 1);
    deferred_buckets_finish(m, 1, NULL);
    deferred_buckets_want(m, 1);
    cr_expect_eq(deferred_buckets_state(m, 1), DEFERRED_FAILED);
    cr_expect_eq(wanted, 1);
    cr_expect_eq(deferred_buckets_made(m), 0u);
    end(m);
}

Test(deferred_buckets, a_model_may_have_none)
{
    model *m = make();
    deferred_buckets_dispose(m);
    cr_expect_eq(deferred_buckets_state(m, 1), DEFERRED_NOT);
    cr_expect_eq(deferred_buckets_find(m, 0, 1, 2), -1);
    cr_expect_eq(deferred_buckets_made(m), 0u);
    cr_expect_eq(deferred_buckets_program(m, 0, 0), first[0]);
    cr_expect_null(deferred_buckets_program(m, 1, 0));
    end(m);
}
