/* Who pays for a batch, and what it may hold while tenants share the devices. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "batcher/queue/dispatch.h"

enum { SEQUENCES = 4, BATCH = 64, TENANTS = 2 };
static const int64_t sequences[SEQUENCES] = {16, 32, 64, 128};
static const latency_fit cost = {.fixed_ns = 100000, .token_ns = 10000};

static device cpu = {.name = "cpu", .kind = "cpu", .slots = 1};
static device *devices[] = {&cpu};
static device_program program = {.layout = DEVICE_RAGGED};
static device_program *programs[] = {&program};
static model m;
static dispatch d;
static model_queue *queue;
static batch_member members[BATCH];
static cost_attribution attribution;
static dispatch_batch taken;
static uint64_t now_ns;

/* A ragged model whose batches cost `cost`, measured often enough to be believed. */
static void start(const uint32_t *weights)
{
    m = (model){.name = "m", .devices = devices, .device_count = 1, .serial = 1, .weight = 1};
    m.batching = (model_batching){
        .can_batch = true, .can_pad = true, .batch_max = BATCH, .sequence_max = 128};
    m.latency = latency_create(devices, 1);
    m.batch_bucket_count = 1;
    m.batch_buckets[0] = BATCH;
    m.sequence_bucket_count = SEQUENCES;
    for (int i = 0; i < SEQUENCES; i++) {
        m.sequence_buckets[i] = sequences[i];
        m.buckets[m.bucket_count++] =
            (model_bucket){.shape = {BATCH, sequences[i]}, .programs = programs};
    }
    for (int i = 0; i < 200; i++) {
        int64_t rows = 1 + i % 7, length = 1 + i % 100;
        latency_work work = {rows, rows * length, rows * length * length};
        double ns = latency_cost_ns(cost, (double)work.tokens, 0);
        latency_observe(m.latency, 0, -1, work, (uint64_t)ns, 1);
    }
    dispatch_init(&d, 1, TENANTS, weights);
    queue = dispatch_queue(&d, &m);
    now_ns = 1000000000;
}

static void stop(void)
{
    job *dropped = NULL;
    dispatch_empty(&d, &dropped);
    for (job *j = dropped, *next; j != NULL; j = next) {
        next = j->next;
        free(j);
    }
    dispatch_dispose(&d);
    latency_destroy(m.latency);
}

static void push(uint32_t tenant, int64_t length, int count)
{
    for (int i = 0; i < count; i++) {
        job *j = calloc(1, sizeof *j);
        *j = (job){.model = &m,
                   .rows = 1,
                   .length = length,
                   .tenant = tenant,
                   .deadline_ns = now_ns + 1000000000};
        j->stage_ns[STAGE_ADMIT] = now_ns;
        cr_assert(dispatch_push(&d, queue, j));
    }
}

static const bool is_healthy[] = {true};
static const placement_devices alone = {.count = 1, .cpu = -1, .is_healthy = is_healthy};

/* Rows of each tenant in the next batch go to `rows`. */
static void next(int64_t rows[TENANTS])
{
    dispatch_request r = {.now_ns = now_ns, .workers = 1, .devices = &alone};
    taken = (dispatch_batch){.members = members, .capacity = BATCH, .attribution = &attribution};
    dispatch_next(&d, &r, &taken);
    cr_assert_eq(taken.action, POLICY_RUN);
    rows[0] = rows[1] = 0;
    for (int i = 0; i < taken.count; i++) {
        rows[members[i].job->tenant] += members[i].rows;
        free(members[i].job);
    }
}

static double charged(int tenant)
{
    return (double)d.fair.tenants[tenant].virtual_ns * d.fair.tenants[tenant].weight;
}

Test(dispatch, a_ragged_batch_is_charged_for_all_its_members)
{
    int64_t rows[TENANTS];
    start(NULL);
    push(0, 32, 1);
    push(1, 20, 4);
    next(rows);
    cr_assert_eq(rows[1], 4);
    double tokens = (double)(rows[0] * 32 + rows[1] * 20);
    double expected = latency_cost_ns(cost, tokens, 0);
    cr_expect_float_eq((double)taken.expected_ns, expected, 0.02 * expected);
    cr_expect_float_eq(charged(1) / charged(0), (double)rows[1] * 20 / 32, 0.01);
    stop();
}

