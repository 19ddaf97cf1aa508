#include "loadtest/option_table.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/nearest.h"
#include "loadtest/wire/memory.h"
#include "loadtest/workload/quantity.h"

typedef enum option_kind {
    OPTION_SWITCH,   /* bool: becomes true */
    OPTION_SELECT,   /* enum: becomes `value` */
    OPTION_TEXT,     /* const char * */
    OPTION_FILE,     /* const char *; without a file, "-" */
    OPTION_INTEGER,  /* unsigned, from minimum to maximum */
    OPTION_NUMBER,   /* double, from minimum to maximum */
    OPTION_DURATION, /* uint64_t, ns */
    OPTION_CALL      /* `read` does it */
} option_kind;

typedef struct option_entry {
    const char *name;
    option_kind kind;
    size_t offset; /* of the field in `options` */
    double minimum, maximum;
    unsigned value;
    status (*read)(options *o, const char *value);
} option_entry;

/* A token of RFC 9110: a method, or the name of a header. */
static bool is_token(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!isalnum((unsigned char)text[i]) &&
            (text[i] == 0 || strchr("!#$%&'*+-.^_`|~", text[i]) == NULL))
            return false;
    return bytes != 0;
}

static status read_method(options *o, const char *value)
{
    if (!is_token(value, strlen(value)))
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is not a method such as GET or POST",
                           value);
    o->method = value;
    return STATUS_OK;
}

static status read_seed(options *o, const char *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(value, &end, 0);
    if (end == value || *end != 0 || errno == ERANGE || parsed < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is not a whole number from 0 to %lld",
                           value, LLONG_MAX);
    o->seed = (uint64_t)parsed;
    return STATUS_OK;
}

static status read_slo(options *o, const char *value)
{
    return result_slo_parse(o->slo, &o->slo_count, value);
}

static status read_timeout(options *o, const char *value)
{
    status s = quantity_duration(value, &o->timeout_ns);
    if (!s && o->timeout_ns == 0)
        s = status_fail(STATUS_INVALID_ARGUMENT, "must be above 0");
    return s;
}

static status read_duration(options *o, const char *value)
{
    o->duration_given = true;
    return quantity_duration(value, &o->duration_ns);
}

static status read_spin(options *o, const char *value)
{
    o->spin_given = true;
    return quantity_duration(value, &o->spin_ns);
}

static status read_format(options *o, const char *value)
{
    static const char *const names[] = {"auto",   "kserve", "binary", "tensorflow",
                                        "openai", "tei",    "raw"};
    for (int i = 0; i < 7; i++)
        if (strcmp(value, names[i]) == 0) {
            o->format = i;
            return STATUS_OK;
        }
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "\"%s\" is not one of auto, kserve, binary, tensorflow, openai, tei, raw",
                       value);
}

static status read_protocol(options *o, const char *value)
{
    if (strcmp(value, "auto") == 0)
        o->protocol = TARGET_AUTO;
    else if (strcmp(value, "http1") == 0 || strcmp(value, "http/1.1") == 0)
        o->protocol = TARGET_HTTP1;
    else if (strcmp(value, "http2") == 0 || strcmp(value, "h2") == 0 || strcmp(value, "h2c") == 0)
        o->protocol = TARGET_HTTP2;
    else
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is not one of auto, http1, http2",
                           value);
    return STATUS_OK;
}

