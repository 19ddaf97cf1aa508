#include "kernels/peak.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

/* The best of a few short runs: an interruption affects one of them at most. */
static double measure(double (*body)(size_t rounds))
{
    double best = 0;
    size_t rounds = 1000;
    for (int run = 0; run < 8; run++) {
        uint64_t before = clock_now_ns();
        double operations = body(rounds);
        uint64_t spent = clock_now_ns() - before;
        double speed = spent ? operations * 1e9 / (double)spent : 0;
        best = speed > best ? speed : best;
        if (spent < 200000) /* too short for the clock */
            rounds *= 3;
    }
    return best;
}

void kernels_measure_peak(const kernels *k, kernels_peaks *out)
{
    out->f32 = measure(k->peak_f32);
    out->u8s8 = measure(k->peak_u8s8);
    out->s16 = measure(k->peak_s16);
    out->bf16 = measure(k->peak_bf16);
}

const kernels_peaks *kernels_peaks_of(const kernels *k)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        bool is_measured;
        kernels_peaks peaks;
    } of_level[KERNELS_LEVEL_COUNT];
    pthread_mutex_lock(&lock);
    if (!of_level[k->level].is_measured)
        kernels_measure_peak(k, &of_level[k->level].peaks);
    of_level[k->level].is_measured = true;
    pthread_mutex_unlock(&lock);
    return &of_level[k->level].peaks;
}

kernels_bf16_format kernels_choose_bf16_format(const kernels_peaks *peaks)
{
    return peaks->bf16 > 1.1 * peaks->s16 ? KERNELS_BF16_AS_BF16 : KERNELS_BF16_AS_S16;
}
