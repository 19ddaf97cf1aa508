#include "graph/build.h"
#include "graph/encoder/packer.h"

static int64_t heads_of_block(const packer *p)
{
    return p->form.block_width / p->e->head_dim;
}

bool packer_can_block(const encoder *e, int64_t width)
{
    return width > e->head_dim && width % e->head_dim == 0 && e->hidden % width == 0;
}

void packer_make_columns(packer *p)
{
    int64_t heads = heads_of_block(p), n = p->size.length, width = p->form.block_width;
    bool *own = arena_allocate_zeroed(&p->g->memory, (size_t)(heads * width), sizeof *own);
    float *ones = arena_allocate_zeroed(&p->g->memory, (size_t)(heads * n * width), sizeof *ones);
    if (own == NULL || ones == NULL) {
        p->own_columns = p->column_sums = graph_lack_memory(p->g);
        return;
    }
    for (int64_t head = 0; head < heads; head++)
        for (int64_t i = head * p->e->head_dim; i < (head + 1) * p->e->head_dim; i++) {
            own[head * width + i] = true;
            for (int64_t key = 0; key < n; key++)
                ones[(head * n + key) * width + i] = 1;
        }
    const tensor columns = {
        .dtype = DTYPE_BOOL, .rank = 5, .dims = {1, 1, 1, heads, width}, .data = own};
    const tensor sums = {.dtype = DTYPE_F32, .rank = 3, .dims = {heads, n, width}, .data = ones};
    p->own_columns = packer_constant(p, &columns);
    p->column_sums = packer_constant(p, &sums);
}

/* [tokens, hidden] to [rows, length, blocks, width]. */
static graph_value_index blocks_of(packer *p, graph_value_index x)
{
    int64_t width = p->form.block_width, blocks = p->e->hidden / width;
    return graph_reshape(p->g, x, 4, (int64_t[]){p->size.rows, p->size.length, blocks, width});
}

/* [tokens, hidden] to [rows, length, blocks, heads of a block, width]: for each head the columns of
 * the head, and zeros. */
static graph_value_index apart(packer *p, graph_value_index x)
{
    int64_t width = p->form.block_width, blocks = p->e->hidden / width;
    const int64_t dims[] = {p->size.rows, p->size.length, blocks, 1, width};
    x = graph_reshape(p->g, x, 5, dims);
    return graph_where(p->g, p->own_columns, x, graph_number(p->g, 0));
}

/* What is added to, or bounds, [rows, blocks, length, heads of a block, length] scores. It has the
 * mask, and with `has_heads` the relative bias. */
static graph_value_index of_block(packer *p, graph_value_index x, bool has_mask, bool has_heads)
{
    int64_t rows = has_mask ? p->size.rows : 1, n = p->size.length, heads = heads_of_block(p);
    if (x == GRAPH_NO_VALUE)
        return x;
    if (!has_heads)
        return graph_reshape(p->g, x, 5, (int64_t[]){rows, 1, p->is_padded ? 1 : n, 1, n});
    const int64_t dims[] = {rows, p->e->heads / heads, heads, n, n};
    return graph_transpose(p->g, graph_reshape(p->g, x, 5, dims), 5, (int64_t[]){0, 1, 3, 2, 4});
}

/* Letters: r rows, q and k tokens, g blocks, h heads of a block, w columns. */
graph_value_index packer_attend_in_blocks(packer *p, graph_value_index q, graph_value_index k,
                                          graph_value_index v)
{
    graph_value_index scores = packer_einsum(p, "rqgw,rkghw->rgqhk", blocks_of(p, q), apart(p, k));
    if (!p->form.are_queries_scaled)
        scores = packer_scaled(p, scores);
    bool is_clipped = p->form.are_scores_clipped;
    bool has_mask = !p->is_padded || p->mask != GRAPH_NO_VALUE;
    scores = packer_biased(
        p, scores,
        of_block(p, p->score_bias, has_mask && !is_clipped, p->e->relative_table != NULL));
    graph_value_index raised = packer_raised(p, scores, of_block(p, p->score_bound, true, false));
    graph_value_index sums = packer_einsum(p, "rgqhk,hkw->rqgw", raised, p->column_sums);
    graph_value_index values = apart(p, v);
    graph_value_index y = p->form.are_values_first
                              ? packer_einsum(p, "rkghw,rgqhk->rqgw", values, raised)
                              : packer_einsum(p, "rgqhk,rkghw->rqgw", raised, values);
    return graph_binary(p->g, GRAPH_OP_DIV, y, sums);
}