Test(dispatch, charges_are_settled_by_what_was_measured)
{
    static const uint32_t weights[] = {1, 3};
    int64_t rows[TENANTS];
    start(weights);
    push(0, 32, 1);
    push(1, 32, 4);
    next(rows);
    cr_assert(rows[0] > 0 && rows[1] > 0, "%d %d", (int)rows[0], (int)rows[1]);
    double before = charged(0) + charged(1), model_before = (double)queue->virtual_ns;
    cr_assert_gt(before, 0);
    uint64_t took_ns = taken.expected_ns * 3;
    dispatch_settle(&d, &attribution, took_ns);
    cr_expect_float_eq((charged(0) + charged(1)) / before, 3, 0.01);
    cr_expect_float_eq((double)queue->virtual_ns / model_before, 3, 0.01);
    dispatch_settle(&d, &attribution, 0); /* once only */
    cr_expect_float_eq((charged(0) + charged(1)) / before, 3, 0.01);
    stop();
}

/* The model may be gone, and its index another one's, when a batch is settled. */
Test(dispatch, a_bill_outlives_its_model)
{
    int64_t rows[TENANTS];
    start(NULL);
    push(0, 32, 1);
    next(rows);
    m.serial = 2;
    model_queue *other = dispatch_queue(&d, &m);
    cr_assert_eq(other->virtual_ns, 0);
    dispatch_settle(&d, &attribution, 3 * taken.expected_ns);
    cr_expect_eq(other->virtual_ns, 0);
    cr_expect_gt(charged(0), 2.9 * (double)taken.expected_ns);
    stop();
}

/* Two batches, so that both tenants had work taken lately. */
static void share(void)
{
    int64_t rows[TENANTS];
    push(0, 100, 1);
    push(1, 16, 1);
    for (int64_t seen = 0; seen < 2; seen += rows[0] + rows[1])
        next(rows);
}

Test(dispatch, batches_are_short_while_a_quiet_tenant_shares_the_devices)
{
    int64_t rows[TENANTS];
    start(NULL);
    push(1, 32, 400);
    next(rows);
    cr_expect_gt((double)taken.expected_ns, 15 * cost.fixed_ns, "alone: an economic lot");
    share();
    next(rows);
    cr_expect_eq(rows[0], 0);
    cr_expect_leq((double)taken.expected_ns, 1.01 * DISPATCH_SHARED_BATCH * cost.fixed_ns);
    now_ns += DISPATCH_SHARING_NS;
    push(1, 32, 400);
    next(rows);
    now_ns++;
    next(rows);
    cr_expect_gt((double)taken.expected_ns, 15 * cost.fixed_ns, "the other one is gone");
    stop();
}

Test(dispatch, a_quiet_tenants_batch_is_not_filled_up_by_a_crowd)
{
    int64_t rows[TENANTS];
    start(NULL);
    push(1, 4, 4000);
    do
        next(rows);
    while (d.fair.floor_ns == 0); /* it led one since: newcomers start before where it stands */
    push(0, 4, 1);
    next(rows);
    cr_expect_eq(rows[0], 1);
    cr_expect_gt(rows[1], 0, "a little backfill costs little");
    double most = cost.fixed_ns * (1 + DISPATCH_SHARED_BACKFILL);
    cr_expect_leq((double)taken.expected_ns, 1.01 * most);
    stop();
}

Test(dispatch, a_quiet_tenants_batch_takes_others_who_are_quiet)
{
    int64_t rows[TENANTS];
    start(NULL);
    share();
    push(0, 10, 1);
    push(1, 10, DISPATCH_QUIET_ROWS);
    next(rows);
    cr_expect_eq(rows[0] + rows[1], 1 + DISPATCH_QUIET_ROWS);
    cr_expect_gt((double)taken.expected_ns, cost.fixed_ns * (1 + DISPATCH_SHARED_BACKFILL));
    stop();
}
