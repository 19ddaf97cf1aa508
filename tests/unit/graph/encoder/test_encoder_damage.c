#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/encoder/encoder.h"
#include "tests/unit/graph/encoder/build.h"
#include "tests/unit/graph/encoder/check.h"

/* Graphs of encoders with a changed node: nothing crashes, and what is still recognised computes
 * what the graph computes. */

static uint64_t state = 1;

static uint32_t next(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void damage(graph *g)
{
    graph_node *n = &g->nodes[next((uint32_t)g->node_count)];
    int input = (int)next((uint32_t)n->input_count);
    int32_t producer = (int32_t)(n - g->nodes);
    switch (next(5)) {
    case 0: /* reads another value, made before it */
        for (int tries = 0; tries < 20; tries++) {
            graph_value_index v = (graph_value_index)next((uint32_t)g->value_count);
            if (g->values[v].producer < producer) {
                n->inputs[input] = v;
                break;
            }
        }
        break;
    case 1:
        n->op = (graph_op)next(GRAPH_OP_COUNT);
        break;
    case 2:
        if (n->input_count == 2) {
            graph_value_index v = n->inputs[0];
            n->inputs[0] = n->inputs[1];
            n->inputs[1] = v;
        }
        break;
    case 3:
        n->attribute_count = 0;
        break;
    case 4: /* another output of the graph */
        g->outputs[0] = n->outputs[0];
        break;
    }
}

Test(damage, is_seen_or_does_no_harm)
{
    static const encoder_pattern patterns[] = {
        {0},
        {.norm = NORM_POW,
         .activation = ACTIVATION_DIV_FIRST,
         .qkv = QKV_SPLIT,
         .output = OUTPUT_MEAN},
        {.matmul = MATMUL_EINSUM_IN_PLACE, .dense = DENSE_GEMM, .output = OUTPUT_CLASSES},
        {.mask = MASK_INFINITE, .qkv = QKV_BY_HEAD, .output = OUTPUT_MAX},
    };
    int recognised = 0, rejected = 0;
    for (int i = 0; i < 600; i++) {
        graph *g = build_encoder(&patterns[i % 4]);
        encoder e;
        for (uint32_t k = next(2); k < 2; k++)
            damage(g);
        status s = encoder_recognise(g, NULL, cpu_evaluate_node, &e);
        recognised += s == STATUS_OK;
        rejected += s != STATUS_OK;
        if (s) {
            cr_assert_gt(strlen(status_message()), 0);
        } else {
            char name[40];
            snprintf(name, sizeof name, "damage %d", i);
            check_same(g, &e, name, 2e-5);
            encoder_dispose(&e);
        }
        graph_destroy(g);
    }
    /* Some damage changes nothing (swapped operands of an Add); most does. */
    cr_assert_gt(recognised, 0);
    cr_assert_gt(rejected, 300);
}
