/* Buffers that live at the same time lie apart. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "devices/cpu/plan/memory.h"

Test(cpu_memory, buffers_that_live_together_do_not_overlap)
{
    cpu_memory_buffer b[40] = {{0}};
    uint32_t seed = 3;
    size_t sum = 0, total = 0;
    for (int i = 0; i < 40; i++) {
        seed = seed * 1664525u + 1013904223u;
        b[i].first = (int)(seed >> 10) % 30;
        b[i].last = b[i].first + (int)(seed >> 20) % 5;
        b[i].bytes = 64 * (1 + (seed >> 5) % 50);
        sum += b[i].bytes;
    }
    cr_assert_eq(cpu_memory_place(b, 40, &total), STATUS_OK);
    for (int i = 0; i < 40; i++) {
        cr_expect(b[i].offset + b[i].bytes <= total);
        for (int j = 0; j < i; j++)
            if (b[i].first <= b[j].last && b[j].first <= b[i].last)
                cr_expect(b[i].offset + b[i].bytes <= b[j].offset ||
                          b[j].offset + b[j].bytes <= b[i].offset);
    }
    cr_expect(total < sum);
}
