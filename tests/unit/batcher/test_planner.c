#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