static status read_header(options *o, const char *value)
{
    const char *colon = strchr(value, ':');
    if (colon == NULL || !is_token(value, (size_t)(colon - value)) ||
        strpbrk(value, "\r\n") != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is not 'NAME: VALUE'", value);
    if (o->header_count == OPTIONS_HEADERS_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "at most %d headers", OPTIONS_HEADERS_MAX);
    char *name = memory_copy_string(value, (size_t)(colon - value));
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    o->headers[o->header_count++] = (request_header){name, colon + 1 + strspn(colon + 1, " \t")};
    return STATUS_OK;
}

static status read_sweep(options *o, const char *value)
{
    double from, to;
    unsigned count;
    char tail;
    o->mode = MODE_SWEEP;
    o->sweep_count = 0;
    if (sscanf(value, "%lf:%lf:%u%c", &from, &to, &count, &tail) == 3) {
        if (!(from > 0) || !(to > from) || count < 2 || count > OPTIONS_RATES_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "FROM:TO:N needs 0 < FROM < TO and 2 to %d runs", OPTIONS_RATES_MAX);
        for (unsigned i = 0; i < count; i++)
            o->sweep[o->sweep_count++] = from + (to - from) * i / (count - 1);
        return STATUS_OK;
    }
    for (const char *at = value;;) {
        char *end;
        double rate = strtod(at, &end);
        if (end == at || !(rate > 0) || (*end != 0 && *end != ',') ||
            o->sweep_count == OPTIONS_RATES_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "\"%s\" is neither FROM:TO:N nor up to %d rates R,R,...", value,
                               OPTIONS_RATES_MAX);
        o->sweep[o->sweep_count++] = rate;
        if (*end == 0)
            return STATUS_OK;
        at = end + 1;
    }
}

#define FIELD(field) .offset = offsetof(options, field)
#define SELECT(field, constant) .kind = OPTION_SELECT, FIELD(field), .value = (constant)
#define RANGE(least, most) .minimum = (least), .maximum = (most)

static const option_entry entries[] = {
    {"model", OPTION_TEXT, FIELD(model)},
    {"model-version", OPTION_TEXT, FIELD(model_version)},
    {"format", OPTION_CALL, .read = read_format},
    {"binary", SELECT(format, FORMAT_BINARY)},
    {"lengths", OPTION_TEXT, FIELD(lengths_text)},
    {"rows", OPTION_INTEGER, FIELD(rows), RANGE(1, 1e6)},
    {"vocabulary", OPTION_INTEGER, FIELD(vocabulary), RANGE(1, 1e9)},
    {"ids", OPTION_TEXT, FIELD(ids_file)},
    {"text", OPTION_TEXT, FIELD(text_file)},
    {"data", OPTION_TEXT, FIELD(data_file)},
    {"shuffle", OPTION_SWITCH, FIELD(shuffle)},
    {"pool", OPTION_INTEGER, FIELD(pool), RANGE(1, 100000)},
    {"expect", OPTION_TEXT, FIELD(expect_file)},
    {"tolerance", OPTION_NUMBER, FIELD(tolerance), RANGE(0, 1e9)},
    {"header", OPTION_CALL, .read = read_header},
    {"method", OPTION_CALL, .read = read_method},
    {"rate", OPTION_NUMBER, FIELD(rate), RANGE(1e-3, 1e8)},
    {"cost-per-hour", OPTION_NUMBER, FIELD(dollars_per_hour), RANGE(0, 1e6)},
    {"arrivals", OPTION_TEXT, FIELD(arrivals_text)},
    {"trace", OPTION_TEXT, FIELD(trace_file)},
    {"trace-speed", OPTION_NUMBER, FIELD(trace_speed), RANGE(1e-6, 1e6)},
    {"concurrency", OPTION_INTEGER, FIELD(concurrency), RANGE(1, 100000)},
    {"duration", OPTION_CALL, .read = read_duration},
    {"warm-up", OPTION_DURATION, FIELD(warm_up_ns)},
    {"warmup", OPTION_DURATION, FIELD(warm_up_ns)},
    {"timeout", OPTION_CALL, .read = read_timeout},
    {"seed", OPTION_CALL, .read = read_seed},
    {"http1", SELECT(protocol, TARGET_HTTP1)},
    {"http2", SELECT(protocol, TARGET_HTTP2)},
    {"h2", SELECT(protocol, TARGET_HTTP2)},
    {"h2c", SELECT(protocol, TARGET_HTTP2)},
    {"protocol", OPTION_CALL, .read = read_protocol},
    {"connections", OPTION_INTEGER, FIELD(connections), RANGE(1, 100000)},
    {"connections-max", OPTION_INTEGER, FIELD(connections_max), RANGE(1, 100000)},
    {"streams", OPTION_INTEGER, FIELD(streams), RANGE(1, 100000)},
    {"threads", OPTION_INTEGER, FIELD(threads), RANGE(1, 1024)},
    {"spin", OPTION_CALL, .read = read_spin},
    {"realtime", OPTION_SWITCH, FIELD(realtime)},
    {"cacert", OPTION_TEXT, FIELD(ca_file)},
    {"insecure", OPTION_SWITCH, FIELD(insecure)},
    {"slo", OPTION_CALL, .read = read_slo},
    {"find-max", SELECT(mode, MODE_FIND_MAX)},
    {"resolution", OPTION_NUMBER, FIELD(resolution), RANGE(0.001, 1)},
    {"confirm", OPTION_INTEGER, FIELD(confirmations), RANGE(0, 100)},
    {"sweep", OPTION_CALL, .read = read_sweep},
    {"json", OPTION_FILE, FIELD(json)},
    {"csv", OPTION_FILE, FIELD(csv)},
    {"html", OPTION_TEXT, FIELD(html)},
    {"title", OPTION_TEXT, FIELD(title)},
    {"quiet", OPTION_SWITCH, FIELD(quiet)},
    {"merge", SELECT(mode, MODE_MERGE)},
    {"compare", SELECT(mode, MODE_COMPARE)},
    {"help", OPTION_SWITCH, FIELD(help)},
    {"version", OPTION_SWITCH, FIELD(version)},
};
#define ENTRY_COUNT (sizeof entries / sizeof *entries)

static status read_number(const option_entry *e, const char *value, double *out)
{
    char *end;
    double parsed = strtod(value, &end);
    if (end == value || *end != 0 || !(parsed >= e->minimum) || parsed > e->maximum)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is not a number from %g to %g", value,
                           e->minimum, e->maximum);
    *out = parsed;
    return STATUS_OK;
}

