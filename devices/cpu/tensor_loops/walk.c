#include "devices/cpu/tensor_loops/walk.h"

#include <assert.h>
#include <string.h>

#include "kernels/lines.h"

#define TILE 16 /* a tile of 16 x 16 eight-byte elements touches 32 cache lines */

void cpu_dense_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

static bool can_merge(const cpu_walk *w, int last, int64_t dim, int rank_index,
                      const int64_t *const *strides)
{
    for (int o = 0; o < w->operand_count; o++)
        if (w->strides[o][last] != strides[o][rank_index] * dim)
            return false;
    return true;
}

void cpu_walk_init(cpu_walk *w, int rank, const int64_t *dims, int operand_count,
                   const int64_t *const *strides)
{
    assert(rank >= 0 && rank <= TENSOR_RANK_MAX && operand_count <= CPU_WALK_OPERANDS_MAX);
    w->rank = 0;
    w->operand_count = operand_count;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1)
            continue;
        if (w->rank > 0 && can_merge(w, w->rank - 1, dims[i], i, strides)) {
            w->dims[w->rank - 1] *= dims[i];
            for (int o = 0; o < operand_count; o++)
                w->strides[o][w->rank - 1] = strides[o][i];
            continue;
        }
        w->dims[w->rank] = dims[i];
        for (int o = 0; o < operand_count; o++)
            w->strides[o][w->rank] = strides[o][i];
        w->rank++;
    }
    if (w->rank == 0) {
        w->rank = 1;
        w->dims[0] = 1;
        for (int o = 0; o < operand_count; o++)
            w->strides[o][0] = 1;
    }
}

void cpu_walk_broadcast(cpu_walk *w, const tensor *out, int input_count,
                        const tensor *const *inputs)
{
    int64_t strides[CPU_WALK_OPERANDS_MAX][TENSOR_RANK_MAX];
    const int64_t *pointers[CPU_WALK_OPERANDS_MAX] = {strides[0]};
    assert(input_count < CPU_WALK_OPERANDS_MAX);
    cpu_dense_strides(out->rank, out->dims, strides[0]);
    for (int o = 0; o < input_count; o++) {
        const tensor *in = inputs[o];
        int64_t dense[TENSOR_RANK_MAX];
        int missing = out->rank - in->rank;
        assert(missing >= 0);
        cpu_dense_strides(in->rank, in->dims, dense);
        for (int i = 0; i < out->rank; i++) {
            bool is_repeated = i < missing || in->dims[i - missing] == 1;
            assert(is_repeated || in->dims[i - missing] == out->dims[i]);
            strides[o + 1][i] = is_repeated ? 0 : dense[i - missing];
        }
        pointers[o + 1] = strides[o + 1];
    }
    cpu_walk_init(w, out->rank, out->dims, input_count + 1, pointers);
}

bool cpu_walk_start(const cpu_walk *w, cpu_cursor *c)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < w->rank; i++)
        if (w->dims[i] == 0)
            return false;
    return true;
}

bool cpu_walk_next(const cpu_walk *w, cpu_cursor *c)
{
    for (int i = w->rank - 2; i >= 0; i--) {
        for (int o = 0; o < w->operand_count; o++)
            c->offsets[o] += w->strides[o][i];
        if (++c->index[i] < w->dims[i])
            return true;
        for (int o = 0; o < w->operand_count; o++)
            c->offsets[o] -= w->strides[o][i] * w->dims[i];
        c->index[i] = 0;
    }
    return false;
}

void cpu_walk_find(const cpu_walk *w, int64_t index, int64_t offsets[CPU_WALK_OPERANDS_MAX])
{
    memset(offsets, 0, CPU_WALK_OPERANDS_MAX * sizeof *offsets);
    for (int i = w->rank - 1; i >= 0; index /= w->dims[i], i--)
        for (int o = 0; o < w->operand_count; o++)
            offsets[o] += index % w->dims[i] * w->strides[o][i];
}

typedef struct bytes16 {
    uint64_t low, high;
} bytes16;

#define COPY_TYPED(type)                                                                           \
    do {                                                                                           \
        const type *f = from;                                                                      \
        type *t = to;                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            t[i * to_stride] = f[i * from_stride];                                                 \
    } while (0)

static void copy_run(const kernels *k, size_t element_bytes, int64_t count, const void *from,
                     int64_t from_stride, void *to, int64_t to_stride)
{
    if (from_stride == 1 && to_stride == 1) {
        memcpy(to, from, (size_t)count * element_bytes);
        return;
    }
    if (from_stride == 0 && to_stride == 1 && element_bytes > 1 && element_bytes <= 8) {
        k->repeat_plane(&(repeat_plane){.element_bytes = element_bytes,
                                        .rows = 1,
                                        .row_times = 1,
                                        .columns = 1,
                                        .times = (size_t)count,
                                        .in = from,
                                        .out = to});
        return;
    }
    if (from_stride == 0 && to_stride == 1) {
        cpu_fill(element_bytes, from, to, count);
        return;
    }
    switch (element_bytes) {
    case 1:
        COPY_TYPED(uint8_t);
        break;
    case 2:
        COPY_TYPED(uint16_t);
        break;
    case 4:
        COPY_TYPED(uint32_t);
        break;
    case 8:
        COPY_TYPED(uint64_t);
        break;
    case 16:
        COPY_TYPED(bytes16);
        break;
    default:
        assert(!"an element of that size");
    }
}

