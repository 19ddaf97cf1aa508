#ifndef KERNELS_X86_VECTOR_GELU_PIECES_H
#define KERNELS_X86_VECTOR_GELU_PIECES_H

#include "kernels/x86/vector/math_vector.h"

#if VEC_LANES == 16

/* GELU as 32 polynomials of degree GELU_DEGREE (2 or 3; defined by the including file), whose
 * coefficients are looked up by permutations. For epilogues beside AMX tiles: while tiles multiply,
 * port 5 does permutations and integers but no float arithmetic (kernels/x86/README.md), so port 0
 * is the bottleneck. This takes 4 or 5 instructions of it, vec_gelu_fast 11.
 *
 * Piece i is for x * GELU_PIECES_PER_UNIT in [i, i + 1), i from -16 to 15; the outermost two are 0
 * and x, also beyond. Minimax fits of each piece (Lawson's iteration on Chebyshev nodes): within
 * 8.5e-5 of GELU for degree 2, within 5.2e-6 for degree 3. The table has pieces 0 to 15; the others
 * follow from gelu(-x) = gelu(x) - x. */
#if GELU_DEGREE == 2
#define GELU_PIECES_PER_UNIT 3.65853667f /* the last boundary is 4.1 */
#define GELU_PIECES_LIMIT 4.3f           /* within the last piece */
static const float gelu_coefficients[][VEC_LANES] = {
    {-2.30851965e-05f, -4.79951734e-03f, -3.33586968e-02f, -1.03718609e-01f, -2.11458504e-01f,
     -3.26037198e-01f, -4.0751797e-01f, -4.29432184e-01f, -3.9082408e-01f, -3.12239319e-01f,
     -2.2144641e-01f, -1.40561745e-01f, -8.03406984e-02f, -4.15443294e-02f, -1.95072014e-02f, 0},
    {5.0125289e-01f, 5.3348732e-01f, 6.36367619e-01f, 8.076877e-01f, 1.00551748e+00f,
     1.17442286e+00f, 1.27497435e+00f, 1.29870749e+00f, 1.26379371e+00f, 1.19998157e+00f,
     1.13345361e+00f, 1.07950711e+00f, 1.04266286e+00f, 1.02074206e+00f, 1.00917625e+00f, 1},
    {3.9006418e-01f, 3.34939122e-01f, 2.41834357e-01f, 1.37309819e-01f, 4.63813804e-02f,
     -1.59148816e-02f, -4.69502732e-02f, -5.33713214e-02f, -4.54766974e-02f, -3.25193629e-02f,
     -2.03299075e-02f, -1.13334479e-02f, -5.69718983e-03f, -2.60042353e-03f, -1.0827434e-03f, 0},
};
#else
#define GELU_PIECES_PER_UNIT 3.125f /* the last boundary is 4.8 */
#define GELU_PIECES_LIMIT 5.04f
static const float gelu_coefficients[][VEC_LANES] = {
    {5.10965538e-06f, 2.12135375e-03f, 6.75097713e-03f, -1.3923401e-02f, -1.06807962e-01f,
     -2.80448288e-01f, -4.71332371e-01f, -5.86121023e-01f, -5.75221419e-01f, -4.61890966e-01f,
     -3.10429662e-01f, -1.77338496e-01f, -8.70660543e-02f, -3.70391235e-02f, -1.37392869e-02f, 0},
    {4.99484003e-01f, 4.80402619e-01f, 4.56937313e-01f, 5.18439651e-01f, 7.34020531e-01f,
     1.05981135e+00f, 1.36006618e+00f, 1.51609433e+00f, 1.50480282e+00f, 1.38720655e+00f,
     1.2450217e+00f, 1.13120854e+00f, 1.06036544e+00f, 1.02409983e+00f, 1.00840795e+00f, 1},
    {4.07093734e-01f, 4.66831028e-01f, 5.06687701e-01f, 4.45590943e-01f, 2.78402299e-01f,
     7.4314408e-02f, -8.32918659e-02f, -1.54033944e-01f, -1.50201604e-01f, -1.09508157e-01f,
     -6.49978071e-02f, -3.25444452e-02f, -1.40074622e-02f, -5.24218567e-03f, -1.71882368e-03f, 0},
    {-4.13882136e-02f, -1.06373936e-01f, -1.29033819e-01f, -1.08760245e-01f, -6.54337406e-02f,
     -2.27480344e-02f, 4.85847378e-03f, 1.5556694e-02f, 1.51330018e-02f, 1.04368608e-02f,
     5.79037936e-03f, 2.70470465e-03f, 1.08745298e-03f, 3.81114427e-04f, 1.17358766e-04f, 0},
};
#endif

/* To be kept in registers by a caller's loop. */
typedef struct gelu_pieces {
    vec upper[GELU_DEGREE + 1], lower[GELU_DEGREE + 1]; /* of pieces 0 to 15 and -16 to -1 */
} gelu_pieces;

static inline gelu_pieces gelu_pieces_load(void)
{
    gelu_pieces g;
    vec_i backwards = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
    for (int d = 0; d <= GELU_DEGREE; d++) {
        g.upper[d] = vec_load(gelu_coefficients[d]);
        vec mirrored = _mm512_permutexvar_ps(backwards, g.upper[d]);
        g.lower[d] = d % 2 ? vec_sub(vec_set(d == 1), mirrored) : mirrored;
    }
    return g;
}

/* NaN stays NaN; -inf becomes NaN. */
static inline vec vec_gelu_pieces(const gelu_pieces *g, vec x)
{
    vec c = vec_limit(x, GELU_PIECES_LIMIT);
    /* Rounded down with a unit of 1: the low bits are the piece. */
    vec_i piece = _mm512_castps_si512(
        _mm512_fmadd_round_ps(c, vec_set(GELU_PIECES_PER_UNIT), vec_set(12582912),
                              _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
    vec p = _mm512_permutex2var_ps(g->upper[GELU_DEGREE], piece, g->lower[GELU_DEGREE]);
#pragma GCC unroll 4
    for (int d = GELU_DEGREE - 1; d > 0; d--)
        p = vec_fma(c, p, _mm512_permutex2var_ps(g->upper[d], piece, g->lower[d]));
    return vec_fma(x, p, _mm512_permutex2var_ps(g->upper[0], piece, g->lower[0]));
}

#endif
#endif
