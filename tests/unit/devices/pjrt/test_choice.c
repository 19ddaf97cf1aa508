#include "devices/pjrt/choice.h"

#include <criterion/criterion.h>
#include <string.h>

static pjrt_choice choice_of(int count, const pjrt_trial *trials)
{
    pjrt_choice c = {.count = count};
    memcpy(c.trials, trials, (size_t)count * sizeof *trials);
    pjrt_choice_decide(&c);
    return c;
}

Test(choice, takes_the_fewest_cycles_and_the_earlier_of_equals)
{
    pjrt_choice c =
        choice_of(4, (pjrt_trial[]){{.name = "int8", .cycles = 900, .unestimated = 0},
                                    {.name = "bf16", .cycles = 500, .unestimated = 0},
                                    {.name = "bf16-heads", .cycles = 500, .unestimated = 0},
                                    {.name = "bf16-plain", .cycles = 0, .unestimated = 0}});
    cr_assert_str_eq(c.trials[c.chosen].name, "bf16");
}

Test(choice, a_sum_that_leaves_out_more_does_not_win)
{
    pjrt_choice c = choice_of(2, (pjrt_trial[]){{.name = "int8", .cycles = 900, .unestimated = 1},
                                                {.name = "bf16", .cycles = 500, .unestimated = 2}});
    cr_assert_eq(c.chosen, 0);
    c = choice_of(2, (pjrt_trial[]){{.name = "int8", .cycles = 900, .unestimated = 2},
                                    {.name = "bf16", .cycles = 500, .unestimated = 1}});
    cr_assert_eq(c.chosen, 1);
}

Test(choice, is_read_as_it_was_written)
{
    pjrt_choice c = choice_of(2, (pjrt_trial[]){{.name = "int8", .cycles = 900, .unestimated = 1},
                                                {.name = "bf16", .cycles = 500, .unestimated = 0}}),
                back;
    char text[PJRT_CHOICE_BYTES];
    c.left_out = 3;
    c.is_tuned = true;
    pjrt_choice_write(&c, text);
    cr_assert_eq(pjrt_choice_read(text, &back), STATUS_OK);
    cr_assert_eq(back.count, 2);
    cr_assert_eq(back.chosen, 1);
    cr_assert_eq(back.left_out, 3);
    cr_assert(back.is_tuned);
    cr_assert_str_eq(back.trials[0].name, "int8");
    cr_assert_eq(back.trials[0].cycles, 900);
    cr_assert_eq(back.trials[0].unestimated, 1);
    cr_assert_eq(pjrt_choice_read("tried int8 900 0\n", &back), STATUS_CORRUPT);
}

static pjrt_choice by_schedule(int count, const pjrt_trial *trials)
{
    pjrt_choice c = choice_of(count, trials);
    c.is_by_schedule = true;
    pjrt_choice_decide(&c);
    return c;
}

Test(choice, by_schedule_takes_the_shortest_schedule_and_says_so)
{
    const pjrt_trial trials[] = {{.name = "bf16", .cycles = 83665, .scheduled = 35564},
                                 {.name = "bf16-heads", .cycles = 70000},
                                 {.name = "bf16-blocks", .cycles = 91895, .scheduled = 21370}};
    pjrt_choice c = choice_of(3, trials), back;
    cr_assert_eq(c.chosen, 1);
    c = by_schedule(3, trials);
    cr_assert_eq(c.chosen, 2);
    cr_assert_str_eq(pjrt_choice_reason(&c), "the fewest scheduled cycles");
    char text[PJRT_CHOICE_BYTES], trial[120];
    pjrt_choice_write(&c, text);
    cr_assert_eq(pjrt_choice_read(text, &back), STATUS_OK);
    cr_assert(back.is_by_schedule);
    cr_assert_eq(back.trials[2].scheduled, 21370);
    cr_assert_eq(back.trials[1].scheduled, 0);
    cr_assert_str_eq(pjrt_trial_describe(&back.trials[2], trial), "91895 (21370 scheduled)");
    /* What another release of Penstock wrote. */
    cr_assert_eq(pjrt_choice_read("chosen bf16\ntried bf16 500 0\n", &back), STATUS_OK);
    cr_assert_not(back.is_by_schedule);
}

