#include "tests/unit/graph/encoder/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/xorshift.h"
#include "devices/cpu/evaluate.h"
#include "graph/encoder/match.h"
#include "graph/import.h"
#include "tests/unit/graph/encoder/reference.h"

static uint64_t state = 88172645463325252u;

static int64_t random_below(int64_t n)
{
    return (int64_t)((xorshift64_next(&state) >> 1) % (uint64_t)n);
}

graph *check_import(const char *path)
{
    struct stat about;
    graph *g = NULL;
    cr_assert_eq(stat(path, &about), 0, "%s is missing", path);
    status s = S_ISDIR(about.st_mode) ? graph_import_hugging_face(path, NULL, NULL, &g)
                                      : graph_import_onnx(path, NULL, &g);
    cr_assert_eq(s, STATUS_OK, "%s: %s", path, status_message());
    g->described = NULL; /* so that its encoder is recognised, as another exporter's */
    return g;
}

/* Ragged: `empty_row` has no real token; another row b has real tokens from `first` to `last`, and
 * here and there a hole. */
static void fill_inputs(const encoder *e, int64_t batch, int64_t length, int64_t empty_row,
                        tensor *inputs)
{
    for (int64_t b = 0; b < batch; b++) {
        int64_t first = b % 3 == 2 && length > 2 ? random_below(length / 2) : 0;
        int64_t last = b == 0 ? length : first + 1 + random_below(length - first);
        for (int64_t i = 0; i < length; i++) {
            bool is_hole =
                b == empty_row || i < first || i >= last || (i > first && random_below(9) == 0);
            int64_t at = b * length + i, id = random_below(e->word_table->dims[0]);
            if (e->mask_input >= 0)
                tensor_set_number(&inputs[e->mask_input], at, is_hole ? 0 : 1);
            if (e->positions == ENCODER_POSITIONS_FROM_IDS && is_hole)
                id = e->pad_id;
            tensor_set_number(&inputs[e->ids_input], at, (double)id);
            if (e->token_type_input >= 0)
                tensor_set_number(&inputs[e->token_type_input], at,
                                  (double)random_below(e->token_type_table->dims[0]));
        }
    }
}

static void compare(const tensor *got, const tensor *want, double tolerance, const char *name)
{
    char a[TENSOR_SHAPE_TEXT_BYTES], b[TENSOR_SHAPE_TEXT_BYTES];
    double largest = 0, error = 0;
    cr_assert(tensor_same_shape(got, want), "%s: %s, not %s", name,
              tensor_shape_text(a, got->rank, got->dims),
              tensor_shape_text(b, want->rank, want->dims));
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double x = tensor_get_number(got, i), y = tensor_get_number(want, i);
        largest = fmax(largest, fabs(y));
        error = fmax(error, isfinite(x) ? fabs(x - y) : INFINITY);
    }
    cr_assert_gt(largest, 0, "%s: all zero", name);
    cr_assert_leq(error, tolerance * largest, "%s %s: an error of %g of %g", name,
                  tensor_shape_text(a, got->rank, got->dims), error, largest);
}

static void check_at(const graph *g, const encoder *e, int64_t batch, int64_t length,
                     int64_t empty_row, double tolerance, const char *name)
{
    arena memory = {0};
    tensor inputs[8];
    graph *computed;
    cr_assert_leq(g->input_count, 8);
    cr_assert_eq(graph_bind(g, batch, length, inputs), STATUS_OK, "%s", status_message());
    for (int i = 0; i < g->input_count; i++) {
        tensor shape = inputs[i];
        cr_assert_eq(tensor_allocate(&inputs[i], &memory, shape.dtype, shape.rank, shape.dims),
                     STATUS_OK);
    }
    fill_inputs(e, inputs[e->ids_input].dims[0], inputs[e->ids_input].dims[1], empty_row, inputs);
    /* Specialised for the shapes, then computed node by node. */
    tensor shapes[8];
    for (int i = 0; i < g->input_count; i++) {
        shapes[i] = inputs[i];
        shapes[i].data = NULL;
    }
    match m;
    cr_assert_eq(
        graph_specialise(g, &(graph_binding){.inputs = shapes}, cpu_evaluate_node, &computed),
        STATUS_OK, "%s: %s", name, status_message());
    cr_assert_eq(match_open(&m, computed, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(e->output_count, g->output_count);
    for (int i = 0; i < g->output_count; i++) {
        tensor want, got;
        cr_assert_eq(match_experiment(&m, &memory, computed->input_count, computed->inputs, inputs,
                                      computed->outputs[i], &got),
                     STATUS_OK, "%s: %s", name, status_message());
        reference_run(e, inputs, i, &memory, &want);
        compare(&want, &got, tolerance, name);
    }
    match_close(&m);
    graph_destroy(computed);
    arena_dispose(&memory);
}

static bool is_possible(const graph *g, const encoder *e, int64_t length)
{
    if (e->positions != ENCODER_POSITIONS_NONE &&
        length > e->position_table->dims[0] - e->position_offset)
        return false;
    return g->sequence_max == 0 || length <= g->sequence_max;
}

void check_same(const graph *g, const encoder *e, const char *name, double tolerance)
{
    static const int64_t sizes[][2] = {{1, 1}, {1, 6}, {4, 9}, {3, 19}, {1, 160}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (is_possible(g, e, sizes[i][1]))
            check_at(g, e, sizes[i][0], sizes[i][1], -1, tolerance, name);
}

void check_recognised(graph *g, const char *name, double tolerance, encoder *out)
{
    encoder e;
    graph_fold_constants(g, NULL, cpu_evaluate_node);
    cr_assert_eq(encoder_recognise(g, NULL, cpu_evaluate_node, &e), STATUS_OK, "%s: %s", name,
                 status_message());
    check_same(g, &e, name, tolerance);
    if (out != NULL)
        *out = e;
    else
        encoder_dispose(&e);
}

void check_empty_row(graph *g, const char *name, double tolerance)
{
    encoder e;
    graph_fold_constants(g, NULL, cpu_evaluate_node);
    cr_assert_eq(encoder_recognise(g, NULL, cpu_evaluate_node, &e), STATUS_OK, "%s: %s", name,
                 status_message());
    cr_assert_geq(e.mask_input, 0);
    check_at(g, &e, 3, 6, 1, tolerance, name);
    encoder_dispose(&e);
}

void check_rejected(graph *g, const char *words)
{
    encoder e;
    graph_fold_constants(g, NULL, cpu_evaluate_node);
    cr_assert_eq(encoder_recognise(g, NULL, cpu_evaluate_node, &e), STATUS_UNSUPPORTED,
                 "recognised, where \"%s\" was expected", words);
    cr_assert_not_null(strstr(status_message(), words), "\"%s\" lacks \"%s\"", status_message(),
                       words);
}
