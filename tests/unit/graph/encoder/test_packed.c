#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/xorshift.h"
#include "devices/cpu/evaluate.h"
#include "graph/encoder/match.h"
#include "graph/encoder/packed.h"
#include "graph/import.h"
#include "tests/unit/graph/encoder/build.h"
#include "tests/unit/graph/encoder/check.h"
#include "tests/unit/graph/encoder/reference.h"

/* In a packed graph each sequence gets the result that it gets alone: the graph, computed node by
 * node, against the reference. */

#define TOLERANCE 2e-5
#define SEQUENCES_MAX 16

typedef struct placed {
    int64_t row, offset, length;
    tensor inputs[8]; /* [1, length] */
} placed;

static uint64_t state = 0x2545F4914F6CDD1Du;

static int64_t random_below(int64_t n)
{
    return (int64_t)((xorshift64_next(&state) >> 1) % (uint64_t)n);
}

/* Some masked positions; all of them where `is_empty`. */
static void fill(const graph *g, const encoder *e, placed *s, bool is_empty, arena *memory)
{
    for (int i = 0; i < g->input_count; i++)
        cr_assert_eq(tensor_allocate(&s->inputs[i], memory, g->values[g->inputs[i]].dtype, 2,
                                     (int64_t[]){1, s->length}),
                     STATUS_OK);
    for (int64_t k = 0; k < s->length; k++) {
        bool is_hole = is_empty || (k > 0 && random_below(6) == 0);
        int64_t id = random_below(e->word_table->dims[0]);
        if (e->positions == ENCODER_POSITIONS_FROM_IDS && is_hole)
            id = e->pad_id;
        tensor_set_number(&s->inputs[e->ids_input], k, (double)id);
        if (e->mask_input >= 0)
            tensor_set_number(&s->inputs[e->mask_input], k, is_hole ? 0 : 1);
        if (e->token_type_input >= 0)
            tensor_set_number(&s->inputs[e->token_type_input], k,
                              (double)random_below(e->token_type_table->dims[0]));
    }
}

/* Rows filled from the front with random lengths, 1 and the longest among them. */
static int place(encoder_packing size, int64_t longest, placed *sequences)
{
    int count = 0;
    for (int64_t row = 0; row < size.rows; row++)
        for (int64_t used = 0; used < size.length && count < (int)size.sequences;) {
            int64_t room = size.length - used, most = room < longest ? room : longest;
            int64_t length = row == 0 && used == 0   ? most
                             : row == 1 && used == 0 ? 1
                                                     : 1 + random_below(most);
            if (row > 0 && random_below(4) == 0)
                break; /* padding at the end of a row */
            sequences[count++] = (placed){.row = row, .offset = used, .length = length};
            used += length;
        }
    return count;
}

static void make_packed_inputs(const graph *packed, encoder_packing size, int model_inputs,
                               const placed *sequences, int count, arena *memory, tensor *inputs)
{
    for (int i = 0; i < packed->input_count; i++) {
        const graph_value *v = &packed->values[packed->inputs[i]];
        int64_t dims[2] = {v->shape.dims[0].constant, v->shape.dims[1].constant};
        cr_assert_eq(tensor_allocate(&inputs[i], memory, v->dtype, v->shape.rank, dims), STATUS_OK);
        memset(inputs[i].data, 0, tensor_bytes(&inputs[i]));
    }
    for (int s = 0; s < count; s++) {
        const placed *q = &sequences[s];
        int64_t first = q->row * size.length + q->offset;
        for (int64_t k = 0; k < q->length; k++) {
            for (int i = 0; i < model_inputs; i++)
                tensor_set_number(&inputs[i], first + k, tensor_get_number(&q->inputs[i], k));
            tensor_set_number(&inputs[model_inputs], first + k, (double)k);
            tensor_set_number(&inputs[model_inputs + 1], first + k, s + 1);
        }
        tensor_set_number(&inputs[model_inputs + 2], s, (double)first);
    }
}