Test(choice, schedules_that_hardly_differ_leave_it_to_the_estimate)
{
    pjrt_choice c =
        by_schedule(2, (pjrt_trial[]){{.name = "bf16", .cycles = 500, .scheduled = 1000},
                                      {.name = "bf16-heads", .cycles = 600, .scheduled = 985}});
    cr_assert_eq(c.chosen, 0);
    c = by_schedule(2, (pjrt_trial[]){{.name = "bf16", .cycles = 600, .scheduled = 985},
                                      {.name = "bf16-heads", .cycles = 500, .scheduled = 1000}});
    cr_assert_eq(c.chosen, 1);
    c = by_schedule(2, (pjrt_trial[]){{.name = "bf16", .cycles = 500, .scheduled = 1000},
                                      {.name = "bf16-heads", .cycles = 600, .scheduled = 970}});
    cr_assert_eq(c.chosen, 1);
}

/* A choice among other forms than today's says nothing. */
Test(choice, other_forms_of_a_candidate_are_other_candidates)
{
    pjrt_candidate own[PJRT_CANDIDATES_MAX], other[PJRT_CANDIDATES_MAX];
    const encoder e = {.hidden = 384, .heads = 12, .head_dim = 32};
    device_model m = {.precision = DEVICE_INT8, .encoder = &e};
    int count = pjrt_candidates(&m, (device_bucket){8, 32}, "TPU v5 lite", true, own);
    cr_assert_eq(pjrt_candidates(&m, (device_bucket){8, 32}, "TPU v5 lite", true, other), count);
    uint64_t hash = pjrt_candidates_hash(own, count);
    cr_assert_eq(pjrt_candidates_hash(other, count), hash);
    other[1].form.are_rows_apart ^= true;
    cr_assert_neq(pjrt_candidates_hash(other, count), hash);
    other[1] = own[1];
    other[1].options.gelu = STABLEHLO_GELU_TANH;
    cr_assert_neq(pjrt_candidates_hash(other, count), hash);
    cr_assert_neq(pjrt_candidates_hash(own, count - 1), hash);
}

Test(choice, tells_what_became_of_attention_scores)
{
    pjrt_choice c = choice_of(1, (pjrt_trial[]){{.name = "bf16", .cycles = 500}}), back;
    char text[PJRT_CHOICE_BYTES], told[300];
    cr_assert_str_eq(pjrt_choice_explain(&c, told), "the fewest estimated cycles");
    strcpy(c.scores, "maximum");
    strcpy(c.scores_reason, "the largest of 24 text sequences is 181.0, above 48");
    pjrt_choice_write(&c, text);
    cr_assert_eq(pjrt_choice_read(text, &back), STATUS_OK);
    cr_assert_str_eq(pjrt_choice_explain(&back, told),
                     "the fewest estimated cycles (attention scores with the maximum: the largest "
                     "of 24 text sequences is 181.0, above 48)");
}

Test(choice, results_far_from_fp32_do_not_win)
{
    pjrt_choice c = choice_of(3, (pjrt_trial[]){{.name = "int8",
                                                 .cycles = 300,
                                                 .is_executed = true,
                                                 .is_apart = true,
                                                 .answers = {0.9, 0.8}},
                                                {.name = "bf16", .cycles = 500, .unestimated = 0},
                                                {.name = "bf16-heads",
                                                 .cycles = 400,
                                                 .is_executed = true,
                                                 .is_apart = false,
                                                 .answers = {1, 0.999}}}),
                back;
    cr_assert_eq(c.chosen, 2);
    char text[PJRT_CHOICE_BYTES];
    pjrt_choice_write(&c, text);
    cr_assert_eq(pjrt_choice_read(text, &back), STATUS_OK);
    cr_assert_eq(back.chosen, 2);
    cr_assert(back.trials[0].is_apart && back.trials[0].is_executed);
    cr_assert_float_eq(back.trials[0].answers.lowest, 0.8, 1e-9);
    cr_assert(!back.trials[1].is_executed && !back.trials[2].is_apart);
    cr_assert(strstr(pjrt_choice_reason(&back), "as near to FP32 as promised") != NULL);
    c = choice_of(2, (pjrt_trial[]){{.name = "int8",
                                     .cycles = 300,
                                     .is_executed = true,
                                     .is_apart = true,
                                     .answers = {0.9, 0.8}},
                                    {.name = "bf16",
                                     .cycles = 200,
                                     .is_executed = true,
                                     .is_apart = true,
                                     .answers = {0.9, 0.8}}});
    cr_assert_eq(c.chosen, 0);
    cr_assert(strstr(pjrt_choice_reason(&c), "the default: ") != NULL);
}

