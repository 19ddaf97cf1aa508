#ifndef KERNELS_CPU_FEATURES_H
#define KERNELS_CPU_FEATURES_H

#include <stdint.h>

/* What this CPU can execute and this operating system preserves. Each bit stands for all that the
 * files compiled for that level may use. */
enum {
    CPU_AVX2 = 1 << 0, /* AVX2, FMA, F16C, BMI2 */
    CPU_AVXVNNI = 1 << 1,
    CPU_AVX512 = 1 << 2, /* F, BW, DQ, VL */
    CPU_AVX512VNNI = 1 << 3,
    CPU_AVX512BF16 = 1 << 4,
    CPU_AMX = 1 << 5,      /* TILE, INT8, and permission from Linux to use them */
    CPU_AMX_BF16 = 1 << 6, /* the same with BF16 */
};

/* Asks the CPU, and Linux for permission to use AMX tiles. The permission is the process's, for all
 * its threads; fork() keeps it, exec() does not. kernels_select() has asked. Any thread. */
uint32_t cpu_features_detect(void);

#endif
