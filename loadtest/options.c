#include "loadtest/options.h"

#include "loadtest/memory.h"
#include "loadtest/workload/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *options_help(void)
{
    return "penstock-load URL [options]       load test of an inference server\n"
           "penstock-load --compare A.json B.json\n"
           "penstock-load --merge A.json B.json... [--json FILE] [--html FILE]\n"
           "\n"
           "URL is http://HOST:PORT or https://HOST:PORT; with a path, that path is called.\n"
           "\n"
           "What is sent\n"
           "  --model NAME            model; left out, the only one that the server has\n"
           "  --model-version V\n"
           "  --format F              kserve, binary (KServe v2 with binary tensors), tensorflow,\n"
           "                          raw; left out, what the server speaks\n"
           "  --binary                the same as --format binary\n"
           "  --lengths D             tokens per request: 40, uniform:5:60, lognormal:40:0.9 "
           "(median\n"
           "                          and sigma; at most 512, or :max=N), file:PATH\n"
           "  --rows N                rows per request (1)\n"
           "  --vocabulary N          made token ids are below N (1000)\n"
           "  --ids FILE              token ids, a line per request\n"
           "  --data FILE             whole JSON bodies, a line per request\n"
           "  --shuffle               the lines in random order\n"
           "  --pool N                different requests to make (512, fewer of large ones)\n"
           "  --expect FILE           right answers, a JSON line per line of --data or --ids\n"
           "  --tolerance X           for numbers in it (1e-3)\n"
           "  --header 'NAME: VALUE'  on every request\n"
           "  --method M              GET, POST, ... with a path in the URL\n"
           "\n"
           "When: an open loop, whose latency counts from the intended time of each request\n"
           "  --rate R                requests per second\n"
           "  --arrivals A            poisson, constant, burst:SIZE, burst:SIZE:PERIOD,\n"
           "                          ramp:FROM:TO, steps:RATExTIME,RATExTIME,... (poisson)\n"
           "  --trace FILE            the times (and lengths or bodies) of an access log\n"
           "  --trace-speed X         X times as fast (1)\n"
           "or a closed loop, which waits for the server and so cannot see a stall as users do\n"
           "  --concurrency N         requests at once\n"
           "and in both\n"
           "  --duration T            of the measurement (10s)\n"
           "  --warm-up T             before it (2s)\n"
           "  --timeout T             a request without an answer after T has failed (10s)\n"
           "  --seed N                the same seed, the same load (1)\n"
           "\n"
           "How\n"
           "  --http1, --http2        protocol (https: what ALPN agrees; http: HTTP/1.1)\n"
           "  --connections N         kept open (rate / 50, 4 to 64; HTTP/2: 8; closed loop: the\n"
           "                          concurrency)\n"
           "  --connections-max N     opened when all are busy (1024, HTTP/2: twice as many)\n"
           "  --streams N             requests at once on an HTTP/2 connection (100)\n"
           "  --threads N             at most one per core (1)\n"
           "  --spin T                poll for the last T before a request is due (at most 50us "
           "and 2% of\n"
           "                          a core)\n"
           "  --realtime              run ahead of ordinary processes (needs CAP_SYS_NICE)\n"
           "  --cacert FILE, --insecure\n"
           "\n"
           "Objectives and search\n"
           "  --slo p99=50ms[,errors=0.1%]   exit code 1 when it is not held\n"
           "  --find-max              the highest rate that holds --slo, confirmed\n"
           "  --resolution X          of the search (0.03)\n"
           "  --confirm N             runs that must hold it as well (2)\n"
           "  --sweep FROM:TO:N | R,R,...    one run for each rate\n"
           "\n"
           "Reports\n"
           "  --json [FILE]  --csv [FILE]  --html FILE  --title TEXT  --quiet\n"
           "\n"
           "Exit code: 0 done, 1 objective not held, 2 wrong usage, 3 could not run, 4 every "
           "request "
           "failed\nor some answers were wrong (--expect), 5 cut short by a signal (what was "
           "measured is told).\n"
           "Everything: docs/load-testing.md\n";
}

typedef status option_take(options *o, const char *value);

