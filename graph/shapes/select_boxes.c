#include <stdlib.h>
#include <string.h>

#include "graph/shapes/infer.h"
#include "graph/shapes/rules.h"

/* NonMaxSuppression (onnx Operators.md): of each class of each image the boxes by falling score;
 * one that overlaps none of those before it stays. */

#define GROUP 16 /* boxes that are compared at a time */

/* Boxes that stay, GROUP at a time, in arrays: corners in order, and area. */
typedef struct box_group {
    float top[GROUP], left[GROUP], bottom[GROUP], right[GROUP], area[GROUP];
} box_group;

typedef struct box {
    float top, left, bottom, right, area;
} box;

typedef struct selection {
    const float *boxes;
    bool is_centered, has_least_score;
    float overlap_max, score_least;
    int64_t box_count, most;
    uint64_t *heap; /* candidates: see rank_of */
    int64_t *kept;  /* boxes of the class */
    box_group *groups;
} selection;

static float least_of(float a, float b)
{
    return a < b ? a : b;
}

static float most_of(float a, float b)
{
    return a > b ? a : b;
}

static box read_box(const float *b, bool is_centered)
{
    box made = {least_of(b[0], b[2]), least_of(b[1], b[3]), most_of(b[0], b[2]),
                most_of(b[1], b[3]), 0};
    if (is_centered) /* x, y, width, height */
        made = (box){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2, 0};
    made.area = (made.bottom - made.top) * (made.right - made.left);
    return made;
}

/* How many of the group overlap the box by more than `limit`. Plain loops: the compiler makes
 * vectors of them. */
static int count_overlaps(const box_group *g, const box *b, float limit)
{
    int overlaps[GROUP], count = 0;
    for (int i = 0; i < GROUP; i++) {
        float height = least_of(b->bottom, g->bottom[i]) - most_of(b->top, g->top[i]);
        float width = least_of(b->right, g->right[i]) - most_of(b->left, g->left[i]);
        float both = height * width;
        overlaps[i] = (height > 0) & (width > 0) & (b->area > 0) & (g->area[i] > 0) &
                      (both / (b->area + g->area[i] - both) > limit);
    }
    for (int i = 0; i < GROUP; i++)
        count += overlaps[i];
    return count;
}

static void keep_box(selection *s, int64_t kept, const box *b)
{
    box_group *g = &s->groups[kept / GROUP];
    int64_t i = kept % GROUP;
    if (i == 0)
        memset(g, 0, sizeof *g); /* areas of 0 overlap nothing */
    g->top[i] = b->top;
    g->left[i] = b->left;
    g->bottom[i] = b->bottom;
    g->right[i] = b->right;
    g->area[i] = b->area;
}

/* Higher scores are larger numbers, and of equal ones the first box is. */
static uint64_t rank_of(float score, int64_t place)
{
    uint32_t bits;
    score = score == 0 ? 0 : score; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    bits ^= (uint32_t)((int32_t)bits >> 31) | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t) ~(uint32_t)place;
}

/* The largest of a heap is at its root. */
static void sink(uint64_t *heap, int64_t root, int64_t n)
{
    uint64_t x = heap[root];
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= x)
            break;
        heap[root] = heap[child];
    }
    heap[root] = x;
}

/* Returns how many stay. */
static int64_t select_class(selection *s, const float *scores)
{
    int64_t count = 0, kept = 0;
    for (int64_t i = 0; i < s->box_count; i++)
        if (!s->has_least_score || scores[i] > s->score_least)
            s->heap[count++] = rank_of(scores[i], i);
    for (int64_t i = count / 2 - 1; i >= 0; i--)
        sink(s->heap, i, count);
    while (count > 0 && kept < s->most) {
        int64_t place = (uint32_t) ~(uint32_t)s->heap[0];
        s->heap[0] = s->heap[--count];
        sink(s->heap, 0, count);
        box b = read_box(s->boxes + 4 * place, s->is_centered);
        bool is_free = true;
        for (int64_t k = 0; k < kept && is_free; k += GROUP)
            is_free = count_overlaps(&s->groups[k / GROUP], &b, s->overlap_max) == 0;
        if (!is_free)
            continue;
        keep_box(s, kept, &b);
        s->kept[kept++] = place;
    }
    return kept;
}

