#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "models/batching/buckets.h"

static model *empty_model(int64_t batch_max, int64_t sequence_max)
{
    model *m = calloc(1, sizeof *m);
    m->name = "m";
    m->device_count = 1;
    m->batching = (model_batching){
        .can_batch = true, .can_pad = true, .batch_max = batch_max, .sequence_max = sequence_max};
    return m;
}

static void dispose(model *m)
{
    arena_dispose(&m->memory);
    free(m);
}

Test(buckets, automatic_ones_cover_the_limits_within_the_token_budget)
{
    manifest file;
    cr_assert_eq(manifest_read_text("m.json", "{}", 2, &file), STATUS_OK);
    model *m = empty_model(12, 300);
    cr_assert_eq(buckets_make(m, &file), STATUS_OK);
    cr_assert_eq(m->sequence_buckets[m->sequence_bucket_count - 1], 300);
    cr_assert_eq(m->batch_buckets[m->batch_bucket_count - 1], 12);
    bool has_single = false;
    for (int i = 0; i < m->bucket_count; i++) {
        device_bucket s = m->buckets[i].shape;
        cr_assert(s.batch == 1 || s.batch * s.sequence <= BUCKETS_TOKENS_MAX);
        has_single |= s.batch == 1 && s.sequence == 300;
    }
    cr_assert(has_single);
    dispose(m);
}

Test(buckets, declared_ones_are_taken_and_checked)
{
    manifest file;
    static const char declared[] = "{\"buckets\": {\"batch\": [2, 4], \"sequence\": [32, 128]}}";
    cr_assert_eq(manifest_read_text("m.json", declared, sizeof declared - 1, &file), STATUS_OK);
    model *m = empty_model(4, 128);
    cr_assert_eq(buckets_make(m, &file), STATUS_OK);
    cr_assert_eq(m->bucket_count, 4);
    dispose(m);
    m = empty_model(4, 100);
    cr_assert_eq(buckets_make(m, &file), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "128"));
    dispose(m);
    m = empty_model(8, 0);
    cr_assert_eq(manifest_read_text("m.json", "{}", 2, &file), STATUS_OK);
    cr_assert_eq(buckets_make(m, &file), STATUS_OK);
    cr_assert_eq(m->bucket_count, 4, "no sequence axis: 1, 2, 4, 8");
    dispose(m);
}