static status number(const char *value, double least, double most, double *out)
{
    char *end;
    double parsed = strtod(value, &end);
    if (end == value || *end != 0 || !(parsed >= least) || parsed > most)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is no number from %g to %g", value,
                           least, most);
    *out = parsed;
    return STATUS_OK;
}

static status whole(const char *value, double least, double most, unsigned *out)
{
    double parsed;
    status s = number(value, least, most, &parsed);
    if (s)
        return s;
    if (parsed != floor(parsed))
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is no whole number", value);
    *out = (unsigned)parsed;
    return STATUS_OK;
}

#define TEXT(name, field)                                                                          \
    static status take_##name(options *o, const char *value)                                       \
    {                                                                                              \
        o->field = value;                                                                          \
        return STATUS_OK;                                                                          \
    }
TEXT(model, model)
TEXT(model_version, model_version)
TEXT(data, data_file)
TEXT(ids, ids_file)
TEXT(expect, expect_file)
TEXT(trace, trace_file)
TEXT(cacert, ca_file)
TEXT(title, title)
TEXT(html, html)
TEXT(arrivals, arrivals_text)
TEXT(lengths, lengths_text)

#define FLAG(name, statement)                                                                      \
    static status take_##name(options *o, const char *value)                                       \
    {                                                                                              \
        (void)value;                                                                               \
        statement;                                                                                 \
        return STATUS_OK;                                                                          \
    }
FLAG(binary, o->format = FORMAT_BINARY)
FLAG(shuffle, o->shuffle = true)
FLAG(http1, o->protocol = TARGET_HTTP1)
FLAG(http2, o->protocol = TARGET_HTTP2)
FLAG(insecure, o->insecure = true)
FLAG(find_max, o->mode = MODE_FIND_MAX)
FLAG(quiet, o->quiet = true)
FLAG(realtime, o->realtime = true)
FLAG(help, o->help = true)
FLAG(version, o->version = true)
FLAG(merge, o->mode = MODE_MERGE)
FLAG(compare, o->mode = MODE_COMPARE)
FLAG(json, o->json = value ? value : "-")
FLAG(csv, o->csv = value ? value : "-")

#define WHOLE(name, field, least, most)                                                            \
    static status take_##name(options *o, const char *value)                                       \
    {                                                                                              \
        return whole(value, least, most, &o->field);                                               \
    }
WHOLE(rows, rows, 1, 1e6)
WHOLE(vocabulary, vocabulary, 1, 1e9)
WHOLE(pool, pool, 1, 100000)
WHOLE(concurrency, concurrency, 1, 100000)
WHOLE(threads, threads, 1, 1024)
WHOLE(connections, connections, 1, 100000)
WHOLE(connections_max, connections_max, 1, 100000)
WHOLE(streams, streams, 1, 100000)
WHOLE(confirm, confirmations, 0, 100)

/* A token of RFC 9110: a method, or the name of a header. */
static bool is_token(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!isalnum((unsigned char)text[i]) &&
            (text[i] == 0 || strchr("!#$%&'*+-.^_`|~", text[i]) == NULL))
            return false;
    return bytes != 0;
}

static status take_method(options *o, const char *value)
{
    if (!is_token(value, strlen(value)))
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is no method such as GET or POST",
                           value);
    o->method = value;
    return STATUS_OK;
}

static status take_timeout(options *o, const char *value)
{
    status s = quantity_duration(value, &o->timeout_ns);
    if (!s && o->timeout_ns == 0)
        s = status_fail(STATUS_INVALID_ARGUMENT, "must be more than 0");
    return s;
}

static status take_duration(options *o, const char *value)
{
    o->duration_given = true;
    return quantity_duration(value, &o->duration_ns);
}

static status take_spin(options *o, const char *value)
{
    o->spin_given = true;
    return quantity_duration(value, &o->spin_ns);
}

static status take_warm_up(options *o, const char *value)
{
    return quantity_duration(value, &o->warm_up_ns);
}

static status take_rate(options *o, const char *value)
{
    return number(value, 1e-3, 1e8, &o->rate);
}

static status take_tolerance(options *o, const char *value)
{
    return number(value, 0, 1e9, &o->tolerance);
}

