#include <criterion/criterion.h>
#include <string.h>

#include "server/telemetry/record.h"

#define S 1000000000ull

static recorder *r;
static model_record *record;

static void give(int code, uint64_t begin_ns, uint64_t took_ns)
{
    record_sample sample = {.begin_ns = begin_ns,
                            .code = code,
                            .rows = 2,
                            .batch_rows = 8,
                            .bucket = {{8, 16}, .is_packed = true},
                            .bucket_index = 3};
    for (int i = 0; i < STAGE_RECORD; i++)
        sample.stage_ns[i] = begin_ns + took_ns * (uint64_t)(i + 1) / STAGE_COUNT;
    record_request(r, record, 0, &sample, begin_ns + took_ns);
}

static void begin(void)
{
    static model m;
    memset(&m, 0, sizeof(m));
    m.name = "m";
    m.version = 2;
    m.serial = 1;
    r = recorder_create(2);
    record = record_of_model(r, &m);
}

TestSuite(record, .init = begin);

Test(record, the_window_forgets_and_the_start_does_not)
{
    histogram h;
    give(200, 100 * S, 5000000);
    give(200, 130 * S, 1000000);
    record_read(r, record, RECORD_STAGE_TOTAL, true, 131 * S, &h);
    cr_assert_eq(h.count, 2);
    record_read(r, record, RECORD_STAGE_TOTAL, true, 175 * S, &h);
    cr_assert_eq(h.count, 1, "the first is older than a minute");
    cr_assert_float_eq((double)histogram_quantile(&h, 0.5), 1e6, 1e4);
    record_read(r, record, RECORD_STAGE_TOTAL, true, 400 * S, &h);
    cr_assert_eq(h.count, 0);
    record_read(r, record, RECORD_STAGE_TOTAL, false, 400 * S, &h);
    cr_assert_eq(h.count, 2);
    /* A slot that comes round again starts empty. */
    give(200, 170 * S, 1000000);
    record_read(r, record, RECORD_STAGE_TOTAL, true, 171 * S, &h);
    cr_assert_eq(h.count, 2);
}

Test(record, refusals_are_counted_and_not_timed)
{
    histogram h;
    record_totals totals;
    give(200, 10 * S, 1000000);
    give(429, 10 * S, 10);
    give(418, 10 * S, 10);
    record_read_totals(r, record, &totals);
    cr_assert(totals.success_count == 1 && totals.failure_count == 2 && totals.rows == 2);
    int others = 0;
    for (int i = 0; i < RECORD_CODES; i++) {
        if (record_code(i) == 429)
            cr_assert_eq(totals.codes[0][i], 1);
        if (record_code(i) == 0)
            others += (int)totals.codes[0][i];
    }
    cr_assert_eq(others, 1);
    record_read(r, record, RECORD_STAGE_TOTAL, false, 10 * S, &h);
    cr_assert_eq(h.count, 1);
}

static record_reason reason_of(int code, bool has_model, bool was_admitted)
{
    record_sample sample = {.code = code};
    sample.stage_ns[STAGE_ADMIT] = was_admitted;
    return record_reason_of(&sample, has_model);
}

Test(record, reasons_follow_from_codes_and_stages)
{
    cr_assert_eq(reason_of(200, true, true), RECORD_SERVED);
    cr_assert_eq(reason_of(400, true, false), RECORD_BAD_REQUEST);
    cr_assert_eq(reason_of(401, false, false), RECORD_UNAUTHORIZED);
    cr_assert_eq(reason_of(403, false, false), RECORD_UNAUTHORIZED);
    cr_assert_eq(reason_of(408, false, false), RECORD_TOO_SLOW);
    cr_assert_eq(reason_of(413, false, false), RECORD_TOO_LARGE);
    cr_assert_eq(reason_of(429, true, false), RECORD_QUEUE_FULL);
    cr_assert_eq(reason_of(499, true, true), RECORD_CLIENT_GONE);
    cr_assert_eq(reason_of(500, true, true), RECORD_INTERNAL);
    cr_assert_eq(reason_of(503, false, false), RECORD_NOT_READY);
    cr_assert_eq(reason_of(503, true, false), RECORD_OVERLOADED);
    cr_assert_eq(reason_of(504, true, false), RECORD_DEADLINE_ADMISSION);
    cr_assert_eq(reason_of(504, true, true), RECORD_DEADLINE_QUEUE);
    record_sample known = {.code = 429, .reason = RECORD_QUOTA};
    cr_assert_eq(record_reason_of(&known, true), RECORD_QUOTA, "who refused it knows better");
}

