#include <string.h>

#include "graph/shapes/rules.h"

/* Einsum-12: terms of letters, each term with at most one ellipsis; an ellipsis stands for any
 * number of dims, which broadcast from the right. */
typedef struct einsum_labels {
    int64_t sizes[128]; /* by letter; -1: not seen */
    int uses[128];
    tensor ellipsis; /* its broadcast dims */
    bool has_ellipsis;
} einsum_labels;

static bool is_label(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static status misspelt(const char *equation)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "equation \"%.200s\" is malformed", equation);
}

/* Letters of one term, or of the output: `term` ends at ',' or '-' or zero; blanks are skipped.
 * The ellipsis is written as '.'. */
static status read_term(const char *equation, const char **at, char letters[32], int *count)
{
    *count = 0;
    bool has_ellipsis = false;
    for (; **at != 0 && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ')
            continue;
        char letter = **at;
        if (letter == '.') {
            if (has_ellipsis || strncmp(*at, "...", 3) != 0)
                return misspelt(equation);
            has_ellipsis = true;
            *at += 2;
        } else if (!is_label(letter)) {
            return misspelt(equation);
        }
        if (*count == 31)
            return misspelt(equation);
        letters[(*count)++] = letter;
    }
    return STATUS_OK;
}

static status bind_term(einsum_labels *labels, const char *letters, int count, const tensor *x)
{
    bool has_ellipsis = memchr(letters, '.', (size_t)count) != NULL;
    int hidden = x->rank - (count - has_ellipsis);
    if (hidden < 0 || (hidden > 0 && !has_ellipsis))
        return status_fail(STATUS_INVALID_ARGUMENT, "term \"%.*s\" does not fit %s", count, letters,
                           infer_text(x));
    for (int i = 0, axis = 0; i < count; i++) {
        if (letters[i] == '.') {
            tensor part = {.dtype = x->dtype, .rank = hidden};
            memcpy(part.dims, x->dims + axis, (size_t)hidden * sizeof part.dims[0]);
            status s = graph_broadcast(&labels->ellipsis, &part, &labels->ellipsis.rank,
                                       labels->ellipsis.dims);
            if (s)
                return s;
            labels->has_ellipsis = true;
            axis += hidden;
            continue;
        }
        int64_t *size = &labels->sizes[(int)letters[i]];
        if (*size != -1 && *size != x->dims[axis])
            return status_fail(STATUS_INVALID_ARGUMENT, "label %c is %lld and %lld", letters[i],
                               (long long)*size, (long long)x->dims[axis]);
        *size = x->dims[axis++];
        labels->uses[(int)letters[i]]++;
    }
    return STATUS_OK;
}

/* Without "->": the ellipsis, then the letters used once, in alphabetical order. */
static int implicit_output(const einsum_labels *labels, char letters[64])
{
    int count = 0;
    if (labels->has_ellipsis)
        letters[count++] = '.';
    for (int c = 'A'; c <= 'z'; c++)
        if (labels->uses[c] == 1)
            letters[count++] = (char)c;
    return count;
}

/* Reads the terms of the inputs; `at` is left behind them. */
static status read_inputs(const graph_node *node, const tensor *const *in, const char *equation,
                          const char **at, einsum_labels *labels)
{
    char letters[64];
    int count;
    *labels = (einsum_labels){.ellipsis = {.dtype = in[0]->dtype}};
    memset(labels->sizes, 0xff, sizeof labels->sizes);
    for (int k = 0; k < node->input_count; k++) {
        status s = infer_expect_same_type(in[0], in[k]);
        if (s)
            return s;
        if ((s = read_term(equation, at, letters, &count)))
            return s;
        if ((s = bind_term(labels, letters, count, in[k])))
            return s;
        bool is_last = k == node->input_count - 1;
        if (is_last ? **at == ',' : **at != ',')
            return misspelt(equation);
        *at += !is_last;
    }
    return STATUS_OK;
}

int64_t graph_einsum_volume(const graph_node *node, const tensor *const *in)
{
    const char *equation = graph_attribute_string(node, "equation", ""), *at = equation;
    einsum_labels labels;
    int64_t volume = 1;
    if (read_inputs(node, in, equation, &at, &labels))
        return 0;
    for (int i = 0; i < labels.ellipsis.rank; i++)
        if (__builtin_mul_overflow(volume, labels.ellipsis.dims[i], &volume))
            return INT64_MAX;
    for (int c = 0; c < 128; c++)
        if (labels.sizes[c] >= 0 && __builtin_mul_overflow(volume, labels.sizes[c], &volume))
            return INT64_MAX;
    return volume;
}

status infer_einsum(const graph_node *node, const tensor *const *in, tensor *out)
{
    const char *equation = graph_attribute_string(node, "equation", ""), *at = equation;
    einsum_labels labels;
    char letters[64];
    int count;
    status s = read_inputs(node, in, equation, &at, &labels);
    if (s)
        return s;
    if (*at == '-') {
        if (at[1] != '>')
            return misspelt(equation);
        at += 2;
        if ((s = read_term(equation, &at, letters, &count)))
            return s;
        if (*at != 0)
            return misspelt(equation);
    } else {
        count = implicit_output(&labels, letters);
    }
    int64_t dims[64 + TENSOR_RANK_MAX];
    int rank = 0;
    bool used[128] = {false};
    for (int i = 0; i < count; i++) {
        for (int d = 0; letters[i] == '.' && d < labels.ellipsis.rank; d++)
            dims[rank++] = labels.ellipsis.dims[d];
        if (letters[i] == '.')
            continue;
        if (labels.sizes[(int)letters[i]] == -1 || used[(int)letters[i]])
            return misspelt(equation);
        used[(int)letters[i]] = true;
        dims[rank++] = labels.sizes[(int)letters[i]];
    }
    return infer_set(out, in[0]->dtype, rank, dims);
}