static void compare(const encoder *e, encoder_packing size, int output, const tensor *got,
                    const placed *sequences, int count, const char *name)
{
    bool is_hidden = e->outputs[output].pooling == ENCODER_POOLING_NONE;
    int64_t width = e->outputs[output].is_column ? 1 : got->dims[got->rank - 1];
    cr_assert_eq(got->dims[0], is_hidden ? size.rows : size.sequences, "%s", name);
    for (int s = 0; s < count; s++) {
        arena memory = {0};
        tensor want;
        reference_run(e, sequences[s].inputs, output, &memory, &want);
        int64_t first = is_hidden ? sequences[s].row * size.length + sequences[s].offset : s;
        double largest = 0, error = 0;
        for (int64_t i = 0; i < tensor_count(&want); i++) {
            double x = tensor_get_number(got, first * width + i), y = tensor_get_number(&want, i);
            largest = fmax(largest, fabs(y));
            error = fmax(error, isfinite(x) ? fabs(x - y) : INFINITY);
        }
        cr_assert_eq(tensor_count(&want), (is_hidden ? sequences[s].length : 1) * width);
        cr_assert_leq(error, TOLERANCE * largest,
                      "%s: output %d of sequence %d (%lld tokens): an error of %g of %g", name,
                      output, s, (long long)sequences[s].length, error, largest);
        arena_dispose(&memory);
    }
}

