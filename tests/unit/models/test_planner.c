#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xorshift.h"
#include "models/planner.h"

static uint64_t random_state = 12345;

static uint64_t next_random(void)
{
    return xorshift64_next(&random_state);
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

/* The same by the plain recurrence, which tries every end of every bucket. */
static double plain(const length_histogram *h, int buckets, int length_max)
{
    static double best[16][300];
    double rows[300] = {0};
    for (int j = 1; j <= length_max; j++)
        rows[j] = rows[j - 1] + (double)atomic_load(&h->counts[j]);
    for (int j = 1; j <= length_max; j++)
        for (int k = 1; k <= buckets; k++) {
            best[k][j] = rows[j] * j;
            for (int i = 1; i < j && k > 1; i++) {
                double c = best[k - 1][i] + (rows[j] - rows[i]) * j;
                best[k][j] = c < best[k][j] ? c : best[k][j];
            }
        }
    return best[buckets][length_max];
}

/* Log-normal lengths whose p95 is six times their median: docs/scheduling.md says that no choice of
 * 8 or 12 buckets wastes as little as 15% and 10% there. */
Test(planner, no_choice_does_better_on_heavy_tails)
{
    length_histogram *h = length_histogram_create(256);
    int longest = 0;
    double real = 0;
    for (int i = 0; i < 20000; i++) {
        double u = ((double)(next_random() >> 11) + 0.5) / 9007199254740992.0;
        double v = (double)(next_random() >> 11) / 9007199254740992.0;
        double normal = sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * v);
        int length = (int)(22 * exp(1.06 * normal));
        length = length < 1 ? 1 : length > 256 ? 256 : length;
        longest = length > longest ? length : longest;
        real += length;
        length_histogram_add(h, length, 1);
    }
    for (int buckets = 1; buckets <= 12; buckets++) {
        planner_plan plan;
        cr_assert_eq(planner_make(h, buckets, NULL, 0, &plan), STATUS_OK);
        double least = plain(h, buckets, longest);
        cr_expect_float_eq(plan.cost, least, 1e-6 * least, "%d: %f %f", buckets, plan.cost, least);
        if (buckets == 8)
            cr_expect_gt(1 - real / least, 0.15);
        if (buckets == 12)
            cr_expect_gt(1 - real / least, 0.10);
    }
    free(h);
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
    static const char *const arrays[] = {"[1,2", "[]", "[1,\"x\"]", "[1] 2", "[[1]]"};
    for (int i = 0; i < 5; i++) {
        file = fopen(path, "w");
        fprintf(file, "%s\n", arrays[i]);
        fclose(file);
        cr_expect_eq(length_histogram_read(path, &h), STATUS_INVALID_ARGUMENT, "%s", arrays[i]);
    }
    unlink(path);
    cr_assert_eq(length_histogram_read(path, &h), STATUS_NOT_FOUND);
}