/* int8 that is the cheapest and not accurate enough, and a static form that is. */
Test(choice, what_the_accuracy_check_rejects_is_not_chosen)
{
    pjrt_choice c = choice_of(3, (pjrt_trial[]){{.name = "int8", .cycles = 500},
                                                {.name = "bf16", .cycles = 900},
                                                {.name = "int8-static", .cycles = 600}}),
                back;
    cr_assert_eq(c.chosen, 0);
    cr_assert_str_eq(pjrt_choice_reason(&c), "the fewest estimated cycles");
    c.trials[0].is_checked = c.trials[0].is_rejected = true;
    c.trials[0].accuracy = (device_accuracy){0.9, 0.8};
    pjrt_choice_decide(&c);
    cr_assert_eq(c.chosen, 2);
    cr_assert_str_eq(pjrt_choice_reason(&c),
                     "the fewest estimated cycles of those that keep the accuracy");
    char text[PJRT_CHOICE_BYTES], trial[120];
    pjrt_choice_write(&c, text);
    cr_assert_eq(pjrt_choice_read(text, &back), STATUS_OK);
    cr_assert_eq(back.chosen, 2);
    cr_assert(back.trials[0].is_checked && back.trials[0].is_rejected);
    cr_assert_not(back.trials[2].is_checked);
    cr_assert_float_eq(back.trials[0].accuracy.lowest, 0.8, 1e-6);
    cr_assert_str_eq(pjrt_trial_describe(&back.trials[0], trial),
                     "500 (cosine to FP32: mean 0.90000, lowest 0.80000, too low)");
    cr_assert_str_eq(pjrt_trial_describe(&back.trials[2], trial), "600");
    c.trials[2].is_checked = c.trials[2].is_rejected = true;
    pjrt_choice_decide(&c);
    cr_assert_eq(c.chosen, 1);
}

Test(choice, static_scales_are_tried_where_8_bit_integers_are_multiplied_faster)
{
    pjrt_candidate out[PJRT_CANDIDATES_MAX];
    const encoder e = {.hidden = 384, .heads = 12, .head_dim = 32};
    device_model m = {.precision = DEVICE_INT8, .encoder = &e};
    const device_bucket bucket = {8, 32};
    cr_assert_eq(pjrt_candidates(&m, bucket, "TPU v5 lite", false, out), 4);
    cr_assert_str_eq(out[0].name, "int8");
    cr_assert_str_eq(out[1].name, "bf16");
    cr_assert_eq(out[0].static_linears | out[1].static_linears, 0);
    cr_assert_eq(out[2].static_linears, (1u << ENCODER_LINEARS) - 1);
    cr_assert_eq(out[3].static_linears, 1u << ENCODER_UP | 1u << ENCODER_DOWN);
    cr_assert_eq(pjrt_candidates(&m, bucket, "TPU v4", false, out), 2);
    cr_assert_eq(pjrt_candidates(&m, bucket, "cpu", false, out), 2);
    m.encoder = NULL;
    cr_assert_eq(pjrt_candidates(&m, bucket, "TPU v5 lite", false, out), 2);
}

