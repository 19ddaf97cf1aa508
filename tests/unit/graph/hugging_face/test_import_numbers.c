#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "devices/cpu/evaluate.h"
#include "graph/import.h"
#include "graph/safetensors.h"
#include "graph/specialise/specialise.h"

/* Every family of Hugging Face encoders against the results of PyTorch (tests/data/
 * make_hugging_face.py). With all inputs bound, specialising a graph computes it: its outputs
 * become constants. */

static const tensor *find(const safetensors *file, const char *kind, const char *name)
{
    char full[200];
    snprintf(full, sizeof full, "%s.%s", kind, name);
    const safetensors_entry *e = safetensors_find(file, full);
    cr_assert_not_null(e, "expected.safetensors lacks %s", full);
    return &e->value;
}

static void compare(const tensor *got, const tensor *want, const tensor *mask, const char *name)
{
    double largest = 0, error = 0;
    int64_t count = tensor_count(want);
    cr_assert(tensor_same_shape(got, want), "%s has a different shape", name);
    /* Padding may hold anything. */
    int64_t per_token = got->rank == 3 ? got->dims[2] : 0;
    for (int64_t i = 0; i < count; i++) {
        if (per_token != 0 && tensor_get_integer(mask, i / per_token) == 0)
            continue;
        double x = tensor_get_number(got, i), y = tensor_get_number(want, i);
        largest = fmax(largest, fabs(y));
        error = fmax(error, isfinite(x) ? fabs(x - y) : INFINITY);
    }
    cr_assert_gt(largest, 0);
    cr_assert_leq(error, 1e-5 * largest, "%s: an error of %g of %g", name, error, largest);
}

static void check_folder(const char *name)
{
    char folder[500], path[600];
    void *data;
    size_t bytes;
    safetensors expected;
    graph *g, *computed;
    snprintf(folder, sizeof folder, "%s/tests/data/hugging_face/%s", PENSTOCK_SOURCE_DIR, name);
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    cr_assert_eq(file_reader_read_whole(path, 1 << 20, &data, &bytes), STATUS_OK);
    cr_assert_eq(safetensors_open(&expected, data, bytes), STATUS_OK);
    cr_assert_eq(graph_import_hugging_face(folder, NULL, NULL, &g), STATUS_OK, "%s",
                 status_message());

    arena memory = {0};
    tensor inputs[4];
    for (int i = 0; i < g->input_count; i++) {
        const tensor *from = find(&expected, "in", g->values[g->inputs[i]].name);
        cr_assert_eq(tensor_allocate(&inputs[i], &memory, from->dtype, from->rank, from->dims),
                     STATUS_OK);
        memcpy(inputs[i].data, from->data, tensor_bytes(from));
    }
    graph_binding binding = {.inputs = inputs};
    cr_assert_eq(graph_specialise(g, &binding, cpu_evaluate_node, &computed), STATUS_OK, "%s",
                 status_message());
    for (int i = 0; i < computed->output_count; i++) {
        const graph_value *v = &computed->values[computed->outputs[i]];
        cr_assert_not_null(v->constant, "%s was not computed", v->name);
        /* The file's tensors are aligned for nothing. */
        const tensor *from = find(&expected, "out", v->name);
        tensor want;
        cr_assert_eq(tensor_allocate(&want, &memory, from->dtype, from->rank, from->dims),
                     STATUS_OK);
        memcpy(want.data, from->data, tensor_bytes(from));
        compare(v->constant, &want, &inputs[1], v->name);
    }
    graph_destroy(computed);
    graph_destroy(g);
    safetensors_close(&expected);
    arena_dispose(&memory);
    free(data);
}

Test(numbers, bert)
{
    check_folder("bert");
    check_folder("bert_classes");
    check_folder("bert_answers");
}

Test(numbers, roberta_and_xlm_roberta)
{
    check_folder("roberta_classes");
    check_folder("xlm_roberta");
}

Test(numbers, distilbert)
{
    check_folder("distilbert_classes");
}

Test(numbers, mpnet_with_its_relative_positions)
{
    check_folder("mpnet");
}

Test(numbers, electra)
{
    check_folder("electra_classes");
}

Test(numbers, poolings_and_the_modules_behind_them)
{
    check_folder("chain_all_poolings");
    check_folder("chain_prompt");
    check_folder("chain_last_dense");
    check_folder("chain_dense_norm");
    check_folder("chain_norm_first");
}

Test(numbers, modern_bert)
{
    check_folder("modernbert");
    check_folder("modernbert_bias");
    check_folder("modernbert_classes");
}

Test(numbers, decoders)
{
    check_folder("qwen3");
    check_folder("qwen3_classes");
    check_folder("qwen2_window");
    check_folder("mistral");
    check_folder("llama");
}

Test(numbers, nomic_bert)
{
    check_folder("nomic_bert");
    check_folder("nomic_bert_own");
}

Test(numbers, gte)
{
    check_folder("gte");
    check_folder("gte_new");
}

Test(numbers, deberta)
{
    check_folder("deberta_v3");
    check_folder("deberta_v2");
    check_folder("deberta_classes");
}

Test(numbers, albert)
{
    check_folder("albert");
    check_folder("albert_groups");
    check_folder("albert_classes");
}

Test(numbers, shards_of_bfloat16)
{
    check_folder("qwen3_sharded");
    check_folder("modernbert_bf16_sharded");
}

Test(numbers, jina_bert)
{
    check_folder("jina_bert");
    check_folder("jina_bert_relu");
}

Test(numbers, sentence_encoder_of_half_precision_weights)
{
    check_folder("sentence");
}