/* The two innermost dims of a walk, tile by tile, so that each line fetched is used whole. */
static void copy_plane(const kernels *k, size_t bytes, const cpu_walk *w, const char *from,
                       char *to)
{
    int a = w->rank - 2, b = w->rank - 1;
    if (w->strides[1][a] == 1 && w->strides[0][b] == 1 && w->strides[0][a] >= 0 &&
        w->strides[1][b] >= 0 && bytes <= sizeof(uint64_t)) {
        k->transpose_plane(&(transpose_plane){.element_bytes = bytes,
                                              .rows = (size_t)w->dims[a],
                                              .columns = (size_t)w->dims[b],
                                              .in = from,
                                              .in_stride = (size_t)w->strides[1][b],
                                              .out_stride = (size_t)w->strides[0][a],
                                              .out = to});
        return;
    }
    for (int64_t i0 = 0; i0 < w->dims[a]; i0 += TILE) {
        int64_t i1 = i0 + TILE < w->dims[a] ? i0 + TILE : w->dims[a];
        for (int64_t j0 = 0; j0 < w->dims[b]; j0 += TILE) {
            int64_t n = j0 + TILE < w->dims[b] ? TILE : w->dims[b] - j0;
            for (int64_t i = i0; i < i1; i++)
                copy_run(k, bytes, n,
                         from + (i * w->strides[1][a] + j0 * w->strides[1][b]) * (int64_t)bytes,
                         w->strides[1][b],
                         to + (i * w->strides[0][a] + j0 * w->strides[0][b]) * (int64_t)bytes,
                         w->strides[0][b]);
        }
    }
}

/* Moves dim `from` to place `to` of a walk; the dims between shift. */
static void move_dim(cpu_walk *w, int from, int to)
{
    int64_t dim = w->dims[from], stride0 = w->strides[0][from], stride1 = w->strides[1][from];
    for (int i = from; i < to; i++) {
        w->dims[i] = w->dims[i + 1];
        w->strides[0][i] = w->strides[0][i + 1];
        w->strides[1][i] = w->strides[1][i + 1];
    }
    w->dims[to] = dim;
    w->strides[0][to] = stride0;
    w->strides[1][to] = stride1;
}

/* Whether copies of dim d of the result lie one after the other, and are all the same. */
static bool is_repeated(const cpu_walk *w, int d)
{
    int64_t block = 1;
    for (int i = w->rank - 1; i > d; i--)
        block *= w->strides[0][i] == block ? w->dims[i] : 0;
    return w->strides[1][d] == 0 && w->dims[d] > 1 && w->strides[0][d] == block;
}

/* Elements that are repeated one by one. */
static bool are_elements_repeated(const cpu_walk *w, int d, size_t element_bytes)
{
    return d >= 0 && d == w->rank - 2 && w->strides[1][d] == 1 && w->strides[1][d + 1] == 0 &&
           w->strides[0][d + 1] == 1 && w->strides[0][d] == w->dims[d + 1] &&
           element_bytes <= sizeof(uint64_t);
}

static bool has_repeats(const cpu_walk *w)
{
    if (w->strides[1][w->rank - 1] == 0)
        return true;
    if (w->strides[1][w->rank - 1] != 1)
        return false;
    for (int d = 0; d < w->rank - 1; d++)
        if (is_repeated(w, d))
            return true;
    return false;
}

#define AGAIN_BYTES 16384 /* copied at a time: they stay in the L1 cache */

/* The block of `bytes` bytes that lies at `to`, `times` times in all. */
static void copy_again(char *to, int64_t bytes, int64_t times)
{
    int64_t most = AGAIN_BYTES / bytes > 1 ? AGAIN_BYTES / bytes : 1;
    for (int64_t done = 1, more; done < times; done += more) {
        more = times - done < done ? times - done : done;
        more = more < most ? more : most;
        memcpy(to + done * bytes, to, (size_t)(more * bytes));
    }
}

