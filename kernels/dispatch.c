#include <assert.h>
#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "kernels/cpu_features.h"
#include "kernels/kernels_list.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static kernels tables[KERNELS_LEVEL_COUNT]; /* by cap */

static const char *const level_names[KERNELS_LEVEL_COUNT] = {
    "scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "amx",
};

const char *kernels_level_name(kernels_level level)
{
    assert(level >= 0 && level < KERNELS_LEVEL_COUNT);
    return level_names[level];
}

static void fill_table(kernels *t, kernels_level cap, uint32_t features)
{
#define KERNEL(entry, function, at, needs)                                                         \
    if (KERNELS_##at <= cap && (features & (uint32_t)(needs)) == (uint32_t)(needs)) {              \
        t->entry = function;                                                                       \
        t->level = KERNELS_##at > t->level ? KERNELS_##at : t->level;                              \
    }
#include "kernels/kernels.inc"
#undef KERNEL
}

static void fill_tables(void)
{
    uint32_t features = cpu_features_detect();
    for (int cap = 0; cap < KERNELS_LEVEL_COUNT; cap++)
        fill_table(&tables[cap], (kernels_level)cap, features);
}

status kernels_select(const char *level_name, const kernels **out)
{
    assert(out);
    int cap = KERNELS_LEVEL_COUNT - 1;
    if (level_name) {
        for (cap = 0; cap < KERNELS_LEVEL_COUNT; cap++) {
            if (strcmp(level_name, level_names[cap]) == 0)
                break;
        }
        if (cap == KERNELS_LEVEL_COUNT) {
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "no CPU level \"%s\": the levels are scalar, avx2, avxvnni, avx512, "
                               "avx512vnni and amx",
                               level_name);
        }
    }
    pthread_once(&once, fill_tables);
    *out = &tables[cap];
    return STATUS_OK;
}

void kernels_prepare_thread(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ and DAZ */
#endif
}
