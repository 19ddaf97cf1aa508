/* What int8 with static scales is calibrated to: the channels hold what the layers read, and the
 * imitations on the CPU tell good forms from bad ones. */
#include "devices/pjrt/calibration.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/encoder/packed.h"
#include "graph/import.h"
#include "tests/support/temporary.h"

#define ALL ((1u << ENCODER_LINEARS) - 1)
#define FFN (1u << ENCODER_UP | 1u << ENCODER_DOWN)

typedef struct fixture {
    graph *g;
    encoder e;
    device_model model;
    pjrt_calibrations *all;
} fixture;

static void open_model(fixture *f, const char *folder)
{
    *f = (fixture){.all = pjrt_calibrations_create()};
    cr_assert_eq(graph_import_hugging_face(folder, NULL, NULL, &f->g), STATUS_OK, "%s",
                 status_message());
    cr_assert_eq(graph_infer_symbolic(f->g, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(encoder_recognise(f->g, NULL, cpu_evaluate_node, &f->e), STATUS_OK, "%s",
                 status_message());
    f->model = (device_model){.graph = f->g,
                              .name = "bert",
                              .model_key = 7,
                              .precision = DEVICE_INT8,
                              .encoder = &f->e,
                              .mask_input = f->e.mask_input};
}

static void open_bert(fixture *f)
{
    open_model(f, PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/bert");
}

static void close_bert(fixture *f)
{
    pjrt_calibrations_destroy(f->all);
    encoder_dispose(&f->e);
    graph_destroy(f->g);
}

static device_accuracy measure(fixture *f, pjrt_calibration *c, compile_cache *cache,
                               unsigned linears)
{
    device_accuracy reached = {0};
    cr_assert_eq(pjrt_calibration_measure(c, &f->model, cache, linears, &reached), STATUS_OK, "%s",
                 status_message());
    return reached;
}

Test(calibration, sets_channels_and_tells_how_accurate_forms_are, .timeout = 300)
{
    fixture f;
    open_bert(&f);
    pjrt_calibration *c = pjrt_calibration_obtain(f.all, &f.model);
    cr_assert_eq(pjrt_calibration_obtain(f.all, &f.model), c);
    pjrt_calibration_release(f.all, c);
    cr_assert_eq(pjrt_calibration_linears(c), f.e.layer_count * ENCODER_LINEARS);
    device_accuracy all = measure(&f, c, NULL, ALL), some = measure(&f, c, NULL, FFN),
                    by_row = measure(&f, c, NULL, 0);
    cr_assert(all.mean > 0.99 && some.mean >= all.mean && by_row.mean > 0.99, "%g %g %g", all.mean,
              some.mean, by_row.mean);
    cr_assert(all.mean < 1 && by_row.mean < 1 && all.lowest <= all.mean);
    for (int i = 0; i < pjrt_calibration_linears(c); i++) {
        const quantise_channels *channels = pjrt_calibration_channels(c, i);
        const float *factors = channels->factors->data;
        for (int64_t k = 0; k < channels->factors->dims[0]; k++)
            cr_assert(isfinite(factors[k]) && factors[k] > 0);
        cr_assert_eq(channels->offsets != NULL, i % ENCODER_LINEARS == ENCODER_DOWN);
    }
    quantise_channels *half = pjrt_calibration_select(c, FFN);
    for (int i = 0; i < pjrt_calibration_linears(c); i++)
        cr_assert_eq(half[i].factors, FFN & (1u << i % ENCODER_LINEARS)
                                          ? pjrt_calibration_channels(c, i)->factors
                                          : NULL);
    free(half);
    /* Ranges that are much too small are seen. */
    float *factors = pjrt_calibration_channels(c, ENCODER_UP)->factors->data;
    for (int64_t k = 0; k < f.e.hidden; k++)
        factors[k] *= 20;
    device_accuracy clipped = measure(&f, c, NULL, 1u << ENCODER_UP);
    cr_assert_lt(clipped.mean, all.mean - 0.001);
    pjrt_calibration_release(f.all, c);
    close_bert(&f);
}

/* FP32 is finite. */
Test(calibration, a_form_that_computes_no_numbers_is_not_accurate, .timeout = 300)
{
    for (int i = 0; i < 2; i++) {
        fixture f;
        open_bert(&f);
        pjrt_calibration *c = pjrt_calibration_obtain(f.all, &f.model);
        (void)measure(&f, c, NULL, FFN); /* sets the channels */
        float *factors = pjrt_calibration_channels(c, ENCODER_UP)->factors->data;
        factors[1] = i == 0 ? NAN : INFINITY;
        device_accuracy reached = measure(&f, c, NULL, 1u << ENCODER_UP);
        cr_expect_not(
            device_accuracy_is_reached(reached, device_accuracy_required(DEVICE_INT8, false)),
            "%g %g", reached.mean, reached.lowest);
        cr_expect(isfinite(reached.mean) && isfinite(reached.lowest));
        pjrt_calibration_release(f.all, c);
        close_bert(&f);
    }
}

Test(calibration, is_kept_in_the_compile_cache_for_these_samples, .timeout = 300)
{
    char folder[TEMPORARY_FOLDER_BYTES];
    compile_cache *cache;
    fixture f;
    open_bert(&f);
    temporary_make(folder);
    cr_assert_eq(compile_cache_open(folder, &cache), STATUS_OK);
    pjrt_calibration *c = pjrt_calibration_obtain(f.all, &f.model);
    device_accuracy first = measure(&f, c, cache, FFN);
    float kept = ((const float *)pjrt_calibration_channels(c, 2)->factors->data)[3];
    pjrt_calibration_release(f.all, c);
    uint64_t before = compile_cache_count(cache).hits;
    c = pjrt_calibration_obtain(f.all, &f.model);
    device_accuracy again = measure(&f, c, cache, FFN);
    cr_assert_eq(compile_cache_count(cache).hits, before + 1);
    cr_assert_eq(compile_cache_count(cache).stored, 1);
    cr_assert(again.mean == first.mean && again.lowest == first.lowest);
    cr_assert_eq(((const float *)pjrt_calibration_channels(c, 2)->factors->data)[3], kept);
    pjrt_calibration_release(f.all, c);
    /* On other samples it is another one. */
    const int64_t ids[] = {2, 5, 9, 4};
    const device_samples samples = {.samples = {{.ids = ids, .length = 4}}, .count = 1, .hash = 5};
    char text[40];
    f.model.text_samples = &samples;
    pjrt_calibration_describe(&f.model, text, sizeof text);
    cr_assert_str_eq(text, "1 text");
    c = pjrt_calibration_obtain(f.all, &f.model);
    (void)measure(&f, c, cache, FFN);
    cr_assert_eq(compile_cache_count(cache).stored, 2);
    pjrt_calibration_release(f.all, c);
    compile_cache_close(cache);
    temporary_remove(folder);
    close_bert(&f);
}

/* The largest attention score, by a calibration of its own. */
static float scores_of(fixture *f, compile_cache *cache)
{
    float most = 0;
    pjrt_calibration *c = pjrt_calibration_obtain(f->all, &f->model);
    cr_assert_eq(pjrt_calibration_measure_scores(c, &f->model, cache, &most), STATUS_OK, "%s",
                 status_message());
    pjrt_calibration_release(f->all, c);
    return most;
}

Test(calibration, tells_how_large_attention_scores_become, .timeout = 300)
{
    fixture f;
    open_bert(&f);
    f.e.layer_count = 1; /* whose scores grow with the scale; those of the next ones do not */
    float most = scores_of(&f, NULL);
    cr_assert(most > 0 && most < 32, "%g", (double)most);
    f.e.attention_scale *= 100;
    cr_assert_float_eq(scores_of(&f, NULL), 100 * most, 0.01f * most);
    close_bert(&f);
}

/* All scores are about -100: the largest of them is far from 0. */
Test(calibration, tells_scores_that_are_far_below_0, .timeout = 300)
{
    float up[64], down[64];
    fixture f;
    open_bert(&f);
    f.e.layer_count = 1;
    cr_assert_leq(f.e.hidden, 64);
    float size = sqrtf(100 / (f.e.attention_scale * (float)f.e.head_dim));
    for (int i = 0; i < 64; i++) {
        up[i] = size;
        down[i] = -size;
    }
    const tensor query = {.dtype = DTYPE_F32, .rank = 1, .dims = {f.e.hidden}, .data = up};
    tensor key = query;
    key.data = down;
    f.e.layers[0].query.bias = &query;
    f.e.layers[0].key.bias = &key;
    float most = scores_of(&f, NULL);
    cr_assert(most > 50 && most < 200, "%g", (double)most);
    close_bert(&f);
}

/* With a short sample beside it, as with itself alone, whatever padding is: id 0. `constant` is the
 * linear layer of queries or keys; the scores become those of the other one. */
static void check_padding(fixture *f, encoder_linear *constant)
{
    const int64_t long_ids[] = {2, 5, 9, 4, 7, 3, 11, 6}, short_ids[] = {2, 8, 3};
    const device_samples apart[] = {
        {.samples = {{.ids = long_ids, .length = 8}}, .count = 1},
        {.samples = {{.ids = short_ids, .length = 3}}, .count = 1},
        {.samples = {{.ids = long_ids, .length = 8}, {.ids = short_ids, .length = 3}}, .count = 2}};
    const encoder_linear own = *constant;
    arena memory = {0};
    tensor words = *f->e.word_table, weight = *own.weight, bias = *own.bias;
    float *rows = words.data = arena_allocate(&memory, tensor_bytes(&words));
    memcpy(rows, f->e.word_table->data, tensor_bytes(&words));
    weight.data = arena_allocate_zeroed(&memory, tensor_bytes(&weight), 1);
    bias.data = arena_allocate(&memory, tensor_bytes(&bias));
    for (int64_t i = 0; i < tensor_count(&bias); i++)
        ((float *)bias.data)[i] = 1;
    f->e.word_table = &words;
    constant->weight = &weight;
    constant->bias = &bias;
    float alone = 0;
    for (int i = 0; i < 2; i++) {
        f->model.samples = &apart[i];
        alone = fmaxf(alone, scores_of(f, NULL));
    }
    f->model.samples = &apart[2];
    for (int i = 0; i < 50; i++) {
        for (int64_t k = 0; k < f->e.hidden; k++)
            rows[k] = sinf((float)((i + 1) * (k * k + 3)));
        cr_assert_float_eq(scores_of(f, NULL), alone, 1e-4f, "%d", i);
    }
    *constant = own;
    arena_dispose(&memory);
}

Test(calibration, scores_of_padding_do_not_count, .timeout = 300)
{
    for (int i = 0; i < 2; i++) {
        fixture f;
        open_bert(&f);
        f.e.layer_count = 1;
        check_padding(&f, i == 0 ? &f.e.layers[0].query : &f.e.layers[0].key);
        close_bert(&f);
    }
}

Test(calibration, scores_have_the_largest_relative_bias, .timeout = 300)
{
    fixture f;
    open_model(&f, PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/mpnet");
    float before = scores_of(&f, NULL), *table = f.e.relative_table->data, largest = 0;
    for (int64_t i = 0; i < tensor_count(f.e.relative_table); i++) {
        largest = fmaxf(largest, fabsf(table[i]));
        table[i] = 0;
    }
    cr_assert_gt(largest, 0);
    table[0] = -40; /* of a distance that samples need not have */
    float after = scores_of(&f, NULL);
    cr_assert(after >= 40 && after < 40 + 2 * before, "%g %g", (double)before, (double)after);
    close_bert(&f);
}

Test(calibration, scores_are_kept_in_the_compile_cache, .timeout = 300)
{
    char folder[TEMPORARY_FOLDER_BYTES];
    compile_cache *cache;
    fixture f;
    open_bert(&f);
    temporary_make(folder);
    cr_assert_eq(compile_cache_open(folder, &cache), STATUS_OK);
    float most = scores_of(&f, cache);
    f.e.attention_scale *= 100; /* of the same key: what is measured again would be larger */
    cr_assert_eq(scores_of(&f, cache), most);
    cr_assert_eq(compile_cache_count(cache).stored, 1);
    f.model.model_key++;
    cr_assert_gt(scores_of(&f, cache), most);
    compile_cache_close(cache);
    temporary_remove(folder);
    close_bert(&f);
}
