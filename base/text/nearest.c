#include "base/text/nearest.h"

#include <stdbool.h>
#include <string.h>

#define WORD_BYTES_MAX 63

static int least(int a, int b)
{
    return a < b ? a : b;
}

int nearest_distance(const char *a, const char *b)
{
    size_t a_bytes = strnlen(a, WORD_BYTES_MAX), b_bytes = strnlen(b, WORD_BYTES_MAX);
    int cost[WORD_BYTES_MAX + 1][WORD_BYTES_MAX + 1];
    for (size_t i = 0; i <= a_bytes; i++)
        cost[i][0] = (int)i;
    for (size_t j = 0; j <= b_bytes; j++)
        cost[0][j] = (int)j;
    for (size_t i = 1; i <= a_bytes; i++) {
        for (size_t j = 1; j <= b_bytes; j++) {
            int best = least(cost[i - 1][j], cost[i][j - 1]) + 1;
            best = least(best, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, cost[i - 2][j - 2] + 1);
            cost[i][j] = best;
        }
    }
    return cost[a_bytes][b_bytes];
}

/* Is `word` how `candidate` begins, underscores aside? "bodybytes" is body_bytes_max. */
static bool is_beginning(const char *word, const char *candidate)
{
    if (strlen(word) < 4)
        return false;
    for (;; word++, candidate++) {
        while (*word == '_')
            word++;
        while (*candidate == '_')
            candidate++;
        if (*word == '\0')
            return true;
        if (*word != *candidate)
            return false;
    }
}

const char *nearest_find(const char *word, const char *const *candidates, size_t count)
{
    int limit = (int)strlen(word) / 3;
    if (limit < 2)
        limit = 2;
    const char *best = NULL;
    for (size_t i = 0; i < count; i++) {
        int distance = nearest_distance(word, candidates[i]);
        /* A candidate that shares no letter with a short word is no suggestion. */
        if (distance <= limit && distance < (int)strlen(candidates[i])) {
            best = candidates[i];
            limit = distance - 1;
        }
    }
    for (size_t i = 0; best == NULL && i < count; i++) {
        if (is_beginning(word, candidates[i]))
            best = candidates[i];
    }
    return best;
}
