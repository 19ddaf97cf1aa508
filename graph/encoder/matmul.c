#include <string.h>

#include "graph/encoder/internal.h"

/* Matrix multiplications of two computed values, as attention has them. */

static const char letters[] = "rhmnk";

/* Reads one term of an Einsum equation: blanks are dropped, "..." becomes one '.'. False: the term
 * has fewer than three letters or more than four. */
static bool read_term(const char **at, char end, char out[5])
{
    int count = 0;
    for (; **at != 0 && **at != end; (*at)++) {
        if (**at == ' ')
            continue;
        if (count == 4)
            return false;
        out[count++] = **at;
        if (**at == '.')
            *at += strncmp(*at, "...", 3) == 0 ? 2 : 0;
    }
    out[count] = 0;
    return count >= 3;
}

/* The first letter of the result that both operands have too: rows come before heads. */
static char first_of_stack(char terms[3][5])
{
    for (int i = 0; terms[2][i] != 0; i++)
        if (strchr(terms[0], terms[2][i]) != NULL && strchr(terms[1], terms[2][i]) != NULL)
            return terms[2][i];
    return 0;
}

/* Renames the letters of an equation's three terms to those of found_matmul. An ellipsis comes
 * first in each term and stands for rows and heads together. */
static bool rename_terms(char terms[3][5])
{
    char named[3][5] = {{0}};
    for (int t = 0; t < 3; t++) {
        int count = 0;
        for (int i = 0; terms[t][i] != 0; i++) {
            char c = terms[t][i];
            bool in_a = strchr(terms[0], c), in_b = strchr(terms[1], c), in_c = strchr(terms[2], c);
            bool is_stack = in_a && in_b && in_c;
            if (strchr(terms[t] + i + 1, c) != NULL || (c == '.' && (i != 0 || !is_stack)) ||
                count + (c == '.') >= 4)
                return false;
            if (c == '.')
                memcpy(named[t], "rh", 2), count = 2;
            else if (is_stack) /* rows are the first in the result */
                named[t][count++] = c == first_of_stack(terms) ? 'r' : 'h';
            else
                named[t][count++] = in_a && in_b   ? 'k'
                                    : in_a && in_c ? 'm'
                                    : in_b && in_c ? 'n'
                                                   : '?';
        }
    }
    for (int t = 0; t < 3; t++) {
        static const char wanted[3][5] = {"rhmk", "rhnk", "rhmn"};
        for (int i = 0; i < 4; i++)
            if (strchr(named[t], wanted[t][i]) == NULL || strlen(named[t]) != 4)
                return false;
    }
    memcpy(terms, named, sizeof named);
    return true;
}

bool recogniser_find_matmul(const encoder_recogniser *r, graph_value_index v, found_matmul *out)
{
    const match *m = &r->m;
    v = match_skip_casts(m, v);
    const graph_node *n = match_producer(m, v);
    if (n == NULL || n->input_count != 2 || !m->is_hidden[n->inputs[0]] ||
        !m->is_hidden[n->inputs[1]])
        return false;
    found_matmul p = {.operands = {n->inputs[0], n->inputs[1]}, .result = v};
    if (n->op == GRAPH_OP_MATMUL) {
        memcpy(p.terms, (char[3][5]){"rhmk", "rhkn", "rhmn"}, sizeof p.terms);
    } else if (n->op == GRAPH_OP_EINSUM) {
        const char *at = graph_attribute_string(n, "equation", "");
        if (!read_term(&at, ',', p.terms[0]) || *at++ != ',' || !read_term(&at, '-', p.terms[1]) ||
            *at++ != '-' || *at++ != '>' || !read_term(&at, 0, p.terms[2]) ||
            !rename_terms(p.terms))
            return false;
    } else {
        return false;
    }
    *out = p;
    return true;
}

void found_matmul_swap(found_matmul *p)
{
    found_matmul swapped = {.operands = {p->operands[1], p->operands[0]}, .result = p->result};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 4; i++) {
            char c = p->terms[t == 2 ? 2 : 1 - t][i];
            swapped.terms[t][i] = c == 'm' ? 'n' : c == 'n' ? 'm' : c;
        }
    *p = swapped;
}

int64_t matmul_offset(const char *term, matmul_sizes sizes, matmul_sizes at)
{
    int64_t offset = 0;
    for (int i = 0; i < 4; i++) {
        size_t letter = (size_t)(strchr(letters, term[i]) - letters);
        offset = offset * sizes.of[letter] + at.of[letter];
    }
    return offset;
}

bool recogniser_fits_matmul(const encoder_recogniser *r, const found_matmul *p, matmul_sizes sizes)
{
    for (int t = 0; t < 3; t++) {
        graph_value_index v = t < 2 ? p->operands[t] : p->result;
        int64_t count = 1;
        for (int i = 0; i < 4; i++) {
            int64_t size = sizes.of[strchr(letters, p->terms[t][i]) - letters];
            count *= size;
            /* A stack may be written as one dim; the others stand where the term has them. */
            bool is_stack = p->terms[t][i] == 'r' || p->terms[t][i] == 'h';
            if (!is_stack && match_dim(&r->m, v, i - 4) != size)
                return false;
        }
        if (count != match_count(&r->m, v) || count == 0)
            return false;
    }
    return true;
}
