/* How fast an array of floats goes from JSON text into a tensor: ours beside jansson, in one run,
 * 8 x 768 values with 17 digits. Prints one JSON object. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/json/with_jansson.h"
#include "server/protocol/tensor_scan.h"
#include "server/protocol/text/number_write.h"

#define ROWS 8
#define COLUMNS 768
#define ROUNDS 41

static char text[ROWS * COLUMNS * 32];
static float data[ROWS * COLUMNS];

static size_t make_text(void)
{
    char *p = text;
    *p++ = '[';
    for (int i = 0; i < ROWS * COLUMNS; i++)
        p += sprintf(p, "%s%.17g", i ? "," : "", sin(i) * 3);
    *p++ = ']';
    return (size_t)(p - text);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_us(uint64_t *ns)
{
    qsort(ns, ROUNDS, sizeof(*ns), by_value);
    return (double)ns[ROUNDS / 2] / 1e3;
}

static void with_tree(size_t bytes)
{
    with_jansson(text, bytes, data);
}

static void with_ours(size_t bytes)
{
    arena memory = {0};
    json_scan s;
    tensor_scan t = {.dtype = DTYPE_F32, .data = data, .capacity = ROWS * COLUMNS};
    json_scan_init(&s, text, bytes, 16, false, &memory);
    if (tensor_scan_value(&s, &t) || t.count != ROWS * COLUMNS)
        abort();
}

static char written[ROWS * COLUMNS * 32];

static void with_writer(size_t bytes)
{
    (void)bytes;
    char *p = written;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        p = number_write_f32(p, data[i]);
}

static double measure(void (*run)(size_t bytes), size_t bytes)
{
    uint64_t ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t begin = clock_now_ns();
        run(bytes);
        ns[i] = clock_now_ns() - begin;
    }
    return median_us(ns);
}

int main(void)
{
    size_t bytes = make_text();
    double jansson_us = measure(with_tree, bytes), ours_us = measure(with_ours, bytes);
    double writer_us = measure(with_writer, bytes);
    printf("{\"values\":%d,\"bytes\":%zu,\"jansson_us\":%.1f,\"ours_us\":%.1f,\"ratio\":%.1f,"
           "\"ours_mb_per_s\":%.0f,\"write_f32_us\":%.1f}\n",
           ROWS * COLUMNS, bytes, jansson_us, ours_us, jansson_us / ours_us,
           (double)bytes / ours_us, writer_us);
    return 0;
}