/* The default at a bucket of an encoder of twelve heads. */
static pjrt_candidate default_of(device_precision precision, int64_t head_dim,
                                 const char *device_kind, int64_t batch, int64_t sequence)
{
    pjrt_candidate out[PJRT_CANDIDATES_MAX];
    const encoder e = {.hidden = 12 * head_dim, .heads = 12, .head_dim = head_dim};
    const device_model m = {.precision = precision, .encoder = &e};
    cr_assert_geq(pjrt_candidates(&m, (device_bucket){batch, sequence}, device_kind, false, out),
                  1);
    cr_assert_str_eq(out[0].name, device_precision_names[precision]);
    return out[0];
}

static pjrt_candidate default_at(const char *device_kind, int64_t batch, int64_t sequence)
{
    return default_of(DEVICE_BF16, 32, device_kind, batch, sequence);
}

Test(choice, the_default_form_depends_on_the_tokens_of_a_bucket)
{
    pjrt_candidate large = default_at("TPU v5 lite", 32, 128);
    cr_assert(large.is_rebuilt);
    cr_assert_eq(large.form.block_width, 128);
    cr_assert_not(large.form.is_qkv_joined);
    pjrt_candidate small = default_at("TPU v5 lite", 1, 32);
    cr_assert_eq(small.form.block_width, 0);
    cr_assert(small.form.is_qkv_joined && small.form.is_softmax_late);
    cr_assert_eq(default_at("TPU v6 lite", 1, 128).form.block_width, 128);
    cr_assert_eq(default_at("TPU v4", 1, 128).form.block_width, 0);
    cr_assert_not(default_at("cpu", 32, 128).is_rebuilt);
}

/* By the schedule: 21,398 cycles beside 35,564 for two layers of MiniLM at 8 x 32. */
Test(choice, short_rows_are_in_blocks_on_v5e)
{
    cr_assert_eq(default_at("TPU v5 lite", 8, 32).form.block_width, 128);
    cr_assert_eq(default_at("TPU v5 lite", 32, 32).form.block_width, 128);
    cr_assert_eq(default_at("TPU v6 lite", 8, 32).form.block_width, 0);
}

Test(choice, many_tokens_have_forms_of_their_own)
{
    pjrt_candidate v6e = default_at("TPU v6 lite", 32, 128);
    cr_assert(v6e.form.are_scores_clipped && !v6e.form.are_scores_kept);
    cr_assert(v6e.options.is_gelu_apart && v6e.options.is_norm_kept);
    cr_assert(v6e.form.is_mean_product && v6e.form.are_embedding_sums_products);
    pjrt_candidate v5e = default_at("TPU v5 lite", 32, 128);
    cr_assert(v5e.form.are_scores_clipped && v5e.form.are_scores_kept);
    cr_assert_not(v5e.options.is_gelu_apart || v5e.options.is_norm_kept);
    static const char *const kinds[] = {"TPU v4", "TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        pjrt_candidate few = default_at(kinds[k], 8, 32);
        cr_assert_eq(few.form.is_mean_product, k == 1 || k == 3);
        cr_assert_not(few.options.is_gelu_apart || few.options.is_norm_kept);
    }
}

/* By generation: where heads are narrow or tokens many. One short row: everywhere but on v5e. */
Test(choice, scores_are_clipped_where_that_takes_fewer_cycles)
{
    static const char *const kinds[] = {"TPU v4", "TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        cr_assert_eq(default_at(kinds[k], 1, 32).form.are_scores_clipped, k != 1, "%s", kinds[k]);
        cr_assert_eq(default_at(kinds[k], 8, 32).form.are_scores_clipped, k != 1 && k != 4);
        cr_assert_eq(default_at(kinds[k], 8, 128).form.are_scores_clipped, k != 4);
    }
    cr_assert(default_at("TPU v6 lite", 1, 128).form.are_scores_clipped);
    cr_assert_not(default_at("TPU v5", 1, 128).form.are_scores_clipped);
    cr_assert(default_of(DEVICE_BF16, 64, "TPU v4", 8, 32).form.are_scores_clipped);
    cr_assert_not(default_of(DEVICE_BF16, 64, "TPU v5", 8, 32).form.are_scores_clipped);
    cr_assert_not(default_of(DEVICE_BF16, 64, "TPU v6 lite", 8, 32).form.are_scores_clipped);
}

