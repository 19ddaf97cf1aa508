#include "loadtest/workload/trace.h"

#include "loadtest/wire/memory.h"
#include "loadtest/workload/quantity.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct timed_line {
    double seconds;
    size_t number; /* of the line; a stable sort keeps the file's order */
    bool whole_seconds, skip;
    int64_t length; /* as told; 0 or less: not told */
    char *body;
} timed_line;

/* "2026-11-21T14:13:20.123Z" or with an offset; NaN if it is not. */
static double iso8601(const char *text)
{
    struct tm tm = {0};
    double seconds;
    int end = 0;
    if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%lf%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &seconds, &end) < 6)
        return NAN;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int hours = 0, minutes = 0;
    char sign = '+';
    if (sscanf(text + end, "%c%2d:%2d", &sign, &hours, &minutes) < 2 ||
        (sign != '+' && sign != '-'))
        hours = minutes = 0;
    double shift = (hours * 60 + minutes) * 60;
    return (double)timegm(&tm) + seconds - (sign == '-' ? -shift : shift);
}

/* The time in "[21/Nov/2026:14:13:20 +0000]"; NaN if there is none. */
static double common_log(const char *line)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *bracket = strchr(line, '[');
    struct tm tm = {0};
    char month[4] = "", sign = '+';
    int hours = 0, minutes = 0;
    if (bracket == NULL ||
        sscanf(bracket, "[%2d/%3[A-Za-z]/%4d:%2d:%2d:%2d %c%2d%2d", &tm.tm_mday, month, &tm.tm_year,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &sign, &hours, &minutes) < 6)
        return NAN;
    const char *found = strstr(months, month);
    if (strlen(month) != 3 || found == NULL)
        return NAN;
    tm.tm_mon = (int)(found - months) / 3;
    tm.tm_year -= 1900;
    int shift = (hours * 60 + minutes) * 60;
    return (double)timegm(&tm) - (sign == '-' ? -shift : shift);
}

/* Health checks, metadata and metrics of a server's own log: not load. */
static bool is_housekeeping(const char *method, const char *path)
{
    static const char *const roots[] = {"/v1/", "/v2", "/metrics", "/health", "/status"};
    if (strncmp(method, "GET", 3) != 0)
        return strncmp(path, "/v2/repository/", 15) == 0;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            return true;
    return false;
}

static double json_time(const json_t *object)
{
    const json_t *milliseconds = json_object_get(object, "time_ms"); /* Penstock's access log */
    if (json_is_number(milliseconds))
        return json_number_value(milliseconds) / 1e3;
    static const char *const keys[] = {"time", "timestamp", "ts", "@timestamp"};
    const json_t *offset = json_object_get(object, "offset_ms");
    if (json_is_number(offset))
        return json_number_value(offset) / 1e3;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        if (json_is_number(value))
            return json_number_value(value);
        if (json_is_string(value))
            return iso8601(json_string_value(value));
    }
    return NAN;
}

static bool read_json(timed_line *to, const char *line)
{
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return false;
    }
    to->seconds = json_time(object);
    const char *method = json_string_value(json_object_get(object, "method"));
    const char *path = json_string_value(json_object_get(object, "path"));
    to->skip = method != NULL && path != NULL && is_housekeeping(method, path);
    const json_t *length = json_object_get(object, "tokens");
    if (length == NULL)
        length = json_object_get(object, "length");
    to->length = json_integer_value(length);
    const json_t *body = json_object_get(object, "body");
    if (json_is_string(body))
        to->body = memory_copy_string(json_string_value(body), json_string_length(body));
    else if (body != NULL)
        to->body = json_dumps(body, JSON_COMPACT);
    json_decref(object);
    return true;
}

static bool read_line(timed_line *to, const char *line)
{
    if (*line == '{')
        return read_json(to, line) && isfinite(to->seconds);
    char *end;
    to->seconds = strtod(line, &end);
    if (end != line && (*end == 0 || strchr(" \t,;\r", *end) != NULL) && isfinite(to->seconds)) {
        to->length = strtol(end + strspn(end, " \t,;"), NULL, 10);
        return true;
    }
    to->seconds = common_log(line);
    to->whole_seconds = true;
    char method[8] = "", path[64] = "";
    const char *quote = strchr(line, '"');
    if (quote != NULL && sscanf(quote, "\"%7[A-Z] %63s", method, path) == 2)
        to->skip = is_housekeeping(method, path);
    return isfinite(to->seconds);
}

