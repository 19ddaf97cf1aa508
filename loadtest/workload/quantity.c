#include "loadtest/workload/quantity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text_buffer.h"
#include "loadtest/wire/memory.h"

status quantity_duration(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6},   {"s", 1e9},
                 {"", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    char *end;
    double value = strtod(text, &end);
    if (end != text && value >= 0)
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(end, units[i].name) == 0) {
                if (value * units[i].ns > DURATION_S_MAX * 1e9)
                    return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is over %.0f days", text,
                                       DURATION_S_MAX / 86400);
                *ns = (uint64_t)llround(value * units[i].ns);
                return STATUS_OK;
            }
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "\"%s\" is not a duration: use a number and us, ms, s, m or h, such as 50ms",
                       text);
}

status quantity_read_file(const char *path, char **text, size_t *bytes)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (f == NULL)
        return status_fail(STATUS_NOT_FOUND, "%s: %s", path, strerror(errno));
    text_buffer b = {0};
    size_t n;
    while ((n = fread(text_buffer_require(&b, 65536), 1, 65536, f)) > 0)
        b.bytes += n;
    int failed = ferror(f);
    if (f != stdin)
        fclose(f);
    if (failed) {
        text_buffer_dispose(&b);
        return status_fail(STATUS_IO, "%s: cannot be read", path);
    }
    text_buffer_string(&b);
    *text = b.data;
    *bytes = b.bytes;
    return STATUS_OK;
}

static status read_list(length_spec *spec, const char *path)
{
    char *text;
    size_t bytes, count = 0, capacity = 0, line = 1;
    status s = quantity_read_file(path, &text, &bytes);
    if (s)
        return s;
    uint32_t *list = NULL;
    for (char *at = text; *at != 0; line++) {
        size_t line_bytes = strcspn(at, "\n");
        char *next = at + line_bytes + (at[line_bytes] == '\n');
        at[line_bytes] = 0;
        at += strspn(at, " \t\r");
        if (*at != 0 && *at != '#') {
            char *end;
            long value = strtol(at, &end, 10);
            if (end == at || value < 1 || value > LENGTH_MAX) {
                s = status_fail(STATUS_INVALID_ARGUMENT,
                                "%s:%zu: expected a length from 1 to %d, found \"%.40s\"", path,
                                line, LENGTH_MAX, at);
                goto fail;
            }
            if (count == capacity) {
                capacity = capacity ? capacity * 2 : 256;
                list = memory_resize(list, capacity, sizeof *list);
            }
            list[count++] = (uint32_t)value;
        }
        at = next;
    }
    if (count == 0) {
        s = status_fail(STATUS_INVALID_ARGUMENT, "%s contains no lengths", path);
        goto fail;
    }
    free(text);
    *spec =
        (length_spec){.kind = LENGTH_LIST, .list = list, .list_count = count, .max = UINT32_MAX};
    return STATUS_OK;
fail:
    free(list);
    free(text);
    return s;
}

status length_parse(length_spec *spec, const char *text)
{
    if (strncmp(text, "file:", 5) == 0)
        return read_list(spec, text + 5);
    length_spec parsed = {.kind = LENGTH_FIXED, .max = LENGTH_MAX_DEFAULT};
    const char *at = text;
    int wanted = 1;
    if (strncmp(at, "uniform:", 8) == 0) {
        parsed.kind = LENGTH_UNIFORM;
        at += 8;
        wanted = 2;
    } else if (strncmp(at, "lognormal:", 10) == 0) {
        parsed.kind = LENGTH_LOGNORMAL;
        at += 10;
        wanted = 2;
    }
    double value[2] = {0, 0};
    for (int i = 0; i < wanted; i++) {
        char *end;
        value[i] = strtod(at, &end);
        if (end == at || !(value[i] >= 0) || (i + 1 < wanted && *end != ':'))
            goto malformed;
        if (value[i] > LENGTH_MAX)
            goto too_long;
        at = end + (i + 1 < wanted);
    }
    if (strncmp(at, ":max=", 5) == 0) {
        char *end;
        long max = strtol(at + 5, &end, 10);
        if (end == at + 5 || *end != 0 || max < 1)
            goto malformed;
        if (max > LENGTH_MAX)
            goto too_long;
        parsed.max = (uint32_t)max;
    } else if (*at != 0) {
        goto malformed;
    } else if (parsed.kind != LENGTH_LOGNORMAL) {
        parsed.max = UINT32_MAX;
    }
    parsed.a = value[0];
    parsed.b = value[1];
    if (parsed.a < 1 || (parsed.kind == LENGTH_UNIFORM && parsed.b < parsed.a))
        goto malformed;
    *spec = parsed;
    return STATUS_OK;
too_long:
    return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\": a request has at most %d tokens", text,
                       LENGTH_MAX);
malformed:
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "\"%s\" is not a length distribution: use N, uniform:MIN:MAX, "
                       "lognormal:MEDIAN:SIGMA[:max=N] or file:PATH",
                       text);
}

void length_dispose(length_spec *spec)
{
    free(spec->list);
    *spec = (length_spec){0};
}

uint32_t length_draw(const length_spec *spec, random_state *r)
{
    double value = spec->a;
    switch (spec->kind) {
    case LENGTH_FIXED:
        break;
    case LENGTH_UNIFORM:
        value = spec->a + (double)random_below(r, (uint64_t)(spec->b - spec->a) + 1);
        break;
    case LENGTH_LOGNORMAL:
        value = round(spec->a * exp(spec->b * random_normal(r)));
        break;
    case LENGTH_LIST:
        value = spec->list[random_below(r, spec->list_count)];
        break;
    }
    if (value > spec->max)
        value = spec->max;
    return value < 1 ? 1 : (uint32_t)value;
}