static status take_trace_speed(options *o, const char *value)
{
    return number(value, 1e-6, 1e6, &o->trace_speed);
}

static status take_resolution(options *o, const char *value)
{
    return number(value, 0.001, 1, &o->resolution);
}

static status take_seed(options *o, const char *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(value, &end, 0);
    if (end == value || *end != 0 || errno == ERANGE || parsed < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" is no whole number from 0 to %lld",
                           value, LLONG_MAX);
    o->seed = (uint64_t)parsed;
    return STATUS_OK;
}

static status take_slo(options *o, const char *value)
{
    return result_slo_parse(o->slo, &o->slo_count, value);
}

static status take_format(options *o, const char *value)
{
    static const char *const names[] = {"auto", "kserve", "binary", "tensorflow", "raw"};
    for (int i = 0; i < 5; i++)
        if (strcmp(value, names[i]) == 0) {
            o->format = i;
            return STATUS_OK;
        }
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "unknown format \"%s\": auto, kserve, binary, tensorflow or raw", value);
}

static status take_protocol(options *o, const char *value)
{
    if (strcmp(value, "auto") == 0)
        o->protocol = TARGET_AUTO;
    else if (strcmp(value, "http1") == 0 || strcmp(value, "http/1.1") == 0)
        o->protocol = TARGET_HTTP1;
    else if (strcmp(value, "http2") == 0 || strcmp(value, "h2") == 0 || strcmp(value, "h2c") == 0)
        o->protocol = TARGET_HTTP2;
    else
        return status_fail(STATUS_INVALID_ARGUMENT, "unknown protocol \"%s\": auto, http1 or http2",
                           value);
    return STATUS_OK;
}

static status take_header(options *o, const char *value)
{
    const char *colon = strchr(value, ':');
    if (colon == NULL || !is_token(value, (size_t)(colon - value)) ||
        strpbrk(value, "\r\n") != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\": a header is 'NAME: VALUE'", value);
    if (o->header_count == OPTIONS_HEADERS_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "at most %d headers", OPTIONS_HEADERS_MAX);
    char *name = memory_copy_string(value, (size_t)(colon - value));
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    o->headers[o->header_count++] = (request_header){name, colon + 1 + strspn(colon + 1, " \t")};
    return STATUS_OK;
}

static status take_sweep(options *o, const char *value)
{
    double from, to;
    unsigned count;
    char tail;
    o->mode = MODE_SWEEP;
    o->sweep_count = 0;
    if (sscanf(value, "%lf:%lf:%u%c", &from, &to, &count, &tail) == 3) {
        if (!(from > 0) || !(to > from) || count < 2 || count > OPTIONS_RATES_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "--sweep FROM:TO:N needs 0 < FROM < TO "
                               "and 2 to %d runs",
                               OPTIONS_RATES_MAX);
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
                               "\"%s\": a sweep is FROM:TO:N or up to %d rates R,R,...", value,
                               OPTIONS_RATES_MAX);
        o->sweep[o->sweep_count++] = rate;
        if (*end == 0)
            return STATUS_OK;
        at = end + 1;
    }
}

