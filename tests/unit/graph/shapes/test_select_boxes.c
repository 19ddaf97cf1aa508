/* NonMaxSuppression beside a plain one. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "graph/shapes/infer.h"

#define BOXES 200
#define CLASSES 3

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 24);
}

static float area(const float *b)
{
    return (b[2] - b[0]) * (b[3] - b[1]);
}

static bool overlap(const float *a, const float *b, float limit)
{
    float top = a[0] > b[0] ? a[0] : b[0], left = a[1] > b[1] ? a[1] : b[1];
    float bottom = a[2] < b[2] ? a[2] : b[2], right = a[3] < b[3] ? a[3] : b[3];
    float both = (bottom - top) * (right - left);
    return bottom > top && right > left && area(a) > 0 && area(b) > 0 &&
           both / (area(a) + area(b) - both) > limit;
}

/* As the operator's text says, box by box. Returns how many. */
static int64_t select_plainly(const float *boxes, const float *scores, float limit, float least,
                              int64_t most, int64_t *kept)
{
    bool is_done[BOXES] = {false};
    int64_t count = 0;
    while (count < most) {
        int64_t best = -1;
        for (int64_t i = 0; i < BOXES; i++)
            if (!is_done[i] && scores[i] > least && (best < 0 || scores[i] > scores[best]))
                best = i;
        if (best < 0)
            break;
        is_done[best] = true;
        bool is_free = true;
        for (int64_t k = 0; k < count; k++)
            is_free &= !overlap(boxes + 4 * best, boxes + 4 * kept[k], limit);
        if (is_free)
            kept[count++] = best;
    }
    return count;
}

/* Corners in any order or a centre; equal scores, boxes without area, negative scores. */
static void fill(uint32_t *state, bool is_centered, float *given, float *corners, float *scores)
{
    for (int i = 0; i < BOXES; i++) {
        float *g = given + 4 * i, *c = corners + 4 * i;
        /* Quarters: a centre and its corners are exact. */
        float y = (float)(int)(number(state) * 64), x = (float)(int)(number(state) * 64);
        float height = (float)(int)(number(state) * 8), width = (float)(int)(number(state) * 8);
        const float box[] = {y - height / 2, x - width / 2, y + height / 2, x + width / 2};
        for (int k = 0; k < 4; k++)
            c[k] = box[k];
        const float centre[] = {x, y, width, height};
        const float turned[] = {box[2], box[1], box[0], box[3]};
        for (int k = 0; k < 4; k++)
            g[k] = is_centered ? centre[k] : i % 3 == 0 ? turned[k] : box[k];
    }
    for (int i = 0; i < CLASSES * BOXES; i++)
        scores[i] = (float)(int)(number(state) * 64) / 32 - 1;
}

Test(select_boxes, the_same_as_box_by_box)
{
    static float given[BOXES * 4], corners[BOXES * 4], scores[CLASSES * BOXES];
    uint32_t state = 1;
    for (int round = 0; round < 24; round++) {
        bool is_centered = round % 2 == 1;
        float limit = .1f * (float)(round % 5), least = round % 3 ? -2 : .5f;
        int64_t most = round % 4 == 0 ? 7 : BOXES;
        fill(&state, is_centered, given, corners, scores);
        tensor in[] = {{.dtype = DTYPE_F32, .rank = 3, .dims = {1, BOXES, 4}, .data = given},
                       {.dtype = DTYPE_F32, .rank = 3, .dims = {1, CLASSES, BOXES}, .data = scores},
                       {.dtype = DTYPE_I64, .data = &most},
                       {.dtype = DTYPE_F32, .data = &limit},
                       {.dtype = DTYPE_F32, .data = &least}};
        const tensor *inputs[] = {&in[0], &in[1], &in[2], &in[3], &in[4]};
        graph_attribute centre = {.name = "center_point_box", .i = is_centered};
        graph_node node = {.op = GRAPH_OP_NON_MAX_SUPPRESSION,
                           .input_count = 5,
                           .attribute_count = 1,
                           .attributes = &centre};
        int64_t *rows = NULL, count, counted, at = 0, kept[BOXES];
        cr_assert_eq(graph_select_boxes(&node, inputs, &rows, &count), STATUS_OK);
        cr_assert_eq(graph_select_boxes(&node, inputs, NULL, &counted), STATUS_OK);
        cr_expect_eq(counted, count);
        for (int64_t c = 0; c < CLASSES; c++) {
            int64_t expected =
                select_plainly(corners, scores + c * BOXES, limit, least, most, kept);
            for (int64_t k = 0; k < expected; k++, at++) {
                cr_assert(at < count);
                cr_assert_arr_eq(rows + 3 * at, ((int64_t[]){0, c, kept[k]}), 3 * sizeof rows[0],
                                 "round %d, class %d, row %d", round, (int)c, (int)k);
            }
        }
        cr_expect_eq(at, count);
        free(rows);
    }
}