Test(record, failures_are_counted_by_protocol)
{
    record_totals totals;
    record_sample sample = {.begin_ns = 1, .code = 504, .protocol = ROUTE_GRPC, .bucket_index = -1};
    record_request(r, record, 0, &sample, 2);
    give(429, 10 * S, 10);
    record_read_totals(r, record, &totals);
    cr_assert_eq(totals.reasons[ROUTE_GRPC][RECORD_DEADLINE_ADMISSION], 1);
    cr_assert_eq(totals.reasons[ROUTE_KSERVE][RECORD_DEADLINE_ADMISSION], 0);
    cr_assert_eq(totals.reasons[ROUTE_KSERVE][RECORD_QUEUE_FULL], 1);
    for (int i = 0; i < RECORD_REASONS; i++)
        cr_assert(i == RECORD_SERVED || record_reason_name((record_reason)i)[0] != 0);
}

Test(record, buckets_and_stages_are_kept_apart)
{
    histogram h;
    record_shape shape;
    give(200, 10 * S, STAGE_COUNT * 1000000ull);
    cr_assert(record_read_bucket(r, record, 3, 1, false, 0, &h, &shape));
    cr_assert(shape.size.batch == 8 && shape.size.sequence == 16 && shape.is_packed);
    cr_assert_float_eq((double)histogram_quantile(&h, 0.5), 1e6, 2e4, "execute takes its share");
    cr_assert_not(record_read_bucket(r, record, 4, 1, false, 0, &h, &shape));
}

Test(record, buckets_have_a_window_too)
{
    histogram h;
    record_shape shape;
    give(200, 100 * S, 5000000);
    give(200, 130 * S, 1000000);
    cr_assert(record_read_bucket(r, record, 3, 2, true, 131 * S, &h, &shape) && h.count == 2);
    cr_assert(record_read_bucket(r, record, 3, 2, true, 175 * S, &h, &shape) && h.count == 1);
    cr_assert(record_read_bucket(r, record, 3, 2, true, 400 * S, &h, &shape) && h.count == 0);
    cr_assert(record_read_bucket(r, record, 3, 2, false, 400 * S, &h, &shape) && h.count == 2);
}

Test(record, four_shares_of_a_batch_are_one_batch)
{
    record_batches b;
    uint64_t all_ns = STAGE_COUNT * 1000000ull;
    for (int i = 0; i < 4; i++)
        give(200, 100 * S, all_ns); /* two rows of eight; each stage takes a millisecond */
    cr_assert(record_read_size(r, record, 8, &b));
    cr_assert_eq(b.count, 1);
    cr_assert_eq(b.infer_ns, 1000000);
    cr_assert_eq(b.input_ns, 3000000);
    cr_assert_not(record_read_size(r, record, 7, &b));
    record_totals totals;
    record_read_totals(r, record, &totals);
    cr_assert_eq(totals.batch_rows, 32);
}

Test(record, a_model_that_comes_back_keeps_its_counters)
{
    model again = {.name = "m", .version = 2, .index = 1, .serial = 2};
    model other = {.name = "m", .version = 3, .index = 2, .serial = 3};
    cr_assert_eq(record_of_model(r, &again), record);
    cr_assert_neq(record_of_model(r, &other), record);
}

Test(record, an_index_used_again_leads_to_the_record_of_the_new_model)
{
    model same = {.name = "m", .version = 2, .serial = 1};
    model next = {.name = "n", .version = 1, .serial = 2}, third = same;
    third.serial = 3;
    cr_assert_eq(record_of_model(r, &same), record, "the same model, again");
    model_record *of_next = record_of_model(r, &next);
    cr_assert_neq(of_next, record);
    cr_assert_str_eq(record_name(of_next), "n");
    cr_assert_eq(record_of_model(r, &next), of_next);
    cr_assert_eq(record_of_model(r, &third), record, "loaded again as the same index");
}

Test(record, recording_is_the_last_stage)
{
    histogram h;
    record_sample sample = {.begin_ns = 1, .code = 200, .rows = 1, .bucket_index = -1};
    for (int i = 0; i < STAGE_RECORD; i++)
        sample.stage_ns[i] = 2;
    record_request(r, record, 0, &sample, 2);
    cr_assert_gt(sample.stage_ns[STAGE_RECORD], 2, "stamped when everything else was counted");
    record_read(r, record, STAGE_RECORD, false, 2, &h);
    cr_assert_eq(h.count, 1);
    record_read(r, record, RECORD_STAGE_TOTAL, false, 2, &h);
    cr_assert_float_eq((double)histogram_quantile(&h, 0.5), 1, 0.1, "the total ends before it");
}

Test(record, a_recorder_frees_what_it_made)
{
    give(200, 10 * S, STAGE_COUNT * 1000000ull);
    recorder_destroy(r);
    recorder_destroy(NULL);
}
