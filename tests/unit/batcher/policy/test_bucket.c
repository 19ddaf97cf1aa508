#include "batcher/policy/bucket.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "models/start/deferred_buckets.h"

Test(bucket, a_bucket_that_is_made_later_is_chosen_from_then_on)
{
    static device none;
    static device *devices[] = {&none};
    static device_program one, four;
    static device_program *programs[2][1] = {{&one}, {NULL}};
    static bucket_table t;
    model *m = model_create();
    m->devices = devices;
    m->device_count = 1;
    m->batch_bucket_count = m->bucket_count = 2;
    m->sequence_bucket_count = 1;
    for (int i = 0; i < 2; i++) {
        m->batch_buckets[i] = i ? 4 : 1;
        m->buckets[i] = (model_bucket){.shape = {m->batch_buckets[i], 0}, .programs = programs[i]};
    }
    m->deferred = deferred_buckets_create();
    atomic_store(&m->deferred->states[1], DEFERRED_WANTED);
    bucket_table_init(&t, m, 0);
    cr_expect_eq(bucket_choose(&t, 0, 3), 0, "the largest there is");
    cr_expect_eq(bucket_rows_max(&t, 0), 1);
    deferred_buckets_finish(m, 1, &four);
    bucket_table_add_made(&t, m, 0);
    cr_expect_eq(bucket_choose(&t, 0, 1), 0);
    cr_expect_eq(bucket_choose(&t, 0, 3), 1);
    cr_expect_eq(bucket_rows_max(&t, 0), 4);
    free(m->deferred);
    model_destroy(m);
}