Test(choice, rows_are_kept_apart_and_of_one_row_on_v5p_the_normalisation)
{
    static const char *const others[] = {"TPU v4", "TPU v5 lite", "TPU v6 lite", "TPU7x"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        cr_assert_eq(default_at(others[k], 8, 128).form.are_rows_apart, k != 3);
        cr_assert_eq(default_at(others[k], 32, 128).form.are_rows_apart, k < 2);
        cr_assert_eq(default_at(others[k], 32, 32).form.are_rows_apart, k == 0);
        cr_assert_not(default_at(others[k], 1, 32).options.is_norm_kept);
    }
    cr_assert(default_at("TPU v5", 8, 32).form.are_rows_apart);
    cr_assert(default_at("TPU v5", 8, 128).form.are_rows_apart);
    cr_assert_not(default_at("TPU v5", 32, 128).form.are_rows_apart);
    cr_assert(default_at("TPU v4", 32, 128).form.are_rows_apart);
    cr_assert_not(default_at("TPU v4", 1, 128).form.are_rows_apart);
    cr_assert_not(default_at("TPU v5", 8, 128).options.is_norm_kept);
    cr_assert_not(default_at("TPU v5", 1, 32).form.are_rows_apart);
    cr_assert(default_at("TPU v5", 1, 32).options.is_norm_kept);
    pjrt_candidate int8 = default_of(DEVICE_INT8, 32, "TPU v5", 8, 128);
    cr_assert_not(int8.form.are_rows_apart || int8.options.is_norm_kept);
}

Test(choice, many_tokens_of_a_wide_encoder_have_another_form_on_tpu7x)
{
    pjrt_candidate narrow = default_at("TPU7x", 32, 128);
    cr_assert(narrow.form.is_mean_product && !narrow.options.is_stream_bf16);
    cr_assert_not(narrow.options.is_gelu_apart || narrow.options.is_norm_kept);
    pjrt_candidate wide = default_of(DEVICE_BF16, 64, "TPU7x", 32, 128);
    cr_assert(wide.options.is_stream_bf16);
    cr_assert(wide.options.is_gelu_apart && wide.options.is_norm_kept);
    cr_assert_not(wide.form.is_mean_product || wide.form.are_embedding_sums_products);
    pjrt_candidate fewer = default_of(DEVICE_BF16, 64, "TPU7x", 8, 128);
    cr_assert_not(fewer.options.is_stream_bf16 || fewer.form.is_mean_product);
}

/* All have names and forms of their own. */
static void check_apart(const pjrt_candidate *out, int count, const char *kind)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            cr_assert_str_neq(out[i].name, out[j].name);
            bool is_same = memcmp(&out[i].form, &out[j].form, sizeof out[i].form) == 0 &&
                           memcmp(&out[i].options, &out[j].options, sizeof out[i].options) == 0 &&
                           out[i].is_rebuilt == out[j].is_rebuilt &&
                           out[i].static_linears == out[j].static_linears;
            cr_assert_not(is_same, "%s: %s and %s", kind, out[i].name, out[j].name);
        }
}

Test(choice, tuning_tries_each_form_once_and_all_of_them_have_names)
{
    static const char *const kinds[] = {"TPU v4", "TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x"};
    static const device_bucket buckets[] = {{1, 32}, {1, 128}, {8, 32}, {32, 128}};
    pjrt_candidate out[PJRT_CANDIDATES_MAX];
    const encoder e = {.hidden = 384, .heads = 12, .head_dim = 32};
    const device_model m = {.precision = DEVICE_INT8, .encoder = &e};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++) {
            int count = pjrt_candidates(&m, buckets[b], kinds[k], true, out);
            cr_assert_gt(count, 12);
            check_apart(out, count, kinds[k]);
            /* Those that clip are left out, the default stays the first. */
            count = pjrt_candidates_without_clipping(out, count);
            cr_assert_gt(count, 12);
            cr_assert_str_eq(out[0].name, "int8");
            for (int i = 0; i < count; i++)
                cr_assert_not(out[i].form.are_scores_clipped || out[i].form.are_scores_kept);
            check_apart(out, count, kinds[k]);
        }
}
