#include "kernels/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux, Documentation/arch/x86/xstate.rst. */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

typedef struct cpuid_words {
    unsigned eax, ebx, ecx, edx;
} cpuid_words;

static cpuid_words cpuid(unsigned leaf, unsigned subleaf)
{
    cpuid_words w = {0};
    if (!__get_cpuid_count(leaf, subleaf, &w.eax, &w.ebx, &w.ecx, &w.edx))
        return (cpuid_words){0};
    return w;
}

static bool has(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

static uint64_t enabled_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Intel SDM volume 2, CPUID leaves 1 and 7; volume 1, 13.3 (state components of XCR0). */
uint32_t cpu_features_detect(void)
{
    cpuid_words one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = cpuid(7, 1);
    if (!has(one.ecx, bit_OSXSAVE))
        return 0;
    uint64_t state = enabled_state();
    uint32_t features = 0;
    bool has_ymm_state = (state & 0x6) == 0x6, has_zmm_state = (state & 0xe6) == 0xe6;
    if (has_ymm_state && has(one.ecx, bit_AVX | bit_FMA | bit_F16C) &&
        has(seven.ebx, bit_AVX2 | bit_BMI2))
        features |= CPU_AVX2;
    if ((features & CPU_AVX2) && has(seven_one.eax, 1u << 4))
        features |= CPU_AVXVNNI;
    if ((features & CPU_AVX2) && has_zmm_state &&
        has(seven.ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL))
        features |= CPU_AVX512;
    if ((features & CPU_AVX512) && has(seven.ecx, bit_AVX512VNNI))
        features |= CPU_AVX512VNNI;
    if ((features & CPU_AVX512) && has(seven_one.eax, 1u << 5))
        features |= CPU_AVX512BF16;
    bool has_tile_state = (state & 0x60000) == 0x60000;
    if ((features & CPU_AVX512VNNI) && has_tile_state && has(seven.edx, 1u << 24 | 1u << 25) &&
        syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0)
        features |= CPU_AMX | (has(seven.edx, 1u << 22) ? CPU_AMX_BF16 : 0);
    return features;
}

#else

uint32_t cpu_features_detect(void)
{
    return 0;
}

#endif
