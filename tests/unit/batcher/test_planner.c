#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "batcher/pack.h"
#include "models/planner.h"

static uint64_t random_state = 12345;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Positions of the best choice of at most `left` more buckets, by trying all. */
static double brute(const int *lengths, const double *rows, int n, int from, int left)
{
    double best = 1e300;
    double total = 0;
    for (int end = from; end < n; end++) {
        total += rows[end];
        double here = total * lengths[end];
        if (end == n - 1)
            best = here < best ? here : best;
        else if (left > 1) {
            double rest = brute(lengths, rows, n, end + 1, left - 1);
            best = here + rest < best ? here + rest : best;
        }
    }
    return best;
}

Test(planner, is_a_brute_force_optimum)
{
    for (int round = 0; round < 200; round++) {
        length_histogram *h = length_histogram_create(64);
        int lengths[10], n = 0;
        double rows[10];
        for (int length = 1; length <= 64 && n < 10; length++)
            if (next_random() % 7 == 0) {
                uint64_t count = 1 + next_random() % 50;
                length_histogram_add(h, length, count);
                lengths[n] = length;
                rows[n++] = (double)count;
            }
        if (n == 0) {
            free(h);
            continue;
        }
        for (int buckets = 1; buckets <= 5; buckets++) {
            planner_plan plan;
            cr_assert_eq(planner_make(h, buckets, NULL, 0, &plan), STATUS_OK);
            cr_assert_float_eq(plan.cost, brute(lengths, rows, n, 0, buckets), 1e-6);
            cr_assert_leq(plan.count, buckets);
            for (int i = 1; i < plan.count; i++)
                cr_assert_gt(plan.buckets[i].sequence, plan.buckets[i - 1].sequence);
        }
        free(h);
    }
}

Test(planner, attention_moves_buckets_up_and_the_last_one_is_kept)
{
    length_histogram *h = length_histogram_create(200);
    for (int i = 1; i <= 100; i++)
        length_histogram_add(h, i, 1);
    planner_plan flat, steep;
    latency_fit cost = {.token_ns = 1, .square_ns = 1};
    cr_assert_eq(planner_make(h, 2, NULL, 0, &flat), STATUS_OK);
    cr_assert_eq(planner_make(h, 2, &cost, 0, &steep), STATUS_OK);
    cr_assert_eq(flat.buckets[0].sequence, 50);
    cr_assert_gt(steep.buckets[0].sequence, 50);
    cr_assert_eq(flat.buckets[1].sequence, 100);
    cr_assert_eq(planner_make(h, 3, NULL, 256, &flat), STATUS_OK);
    cr_assert_eq(flat.buckets[flat.count - 1].sequence, 256);
    free(h);
}

static length_histogram *sentences(void)
{
    length_histogram *h = NULL;
    cr_assert_eq(length_histogram_read(PENSTOCK_SOURCE_DIR "/tests/data/sentence_lengths.txt", &h),
                 STATUS_OK);
    return h;
}

Test(planner, real_sentences)
{
    length_histogram *h = sentences();
    planner_plan eight, twelve, powers;
    int64_t sequences[PLANNER_BUCKETS_MAX];
    cr_assert_eq(planner_make(h, 8, NULL, 0, &eight), STATUS_OK);
    cr_assert_eq(planner_make(h, 12, NULL, 0, &twelve), STATUS_OK);
    planner_measure(h, sequences, planner_powers_of_two(h, sequences), NULL, &powers);
    cr_expect_leq(eight.waste, 0.15, "%f", eight.waste);
    cr_expect_lt(twelve.waste, 0.10, "%f", twelve.waste);
    cr_expect_gt(powers.waste, 0.25, "%f", powers.waste);
    free(h);
}

Test(planner, files)
{
    length_histogram *h;
    char path[] = "/tmp/penstock_lengths_XXXXXX";
    int descriptor = mkstemp(path);
    FILE *file = fdopen(descriptor, "w");
    fputs("# comment\n12\n\n 7 # seven\n12\r\n", file);
    fclose(file);
    cr_assert_eq(length_histogram_read(path, &h), STATUS_OK);
    cr_assert_eq(length_histogram_total(h), 3);
    cr_assert_eq(length_histogram_quantile(h, 0.5), 12);
    cr_assert_eq(length_histogram_quantile(h, 0.1), 7);
    free(h);
    file = fopen(path, "w");
    fputs("12\ntwelve\n", file);
    fclose(file);
    cr_assert_eq(length_histogram_read(path, &h), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), ":2:"), "%s", status_message());
    unlink(path);
    cr_assert_eq(length_histogram_read(path, &h), STATUS_NOT_FOUND);
}

static double packing_waste(const int64_t *lengths, int count, int64_t row_length)
{
    pack_place places[PACK_SEQUENCES_MAX];
    double real = 0;
    int rows = pack_rows(lengths, count, row_length, PACK_SEQUENCES_MAX, places);
    static bool used[PACK_SEQUENCES_MAX][512];
    memset(used, 0, sizeof used);
    for (int i = 0; i < count; i++) {
        cr_assert(places[i].row >= 0 && places[i].row < rows);
        cr_assert_leq(places[i].offset + lengths[i], row_length);
        for (int64_t k = 0; k < lengths[i]; k++) {
            cr_assert_not(used[places[i].row][places[i].offset + k], "two in one place");
            used[places[i].row][places[i].offset + k] = true;
        }
        real += (double)lengths[i];
    }
    return 1 - real / (double)(rows * row_length);
}

Test(pack, no_overlap_and_little_waste_on_real_sentences)
{
    FILE *file = fopen(PENSTOCK_SOURCE_DIR "/tests/data/sentence_lengths.txt", "r");
    static int64_t lengths[4096];
    int count = 0;
    char line[256];
    while (fgets(line, sizeof line, file))
        if (line[0] != '#' && atoll(line) <= 128)
            lengths[count++] = atoll(line);
    fclose(file);
    double sum = 0;
    int batches = 0;
    for (int from = 0; from + 64 <= count; from += 64, batches++)
        sum += packing_waste(&lengths[from], 64, 128);
    cr_assert_gt(batches, 5);
    cr_expect_lt(sum / batches, 0.05, "%f", sum / batches);
}

Test(pack, where_rows_run_out_the_late_ones_stay)
{
    int64_t lengths[] = {10, 60, 60, 30, 100, 4};
    pack_place places[6];
    cr_assert_eq(pack_rows(lengths, 6, 100, 2, places), 2);
    for (int i = 0; i < 4; i++)
        cr_assert_geq(places[i].row, 0);
    cr_assert_eq(places[4].row, -1);
    cr_assert_eq(pack_rows(lengths, 0, 100, 2, places), 0);
    cr_assert_eq(pack_rows(lengths, 3, 100, 0, places), 0);
    cr_assert_eq(places[0].row, -1);
}
