#include "loadtest/options.h"

#include <stdlib.h>
#include <string.h>

#include "loadtest/option_table.h"

static status bad(const char *what)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "%s", what);
}

/* Derives what follows from other options and rejects contradictions. */
static status derive(options *o)
{
    if (o->mode == MODE_MERGE || o->mode == MODE_COMPARE) {
        if (o->url != NULL)
            return bad("--merge and --compare read files and take no URL");
        if (o->mode == MODE_COMPARE && o->file_count != 2)
            return bad("--compare needs two files");
        return o->file_count ? STATUS_OK : bad("--merge needs files");
    }
    if (o->url == NULL)
        return bad("URL is missing");
    if (o->file_count != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "unexpected argument \"%s\"", o->files[0]);
    if (o->data_file != NULL && o->ids_file != NULL)
        return bad("--data and --ids exclude each other");
    if (o->text_file != NULL && (o->data_file != NULL || o->ids_file != NULL))
        return bad("--text excludes --data and --ids");
    if ((o->format == FORMAT_OPENAI || o->format == FORMAT_TEI) && o->text_file == NULL)
        return bad("the formats openai and tei need --text");
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
        return bad(
            "--find-max and --sweep set the rate: leave out --concurrency, --trace and arrivals "
            "that have a rate");
    if (o->mode == MODE_SWEEP && o->rate != 0)
        return bad("--sweep and --rate exclude each other");
    if (o->mode != MODE_RUN)
        return STATUS_OK;
    if (o->concurrency != 0 && (o->rate != 0 || own_rate || o->arrivals_text != NULL))
        return bad("--concurrency makes a closed loop, a rate or arrivals an open one: choose one "
                   "(--connections limits connections)");
    if (own_rate && o->rate != 0)
        return bad("these arrivals have a rate: leave out --rate");
    if (!own_rate && o->rate == 0 && o->concurrency == 0)
        return bad("no load given: use --rate R (open loop), --concurrency N (closed loop), "
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
            s = option_table_read(o, argc, argv, &i);
        else if (argv[i][0] == '-' && argv[i][1] != 0)
            s = status_fail(STATUS_INVALID_ARGUMENT, "unknown flag %s", argv[i]);
        else if (o->url == NULL && o->mode != MODE_MERGE && o->mode != MODE_COMPARE)
            o->url = argv[i];
        else if (o->file_count < OPTIONS_FILES_MAX)
            o->files[o->file_count++] = argv[i];
        else
            s = bad("too many files");
        if (s)
            return s;
    }
    return o->help || o->version ? STATUS_OK : derive(o);
}

void options_dispose(options *o)
{
    for (size_t i = 0; i < o->header_count; i++)
        free((char *)o->headers[i].name);
    length_dispose(&o->lengths);
}
