#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "batcher/queue/dispatch.h"
#include "tests/unit/batcher/fake_device.h"

/* What a device that packs takes from the queues: the real decision code, measured times as of a
 * device on which every token costs the same. */

#define FIXED_NS 100e3
#define TOKEN_NS 20e3
/* Attention so dear that long rows, packed or not, lose time. */
#define DEAR_SQUARE_NS 2e3
#define BATCHES 5
#define SEQUENCES 5

static const int64_t batches[BATCHES] = {1, 2, 4, 8, 16};
static const int64_t sequences[SEQUENCES] = {16, 32, 64, 128, 256};

typedef struct bench {
    fake_device device, cpu;
    device *devices[2];
    model m;
    dispatch d;
    model_queue *queue;
    batch_member members[1024];
    pack_place places[PACK_SEQUENCES_MAX];
    cost_attribution attribution;
    dispatch_batch taken;
    uint64_t now_ns, order;
    double square_ns; /* of a token's attention to another */
} bench;

static void add_bucket(bench *b, int64_t rows, int64_t length, int64_t packed)
{
    model_bucket *to = &b->m.buckets[b->m.bucket_count];
    to->shape = (device_bucket){rows, length};
    to->sequences = packed;
    to->programs = calloc(2, sizeof *to->programs);
    cr_assert_eq(fake_compile(b->devices[0], NULL, to->shape, &to->programs[0]), STATUS_OK);
    latency_work work = {rows, rows * length, rows * length * length};
    double time_ns =
        FIXED_NS + TOKEN_NS * (double)work.tokens + b->square_ns * (double)work.squares;
    latency_observe(b->m.latency, 0, b->m.bucket_count++, work, (uint64_t)time_ns, 1);
}

/* Packed rows of the bucket lengths from `packed_min` to `packed_max`. */
static bench *create_with(int64_t packed_min, int64_t packed_max, double square_ns)
{
    bench *b = calloc(1, sizeof *b);
    b->square_ns = square_ns;
    fake_device_init(&b->device, "tpu", 1);
    fake_device_init(&b->cpu, "cpu", 1);
    b->devices[0] = &b->device.base;
    b->devices[1] = &b->cpu.base;
    b->m.name = "packed";
    b->m.serial = 1;
    b->m.devices = b->devices;
    b->m.device_count = 2;
    b->m.batching =
        (model_batching){.can_batch = true, .can_pad = true, .batch_max = 16, .sequence_max = 256};
    b->m.latency = latency_create(b->devices, 2);
    b->m.batch_bucket_count = BATCHES;
    b->m.sequence_bucket_count = SEQUENCES;
    memcpy(b->m.batch_buckets, batches, sizeof batches);
    memcpy(b->m.sequence_buckets, sequences, sizeof sequences);
    for (int s = 0; s < SEQUENCES; s++)
        for (int r = 0; r < BATCHES && (r == 0 || batches[r] * sequences[s] <= 2048); r++)
            add_bucket(b, batches[r], sequences[s], 0);
    for (int s = 0; s < SEQUENCES; s++)
        for (int r = 0; r < BATCHES && batches[r] * sequences[s] <= 2048; r++)
            if (sequences[s] >= packed_min && sequences[s] <= packed_max)
                add_bucket(b, batches[r], sequences[s], batches[r] * sequences[s] / 8);
    dispatch_init(&b->d, 2, 1, NULL);
    b->queue = dispatch_queue(&b->d, &b->m);
    b->now_ns = 1000000000;
    return b;
}

static bench *create(int64_t packed_length)
{
    return create_with(packed_length, packed_length, 0);
}

static void destroy(bench *b)
{
    job *dropped = NULL;
    dispatch_empty(&b->d, &dropped);
    for (job *j = dropped, *next; j != NULL; j = next) {
        next = j->next;
        free(j);
    }
    dispatch_dispose(&b->d);
    for (int i = 0; i < b->m.bucket_count; i++) {
        fake_release(b->devices[0], b->m.buckets[i].programs[0]);
        free(b->m.buckets[i].programs);
    }
    latency_destroy(b->m.latency);
    free(b);
}

static void push(bench *b, int64_t rows, int64_t length, uint64_t deadline_ns)
{
    job *j = calloc(1, sizeof *j);
    j->model = &b->m;
    j->rows = rows;
    j->length = length;
    j->deadline_ns = deadline_ns;
    j->stage_ns[STAGE_ADMIT] = b->now_ns;
    atomic_store(&j->rows_left, rows);
    cr_assert(dispatch_push(&b->d, b->queue, j));
}

static const bool is_healthy[] = {true, true};
static const placement_devices both = {
    .count = 2, .cpu = 1, .is_healthy = is_healthy, .fallback = FALLBACK_NEVER};