static float scalar(const tensor *const *in, int i, float otherwise)
{
    return in[i] != NULL && tensor_count(in[i]) > 0 ? (float)tensor_get_number(in[i], 0)
                                                    : otherwise;
}

static status check(const tensor *const *in)
{
    const tensor *boxes = in[0], *scores = in[1];
    if (boxes == NULL || scores == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "boxes or scores are absent");
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dtype != DTYPE_F32 ||
        scores->dtype != DTYPE_F32 || boxes->dims[2] != 4 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2] || boxes->dims[1] > UINT32_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "boxes %s, scores %s", infer_text(boxes),
                           infer_text(scores));
    if (in[2] != NULL && in[2]->dtype != DTYPE_I64)
        return status_fail(STATUS_INVALID_ARGUMENT, "input 2 is %s", infer_text(in[2]));
    for (int i = 0; i < 5; i++) {
        if (in[i] != NULL && i > 2 && in[i]->dtype != DTYPE_F32)
            return status_fail(STATUS_INVALID_ARGUMENT, "input %d is %s", i, infer_text(in[i]));
        if (in[i] != NULL && !infer_is_known(in[i]) && tensor_count(in[i]) > 0)
            return infer_unknown(i);
    }
    return STATUS_OK;
}

static bool open_selection(selection *s)
{
    size_t boxes = (size_t)s->box_count, groups = (size_t)s->most / GROUP + 1;
    s->heap = malloc((boxes + 1) * sizeof s->heap[0]);
    s->kept = malloc((boxes + 1) * sizeof s->kept[0]);
    s->groups = malloc(groups * sizeof s->groups[0]);
    return s->heap != NULL && s->kept != NULL && s->groups != NULL;
}

/* Appends rows of image, class and box. False: there is no memory. */
static bool append(int64_t **rows, int64_t *max, int64_t count, const selection *s, int64_t kept,
                   const int64_t at[2])
{
    if (count + kept > *max) {
        int64_t most = 2 * (count + kept);
        int64_t *more = realloc(*rows, (size_t)most * 3 * sizeof more[0]);
        if (more == NULL)
            return false;
        *rows = more;
        *max = most;
    }
    for (int64_t k = 0; k < kept; k++) {
        int64_t *row = *rows + 3 * (count + k);
        row[0] = at[0];
        row[1] = at[1];
        row[2] = s->kept[k];
    }
    return true;
}

status graph_select_boxes(const graph_node *node, const tensor *const *inputs, int64_t **selected,
                          int64_t *count)
{
    const tensor *in[5] = {NULL};
    for (int i = 0; i < node->input_count && i < 5; i++)
        in[i] = inputs[i];
    status failure = check(in);
    if (failure)
        return failure;
    int64_t images = in[0]->dims[0], boxes = in[0]->dims[1], classes = in[1]->dims[1];
    int64_t most = in[2] != NULL && tensor_count(in[2]) > 0 ? tensor_get_integer(in[2], 0) : 0;
    most = most < 0 ? 0 : most;
    selection s = {.is_centered = graph_attribute_int(node, "center_point_box", 0) != 0,
                   .has_least_score = in[4] != NULL,
                   .overlap_max = scalar(in, 3, 0),
                   .score_least = scalar(in, 4, 0),
                   .box_count = boxes,
                   .most = most < boxes ? most : boxes};
    int64_t *rows = NULL, rows_max = 0, found = 0;
    bool has_memory = open_selection(&s);
    for (int64_t i = 0; has_memory && i < images; i++)
        for (int64_t c = 0; has_memory && c < classes; c++) {
            s.boxes = (const float *)in[0]->data + i * boxes * 4;
            int64_t kept = select_class(&s, (const float *)in[1]->data + (i * classes + c) * boxes);
            if (selected != NULL && kept > 0)
                has_memory = append(&rows, &rows_max, found, &s, kept, (int64_t[]){i, c});
            found += kept;
        }
    free(s.heap);
    free(s.kept);
    free(s.groups);
    if (!has_memory) {
        free(rows);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to select boxes");
    }
    if (selected != NULL)
        *selected = rows;
    *count = found;
    return STATUS_OK;
}
