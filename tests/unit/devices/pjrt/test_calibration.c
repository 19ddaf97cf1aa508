/* What int8 with static scales is calibrated to: the channels hold what the layers read, and the
 * imitations on the CPU tell good forms from bad ones. */
#include "devices/pjrt/calibration.h"

#include <criterion/criterion.h>
#include <math.h>
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

static void open_bert(fixture *f)
{
    *f = (fixture){.all = pjrt_calibrations_create()};
    cr_assert_eq(graph_import_hugging_face(PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/bert",
                                           NULL, NULL, &f->g),
                 STATUS_OK, "%s", status_message());
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
    /* Ranges that are much too small are seen. */
    float *factors = pjrt_calibration_channels(c, ENCODER_UP)->factors->data;
    for (int64_t k = 0; k < f.e.hidden; k++)
        factors[k] *= 20;
    device_accuracy clipped = measure(&f, c, NULL, 1u << ENCODER_UP);
    cr_assert_lt(clipped.mean, all.mean - 0.001);
    pjrt_calibration_release(f.all, c);
    close_bert(&f);
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