/* Takes one batch; its jobs' rows are done. Returns the part of its tokens that is padding. */
static double next(bench *b)
{
    dispatch_request r = {.now_ns = b->now_ns, .workers = 1, .devices = &both};
    b->taken = (dispatch_batch){.members = b->members,
                                .capacity = 1024,
                                .places = b->places,
                                .attribution = &b->attribution};
    dispatch_next(&b->d, &r, &b->taken);
    cr_assert_eq(b->taken.action, POLICY_RUN);
    const device_bucket *shape = &b->m.buckets[b->taken.bucket].shape;
    int64_t tokens = 0, rows = 0;
    for (int i = 0; i < b->taken.count; i++) {
        const batch_member *m = &b->members[i];
        tokens += m->rows * m->job->length;
        rows += m->rows;
    }
    cr_assert_eq(rows, b->taken.rows);
    return 1 - (double)tokens / (double)(shape->batch * shape->sequence);
}

static void finish(bench *b)
{
    for (int i = 0; i < b->taken.count; i++) {
        const batch_member *m = &b->members[i];
        if (job_finish_rows(m->job, m->rows, STATUS_OK))
            free(m->job);
    }
    b->now_ns += 1000000;
}

/* No two sequences share a token, and all lie within the rows. */
static void check_places(const bench *b)
{
    static bool used[64][256];
    const bucket_packed *p = b->taken.packed;
    int number = 0;
    memset(used, 0, sizeof used);
    for (int i = 0; i < b->taken.count; i++)
        for (int64_t k = 0; k < b->members[i].rows; k++, number++) {
            pack_place at = b->places[number];
            int64_t length = b->members[i].job->length;
            cr_assert(at.row >= 0 && at.row < p->rows && at.offset + length <= p->length);
            for (int64_t n = 0; n < length; n++) {
                cr_assert_not(used[at.row][at.offset + n]);
                used[at.row][at.offset + n] = true;
            }
        }
    cr_assert_eq(number, b->taken.rows);
    cr_assert_leq(number, p->sequences);
}

static int read_lengths(int64_t *lengths, int64_t most)
{
    FILE *file = fopen(PENSTOCK_SOURCE_DIR "/tests/data/sentence_lengths.txt", "r");
    char line[256];
    int count = 0;
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file) && count < 4096)
        if (line[0] != '#' && atoll(line) <= most)
            lengths[count++] = atoll(line);
    fclose(file);
    return count;
}

/* Waste of batches that are formed while 64 requests wait. */
static void check_waste(int64_t packed_length, int64_t longest)
{
    static int64_t lengths[4096];
    int count = read_lengths(lengths, longest), at = 0, packed = 0;
    bench *b = create(packed_length);
    double waste = 0;
    for (int batch = 0; batch < 100; batch++) {
        while (b->queue->rows < 64)
            push(b, 1, lengths[at++ % count], UINT64_MAX);
        double own = next(b);
        if (b->taken.packed != NULL) {
            check_places(b);
            waste += own;
            packed++;
        }
        finish(b);
    }
    cr_assert_geq(packed, 90, "%d of 100 batches were packed", packed);
    cr_assert_lt(waste / packed, 0.05, "a waste of %f", waste / packed);
    destroy(b);
}

Test(packing, little_waste_in_rows_of_128_at_64_queued)
{
    check_waste(128, 128);
}

Test(packing, little_waste_in_rows_of_256_at_64_queued)
{
    check_waste(256, 256);
}

/* Clients that send the next request when the last is answered, on a device with two batches in
 * flight: what part of all tokens is padding. */
static double closed_loop_waste(bench *b, int clients)
{
    static int64_t lengths[4096];
    int count = read_lengths(lengths, 256), at = 0;
    uint64_t end_ns[2] = {b->now_ns, b->now_ns};
    int64_t answered[2] = {clients - clients / 2, clients / 2};
    double tokens = 0, computed = 0;
    for (int batch = 0; batch < 400; batch++) {
        int worker = end_ns[1] < end_ns[0];
        uint64_t now_ns = b->now_ns = end_ns[worker];
        for (; answered[worker] > 0; answered[worker]--)
            push(b, 1, lengths[at++ % count], UINT64_MAX);
        double waste = next(b);
        const device_bucket *shape = &b->m.buckets[b->taken.bucket].shape;
        double size = (double)(shape->batch * shape->sequence);
        computed += size;
        tokens += (1 - waste) * size;
        answered[worker] = b->taken.rows;
        end_ns[worker] = now_ns + (uint64_t)(FIXED_NS + TOKEN_NS * size);
        finish(b);
    }
    return 1 - tokens / computed;
}

static void check_closed_loop(int clients)
{
    for (int always = 0; always < 2; always++) {
        bench *b = create_with(128, 256, 0);
        b->m.packing = always ? MODEL_PACKING_ALWAYS : MODEL_PACKING_AUTO;
        double waste = closed_loop_waste(b, clients);
        cr_assert_lt(waste, 0.1, "%d clients, %s: a waste of %f", clients,
                     always ? "always" : "auto", waste);
        destroy(b);
    }
}