static void run_and_compare(const graph *g, const encoder *e, const graph *made, tensor *inputs,
                            encoder_packing size, const placed *sequences, int count,
                            const char *name)
{
    arena memory = {0};
    match m;
    cr_assert_eq(match_open(&m, made, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(made->output_count, g->output_count);
    for (int i = 0; i < made->output_count; i++) {
        tensor got;
        cr_assert_eq(match_experiment(&m, &memory, made->input_count, made->inputs, inputs,
                                      made->outputs[i], &got),
                     STATUS_OK, "%s: %s", name, status_message());
        cr_assert_str_eq(made->values[made->outputs[i]].name, g->values[g->outputs[i]].name);
        compare(e, size, i, &got, sequences, count, name);
    }
    match_close(&m);
    arena_dispose(&memory);
}

#define FORMS 12
/* Every form, among them blocks of two heads. */
static void forms_of(const encoder *e, encoder_form out[FORMS])
{
    const encoder_form forms[FORMS] = {
        {0},
        {.are_heads_transposed = true, .is_qkv_joined = true},
        {.are_values_first = true, .are_queries_scaled = true, .is_qkv_joined = true},
        {.is_softmax_late = true},
        {.is_softmax_late = true, .are_values_first = true, .is_qkv_joined = true},
        {.block_width = 2 * e->head_dim, .is_qkv_joined = true},
        {.block_width = 2 * e->head_dim, .are_values_first = true, .are_queries_scaled = true},
        {.block_width = 2 * e->head_dim, .are_scores_clipped = true, .is_mean_product = true},
        {.is_softmax_late = true, .are_scores_clipped = true, .is_qkv_joined = true},
        {.block_width = 2 * e->head_dim,
         .are_queries_scaled = true,
         .are_scores_clipped = true,
         .are_embedding_sums_products = true},
        {.is_softmax_late = true, .are_rows_apart = true, .is_mean_product = true},
        {.block_width = 2 * e->head_dim, .are_rows_apart = true, .is_qkv_joined = true},
    };
    memcpy(out, forms, sizeof forms);
}

static void check_packed_at(const graph *g, const encoder *e, encoder_packing size, bool has_empty,
                            const char *name)
{
    arena memory = {0};
    graph *packed = NULL;
    placed sequences[SEQUENCES_MAX];
    tensor inputs[8 + ENCODER_PACKED_INPUTS];
    int64_t longest = size.length;
    if (e->positions != ENCODER_POSITIONS_NONE &&
        longest > e->position_table->dims[0] - e->position_offset)
        longest = e->position_table->dims[0] - e->position_offset;
    int count = place(size, longest, sequences);
    for (int s = 0; s < count; s++)
        fill(g, e, &sequences[s], has_empty && s % 2 == 1, &memory);
    encoder_form forms[FORMS];
    forms_of(e, forms);
    for (int i = 0; i < FORMS; i++) {
        cr_assert_eq(encoder_pack(e, g, NULL, cpu_evaluate_node, size, &forms[i], &packed),
                     STATUS_OK, "%s: %s", name, status_message());
        make_packed_inputs(packed, size, g->input_count, sequences, count, &memory, inputs);
        run_and_compare(g, e, packed, inputs, size, sequences, count, name);
        graph_destroy(packed);
    }
    arena_dispose(&memory);
}

static int64_t most_tokens(const encoder *e, int64_t length)
{
    int64_t most = e->positions == ENCODER_POSITIONS_NONE
                       ? length
                       : e->position_table->dims[0] - e->position_offset;
    return most < length ? most : length;
}

/* One sequence in each row; shorter ones where a mask says so. */
static void check_padded_at(const graph *g, const encoder *e, int64_t rows, bool is_full,
                            bool has_empty, const char *name)
{
    arena memory = {0};
    graph *made = NULL;
    placed sequences[SEQUENCES_MAX];
    tensor inputs[8];
    encoder_form forms[FORMS];
    int64_t length = most_tokens(e, 9);
    encoder_packing size = {rows, length, rows};
    for (int s = 0; s < rows; s++) {
        int64_t tokens = is_full || e->mask_input < 0 ? length : 1 + random_below(length);
        sequences[s] = (placed){.row = s, .length = tokens};
        fill(g, e, &sequences[s], has_empty && s % 2 == 1, &memory);
    }
    forms_of(e, forms);
    for (int i = 0; i < FORMS; i++) {
        cr_assert_eq(encoder_pad(e, g, NULL, cpu_evaluate_node, rows, length, &forms[i], &made),
                     STATUS_OK, "%s: %s", name, status_message());
        cr_assert_eq(made->input_count, g->input_count);
        for (int k = 0; k < made->input_count; k++) {
            const graph_value *v = &made->values[made->inputs[k]];
            double padding = k == e->ids_input && e->positions == ENCODER_POSITIONS_FROM_IDS
                                 ? (double)e->pad_id
                                 : 0;
            cr_assert_eq(
                tensor_allocate(&inputs[k], &memory, v->dtype, 2, (int64_t[]){rows, length}),
                STATUS_OK);
            for (int64_t at = 0; at < rows * length; at++) {
                const placed *q = &sequences[at / length];
                int64_t token = at % length;
                tensor_set_number(&inputs[k], at,
                                  token < q->length ? tensor_get_number(&q->inputs[k], token)
                                                    : padding);
            }
        }
        run_and_compare(g, e, made, inputs, size, sequences, (int)rows, name);
        graph_destroy(made);
    }
    arena_dispose(&memory);
}

static void check_packed(graph *g, const char *name)
{
    encoder e;
    cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(encoder_recognise(g, NULL, cpu_evaluate_node, &e), STATUS_OK, "%s: %s", name,
                 status_message());
    for (int round = 0; round < 3; round++) {
        check_packed_at(g, &e, (encoder_packing){3, 14, SEQUENCES_MAX}, false, name);
        check_packed_at(g, &e, (encoder_packing){1, 20, 5}, false, name);
    }
    if (e.mask_input >= 0)
        check_packed_at(g, &e, (encoder_packing){2, 12, SEQUENCES_MAX}, true, name);
    check_padded_at(g, &e, 3, false, false, name);
    check_padded_at(g, &e, 2, true, e.mask_input >= 0, name);
    encoder_dispose(&e);
    graph_destroy(g);
}

static void check_pattern(encoder_pattern pattern, const char *name)
{
    check_packed(build_encoder(&pattern), name);
}

Test(packed, outputs)
{
    check_pattern((encoder_pattern){.output = OUTPUT_HIDDEN}, "hidden");
    check_pattern((encoder_pattern){.output = OUTPUT_MEAN}, "mean");
    check_pattern((encoder_pattern){.output = OUTPUT_MAX}, "max");
    check_pattern((encoder_pattern){.output = OUTPUT_FIRST}, "first");
    check_pattern((encoder_pattern){.output = OUTPUT_CLASSES}, "classes");
    check_pattern((encoder_pattern){.output = OUTPUT_SPLIT_COLUMN}, "a column of classes");
    check_pattern((encoder_pattern){.projects = true}, "projected embeddings");
    check_pattern((encoder_pattern){.output = OUTPUT_MEAN_OF_ALL, .mask = MASK_NONE},
                  "mean of all");
}

Test(packed, patterns)
{
    check_pattern((encoder_pattern){.mask = MASK_NONE}, "no mask");
    check_pattern((encoder_pattern){.dense = DENSE_GEMM_TRANSPOSED, .qkv = QKV_BY_HEAD},
                  "transposed");
    check_pattern((encoder_pattern){.activation = ACTIVATION_TANH_POW, .scale = SCALE_BOTH},
                  "tanh");
}

/* As recognised and as the importer describes it: counted positions, positions from ids, none with
 * a relative bias, poolings and heads. */
Test(packed, hugging_face)
{
    static const char *const names[] = {"bert",        "bert_classes", "roberta_classes",
                                        "xlm_roberta", "mpnet",        "distilbert_classes",
                                        "sentence"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s/tests/data/hugging_face/%s", PENSTOCK_SOURCE_DIR, names[i]);
        check_packed(check_import(path), names[i]);
        graph *described = NULL;
        cr_assert_eq(graph_import_hugging_face(path, NULL, NULL, &described), STATUS_OK);
        cr_assert_not_null(described->described);
        check_packed(described, names[i]);
    }
}

/* The results of a padded graph with scores as large as floats are; all forms that clip. */
static void check_finite(const graph *g, const encoder *e, const encoder_form *form)
{
    arena memory = {0};
    graph *made = NULL;
    match m;
    tensor inputs[8], got;
    placed row = {.length = 9};
    fill(g, e, &row, false, &memory);
    cr_assert_eq(encoder_pad(e, g, NULL, cpu_evaluate_node, 1, 9, form, &made), STATUS_OK);
    for (int i = 0; i < made->input_count; i++)
        inputs[i] = row.inputs[i];
    cr_assert_eq(match_open(&m, made, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(match_experiment(&m, &memory, made->input_count, made->inputs, inputs,
                                  made->outputs[0], &got),
                 STATUS_OK, "%s", status_message());
    for (int64_t i = 0; i < tensor_count(&got); i++)
        cr_assert(isfinite(tensor_get_number(&got, i)));
    match_close(&m);
    graph_destroy(made);
    arena_dispose(&memory);
}

Test(packed, clipped_scores_do_not_overflow)
{
    encoder e;
    graph *g = build_encoder(&(encoder_pattern){0});
    cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(encoder_recognise(g, NULL, cpu_evaluate_node, &e), STATUS_OK);
    e.attention_scale = 1e6f;
    encoder_form forms[FORMS];
    forms_of(&e, forms);
    int clipped = 0;
    for (int i = 0; i < FORMS; i++)
        if (forms[i].are_scores_clipped) {
            check_finite(g, &e, &forms[i]);
            clipped++;
        }
    cr_assert_geq(clipped, 3);
    /* Without a late softmax there is nothing to clip. */
    cr_assert_not(encoder_clips_scores(&e, &(encoder_form){.are_scores_clipped = true}));
    cr_assert_not(encoder_clips_scores(
        &e, &(encoder_form){.block_width = e.head_dim, .are_scores_clipped = true}));
    encoder_dispose(&e);
    graph_destroy(g);
}

Test(packed, as_many_sequences_as_are_worth_it)
{
    encoder_packing p = encoder_packing_of(16, 128);
    cr_assert_eq(p.rows, 16);
    cr_assert_eq(p.length, 128);
    cr_assert_eq(p.sequences, 256);
    cr_assert_eq(encoder_packing_of(4, 6).sequences, 4, "at least one per row");
    cr_assert_eq(encoder_packing_of(512, 512).sequences, 1024);
}

Test(packed, inputs_that_are_not_one_number_per_token)
{
    encoder_pattern pattern = {0};
    graph *g = build_encoder(&pattern);
    encoder e;
    cr_assert_eq(graph_infer_symbolic(g, NULL, cpu_evaluate_node), STATUS_OK);
    cr_assert_eq(encoder_recognise(g, NULL, cpu_evaluate_node, &e), STATUS_OK);
    cr_assert_eq(encoder_can_pack(&e, g), STATUS_OK, "%s", status_message());
    const graph_dim batch = {.batch = 1};
    graph_add_input(g, "threshold", DTYPE_I64, 1, &batch); /* nothing reads it */
    cr_assert_eq(encoder_can_pack(&e, g), STATUS_UNSUPPORTED);
    cr_assert_not_null(strstr(status_message(), "threshold"), "%s", status_message());
    encoder_dispose(&e);
    graph_destroy(g);
}
