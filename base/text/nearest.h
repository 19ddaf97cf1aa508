#ifndef BASE_TEXT_NEAREST_H
#define BASE_TEXT_NEAREST_H

#include <stddef.h>

/* "Did you mean": the candidate a person most likely meant to type. */

/* Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (Damerau and
 * Levenshtein, optimal string alignment). Only the first 63 bytes count. */
int nearest_distance(const char *a, const char *b);

/* The candidate with the smallest distance, when that is at most a third of the word's length (at
 * least 2); else NULL. */
const char *nearest_find(const char *word, const char *const *candidates, size_t count);

#endif