Test(packing, little_waste_with_16_clients)
{
    check_closed_loop(16);
}

Test(packing, little_waste_with_64_clients)
{
    check_closed_loop(64);
}

Test(packing, little_waste_with_128_clients)
{
    check_closed_loop(128);
}

/* Until all are answered; long ones that rows of 128 cannot hold go padded. */
Test(packing, everybody_is_taken_once)
{
    static int64_t lengths[4096];
    int count = read_lengths(lengths, 256);
    bench *b = create(128);
    int64_t pushed = 0, taken = 0;
    for (int i = 0; i < 300; i++) {
        int64_t rows = i % 10 == 0 ? 30 : 1; /* more than a batch may have, if padded */
        push(b, rows, lengths[i % count], UINT64_MAX);
        pushed += rows;
    }
    while (b->queue->rows > 0) {
        next(b);
        if (b->taken.packed != NULL)
            check_places(b);
        taken += b->taken.rows;
        finish(b);
    }
    cr_assert_eq(taken, pushed);
    for (int i = 0; i < SEQUENCES; i++)
        cr_assert_eq(b->queue->bucket_queue_tokens[i], 0);
    destroy(b);
}

Test(packing, a_lone_request_goes_padded)
{
    bench *b = create(128);
    push(b, 1, 12, UINT64_MAX);
    next(b);
    cr_assert_null(b->taken.packed);
    cr_assert_eq(b->m.buckets[b->taken.bucket].shape.batch, 1);
    cr_assert_eq(b->m.buckets[b->taken.bucket].shape.sequence, 16);
    finish(b);
    destroy(b);
}

/* Three short ones: a row of 128 has fewer tokens than a padded batch of 4. */
Test(packing, a_few_share_one_row)
{
    bench *b = create(128);
    push(b, 1, 37, UINT64_MAX);
    push(b, 1, 40, UINT64_MAX);
    push(b, 1, 35, UINT64_MAX);
    next(b);
    cr_assert_not_null(b->taken.packed);
    cr_assert_eq(b->taken.packed->rows, 1);
    cr_assert_eq(b->taken.rows, 3);
    check_places(b);
    finish(b);
    destroy(b);
}

static void push_many(bench *b, int count, int64_t length)
{
    for (int i = 0; i < count; i++)
        push(b, 1, length, UINT64_MAX);
}

/* Where long rows cost more time than padding does, times decide; unless tokens are to be saved.
 */
Test(packing, tokens_are_saved_where_that_is_wanted)
{
    bench *b = create_with(128, 128, DEAR_SQUARE_NS);
    push_many(b, 64, 9);
    next(b);
    cr_assert_null(b->taken.packed, "the padded batch is sooner done");
    finish(b);
    b->m.packing = MODEL_PACKING_ALWAYS;
    push_many(b, 16, 9);
    double waste = next(b);
    cr_assert_not_null(b->taken.packed);
    cr_assert_lt(waste, 0.1);
    check_places(b);
    finish(b);
    destroy(b);
}

/* Of the packed buckets that the queue fills, the largest. */
Test(packing, the_largest_of_those_that_are_filled)
{
    bench *b = create_with(128, 128, DEAR_SQUARE_NS);
    b->m.packing = MODEL_PACKING_ALWAYS;
    push_many(b, 50, 24); /* 1200 tokens: 8 rows of 128 are filled, 16 are not */
    next(b);
    cr_assert_not_null(b->taken.packed);
    cr_assert_eq(b->taken.packed->rows, 8);
    finish(b);
    destroy(b);
}

Test(packing, a_full_padded_batch_is_no_worse)
{
    bench *b = create(128);
    for (int i = 0; i < 16; i++)
        push(b, 1, 128, UINT64_MAX);
    cr_assert_leq(next(b), 0.0);
    cr_assert_null(b->taken.packed, "nothing is gained");
    finish(b);
    destroy(b);
}

/* Packed rows would take 2048 tokens' time; the urgent one has time for its own short batch. */
Test(packing, no_request_is_late_for_it)
{
    bench *b = create(128);
    for (int i = 0; i < 200; i++)
        push(b, 1, 10, UINT64_MAX);
    push(b, 1, 10, b->now_ns + 7000000);
    next(b);
    cr_assert_lt((double)b->taken.expected_ns, 7e6);
    bool is_in = false;
    for (int i = 0; i < b->taken.count; i++)
        is_in |= b->members[i].job->deadline_ns != UINT64_MAX;
    cr_assert(is_in);
    finish(b);
    destroy(b);
}

Test(packing, no_packed_buckets_no_packing)
{
    bench *b = create(0);
    for (int i = 0; i < 64; i++)
        push(b, 1, 9, UINT64_MAX);
    next(b);
    cr_assert_null(b->taken.packed);
    finish(b);
    destroy(b);
}