static const struct option_entry {
    const char *name;
    enum { NO_VALUE, A_VALUE, MAYBE_A_VALUE } value;
    option_take *take;
} entries[] = {
    {"model", A_VALUE, take_model},
    {"model-version", A_VALUE, take_model_version},
    {"format", A_VALUE, take_format},
    {"binary", NO_VALUE, take_binary},
    {"lengths", A_VALUE, take_lengths},
    {"rows", A_VALUE, take_rows},
    {"vocabulary", A_VALUE, take_vocabulary},
    {"ids", A_VALUE, take_ids},
    {"data", A_VALUE, take_data},
    {"shuffle", NO_VALUE, take_shuffle},
    {"pool", A_VALUE, take_pool},
    {"expect", A_VALUE, take_expect},
    {"tolerance", A_VALUE, take_tolerance},
    {"header", A_VALUE, take_header},
    {"method", A_VALUE, take_method},
    {"rate", A_VALUE, take_rate},
    {"arrivals", A_VALUE, take_arrivals},
    {"trace", A_VALUE, take_trace},
    {"trace-speed", A_VALUE, take_trace_speed},
    {"concurrency", A_VALUE, take_concurrency},
    {"duration", A_VALUE, take_duration},
    {"warm-up", A_VALUE, take_warm_up},
    {"warmup", A_VALUE, take_warm_up},
    {"timeout", A_VALUE, take_timeout},
    {"seed", A_VALUE, take_seed},
    {"http1", NO_VALUE, take_http1},
    {"http2", NO_VALUE, take_http2},
    {"h2", NO_VALUE, take_http2},
    {"h2c", NO_VALUE, take_http2},
    {"protocol", A_VALUE, take_protocol},
    {"connections", A_VALUE, take_connections},
    {"connections-max", A_VALUE, take_connections_max},
    {"streams", A_VALUE, take_streams},
    {"threads", A_VALUE, take_threads},
    {"spin", A_VALUE, take_spin},
    {"realtime", NO_VALUE, take_realtime},
    {"cacert", A_VALUE, take_cacert},
    {"insecure", NO_VALUE, take_insecure},
    {"slo", A_VALUE, take_slo},
    {"find-max", NO_VALUE, take_find_max},
    {"resolution", A_VALUE, take_resolution},
    {"confirm", A_VALUE, take_confirm},
    {"sweep", A_VALUE, take_sweep},
    {"json", MAYBE_A_VALUE, take_json},
    {"csv", MAYBE_A_VALUE, take_csv},
    {"html", A_VALUE, take_html},
    {"title", A_VALUE, take_title},
    {"quiet", NO_VALUE, take_quiet},
    {"merge", NO_VALUE, take_merge},
    {"compare", NO_VALUE, take_compare},
    {"help", NO_VALUE, take_help},
    {"version", NO_VALUE, take_version},
};
#define ENTRIES (sizeof entries / sizeof *entries)

/* Levenshtein, for names of at most 31 bytes. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[32], bytes = (unsigned)strnlen(b, 31);
    for (unsigned j = 0; j <= bytes; j++)
        row[j] = j;
    for (unsigned i = 0; a[i] != 0; i++) {
        unsigned diagonal = row[0];
        row[0] = i + 1;
        for (unsigned j = 1; j <= bytes; j++) {
            unsigned best = diagonal + (a[i] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[bytes];
}

static status unknown_option(const char *name)
{
    size_t best = 0;
    for (size_t i = 1; i < ENTRIES; i++)
        if (distance(name, entries[i].name) < distance(name, entries[best].name))
            best = i;
    if (distance(name, entries[best].name) <= 3)
        return status_fail(STATUS_INVALID_ARGUMENT, "no option --%s; did you mean --%s?", name,
                           entries[best].name);
    return status_fail(STATUS_INVALID_ARGUMENT, "no option --%s; see --help", name);
}

/* Whether an argument can be the file of --json: not an option, not a URL. */
static bool is_file(const char *argument)
{
    return argument != NULL && (argument[0] != '-' || argument[1] == 0) &&
           strstr(argument, "://") == NULL;
}

static status take_option(options *o, int argc, char **argv, int *at)
{
    const char *text = argv[*at] + 2, *equals = strchr(text, '=');
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - text : 31), text);
    for (size_t i = 0; i < ENTRIES; i++) {
        if (strcmp(name, entries[i].name) != 0)
            continue;
        const char *value = equals ? equals + 1 : NULL;
        if (entries[i].value == NO_VALUE && value != NULL)
            return status_fail(STATUS_INVALID_ARGUMENT, "--%s takes no value", name);
        const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
        if (value == NULL && next != NULL &&
            (entries[i].value == A_VALUE || (entries[i].value == MAYBE_A_VALUE && is_file(next)))) {
            value = next;
            ++*at;
        }
        if (value == NULL && entries[i].value == A_VALUE)
            return status_fail(STATUS_INVALID_ARGUMENT, "--%s needs a value", name);
        status s = entries[i].take(o, value);
        return s ? status_prefix(s, "--%s", name) : STATUS_OK;
    }
    return unknown_option(name);
}

static status bad(const char *what)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "%s", what);
}