static status read_integer(const option_entry *e, const char *value, unsigned *out)
{
    double parsed;
    if (read_number(e, value, &parsed) || parsed != floor(parsed))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "\"%s\" is not a whole number from %.0f to %.0f", value, e->minimum,
                           e->maximum);
    *out = (unsigned)parsed;
    return STATUS_OK;
}

static status set(options *o, const option_entry *e, const char *value)
{
    void *field = (char *)o + e->offset;
    switch (e->kind) {
    case OPTION_SWITCH:
        *(bool *)field = true;
        return STATUS_OK;
    case OPTION_SELECT:
        *(unsigned *)field = e->value;
        return STATUS_OK;
    case OPTION_TEXT:
        *(const char **)field = value;
        return STATUS_OK;
    case OPTION_FILE:
        *(const char **)field = value != NULL ? value : "-";
        return STATUS_OK;
    case OPTION_INTEGER:
        return read_integer(e, value, field);
    case OPTION_NUMBER:
        return read_number(e, value, field);
    case OPTION_DURATION:
        return quantity_duration(value, field);
    case OPTION_CALL:
        return e->read(o, value);
    }
    return STATUS_INTERNAL;
}

static const option_entry *find(const char *name)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        if (strcmp(name, entries[i].name) == 0)
            return &entries[i];
    return NULL;
}

static status unknown_option(const char *name)
{
    const char *names[ENTRY_COUNT];
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        names[i] = entries[i].name;
    const char *near = nearest_find(name, names, ENTRY_COUNT);
    if (near != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "unknown flag --%s; did you mean --%s?", name,
                           near);
    return status_fail(STATUS_INVALID_ARGUMENT, "unknown flag --%s", name);
}

/* Whether an argument can be the file of --json: not a flag, not a URL. */
static bool is_file(const char *argument)
{
    return (argument[0] != '-' || argument[1] == 0) && strstr(argument, "://") == NULL;
}

status option_table_read(options *o, int argc, char **argv, int *i)
{
    const char *text = argv[*i] + 2, *equals = strchr(text, '=');
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(equals != NULL ? equals - text : 31), text);
    const option_entry *e = find(name);
    if (e == NULL)
        return unknown_option(name);
    const char *value = equals != NULL ? equals + 1 : NULL;
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    bool takes_none = e->kind == OPTION_SWITCH || e->kind == OPTION_SELECT;
    if (takes_none && value != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "--%s takes no value", name);
    if (!takes_none && value == NULL && next != NULL && (e->kind != OPTION_FILE || is_file(next))) {
        value = next;
        ++*i;
    }
    if (!takes_none && value == NULL && e->kind != OPTION_FILE)
        return status_fail(STATUS_INVALID_ARGUMENT, "--%s needs a value", name);
    status s = set(o, e, value);
    return s ? status_prefix(s, "--%s", name) : STATUS_OK;
}