static int by_time(const void *a, const void *b)
{
    const timed_line *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* A log with whole seconds says nothing of the order inside one: spread it evenly. */
static void spread(timed_line *lines, size_t count)
{
    for (size_t first = 0; first < count;) {
        size_t next = first;
        double second = lines[first].seconds;
        while (next < count && lines[next].seconds == second)
            next++;
        if (lines[first].whole_seconds)
            for (size_t i = first; i < next; i++)
                lines[i].seconds = second + (double)(i - first) / (double)(next - first);
        first = next;
    }
}

/* Lines in order become entries, whose bodies move. */
static status make_entries(trace *t, const timed_line *lines, size_t count, const char *path,
                           double speed)
{
    double last_s = (lines[count - 1].seconds - lines[0].seconds) / speed;
    if (!(last_s <= DURATION_S_MAX))
        return status_fail(
            STATUS_INVALID_ARGUMENT,
            "%s:%zu: %.3g s after the first request; a trace lasts %.0f days at most "
            "(--trace-speed shortens it)",
            path, lines[count - 1].number, last_s, DURATION_S_MAX / 86400);
    t->entries = memory_allocate(count, sizeof *t->entries);
    t->count = count;
    for (size_t i = 0; i < count; i++) {
        const timed_line *line = &lines[i];
        double offset_ns = (line->seconds - lines[0].seconds) / speed * 1e9;
        t->entries[i] = (trace_entry){(uint64_t)llround(offset_ns),
                                      line->length > 0 ? (uint32_t)line->length : 0, line->body};
    }
    return STATUS_OK;
}

status trace_parse(trace *t, char *text, const char *path, double speed)
{
    timed_line *lines = NULL;
    size_t count = 0, capacity = 0, number = 1;
    status s = STATUS_OK;
    for (char *at = text; *at != 0; number++) {
        size_t bytes = strcspn(at, "\n");
        char *next = at + bytes + (at[bytes] == '\n');
        at[bytes] = 0;
        at += strspn(at, " \t\r");
        if (*at != 0 && *at != '#') {
            if (count == capacity) {
                capacity = capacity ? capacity * 2 : 256;
                lines = memory_resize(lines, capacity, sizeof *lines);
            }
            lines[count] = (timed_line){.number = number};
            if (!read_line(&lines[count], at))
                s = status_fail(STATUS_INVALID_ARGUMENT, "%s:%zu: no time in \"%.60s\"", path,
                                number, at);
            else if (lines[count].length > LENGTH_MAX)
                s = status_fail(STATUS_INVALID_ARGUMENT,
                                "%s:%zu: a length of %" PRId64 "; a request has at most %d tokens",
                                path, number, lines[count].length, LENGTH_MAX);
            if (s) {
                free(lines[count].body);
                goto fail;
            }
            if (!lines[count].skip)
                count++;
            else
                free(lines[count].body);
        }
        at = next;
    }
    if (count == 0) {
        s = status_fail(STATUS_INVALID_ARGUMENT, "%s contains no requests", path);
        goto fail;
    }
    qsort(lines, count, sizeof *lines, by_time);
    spread(lines, count);
    s = make_entries(t, lines, count, path, speed);
    if (s)
        goto fail;
    free(lines);
    return STATUS_OK;
fail:
    for (size_t i = 0; i < count; i++)
        free(lines[i].body);
    free(lines);
    return s;
}

status trace_read(trace *t, const char *path, double speed)
{
    char *text;
    size_t bytes;
    status s = quantity_read_file(path, &text, &bytes);
    if (s)
        return s;
    s = trace_parse(t, text, path, speed);
    free(text);
    return s;
}

void trace_dispose(trace *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->entries[i].body);
    free(t->entries);
    *t = (trace){0};
}