/* Dims d and later of a walk: what repeats is read once. */
static void copy_repeats(const kernels *k, size_t element_bytes, const cpu_walk *w, int d,
                         const char *from, char *to)
{
    int64_t bytes = (int64_t)element_bytes, apart = w->strides[0][d] * bytes;
    if (d == w->rank - 1) {
        copy_run(k, element_bytes, w->dims[d], from, w->strides[1][d], to, w->strides[0][d]);
        return;
    }
    if (are_elements_repeated(w, d, element_bytes)) {
        k->repeat_plane(&(repeat_plane){.element_bytes = element_bytes,
                                        .rows = 1,
                                        .row_times = 1,
                                        .columns = (size_t)w->dims[d],
                                        .times = (size_t)w->dims[d + 1],
                                        .in = from,
                                        .out = to});
        return;
    }
    bool is_again = is_repeated(w, d);
    for (int64_t i = 0; i < (is_again ? 1 : w->dims[d]); i++)
        copy_repeats(k, element_bytes, w, d + 1, from + i * w->strides[1][d] * bytes,
                     to + i * apart);
    if (is_again)
        copy_again(to, apart, w->dims[d]);
}

void cpu_copy_strided(const kernels *k, size_t element_bytes, int rank, const int64_t *dims,
                      const void *from, const int64_t *from_strides, void *to,
                      const int64_t *to_strides)
{
    cpu_walk w;
    cpu_walk_init(&w, rank, dims, 2, (const int64_t *const[]){to_strides, from_strides});
    cpu_cursor c;
    if (!cpu_walk_start(&w, &c))
        return;
    if (has_repeats(&w)) {
        copy_repeats(k, element_bytes, &w, 0, from, to);
        return;
    }
    int64_t bytes = (int64_t)element_bytes;
    int unit = -1; /* the dim along which the source is contiguous, when it is not the last */
    if (cpu_walk_step(&w, 1) != 1)
        for (int i = 0; i < w.rank - 1; i++)
            if (w.strides[1][i] == 1 && w.dims[i] > 1)
                unit = i;
    if (unit < 0) {
        do
            copy_run(k, element_bytes, cpu_walk_run(&w), (const char *)from + c.offsets[1] * bytes,
                     cpu_walk_step(&w, 1), (char *)to + c.offsets[0] * bytes, cpu_walk_step(&w, 0));
        while (cpu_walk_next(&w, &c));
        return;
    }
    move_dim(&w, unit, w.rank - 2);
    cpu_walk outer = w; /* all but the plane, which counts as one step */
    outer.dims[w.rank - 2] = 1;
    do
        copy_plane(k, element_bytes, &w, (const char *)from + c.offsets[1] * bytes,
                   (char *)to + c.offsets[0] * bytes);
    while (cpu_walk_next(&outer, &c));
}

/* How many elements from the first of `map` lie one after the other, or are filled. */
static int64_t mapped_run(const int64_t *map, int64_t count)
{
    int64_t i = 1, step = map[0] >= 0;
    while (i < count && map[i] == map[0] + i * step)
        i++;
    return i;
}

void cpu_copy_mapped(size_t element_bytes, int rank, const int64_t *dims,
                     const int64_t *const *maps, const void *from, const void *fill, void *to)
{
    int64_t index[TENSOR_RANK_MAX] = {0}, count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    if (rank == 0 && count) {
        memcpy(to, from, element_bytes);
        return;
    }
    int64_t run = rank ? dims[rank - 1] : 1;
    char *t = to;
    for (int64_t done = 0; done < count; done += run) {
        int64_t base = 0;
        bool is_filled = false;
        for (int i = 0; i < rank - 1; i++) {
            int64_t offset = maps[i][index[i]];
            is_filled |= offset < 0;
            base += offset;
        }
        const int64_t *map = maps[rank - 1];
        for (int64_t j = 0, same; j < run; j += same, t += same * (int64_t)element_bytes) {
            same = is_filled ? run : mapped_run(map + j, run - j);
            if (is_filled || map[j] < 0)
                cpu_fill(element_bytes, fill, t, same);
            else
                memcpy(t, (const char *)from + (base + map[j]) * (int64_t)element_bytes,
                       (size_t)same * element_bytes);
        }
        for (int i = rank - 2; i >= 0 && ++index[i] == dims[i]; i--)
            index[i] = 0;
    }
}

#define FILL_ELEMENTS 16
#define FILL_TWICE 1024 /* elements copied at a time: they stay in the L1 cache */

void cpu_fill(size_t element_bytes, const void *element, void *to, int64_t count)
{
    char *out = to;
    int64_t bytes = (int64_t)element_bytes, done = count < FILL_ELEMENTS ? count : FILL_ELEMENTS;
    if (bytes == sizeof(uint8_t)) {
        memset(out, *(const uint8_t *)element, (size_t)count);
        return;
    }
    for (int64_t i = 0; i < done; i++)
        memcpy(out + i * bytes, element, element_bytes);
    for (int64_t more; done < count; done += more) { /* what is there, again */
        more = count - done < done ? count - done : done;
        more = more < FILL_TWICE ? more : FILL_TWICE;
        memcpy(out + done * bytes, out, (size_t)(more * bytes));
    }
}