/* Fills in what follows from the rest, and refuses what contradicts it. */
static status settle(options *o)
{
    if (o->mode == MODE_MERGE || o->mode == MODE_COMPARE) {
        if (o->url != NULL)
            return bad("--merge and --compare read files, they call no URL");
        if (o->mode == MODE_COMPARE && o->file_count != 2)
            return bad("--compare needs two files");
        return o->file_count ? STATUS_OK : bad("--merge needs files");
    }
    if (o->url == NULL)
        return bad("no URL; see --help");
    if (o->file_count != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "unexpected argument \"%s\"", o->files[0]);
    if (o->data_file != NULL && o->ids_file != NULL)
        return bad("--data and --ids: choose one");
    status s = STATUS_OK;
    if (o->lengths_text != NULL && (s = length_parse(&o->lengths, o->lengths_text)) != STATUS_OK)
        return status_prefix(s, "--lengths");
    o->arrivals.duration_ns = o->duration_ns;
    if (o->arrivals_text != NULL &&
        (s = arrival_parse(&o->arrivals, o->arrivals_text)) != STATUS_OK)
        return status_prefix(s, "--arrivals");
    arrival_kind kind = o->arrivals.kind;
    bool own_rate = kind == ARRIVAL_RAMP || kind == ARRIVAL_STEPS || o->trace_file != NULL ||
                    (kind == ARRIVAL_BURST && o->arrivals.burst_period_ns != 0);
    if (o->mode == MODE_FIND_MAX && o->slo_count == 0)
        return bad("--find-max needs an objective, such as --slo p99=50ms");
    if (o->mode != MODE_RUN && (own_rate || o->concurrency))
        return bad("a search sets the rate itself: no --concurrency, --trace or arrivals with a "
                   "rate of their own");
    if (o->mode == MODE_SWEEP && o->rate != 0)
        return bad("--sweep gives the rates, --rate too: choose one");
    if (o->mode != MODE_RUN)
        return STATUS_OK;
    if (o->concurrency != 0 && (o->rate != 0 || own_rate || o->arrivals_text != NULL))
        return bad("--concurrency is a closed loop, a rate or arrivals make an open one: choose "
                   "one (--connections bounds connections)");
    if (own_rate && o->rate != 0)
        return bad("these arrivals have a rate of their own: leave --rate out");
    if (!own_rate && o->rate == 0 && o->concurrency == 0)
        return bad("say how much: --rate R (open loop), --concurrency N (closed loop), "
                   "--find-max or --sweep");
    if (!own_rate)
        o->arrivals.rate = o->rate;
    if (o->arrivals.duration_ns < 1000000)
        return bad("--duration is too short");
    o->duration_ns = o->arrivals.duration_ns;
    return STATUS_OK;
}

status options_parse(options *o, int argc, char **argv)
{
    *o = (options){.rows = 1,
                   .vocabulary = 1000,
                   .tolerance = 1e-3,
                   .trace_speed = 1,
                   .lengths = {.kind = LENGTH_FIXED, .a = 32, .max = UINT32_MAX},
                   .duration_ns = 10000000000u,
                   .warm_up_ns = 2000000000u,
                   .timeout_ns = 10000000000u,
                   .seed = 1,
                   .threads = 1,
                   .streams = 100,
                   .resolution = 0.03,
                   .confirmations = 2};
    for (int i = 1; i < argc; i++) {
        status s = STATUS_OK;
        if (strcmp(argv[i], "-h") == 0)
            o->help = true;
        else if (strncmp(argv[i], "--", 2) == 0)
            s = take_option(o, argc, argv, &i);
        else if (argv[i][0] == '-' && argv[i][1] != 0)
            s = status_fail(STATUS_INVALID_ARGUMENT, "no option %s; see --help", argv[i]);
        else if (o->url == NULL && o->mode != MODE_MERGE && o->mode != MODE_COMPARE)
            o->url = argv[i];
        else if (o->file_count < OPTIONS_FILES_MAX)
            o->files[o->file_count++] = argv[i];
        else
            s = bad("too many files");
        if (s)
            return s;
    }
    return o->help || o->version ? STATUS_OK : settle(o);
}

void options_dispose(options *o)
{
    for (size_t i = 0; i < o->header_count; i++)
        free((char *)o->headers[i].name);
    length_dispose(&o->lengths);
}
