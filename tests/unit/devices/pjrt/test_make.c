/* Which program a bucket gets where attention scores could be clipped: with a compiler that likes
 * clipped ones best. */
#include "devices/pjrt/make.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/encoder/packed.h"
#include "graph/import.h"
#include "tests/support/temporary.h"

typedef struct fixture {
    graph *g;
    encoder e;
    device_model model;
    char folder[TEMPORARY_FOLDER_BYTES];
    pjrt_maker maker;
    int compiled;
    arena memory;
    tensor queries;
} fixture;

/* Only programs that clip scores have limits. */
static status compile(void *context, const device_model *model, device_bucket bucket,
                      const stablehlo_program *program, pjrt_compiled *out, pjrt_binary *binary)
{
    (void)model;
    (void)bucket;
    bool has_limits =
        memmem(program->text, program->bytes, "stablehlo.minimum", strlen("stablehlo.minimum"));
    ((fixture *)context)->compiled++;
    *out = (pjrt_compiled){.hlo = {.estimated_cycles = has_limits ? 400 : 500}};
    *binary = (pjrt_binary){.data = strdup("program"), .bytes = 7, .fd = -1};
    return STATUS_OK;
}

static void open_fixture(fixture *f)
{
    *f = (fixture){0};
    cr_assert_eq(graph_import_hugging_face(PENSTOCK_SOURCE_DIR "/tests/data/hugging_face/bert",
                                           NULL, NULL, &f->g),
                 STATUS_OK, "%s", status_message());
    cr_assert_eq(graph_infer_symbolic(f->g, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(encoder_recognise(f->g, NULL, cpu_evaluate_node, &f->e), STATUS_OK);
    f->model = (device_model){.graph = f->g,
                              .name = "bert",
                              .model_key = 7,
                              .precision = DEVICE_BF16,
                              .encoder = &f->e,
                              .mask_input = f->e.mask_input};
    temporary_make(f->folder);
    f->maker = (pjrt_maker){.device_kind = "TPU v5 lite",
                            .compiler = "a test",
                            .calibrations = pjrt_calibrations_create(),
                            .context = f,
                            .compile = compile};
    cr_assert_eq(compile_cache_open(f->folder, &f->maker.cache), STATUS_OK);
}

static void close_fixture(fixture *f)
{
    compile_cache_close(f->maker.cache);
    pjrt_calibrations_destroy(f->maker.calibrations);
    temporary_remove(f->folder);
    arena_dispose(&f->memory);
    encoder_dispose(&f->e);
    graph_destroy(f->g);
}

/* The choice for one row of 16 tokens, which clips only where it was tuned. */
static pjrt_choice make(fixture *f, bool is_tuning, char candidate[64])
{
    pjrt_made made;
    f->maker.is_tuning = is_tuning;
    cr_assert_eq(pjrt_make(&f->maker, &f->model, (device_bucket){1, 16}, &made), STATUS_OK, "%s",
                 status_message());
    pjrt_choice c = made.choice;
    strcpy(candidate, made.candidate.name);
    pjrt_made_dispose(&made);
    return c;
}

static void enlarge_scores(fixture *f)
{
    f->queries = *f->e.layers[0].query.weight; /* whose own data is a file's */
    float *made = arena_allocate(&f->memory, tensor_bytes(&f->queries));
    cr_assert_not_null(made);
    for (int64_t i = 0; i < tensor_count(&f->queries); i++)
        made[i] = 1e4f * ((const float *)f->queries.data)[i];
    f->queries.data = made;
    f->e.layers[0].query.weight = &f->queries;
}

Test(make, clips_scores_that_are_small, .timeout = 300)
{
    fixture f;
    char name[64];
    open_fixture(&f);
    pjrt_choice c = make(&f, true, name);
    cr_assert_str_eq(name, "bf16-clipped");
    cr_assert_str_eq(c.scores, "clipped");
    cr_assert(strstr(c.scores_reason, "the largest of 8 generated sequences is ") != NULL &&
                  strstr(c.scores_reason, ", at most 48") != NULL,
              "%s", c.scores_reason);
    /* A server takes what was tuned. */
    int before = f.compiled;
    c = make(&f, false, name);
    cr_assert_str_eq(name, "bf16-clipped");
    cr_assert_str_eq(c.scores, "clipped");
    cr_assert_eq(f.compiled, before);
    close_fixture(&f);
}

Test(make, does_not_clip_scores_that_are_large, .timeout = 300)
{
    fixture f;
    char name[64];
    open_fixture(&f);
    enlarge_scores(&f);
    pjrt_choice c = make(&f, true, name);
    cr_assert_gt(c.count, 12);
    for (int i = 0; i < c.count; i++)
        cr_assert(strstr(c.trials[i].name, "clipped") == NULL, "%s", c.trials[i].name);
    cr_assert_str_eq(c.scores, "maximum");
    cr_assert(strstr(c.scores_reason, ", above 48") != NULL, "%s", c.scores_reason);
    close_fixture(&f);
}

/* What was tuned on other samples clips; on these it must not. */
Test(make, does_not_clip_what_an_earlier_process_clipped_when_scores_are_large, .timeout = 300)
{
    const int64_t ids[] = {2, 5, 9, 4};
    const device_samples samples = {.samples = {{.ids = ids, .length = 4}}, .count = 1, .hash = 5};
    fixture f;
    char name[64];
    open_fixture(&f);
    (void)make(&f, true, name);
    cr_assert_str_eq(name, "bf16-clipped");
    enlarge_scores(&f);
    f.model.samples = &samples;
    pjrt_choice c = make(&f, false, name);
    cr_assert_str_eq(name, "bf16");
    cr_assert_str_eq(c.scores, "maximum");
    close_fixture(&f);
}

/* With a budget that is just enough for four tokens: the sequences that are measured have more. */
Test(make, does_not_clip_where_nothing_can_be_measured, .timeout = 300)
{
    pjrt_made made;
    status s = STATUS_TOO_LARGE;
    fixture f;
    open_fixture(&f);
    f.maker.is_tuning = true;
    graph_budget budget = graph_budget_default;
    f.model.budget = &budget;
    for (budget.operations_max = 16; s == STATUS_TOO_LARGE; budget.operations_max += 16)
        s = pjrt_make(&f.maker, &f.model, (device_bucket){1, 4}, &made);
    cr_assert_eq(s, STATUS_OK, "%s", status_message());
    cr_assert_str_eq(made.choice.scores, "maximum");
    cr_assert_str_eq(made.choice.scores_reason, "they could not be measured");
    for (int i = 0; i < made.choice.count; i++)
        cr_assert(strstr(made.choice.trials[i].name, "clipped") == NULL);
    pjrt_made_dispose(&made);
    close_fixture(&f);
}
